"""EVERY private name of JAX, each as a named behaviour with its evidence.

A seam that is missing on this JAX costs the fields it gives, never the recording: ``table`` says
which are there and why not, ``jaxscope doctor`` prints it, and the log carries it as Degraded.

Evidence: read in the sources of JAX 0.10.2 and 0.12.0.1 and checked by tests on both. The shape of
a miss, innermost frame first, is::

    jit:   _trace_for_jit < _infer_params < cache_miss < api_boundary < caller
           _pjit_call_impl_python < _run_python_pjit < cache_miss < ...
           _cached_lowering_to_hlo < lower_sharding_computation < _pjit_lower < _resolve_and_lower < ...
           _cached_compilation < from_hlo < MeshComputation.compile < _pjit_call_impl_python < ...
    under grad, vmap:   _pjit_call_impl_python < call_impl_cache_miss < _pjit_call_impl < ...
    ahead of time:      _trace_for_jit < _infer_params < jit_trace;  _pjit_lower < ... < Traced.lower;
                        _cached_compilation < from_hlo < ... < Lowered.compile
"""

from __future__ import annotations

import functools
import gc
import importlib
import re
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any, NamedTuple

from jaxscope.capture import frames

ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-fA-F]+")

# Function names of JAX's miss path, as they stand on the stack.
TRANSFORM_FRAME = "call_impl_cache_miss"
CALL_FRAMES = ("cache_miss", TRANSFORM_FRAME, "jit_trace")
TRACE_FRAME = "_trace_for_jit"
TRACE_GUARD = "elapsed_time_ctx"  # a new nullcontext where no event tells the end of the trace
TRACER_FRAMES = ("trace_to_jaxpr", "trace_to_jaxpr_nocache")  # 0.10: cached itself; 0.12: the body
IMPL_FRAME = "_pjit_call_impl_python"
RESOLVE_FRAME = "_resolve_and_lower"
LOWERER_FRAME = "_pjit_lower"
LOWER_FRAME = "_cached_lowering_to_hlo"
COMPILE_FRAME = "_cached_compilation"
EXECUTABLE_FRAME = "from_hlo"
# What a user's frame calls: beyond it lies another call.
ENTRANCES = ("reraise_with_filtered_traceback", "lower", "compile", "trace", "eval_shape", "__call__", "call")

# Names that come through the test-event slot and matter here; everything else is dropped first
# thing, because ``device_put`` and effects use the same slot on warm calls.
EVENT_MISS = "jit_cpp_cache_miss"
EVENT_TRACE = "trace_to_jaxpr"
EVENT_LOWER = "lower_jaxpr_to_module"
EVENT_PUT, EVENT_PUT_DONE = "batched_device_put_start", "batched_device_put_end"
EVENT_COPIED = "batched_copy_array"  # arguments with their sharding's twin on other devices
PUT_EVENTS = (EVENT_PUT, EVENT_PUT_DONE, EVENT_COPIED)
PUT_FRAME, COPY_FRAME = "batched_device_put", "_array_shard_arg"

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
    **dict.fromkeys((*CALL_FRAMES, "shard_args"), ARGUMENT),
    **dict.fromkeys(("pure_callback_impl", "io_callback_impl", "debug_callback_impl", "_flat_callback",
                     "_wrapped_callback", "_callback"), CALLBACK),
}  # fmt: skip

# Methods of ArrayImpl through which its property ``_value`` brings an array to the host: the whole array
# (0.12), one device's part (0.10). Each returns (NumPy array, whether it was copied), and is called only
# where JAX has kept no NumPy array of an earlier time. ``float``, ``int``, ``bool``, ``print``, ``tolist``,
# ``device_get`` and ``__array__`` all end here. On CPU ``np.asarray`` does not: NumPy asks for the buffer.
COPY_METHODS = ("_to_np_array_did_copy", "_single_device_array_to_np_array_did_copy")
ITEM = "item"  # on CPU it asks NumPy for the buffer, too: seen only where it is itself replaced
VALUE_FRAME = "_value"


TESTED = ((0, 10), (0, 12))


