"""Find JAX's frames of the call in progress, and read the call and the settings in effect."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from jaxscope.jax_internals import attributes, devices
from jaxscope.jax_internals.base import JaxFrame, first_known, known, known_or_none
from jaxscope.jax_internals.frame_reading import module_of, read, root, walk
from jaxscope.jax_internals.frames import (
    AheadOfTimeFrame,
    CallFrame,
    CompileFrame,
    ExecutableFrame,
    ImplFrame,
    LowererFrame,
    LoweringFrame,
    PmapFrame,
    ResolveFrame,
    TraceFrame,
    TransformFrame,
    call_frames,
)
from jaxscope.jax_internals.names import ADDRESS, ENTRANCES, TRACER_FRAMES
from jaxscope.jax_internals.objects import JitInfo, JittedFunction
from jaxscope.jax_internals.programs import is_trace_of

MESH_DEVICES = "mesh devices"
Stack = dict[str, FrameType]  # the innermost frame of each of JAX's functions, by the function's name


def in_jax(frame: FrameType) -> bool:
    """Return whether it is a frame of JAX's own code."""
    return root(module_of(frame)) == "jax"


def stack_of_call(frame: FrameType | None) -> tuple[Stack, FrameType | None]:
    """Return JAX's frames from here up to the call in progress.

    Returns the innermost frame by function name, and the frame of the call itself (one of ``call_frames``),
    None for work ahead of time (``Traced.lower``, ``Lowered.compile``). The walk ends where JAX was entered.
    """
    by_name: Stack = {}
    calls = call_frames()
    below = ""
    for f in walk(frame):
        name = f.f_code.co_name
        if in_jax(f):
            by_name.setdefault(name, f)
            if name in calls:
                return by_name, f
        elif below in ENTRANCES:
            break
        # else our own listener, or a function that replaces one of JAX's
        below = name
    return by_name, None


def phase_raised(frame: FrameType) -> bool:
    """Return whether the phase whose end is announced at ``frame`` ended in an exception.

    If it did, the exception is leaving the phase's ``with`` statement, and its traceback has a frame
    between here and the call.
    """
    error = sys.exc_info()[1]
    if error is None:
        return False
    through = set()
    trace = error.__traceback__
    while trace is not None:
        through.add(trace.tb_frame)
        trace = trace.tb_next
    _, call = stack_of_call(frame)
    for f in walk(frame):
        if f in through:
            return True
        if f is call or (call is None and not in_jax(f) and f is not frame):
            return False
    return False


def on_stack(kind: type[JaxFrame], frame: FrameType) -> bool:
    """Return whether it is a frame of this function of JAX."""
    return frame.f_code.co_name == kind.function and in_jax(frame)


def function_identity(frame: FrameType) -> int:
    """Return the ``id()`` of the function that the call at ``frame`` runs, of its trace under a transform; 0:
    unknown."""
    names = CallFrame.names["fun"], AheadOfTimeFrame.names["jit_func"], TransformFrame.names["jaxpr"]
    values = read(frame, names)
    return next((id(values[name]) for name in names if name in values), 0)


def source(stack: Stack, frame: FrameType | None) -> dict[str, Any]:
    """Return the data of the call in progress from the frames, without what they lack.

    ``fun``: the function given to jit. ``jit_info``, ``args``, ``kwargs``: its options (JitInfo) and
    arguments as they were passed, all three or none. ``flat``: the flat arguments. ``jaxpr``, ``module``:
    what was made of it before. ``around``: the same dictionary of the call that a transform intercepted.
    """
    found = _of_call(frame, TraceFrame.on(stack)) if frame is not None else {}
    impl, resolve, lowerer = ImplFrame.on(stack), ResolveFrame.on(stack), LowererFrame.on(stack)
    flat = first_known(*(f.args for f in (impl, resolve) if f is not None))
    jaxpr = first_known(*(f.jaxpr for f in (impl, resolve, lowerer) if f is not None))
    compiling, executable = CompileFrame.on(stack), ExecutableFrame.on(stack)
    module = first_known(
        *([compiling.computation] if compiling is not None else []),
        *([executable.hlo] if executable is not None else []),
    )
    for name, value in (("flat", flat), ("jaxpr", jaxpr), ("module", module)):
        if known(value):
            found[name] = value
    if frame is not None and frame.f_code.co_name == TransformFrame.function:
        # The call that grad or vmap intercepted stands further up: it knows the names.
        _, outer = stack_of_call(frame.f_back)
        around = _of_call(outer, None) if outer is not None else {}
        if "args" in around and is_trace_of(found.get("jaxpr"), around["jit_info"]):
            found["around"] = around
    return found


