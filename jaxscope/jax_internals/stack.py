"""Find the frames of JAX for the call in progress, and read the call's function, arguments and settings from
them."""

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
    """Return whether ``frame`` runs code of JAX itself."""
    return root(module_of(frame)) == "jax"


def stack_of_call(frame: FrameType | None) -> tuple[Stack, FrameType | None]:
    """Return (JAX's frames, the frame of the call) for the call of a jitted function that is in progress at
    ``frame``.

    JAX's frames are a dict: function name -> its innermost frame between ``frame`` and the call. The frame of
    the call is one of a function in ``call_frames()``; None if there is none, as for ``Traced.lower`` and
    ``Lowered.compile``, which run without a call.
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
        elif below in ENTRANCES:  # the program's own code, which called JAX
            break
        # Any other frame outside JAX is jaxscope's listener, or a function that replaces a function of JAX.
        below = name
    return by_name, None


def phase_raised(frame: FrameType) -> bool:
    """Return whether a phase (trace, lowering or compilation) has ended in an exception. ``frame`` is the
    frame in which JAX announces the end of the phase."""
    # The exception is just leaving the ``with`` statement by which JAX times the phase. Its traceback then
    # contains a frame between ``frame`` and the call of the jitted function.
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


def is_frame_of(kind: type[JaxFrame], frame: FrameType) -> bool:
    """Return whether ``frame`` is a frame of the function of JAX that ``kind`` declares. Its callers are not
    considered."""
    return frame.f_code.co_name == kind.function and in_jax(frame)


def function_identity(frame: FrameType) -> int:
    """Return the ``id()`` of the function that was passed to jit, for the call with the frame ``frame``. For
    ``f.lower``, return the ``id()`` of the jitted function; if a transform such as grad made the call, the
    ``id()`` of the jaxpr. 0 if unknown."""
    names = CallFrame.names["fun"], AheadOfTimeFrame.names["jit_func"], TransformFrame.names["jaxpr"]
    values = read(frame, names)
    return next((id(values[name]) for name in names if name in values), 0)


def source(stack: Stack, frame: FrameType | None) -> dict[str, Any]:
    """Return what JAX's frames show of the call in progress, as a dict. A key is missing if its value cannot
    be read:

      fun: the function that was passed to jit.
      jit_info: jit's options (``JitInfo``).
      args, kwargs: the arguments as they were passed. If one of ``fun``, ``jit_info``, ``args`` and
        ``kwargs`` cannot be read, the last three are missing.
      flat: the list of the flattened arguments.
      jaxpr: the result of the trace, once there is one.
      module: the lowered StableHLO module, while XLA compiles this module.
      around: only if grad or vmap made the call in progress: for the user's call that grad or vmap
        intercepted, a dict with the keys ``fun``, ``jit_info``, ``args`` and ``kwargs``.

    Args:
      stack: name of each of JAX's functions on the stack -> its frame.
      frame: the frame of the call; None: there is no call.
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
        # The user's call, which grad or vmap intercepted, is further up. It has the names of the arguments.
        _, outer = stack_of_call(frame.f_back)
        around = _of_call(outer, None) if outer is not None else {}
        if "args" in around and is_trace_of(found.get("jaxpr"), around["jit_info"]):
            found["around"] = around
    return found


def _of_call(frame: FrameType, tracing: TraceFrame | None) -> dict[str, Any]:
    """Return a dict from the frame of a call: ``fun`` (the function that was passed to jit), ``jit_info``
    (the options of jit), ``args`` and ``kwargs``. If one of the four cannot be read, the last three are
    missing. The dict is empty if ``fun`` cannot be read, or if a transform such as grad made the call.

    Values that ``frame`` does not have are read from ``tracing``, the frame in which JAX traces the function;
    None: there is none.
    """
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
    """Return the backend (JAX's client of a platform) for which a program is being lowered or compiled; None
    if unknown. ``stack`` is a dict: name of a function of JAX -> its frame."""
    kinds = (LoweringFrame, CompileFrame, ExecutableFrame)
    found = [kind.on(stack) for kind in kinds]
    return known_or_none(first_known(*(f.backend for f in found if f is not None)))


