"""Names of JAX's functions on the stack whose locals are not read, and of the events of its test slot."""

from __future__ import annotations

import re

from jaxscope.jax_internals.frames import call_frames

ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-fA-F]+")

TRACER_FRAMES = ("trace_to_jaxpr", "trace_to_jaxpr_nocache")  # 0.10: cached itself; 0.12: the body
# What a user's frame calls: the frames beyond it belong to another call.
ENTRANCES = ("reraise_with_filtered_traceback", "lower", "compile", "trace", "eval_shape", "__call__", "call")

# Names that come through the test-event slot and matter here; everything else is dropped first
# thing, because ``device_put`` and effects use the same slot on warm calls.
EVENT_MISS = "jit_cpp_cache_miss"
EVENT_TRACE = "trace_to_jaxpr"
EVENT_LOWER = "lower_jaxpr_to_module"
EVENT_PUT, EVENT_PUT_DONE = "batched_device_put_start", "batched_device_put_end"
EVENT_COPIED = "batched_copy_array"  # arguments with their sharding's twin on other devices

# What a copy is called, by the outermost of JAX's functions between it and the program's line.
ARGUMENT, CALLBACK, CONSTANT = "argument", "callback", "constant"
TRANSFER_FRAMES = {
    "__float__": "float", "__int__": "int", "__bool__": "bool", "__complex__": "complex",
    "__index__": "int", "__hex__": "int", "__oct__": "int", "_item": "item", "tolist": "tolist",
    "tobytes": "tobytes", "__format__": "format", "__str__": "print", "__repr__": "print",
    "__array__": "np.asarray", "device_get": "device_get", "__iter__": "iteration", "_iter": "iteration",
    "__reversed__": "iteration", "__reduce__": "pickle", "to_dlpack": "dlpack",
    "process_allgather": "process_allgather", "check_special": "debug_nans", "_check_special": "debug_nans",
    "device_put": "device_put", "asarray": "jnp.asarray", "array": "jnp.array",
    "device_put_sharded": "device_put", "device_put_replicated": "device_put",
    "make_array_from_callback": "make_array", "make_array_from_process_local_data": "make_array",
    "make_array_from_single_device_arrays": "make_array",
    "_array_mlir_constant_handler": CONSTANT,  # while lowering: an array that the function captured
    **dict.fromkeys((*call_frames(), "shard_args"), ARGUMENT),
    **dict.fromkeys(("pure_callback_impl", "io_callback_impl", "debug_callback_impl", "_flat_callback",
                     "_wrapped_callback", "_callback"), CALLBACK),
}  # fmt: skip

# Below these the program's own function runs on the host, called by a compiled program.
CALLBACK_FRAMES = frozenset(name for name, via in TRANSFER_FRAMES.items() if via == CALLBACK)

# Methods of ArrayImpl through which its property ``_value`` brings an array to the host: the whole array
# (0.12), one device's part (0.10). Each returns (NumPy array, whether it was copied), and is called only
# where JAX has kept no NumPy array of an earlier time. ``float``, ``int``, ``bool``, ``print``, ``tolist``,
# ``device_get`` and ``__array__`` all end here. On CPU ``np.asarray`` does not: NumPy asks for the buffer.
COPY_METHODS = ("_to_np_array_did_copy", "_single_device_array_to_np_array_did_copy")
ITEM = "item"  # on CPU it asks NumPy for the buffer, too: seen only where it is itself replaced

# Modules of JAX that stand between the line that calls a jitted function and the call; one trims tracebacks.
TRIMS_TRACEBACKS = "jax._src.traceback_util"
AROUND_CALLS = frozenset({TRIMS_TRACEBACKS, "jax._src.pjit", "jax._src.stages", "jax._src.api"})
