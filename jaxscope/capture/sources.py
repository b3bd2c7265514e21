"""Where a call's function, options and arguments can be read: its own frame, else JAX's lower-level ones."""

from __future__ import annotations

from types import FrameType
from typing import Any

from jaxscope.capture import frames, seams


def source(stack: dict[str, FrameType], frame: FrameType | None) -> dict[str, Any]:
    """Where the key can be read: the call's own frame, else JAX's lower-level ones."""
    found: dict[str, Any] = {}
    if frame is not None:
        local = frames.read(frame, "fun", "jit_info", "jit_func", "args", "kwargs")
        if "jit_func" in local:
            local["fun"] = getattr(local["jit_func"], "_fun", None)
            local["jit_info"] = getattr(local["jit_func"], "_jit_info", None)
        if local.get("fun") is not None and "args" in local and "kwargs" in local:
            found = {k: local[k] for k in ("fun", "jit_info", "args", "kwargs")}
    for name in (seams.IMPL_FRAME, seams.RESOLVE_FRAME, seams.LOWERER_FRAME):
        if name in stack:
            for key, value in frames.read(stack[name], "args", "jaxpr").items():
                found.setdefault(key, value)
    if frame is not None and frame.f_code.co_name == seams.TRANSFORM_FRAME:
        # The call that grad or vmap intercepted stands further up: it knows the names.
        _, outer = seams.stack_of_call(frame.f_back)
        local = frames.read(outer, "fun", "jit_info", "args", "kwargs") if outer is not None else {}
        if len(local) == 4 and seams.is_trace_of(found.get("jaxpr"), local["jit_info"]):
            found["around"] = local
    for name, variable in ((seams.COMPILE_FRAME, "computation"), (seams.EXECUTABLE_FRAME, "hlo")):
        if name in stack:
            found.setdefault("module", frames.read(stack[name], variable).get(variable))
    return found