def pmap_call(frame: FrameType) -> tuple[Any, Any, Any, Any] | None:
    """Return (the user's function, args, kwargs, positions of static arguments) of the ``jax.pmap`` call at
    ``frame``; None if they cannot be read."""
    # Since JAX 0.10, a pmapped function calls a jitted shard_map. ``wrapped`` refers to ``infer_params``,
    # which refers to ``wrapped_fun``, a WrappedFun with the user's function.
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
    """Return an object that is freed when the trace with the frame ``frame`` ends, because only this frame
    refers to it; None if unknown."""
    return known_or_none(TraceFrame(frame).elapsed_time_ctx)


def context_settings() -> dict[str, str]:
    """Return a dict: name -> value as text, of the settings of JAX that are part of the key of its trace
    cache. The default device and the devices of the mesh of ``jax.set_mesh`` are added.

    Raises:
      LookupError: the installed JAX does not have one of the private names that this needs.
    """
    values = attributes.TRACE_CONTEXT()
    names = list(attributes.TRACE_CONTEXT_NAMES())
    if len(names) != len(values):
        names = [f"setting {i}" for i in range(len(values))]
    settings = {str(n): _short(v) for n, v in zip(names, values, strict=True)}
    # A default device that a context manager sets is not among these settings.
    device = attributes.DEFAULT_DEVICE.needed().value
    if device is not None:
        settings["jax_default_device"] = str(device)
    # The mesh of jax.set_mesh is among these settings without its devices, for which JAX compiles the
    # executable. (The public jax.sharding.get_mesh raises an error inside a trace.)
    where = devices.of_mesh(attributes.CONCRETE_MESH())
    if where is not None:
        settings[MESH_DEVICES] = where
    return settings


def _short(value: object) -> str:
    """Return ``value``, the value of a setting of JAX, as text without memory addresses, cut to a limited
    length."""
    sizes = getattr(value, "axis_sizes", None)
    if isinstance(sizes, dict):  # AxisEnv, which prints as an address
        return f"axes {sizes}, spmd {sorted(map(str, getattr(value, 'spmd_axis_names', ()) or ()))}"
    text = str(value)
    if ADDRESS.search(text):  # XlaMetadata prints as an address too
        text = f"{ADDRESS.sub('', text)} {_content(value)}"
    text = text[:400]
    # The text of the meshes of ``with mesh`` has no devices, which are part of JAX's cache key.
    placed = [devices.of_mesh(m) for m in value] if isinstance(value, tuple) else []
    return f"{text} on devices {'; '.join(map(str, placed))}" if any(placed) else text


def _content(value: object) -> str:
    """Return the attributes of ``value`` as text: ``name=value, ...``. For an attribute other than a number,
    string, None or dict, only its type is shown, so that no ``__repr__`` of the program is called."""
    names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
    fields = {name: getattr(value, name, None) for name in names}
    return ", ".join(f"{name}={_plain(field)}" for name, field in fields.items())


def _plain(value: object) -> str:
    """Return a number, a string, None or a dict as text; for any other value, the name of its type."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_plain(k)}: {_plain(v)}" for k, v in value.items()) + "}"
    return repr(value) if type(value) in (str, int, float, bool, type(None)) else type(value).__name__


def nearest_frame(frame: FrameType | None, names: tuple[str, ...]) -> FrameType | None:
    """Return the innermost frame of a function of JAX called one of ``names``, among ``frame`` and its seven
    nearest callers; None if there is none."""
    for _ in range(8):  # frames of other listeners to the same event may be in between
        if frame is None or (frame.f_code.co_name in names and in_jax(frame)):
            return frame
        frame = frame.f_back
    return None


def inside_trace(frame: FrameType) -> bool:
    """Return whether JAX is tracing a function at ``frame`` or in a frame that called it."""
    return any(f.f_code.co_name in TRACER_FRAMES and in_jax(f) for f in walk(frame))
