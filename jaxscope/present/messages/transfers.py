"""Transfers between host and devices, and between devices (JX601, JX602, JX511)."""

TEMPLATES = {
    "read-each-step": "{expression} at {line} waits for the device {often}, {seconds} in all",
    "copied-each-step": (
        "{expression} at {line} waits for the device and copies to the host {often}, {seconds} in all"
    ),
    "read-in-loop": (
        "{expression} at {line} waits for the device {n} times in the loop that calls {function}, {seconds}"
        " in all; an accelerator has no work while the host reads"
    ),
    "in-each-step": "{times}in each of {steps} steps{phase}",
    "in-most-steps": "{times}in {steps} of {since} steps{phase}",
    "helper-line": "{line}, called at {caller}",
    "phase-of-steps": " ({first} to {last})",
    "times-a-step": "{n} times ",
    "so-often": "{n} times",
    "copies": "{n} times, {amount}; the program waited for {share} of the time from the first to the last",
    "copies-without-copy": "{copies}; on this backend the host reads the array in place",
    "fix-decide-on-device": "decide on the device (jnp.where, jax.lax.cond), or read it every 50 steps or so",
    "fix-print-less": "print every 50 steps or so, or with jax.debug.print inside the jitted function",
    "fix-read-less": (
        "add the values up on the device and read the sum every 50 steps or so, or read the value"
        " of the previous step"
    ),
    "large-transfer-to-host": "{what} at {line} copies {bytes} to the host, {n} times",
    "large-transfer-to-device": "{what} at {line} copies {bytes} to the device, {n} times",
    "device-waits": (
        "the device has no work when this wait ends, until the next call: it waits for the host for at most "
        "{share} of the time, {seconds} a step"
    ),
    "large-transfer-each-call": "{what} at {line} copies {bytes} to the device in each iteration of its loop",
    "in-all": "{amount} in all",
    "bytes-unknown": "size unknown",
    "fix-copy-less": "copy less of it, or less often: jax.device_get of what is needed, every 50 steps or so",
    "fix-put-once": (
        "put it on the device once, before the loop; if it is new each time, put the next one while"
        " the device computes"
    ),
    "argument-on-other-device": "{paths} of {function} {is_on} another device than its program{copied}",
    "copied-so-often": ": {amount} copied {often}",
    "in-each-call": "in each call",
    "copied-at-the-call": "copied between devices when the function is called",
    "argument-sharding": "{path}: {sharding}",
    "program-on-devices": "{arguments}; the program runs on devices {devices}",
    "fix-put-where-used": (
        "before the loop, jax.device_put {path} to the devices of the program: to the sharding of another"
        " argument that is on them"
    ),
}
