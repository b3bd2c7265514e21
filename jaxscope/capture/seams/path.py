"""The miss path on the stack: JAX's frames up to the call in progress, and the settings around it."""

from __future__ import annotations

from types import FrameType
from typing import Any

from jaxscope.capture import devices, frames
from jaxscope.capture.seams.names import (
    ADDRESS,
    CALL_FRAMES,
    ENTRANCES,
    TRACE_GUARD,
    TRACER_FRAMES,
    jax_module,
)

MESH_DEVICES = "mesh devices"


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
    config = jax_module("jax._src.config")
    values = config.trace_context()
    names = list(config.trace_context_names())
    if len(names) != len(values):
        names = [f"setting {i}" for i in range(len(values))]
    settings = {str(n): _short(v) for n, v in zip(names, values, strict=True)}
    # Not among the named ones where a default device is set by a context manager: read beside them.
    device = config.default_device.value
    if device is not None:
        settings["jax_default_device"] = str(device)
    # What jax.set_mesh sets is named there without its devices, and the executable is compiled for these. (The public
    # jax.sharding.get_mesh refuses to say inside a trace.)
    mesh = getattr(jax_module("jax._src.mesh"), "get_concrete_mesh", None)
    where = devices.of_mesh(mesh()) if mesh is not None else None
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
    """The plain fields of an object, one level of dicts opened: nothing of the user's is asked for its text."""
    names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
    fields = {name: getattr(value, name, None) for name in names}
    return ", ".join(f"{name}={_plain(field)}" for name, field in fields.items())


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_plain(k)}: {_plain(v)}" for k, v in value.items()) + "}"
    return repr(value) if type(value) in (str, int, float, bool, type(None)) else type(value).__name__


def up(frame: FrameType | None, names: tuple[str, ...]) -> FrameType | None:
    """The nearest frame so named: one up from JAX's event, more where somebody else listens in between."""
    for _ in range(8):
        if frame is None or (frame.f_code.co_name in names and in_jax(frame)):
            return frame
        frame = frame.f_back
    return None


def inside_trace(frame: FrameType) -> bool:
    """Does another trace stand further up?"""
    return any(f.f_code.co_name in TRACER_FRAMES and in_jax(f) for f in frames.walk(frame))
