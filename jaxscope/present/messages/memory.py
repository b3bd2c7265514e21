"""Templates for device memory: growing arrays, replicated arrays, uneven devices, programs that do not fit
(JX501 to JX510)."""

TEMPLATES = {
    "growing-arrays": "{arrays} by {more} and {more_bytes} per step: {count}, {bytes} after step {step}",
    "growing-array": "{path} becomes longer by {more_bytes} per step: {bytes} after step {step}",
    "growing-arrays-by-time": "{arrays} while the program runs, to {count} ({bytes}) after {seconds}",
    "growing-array-by-time": "{path} becomes longer while the program runs: {bytes} after {seconds}",
    "path-grows": "{path} grows",
    "held-arrays-grow": "arrays held by {holder} grow",
    "unreferenced-arrays-grow": "arrays that no known variable refers to grow",
    "arrays-of-bytes": "{count}, {bytes}",
    "arrays-at-time": "{count}, {bytes} after {seconds}",
    "fix-pass-captured-arrays": "pass them as arguments: each trace keeps the arrays that it captured",
    "fix-release": "drop the references to the results of this line: {holder} keeps them",
    "fix-find-references": (
        "find what keeps the results of this line: a reference cycle, a cache or an object in a library"
    ),
    "fix-keep-numbers": (
        "keep Python numbers in {container} instead of arrays: append float(x) of the previous step, so that"
        " the program does not wait for the device"
    ),
    "fix-final-length": (
        "make {path} as long as it will be at the end, and write into it: {path}.at[i].set(x). Each new"
        " length copies the whole array, and recompiles the functions that use it"
    ),
    "fix-keep-error-text": (
        "keep str(error) in {container}, or error.with_traceback(None): an exception keeps the"
        " variables of the functions that it passed through"
    ),
    "fix-bound-cache": "bound the cache of {function}: functools.lru_cache(maxsize=...)",
    "fix-keep-fewer": "limit how many arrays {container} keeps, or copy them to the host with jax.device_get",
    "replicated-array": (
        "{path} is replicated {copies} times over {axes}{like}: it takes {held} on each device,"
        " {saved} less if it is sharded over {axis!r}{arrays}"
    ),
    "mesh-axis": "mesh axis {names}",
    "mesh-axes": "mesh axes {names}",
    "tree-arrays": " ({count}, the largest {largest})",
    "one-is-sharded": " ({path} is sharded over {axis!r})",
    "several-are-sharded": " ({path} and {more} more of {tree} are sharded over {axis!r})",
    "replicated-bytes": "{path}: {bytes} on each device, dimension {dimension} can be sharded",
    "fix-shard-dimension": (
        "shard dimension {dimension} of {path} over the axis {axis!r} in its PartitionSpec{like}{others}"
    ),
    "shard-like": ", like {path}",
    "shard-the-others": "; for each of the others, choose a dimension that the axis size divides",
    "uneven-devices": "device {fullest} holds {most}, device {emptiest} holds {least}{array}",
    "is-on-device": ": {path} ({bytes}) is on device {device}",
    "device-holds": "device {device}: {bytes}",
    "fix-shard-over-mesh": "shard {path} over the mesh: jax.device_put(x, NamedSharding(mesh, P(...)))",
    "does-not-fit": "{function} needs {peak} on each device{beside}: {capacity}",
    "beside-live-arrays": ", in addition to {bytes} of live arrays",
    "device-has": "a device has {bytes}",
    "host-has": "the host has {bytes}",
    "devices-share": "{devices} devices of this host share {bytes}",
    "fix-less-memory": (
        "shard its largest arrays over more devices, donate the arguments that it replaces, or"
        " process smaller pieces"
    ),
    "nearly-full": "device {device} used {share} of its memory: {peak} of {limit}",
    "fix-nearly-full": "a larger batch will not fit; jaxscope report --all lists the largest arrays",
}