def untested(version: str) -> str | None:
    """What to say of a JAX outside the tested versions; None: it is within."""
    parts = version.split(".")[:2]
    if len(parts) < 2 or not all(p.isdecimal() for p in parts):
        return None
    found = int(parts[0]), int(parts[1])
    if TESTED[0] <= found <= TESTED[1]:
        return None
    low, high = (".".join(map(str, v)) for v in TESTED)
    return f"jaxscope is tested with JAX {low} to {high}; this one is {'older' if found < TESTED[0] else 'newer'}"


class Seam(NamedTuple):
    """One behaviour of this JAX: what it gives, and how to tell that it is there."""

    name: str
    gives: str
    check: Callable[[], str | None]  # None: available; else the reason why not


class Status(NamedTuple):
    name: str
    gives: str
    available: bool
    reason: str | None


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _code(function: Any) -> CodeType | None:
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    if code is None:
        # JAX's weakref_lru_cache is a C++ object without __wrapped__; the garbage collector knows
        # the function in it, beside the key function and the explainer (both defined elsewhere).
        for held in gc.get_referents(function):
            found = getattr(held, "__code__", None)
            if isinstance(found, CodeType) and found.co_name not in ("trace_context", "<lambda>", "_ignore"):
                return found
    return code


def _inner(code: CodeType | None, name: str) -> CodeType | None:
    """The code of the function ``name`` that ``code`` defines."""
    for const in code.co_consts if code is not None else ():
        if isinstance(const, CodeType) and const.co_name == name:
            return const
    return None


def _lacks(code: CodeType | None, where: str, names: Iterable[str]) -> str | None:
    if code is None:
        return f"{where} is not there"
    have = {*code.co_varnames, *code.co_freevars, *code.co_cellvars}
    lost = [n for n in names if n not in have]
    return f"{where} has no local {', '.join(lost)}" if lost else None


def _frame_of(module: str, function: str, *names: str) -> Callable[[], str | None]:
    def check() -> str | None:
        found = getattr(_module(module), function, None)
        if found is None:
            return f"{module}.{function} is not there"
        return _lacks(_code(found), f"{module}.{function}", names)

    return check


def _cache_miss() -> str | None:
    pjit = _module("jax._src.pjit")
    return _lacks(
        _inner(_code(getattr(pjit, "_cpp_pjit", None)), "cache_miss"),
        "jax._src.pjit.cache_miss",
        ("fun", "jit_info", "args", "kwargs"),
    )


def _from_hlo() -> str | None:
    pxla = _module("jax._src.interpreters.pxla")
    owner = getattr(pxla, "UnloadedMeshExecutable", None)
    return _lacks(
        _code(getattr(owner, "from_hlo", None)),
        "UnloadedMeshExecutable.from_hlo",
        ("out_shardings", "kept_var_idx", "backend", "device_list", "committed", "global_out_avals"),
    )


def _attribute(module: str, name: str) -> Callable[[], str | None]:
    return lambda: None if hasattr(_module(module), name) else f"{module}.{name} is not there"


def _copies() -> str | None:
    array = array_class()
    value = array.__dict__.get(VALUE_FRAME)
    names = getattr(_code(getattr(value, "fget", None)), "co_names", ())
    if not any(n in names and n in array.__dict__ for n in COPY_METHODS):
        return f"ArrayImpl.{VALUE_FRAME} calls none of {', '.join(COPY_METHODS)}"
    return None


def _scalars() -> str | None:
    monitoring = _module("jax.monitoring")
    if not hasattr(monitoring, "register_scalar_listener"):
        return "jax.monitoring.register_scalar_listener is not there"
    enter = getattr(
        getattr(_module("jax._src.dispatch"), "LogElapsedTimeContextManager", None), "__enter__", None
    )
    code = _code(enter)
    if code is None or "record_scalar" not in code.co_names:
        return "phases do not announce their beginning"
    return None