def _of_call(frame: FrameType, tracing: TraceFrame | None) -> dict[str, Any]:
    name = frame.f_code.co_name
    if name == TransformFrame.function:
        return {}
    if name == AheadOfTimeFrame.function:
        ahead = AheadOfTimeFrame(frame)
        jitted = JittedFunction(ahead.jit_func)
        function, info, args, kwargs = jitted.fun, jitted.jit_info, ahead.args, ahead.kwargs
    else:
        call = CallFrame(frame)
        function, info, args, kwargs = call.fun, call.jit_info, call.args, call.kwargs
    if tracing is not None:
        function, info = first_known(function, tracing.fun), first_known(info, tracing.jit_info)
        args, kwargs = first_known(args, tracing.args), first_known(kwargs, tracing.kwargs)
    found = {"fun": function} if known(function) and function is not None else {}
    if found and known(info) and known(args) and known(kwargs):
        found |= {"jit_info": JitInfo(info), "args": args, "kwargs": kwargs}
    return found


def backend(stack: Stack) -> Any:
    """Return the backend that a phase on the stack works with; None: none is known."""
    kinds = (LoweringFrame, CompileFrame, ExecutableFrame)
    found = [kind.on(stack) for kind in kinds]
    return known_or_none(first_known(*(f.backend for f in found if f is not None)))


def pmap_call(frame: FrameType) -> tuple[Any, Any, Any, Any] | None:
    """Return (function, args, kwargs, numbers of static arguments) of the ``jax.pmap`` at ``frame``; None:
    unknown.

    From JAX 0.10 on it calls a jitted shard_map; the user's function is two closures away (wrapped ->
    infer_params -> wrapped_fun, a WrappedFun).
    """
    local = PmapFrame(frame)
    infer = known_or_none(local.infer_params)
    code = getattr(infer, "__code__", None)
    if code is None or not known(local.args) or not known(local.kwargs):
        return None
    cells = dict(zip(code.co_freevars, infer.__closure__ or (), strict=False))
    if "wrapped_fun" not in cells or "static_broadcasted_tuple" not in cells:
        return None
    held = cells["wrapped_fun"].cell_contents
    return getattr(held, "f", held), local.args, local.kwargs, cells["static_broadcasted_tuple"].cell_contents


def held_by_trace(frame: FrameType) -> Any:
    """Return an object that lives as long as a trace's frame, and nobody else holds; None where there is
    none."""
    return known_or_none(TraceFrame(frame).elapsed_time_ctx)


def context_settings() -> dict[str, str]:
    """Return every trace-context setting by name: what JAX's trace cache compares besides the arguments.

    Raises:
      LookupError: this JAX does not have one of the names that are needed.
    """
    values = attributes.TRACE_CONTEXT()
    names = list(attributes.TRACE_CONTEXT_NAMES())
    if len(names) != len(values):
        names = [f"setting {i}" for i in range(len(values))]
    settings = {str(n): _short(v) for n, v in zip(names, values, strict=True)}
    # Not among the named ones where a default device is set by a context manager: read beside them.
    device = attributes.DEFAULT_DEVICE.needed().value
    if device is not None:
        settings["jax_default_device"] = str(device)
    # What jax.set_mesh sets is named there without its devices, and the executable is compiled for these.
    # (The public jax.sharding.get_mesh raises an error inside a trace.)
    where = devices.of_mesh(attributes.CONCRETE_MESH())
    if where is not None:
        settings[MESH_DEVICES] = where
    return settings


def _short(value: object) -> str:
    sizes = getattr(value, "axis_sizes", None)
    if isinstance(sizes, dict):  # AxisEnv, which prints as an address
        return f"axes {sizes}, spmd {sorted(map(str, getattr(value, 'spmd_axis_names', ()) or ()))}"
    text = str(value)
    if ADDRESS.search(text):  # XlaMetadata prints as an address too
        text = f"{ADDRESS.sub('', text)} {_content(value)}"
    text = text[:400]
    # The meshes of ``with mesh``: their texts leave the devices out, which are part of the key.
    placed = [devices.of_mesh(m) for m in value] if isinstance(value, tuple) else []
    return f"{text} on devices {'; '.join(map(str, placed))}" if any(placed) else text


def _content(value: object) -> str:
    """Return the plain fields of an object, with one level of dicts; calls no ``__repr__`` of the program."""
    names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
    fields = {name: getattr(value, name, None) for name in names}
    return ", ".join(f"{name}={_plain(field)}" for name, field in fields.items())


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_plain(k)}: {_plain(v)}" for k, v in value.items()) + "}"
    return repr(value) if type(value) in (str, int, float, bool, type(None)) else type(value).__name__


def up(frame: FrameType | None, names: tuple[str, ...]) -> FrameType | None:
    """Return the nearest frame of one of these functions of JAX, at most eight frames up: others may listen
    to JAX's event in between."""
    for _ in range(8):
        if frame is None or (frame.f_code.co_name in names and in_jax(frame)):
            return frame
        frame = frame.f_back
    return None


def inside_trace(frame: FrameType) -> bool:
    """Return whether another trace is further up the stack."""
    return any(f.f_code.co_name in TRACER_FRAMES and in_jax(f) for f in walk(frame))
