"""Templates for programs that do not fit into the target for which they were compiled (JX801)."""

TEMPLATES = {
    "too-large-for-target": (
        "{function} does not fit into {target}: it needs {needed}, {excess} more than the {capacity}"
        " of one {device}{others}"
    ),
    "ran-out-of-memory": "{function} does not fit into the memory of {target}{capacity}: the"
    " compiler found no room for its arrays{others}",
    "beyond-scoped-limit": (
        "{function} does not compile for {target}: {operation} needs {needed} of {space} at once, and the"
        " compiler's limit for one operation is {limit}{others}"
    ),
    "device-capacity": " (one {device} has {capacity})",
    "device-of-machine": "{machine} {kind}",
    "bytes-of-space": "{bytes} of {space}",
    "bytes-of-temporaries": "{bytes} of temporaries",
    "bytes-in-parts": "{bytes} ({parts})",
    "bytes-of-part": "{part} {bytes}",
    "and-one-more-program": " ({n} more of its programs does not fit either)",
    "and-more-programs": " ({n} more of its programs do not fit either)",
    "largest-buffer": "{bytes} {kind}{what}",
    "buffer-of": ": {what}",
    "argument-size": "argument {path}: {size}",
    "result-size": "{path}: {size}",
    "bytes-on-each-device": "{bytes} on each device",
    "bytes-on-all-devices": "{bytes} on all devices together",
    "size-unknown": "its size is unknown",
    "fix-smaller-blocks": "use smaller blocks in the Pallas kernel of this program:"
    " they must fit into {space}",
    "fix-kernel-limit": (
        "make the blocks that the kernel keeps in {space} smaller, or allow the kernel more memory:"
        " vmem_limit_bytes in its pltpu.CompilerParams, or the flag --xla_tpu_scoped_vmem_limit_kib={kib} in"
        " LIBTPU_INIT_ARGS"
    ),
    "fix-scoped-limit": (
        "allow more memory for one operation: the flag --xla_tpu_scoped_vmem_limit_kib={kib} in"
        " LIBTPU_INIT_ARGS, or jax.jit with compiler_options={{'xla_tpu_scoped_vmem_limit_kib': '{kib}'}}. Or"
        " change the sizes of the arrays of this operation"
    ),
    "fix-smaller-pieces": (
        "process smaller pieces (jax.lax.map with batch_size=, a scan over microbatches), save less for the"
        " backward pass (jax.checkpoint), or shard the arrays over more devices"
    ),
    "fix-shard-and-donate": (
        "shard {path} over the mesh (PartitionSpec) or over more devices, and donate the arguments that"
        " {function} replaces"
    ),
}