SEAMS = (
    Seam("phase_durations", "seconds of every trace, lowering and compilation", _attribute("jax.monitoring", "register_event_duration_secs_listener")),
    Seam("phase_starts", "what is being compiled now", _scalars),
    Seam("cache_events", "persistent-cache hits and misses", _attribute("jax.monitoring", "register_event_listener")),
    Seam("miss_event", "calls that leave the fast path; traces told from trace-cache hits", _attribute("jax._src.util", "test_event_listener")),
    Seam("call_frame", "the function, its jit options and its arguments by name", _cache_miss),
    Seam("trace_frame", "results of a trace, captured constants", _frame_of("jax._src.pjit", "_trace_for_jit", "fun", "jaxpr", "out_avals", "args", "kwargs")),
    Seam("nested_end", "whether a trace inside another ended or raised", _frame_of("jax._src.pjit", "_trace_for_jit", TRACE_GUARD)),
    Seam("impl_frame", "calls under grad, vmap and other transforms", _frame_of("jax._src.pjit", "_pjit_call_impl_python", "args", "jaxpr", "donated_invars")),
    Seam("lower_frame", "StableHLO, donation", _frame_of("jax._src.interpreters.pxla", "_cached_lowering_to_hlo", "lowering_result", "num_const_args", "module_name", "platforms", "num_devices")),
    Seam("compile_frame", "compiled HLO, memory and cost", _frame_of("jax._src.interpreters.pxla", "_cached_compilation", "xla_executable", "computation", "host_callbacks")),
    Seam("executable_frame", "shardings of results, arguments XLA drops", _from_hlo),
    Seam("trace_context", "every setting that is part of the cache key", lambda: None if hasattr(_module("jax._src.config"), "trace_context_names") else "jax._src.config.trace_context_names is not there"),
    Seam("recover_shardings", "result shardings in the user's mesh axes", _attribute("jax._src.interpreters.pxla", "_maybe_get_and_check_out_shardings")),
    Seam("cache_gauge", "whether JAX's caches were cleared, and how full they are", _attribute("jax._src.pjit", "_infer_params_cached")),
    Seam("live_arrays", "the arrays that are alive", _attribute("jax._src.xla_bridge", "_backends")),
    Seam("array_traceback", "the line that made an array", lambda: None if hasattr(_module("jax._src.array").ArrayImpl, "traceback") else "ArrayImpl has no traceback"),
    Seam("host_copies", "copies of arrays to the host, and how long they took (methods of ArrayImpl are replaced for it: off with --no-transfers)", _copies),
    Seam("device_puts", "copies to devices and between them", _frame_of("jax._src.interpreters.pxla", PUT_FRAME, "aval", "xs", "devices")),
    Seam("device_copies", "copies between devices at calls", _frame_of("jax._src.array", COPY_FRAME, "batch_xs", "batch_devs")),
    Seam("post_hook", "counting calls of --step-function", _attribute("jax._src.api", "_post_hook_state")),
)  # fmt: skip


def table() -> list[Status]:
    """Every seam with whether this JAX has it; imports jax."""
    rows = []
    for seam in SEAMS:
        try:
            reason = seam.check()
        except Exception as e:  # a module moved: that is the reason
            reason = f"{type(e).__name__}: {e}"
        rows.append(Status(seam.name, seam.gives, reason is None, reason))
    return rows


def in_jax(frame: FrameType) -> bool:
    return frames.root(frames.module_of(frame)) == "jax"


def stack_of_call(frame: FrameType | None) -> tuple[dict[str, FrameType], FrameType | None]:
    """JAX's frames from here up to the call in progress.

    Returns the innermost frame by function name, and the frame of the call itself (one of
    CALL_FRAMES), None where the work was asked for ahead of time (``Traced.lower``,
    ``Lowered.compile``). The walk ends where JAX was entered.
    """
    by_name: dict[str, FrameType] = {}
    below = ""
    for f in frames.walk(frame):
        name = f.f_code.co_name
        if in_jax(f):
            by_name.setdefault(name, f)
            if name in CALL_FRAMES:
                return by_name, f
        elif below in ENTRANCES:
            break
        # else our own listener, or a function that somebody put in the place of one of JAX's
        below = name
    return by_name, None


def held_by_trace(frame: FrameType) -> Any:
    """An object that lives as long as a trace's frame, and nobody else holds; None where there is none."""
    return frames.read(frame, TRACE_GUARD).get(TRACE_GUARD)


def context_settings() -> dict[str, str]:
    """Every trace-context setting by name: what JAX's trace cache compares besides the arguments."""
    config = _module("jax._src.config")
    values = config.trace_context()
    names = list(config.trace_context_names())
    if len(names) != len(values):
        names = [f"setting {i}" for i in range(len(values))]
    settings = {str(n): _short(v) for n, v in zip(names, values, strict=True)}
    # Not among the named ones where a default device is set by a context manager: read beside them.
    device = config.default_device.value
    if device is not None:
        settings["jax_default_device"] = str(device)
    return settings


