"""Templates for transfers between host and devices, and between devices (JX601, JX602, JX511)."""

TEMPLATES = {
    "read-each-step": "{expression} at {line} waits for the device {often}, {seconds} in all{saved}",
    "copied-each-step": (
        "{expression} at {line} waits for the device and copies to the host {often}, {seconds} in all{saved}"
    ),
    "read-in-loop": (
        "{expression} at {line} waits for the device {n} times in the loop that calls {function}, {seconds}"
        " in all{saved}; an accelerator has no work while the host reads"
    ),
    "in-each-step": "{times}in each of {steps} steps{phase}",
    "in-most-steps": "{times}in {steps} of {since} steps{phase}",
    "saved": ", of which the change saves at most {seconds}",
    "helper-line": "{line}, called at {caller}",
    "phase-of-steps": " ({first} to {last})",
    "times-a-step": "{n} times ",
    "so-often": "{n} times",
    "copies": (
        "{n} times, {amount}; the program waited for {share} of the time between the first and the last copy"
    ),
    "copies-without-copy": "{copies}; on this backend the host reads the array in place",
    "fix-decide-on-device": (
        "decide on the device (jnp.where, jax.lax.cond), or read the value only about every 50 steps"
    ),
    "fix-print-less": "print only about every 50 steps",
    "fix-read-less": (
        "add the values up on the device and read the sum about every 50 steps, or read the value of the"
        " previous step"
    ),
    "fix-read-for-several": (
        "{name} of the next iteration depends on this value: compute {name} in the jitted function, too; if"
        " Python has to compute {name} (a simulator), run several simulators side by side, with one call for"
        " all and one read of all their values"
    ),
    "large-transfer-to-host": "{what} at {line} copies {bytes} to the host, {n} times",
    "large-transfer-to-device": "{what} at {line} copies {bytes} to the device, {n} times",
    "device-waits": (
        "after each wait the device has no work until the next call: at most {share} of the time, {seconds}"
        " per step"
    ),
    "large-transfer-each-call": "{what} at {line} copies {bytes} to the device in each iteration of its loop",
    "in-all": "{amount} in all",
    "bytes-unknown": "size unknown",
    "fix-copy-less": (
        "copy a smaller part, or copy less often: jax.device_get of the values that you need, about every 50"
        " steps"
    ),
    "fix-put-once": (
        "put the data on the device once, before the loop; if the data are new in each iteration, put the"
        " next part on the device while the device computes"
    ),
    "argument-on-other-device": "{paths} of {function} {is_on} another device than the program{copied}",
    "copied-so-often": ": {amount} copied {often}",
    "in-each-call": "in each call",
    "copied-at-the-call": "copied between devices when the function is called",
    "argument-sharding": "{path}: {sharding}",
    "program-on-devices": "{arguments}; the program runs on devices {devices}",
    "fix-put-where-used": (
        "before the loop, jax.device_put {path} to the devices of the program: use the sharding of another"
        " argument that is on these devices"
    ),
}
