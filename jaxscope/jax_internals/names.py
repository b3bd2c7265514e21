"""List names of JAX: functions that jaxscope recognizes on the stack without reading their variables, and
events that JAX sends to the listener for its own tests."""

from __future__ import annotations

import re

from jaxscope.jax_internals.frames import CallFrame, call_frames

ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-fA-F]+")

# The function that traces: in JAX 0.10 ``trace_to_jaxpr``, which is cached; in 0.12
# ``trace_to_jaxpr_nocache``, the function inside the cache.
TRACER_FRAMES = ("trace_to_jaxpr", "trace_to_jaxpr_nocache")
# Functions of JAX that a program calls. Their callers on the stack belong to the program or to another call.
ENTRANCES = ("reraise_with_filtered_traceback", "lower", "compile", "trace", "eval_shape", "__call__", "call")

# Events that JAX passes to ``test_event_listener`` and that jaxscope uses. jaxscope's listener returns at
# once for all other events, because ``device_put`` and effects send events in every call.
EVENT_MISS = "jit_cpp_cache_miss"
EVENT_TRACE = "trace_to_jaxpr"
EVENT_LOWER = "lower_jaxpr_to_module"
EVENT_PUT, EVENT_PUT_DONE = "batched_device_put_start", "batched_device_put_end"
EVENT_COPIED = "batched_copy_array"  # copies arguments to other devices, with the same sharding

# The kind of a copy in a recording, by the outermost function of JAX between the copy and the program's line.
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

# These functions of JAX call a function of the program on the host, for a compiled program.
CALLBACK_FRAMES = frozenset(name for name, via in TRANSFER_FRAMES.items() if via == CALLBACK)

# Methods of ArrayImpl through which its property ``_value`` brings an array to the host: the whole array
# (0.12), one device's part (0.10). Each returns (NumPy array, whether it was copied), and is called only
# if JAX has not kept the NumPy array of an earlier copy. ``float``, ``int``, ``bool``, ``print``, ``tolist``,
# ``device_get`` and ``__array__`` all end here. On CPU ``np.asarray`` does not: NumPy asks for the buffer.
COPY_METHODS = ("_to_np_array_did_copy", "_single_device_array_to_np_array_did_copy")
# On CPU, ``item`` does not end there either: only a replacement of the method ``item`` itself sees the copy.
ITEM = "item"

# The modules of JAX's functions that apply a function to each leaf of a pytree
TREE_MODULES = frozenset({"jax._src.tree", "jax._src.tree_util"})

# The function of JAX that runs a jitted call which is not on the fast path
CALL_FRAME = CallFrame.function
# The functions of JAX that copy arrays to devices
COPYING_FRAMES = frozenset(
    name
    for name, via in TRANSFER_FRAMES.items()
    if via in ("device_put", "jnp.asarray", "jnp.array", "make_array")
)
# The functions of JAX that read the values of an array on the host, and those that wait for them
_READS = [
    "float",
    "int",
    "bool",
    "complex",
    "item",
    "tolist",
    "tobytes",
    "np.asarray",
    "device_get",
    "pickle",
    "dlpack",
]
WAITING_FRAMES = frozenset(
    {*COPY_METHODS, "block_until_ready", "_value", "effects_barrier"}
    | {name for name, via in TRANSFER_FRAMES.items() if via in _READS}
)
# The functions of JAX that make text of arrays. They read the values by a function in WAITING_FRAMES.
TEXT_FRAMES = frozenset(name for name, via in TRANSFER_FRAMES.items() if via in ("print", "format"))
# The functions of JAX that check results for NaN and infinity (the settings jax_debug_nans, jax_debug_infs)
CHECKING_FRAMES = frozenset(
    {"_nan_check_posthook", *(name for name, via in TRANSFER_FRAMES.items() if via == "debug_nans")}
)
# The call of a program that the user's program compiled ahead of time, by qualified name
CALLS_AHEAD_OF_TIME = ("Compiled.__call__", "Compiled.call")
# Modules whose functions are only around what JAX does: they flatten trees, shorten tracebacks, and are
# called by Python's garbage collector.
AROUND = ("tree_util.py", "traceback_util.py", "_src/lib/__init__.py")
# Modules and functions of JAX that only describe dtypes, shapes, shardings and devices. JAX's operations
# call them, too.
DESCRIBES_FILES = ("_src/dtypes.py", "_src/partition_spec.py", "_src/mesh.py", "_src/xla_bridge.py")
DESCRIBES = frozenset(
    {
        "result_type",
        "broadcast_shapes",
        "issubdtype",
        "isscalar",
        "iscomplexobj",
        "shape",
        "ndim",
        "size",
        "typeof",
        "ArrayImpl.dtype",
        "ArrayImpl.shape",
        "ShapeDtypeStruct.__init__",
    }
)
# The functions of JAX that trace, lower and compile a program
COMPILING_FRAMES = frozenset(
    {
        *TRACER_FRAMES,
        "_trace_for_jit",
        "_pjit_lower",
        "_cached_lowering_to_hlo",
        "_cached_compilation",
        "from_hlo",
    }
)

# Modules of JAX with frames between the line that calls a jitted function and the call itself.
# The first one shortens tracebacks.
TRIMS_TRACEBACKS = "jax._src.traceback_util"
AROUND_CALLS = frozenset({TRIMS_TRACEBACKS, "jax._src.pjit", "jax._src.stages", "jax._src.api"})