def _short(value: object) -> str:
    sizes = getattr(value, "axis_sizes", None)
    if isinstance(sizes, dict):  # AxisEnv, which prints as an address
        return f"axes {sizes}, spmd {sorted(map(str, getattr(value, 'spmd_axis_names', ()) or ()))}"
    return ADDRESS.sub("", str(value))[:400]


def const_arrays(jaxpr: Any) -> list[Any]:
    """The arrays a trace captured: ``ClosedJaxpr.consts`` (0.10), ``Jaxpr.consts`` (0.12)."""
    return list(getattr(jaxpr, "consts", ()))


def debug_info(jaxpr: Any) -> Any:
    info = getattr(jaxpr, "debug_info", None)
    return info if info is not None else getattr(getattr(jaxpr, "jaxpr", None), "debug_info", None)


def function_source(jaxpr: Any) -> tuple[str, str | None, int | None]:
    """(name, file, line) of the traced function where only its jaxpr is at hand.

    ``debug_info.func_src_info`` reads ``"name at /path/file.py:12"``.
    """
    source = str(getattr(debug_info(jaxpr), "func_src_info", "") or "")
    name, _, place = source.partition(" at ")
    file, _, line = place.rpartition(":")
    return name or "<unknown>", file or None, int(line) if line.isdigit() else None


def is_trace_of(jaxpr: Any, jit_info: Any) -> bool:
    """Was ``jaxpr`` traced from the function that ``jit_info`` describes?"""
    source = getattr(debug_info(jaxpr), "func_src_info", None)
    return source is not None and source == getattr(jit_info, "fun_sourceinfo", None)


def equation_count(jaxpr: Any) -> int | None:
    eqns = getattr(jaxpr, "eqns", None)
    return None if eqns is None else len(eqns)


def out_paths(out_avals: Any) -> tuple[str, list[tuple[str, Any]]]:
    """(tree, [(path, aval)]) of a trace's results; a FlatTree on both versions."""
    keystr = _module("jax.tree_util").keystr
    avals = list(out_avals)
    tree = str(out_avals.tree)
    try:
        paths = [keystr(p) for p in out_avals.paths]
    except Exception:
        paths = []
    if len(paths) != len(avals):
        paths = [f"[{i}]" for i in range(len(avals))]
    return tree, list(zip(paths, avals, strict=True))


def recovered_out_shardings(executable: Any, local: dict[str, Any]) -> list[Any]:
    """The result shardings as JAX will report them, from ``from_hlo``'s locals.

    Calls the two pure functions that JAX itself calls a moment later; on one device it is trivial.
    """
    pxla = _module("jax._src.interpreters.pxla")
    devices, avals = local["device_list"], local["global_out_avals"]
    ordered = len(local.get("ordered_effects") or ())
    found = pxla._maybe_get_and_check_out_shardings(
        executable, local["out_shardings"], devices, avals, ordered
    )
    recovered = pxla.maybe_recover_user_shardings(
        local["in_shardings"],
        found,
        local["global_in_avals"],
        avals,
        local.get("intermediate_shardings"),
        local.get("context_mesh"),
    )
    return [_on_one_device(s, devices) if len(devices) == 1 else s for s in recovered]


def _on_one_device(sharding: Any, devices: Any) -> Any:
    """Results of a program for one device are SingleDeviceSharding, whatever the executable calls them."""
    if type(sharding).__name__ != "GSPMDSharding":
        return sharding
    single = _module("jax.sharding").SingleDeviceSharding
    return single(next(iter(devices)), memory_kind=sharding.memory_kind)


class Gauge(NamedTuple):
    """JAX's bounded caches of call signatures at this moment.

    ``misses`` counts since the caches were last cleared: ``jax.clear_caches()`` and ``f.clear_cache()``
    both set it to 0 (0.10.2 and 0.12.0.1). ``full`` has (entries, capacity) of those at least NEARLY_FULL.
    """

    misses: int
    full: dict[str, tuple[int, int]]


NEARLY_FULL = 0.9


def cache_gauge() -> Gauge:
    """How full the caches are; about 1 us."""
    pjit = _module("jax._src.pjit")
    info = pjit._infer_params_cached.cache_info()
    sizes = {"signatures": (info.currsize, info.maxsize)}
    for name, attribute in (
        ("fast path", "_cpp_pjit_cache_explicit_attributes"),
        ("fast path (no options)", "_cpp_pjit_cache_fun_only"),
    ):
        cache = getattr(pjit, attribute, None)
        if cache is not None:
            sizes[name] = (cache.size(), cache.capacity())
    return Gauge(info.misses, {n: (s, c) for n, (s, c) in sizes.items() if c and s >= NEARLY_FULL * c})


@functools.cache
def array_class() -> Any:
    """The class of concrete arrays."""
    return _module("jax._src.array").ArrayImpl


def is_on(array: Any, devices: Any) -> bool:
    """Does ``array`` lie on just these devices (JAX's own list of them), in this order?"""
    return bool(array.sharding._internal_device_list == devices)


def is_eager(function: Any) -> bool:
    """A primitive applied outside jit: ``dispatch.xla_primitive_callable`` marks its function."""
    return getattr(function, "_apply_primitive", False) is True


def test_listener() -> Any:
    return getattr(_module("jax._src.util"), "test_event_listener", None)


def set_test_listener(listener: Any) -> None:
    _module("jax._src.util").test_event_listener = listener


def has_test_slot() -> bool:
    return hasattr(_module("jax._src.util"), "test_event_listener")


def is_listening(listener: Any) -> bool:
    """Is ``listener`` still told of durations? True where this JAX cannot say."""
    known = getattr(_module("jax._src.monitoring"), "get_event_duration_listeners", None)
    return known is None or listener in known()


def committed(value: Any) -> bool | None:
    found = getattr(value, "committed", getattr(value, "_committed", None))
    return found if isinstance(found, bool) else None


def clients() -> list[Any]:
    """The backends that the program has started; asking JAX for its live arrays would start one."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return list(getattr(bridge, "_backends", {}).values())


def makeup(array: Any) -> tuple[Any, Any, Any, Any, Any]:
    """What tells one live array from another besides its aval, in 1 us; all of it hashable.

    Returns (sharding, its place, committed, stack, layout). The place is (device, memory kind) where there
    is one device, because such arrays have a sharding object each, else the sharding. The stack that made
    the array is jaxlib's record: ``frames``, innermost first. The layout compares like ``format.layout``.
    What this JAX has not is None.
    """
    sharding = array.sharding
    device = getattr(sharding, "_device", None)
    place = sharding if device is None else (device, getattr(sharding, "_memory_kind", None))
    stack = getattr(array, "traceback", None)
    return sharding, place, array._committed, stack, getattr(array, "_pjrt_layout", None)


def shard_views(arrays: list[Any]) -> set[int]:
    """Ids of the arrays that ``addressable_shards`` of others made: they are alive, and share their memory.

    JAX caches the list in an array's ``__dict__``; each Shard has its array in ``data``. The garbage
    collector is asked for the dicts: asking the arrays would give each one.
    """
    found: set[int] = set()
    for held in gc.get_referents(*arrays):
        if type(held) is dict:
            found.update(id(shard.data) for shard in held.get("addressable_shards", ()))
    return found


def held_array(value: Any) -> Any:
    """What a typed key (``_base_array``) or a Ref (``_refs``, ``_buf``) stands for; None for anything else."""
    for name in ("_base_array", "_refs", "_buf"):
        try:
            return object.__getattribute__(value, name)
        except AttributeError:
            continue
    return None


def wrapped_function(value: Any) -> Any:
    """The user's function in a jitted one."""
    try:
        return object.__getattribute__(value, "__wrapped__")
    except AttributeError:
        return None


def on_fast_path(called: Callable[[Any], None]) -> Callable[[], None]:
    """``called(function)`` after each fast-path call of a jitted function, about 0.5 us a call.

    ``_post_hook_state`` exists for ``jax_debug_nans``; a hook already there is chained. Returns how to
    undo it.

    Raises:
      AttributeError: no such hook on this JAX.
    """
    state = _module("jax._src.api")._post_hook_state
    previous = state.get_global()

    def hook(function: Any, args: Any, kwargs: Any, outs: Any) -> None:
        if previous is not None:
            previous(function, args, kwargs, outs)
        try:
            called(function)
        except Exception:  # whatever it is, the program's result is whole
            pass

    state.set_global(hook)

    def undo() -> None:
        if state.get_global() is hook:  # else jax_debug_nans has put its own in, and keeps it
            state.set_global(previous)

    return undo
