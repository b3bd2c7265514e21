"""Lower a trace again for another platform."""

from __future__ import annotations

from types import FrameType
from typing import Any, NamedTuple

from jaxscope.jax_internals import attributes
from jaxscope.jax_internals.base import known, known_or_none
from jaxscope.jax_internals.frames import ResolveFrame
from jaxscope.jax_internals.objects import ArgumentsInfo, Computation, LoweredFunction


class Retargeting(NamedTuple):
    """A lowering for another platform: the module, and the further inputs of its compilation.

    Attributes:
      devices: device ids in mesh order; None: the mesh has no devices (AbstractMesh).
      to_inputs, to_outputs: whether the partitioner may choose a sharding, per argument and result.
      donated: flat positions of the donated arguments.
      dropped: flat positions of arguments that the module does not take.
    """

    module: Any
    name: str | None
    partitions: int
    devices: list[int] | None
    tuple_arguments: bool
    to_inputs: list[bool]
    to_outputs: list[bool]
    options: tuple[tuple[str, Any], ...]
    platforms: tuple[str, ...]
    donated: list[int]
    dropped: list[int]


_POSITIONAL = (
    "jaxpr", "in_shardings", "out_shardings", "in_layouts", "out_layouts", "donated_invars", "ctx_mesh",
    "name",
    "keep_unused", "inline", "compiler_options_kvs",
)  # fmt: skip


def lowered_again(frame: FrameType, platform: str) -> Retargeting:
    """Return the lowering that ``_resolve_and_lower``, whose frame this is, would have returned for
    ``platform``.

    After it has lowered, its arguments are resolved, so the same call is made again with another platform.
    The result stays in JAX's cache, next to the first, as long as the trace.

    Raises:
      LookupError: this JAX does not have what is needed.
      Exception: JAX cannot lower the trace for the platform.
    """
    local = ResolveFrame(frame)
    given = {name: getattr(local, name) for name in (*_POSITIONAL, "lowering_parameters")}
    lost = [ResolveFrame.names[name] for name, value in given.items() if not known(value)]
    if lost:
        raise LookupError(f"{ResolveFrame.where()} has no local {', '.join(lost)}")
    computation = attributes.LOWER(
        *(given[name] for name in _POSITIONAL),
        lowering_platforms=(platform,),
        lowering_parameters=given["lowering_parameters"],
        pgle_profiler=None,
    )
    return retargeting(computation)


# Primitives that run Python of this process: no other machine's program can hold them.
CALLBACKS = ("pure_callback", "io_callback", "debug_callback", "debug_print")


def callbacks_in(jaxpr: Any, most: int = 100_000) -> list[str]:
    """Return the CALLBACKS in ``jaxpr``, at any depth; visits at most ``most`` equations."""
    found: set[str] = set()
    waiting = [jaxpr]
    while waiting and most > 0:
        current = getattr(waiting[-1], "jaxpr", waiting[-1])
        waiting.pop()
        for equation in getattr(current, "eqns", ()):
            most -= 1
            found |= {equation.primitive.name} & set(CALLBACKS)
            for value in equation.params.values():
                inner = value if isinstance(value, (tuple, list)) else (value,)
                waiting += [v for v in inner if hasattr(v, "eqns") or hasattr(v, "jaxpr")]
    return sorted(found)


def hide_frames(folder: str) -> None:
    """From now on, leave the frames of ``folder`` out of the locations that JAX writes into programs, as
    JAX leaves out its own frames.

    A lowering rule that traces records the whole stack. Without this, programs that are lowered inside a
    callback of jaxscope would contain lines of jaxscope.
    """
    attributes.HIDE_FILES(folder)


def retargeting(computation: Any) -> Retargeting:
    """Return the inputs of the compiler in a ``MeshComputation``, as ``from_hlo`` passes them.

    Raises:
      LookupError: this JAX does not have what is needed.
    """
    held = Computation(computation)
    lost = [Computation.names[f] for f in Computation.required() if not known(getattr(held, f))]
    arguments = held.compile_args if not lost else {}
    lost += [
        n for n in ("in_shardings", "out_shardings", "all_args_info", "kept_var_idx") if n not in arguments
    ]
    if lost:
        raise LookupError(f"{Computation.where()} has no {', '.join(lost)}")
    ordered = len(arguments.get("ordered_effects") or ())
    to_inputs, to_outputs = attributes.INPUT_OUTPUT(
        arguments["in_shardings"], arguments["out_shardings"], ordered
    )
    devices = held.device_list
    constants = len(held.const_args or ())
    avals = known_or_none(ArgumentsInfo(arguments["all_args_info"]).in_avals) or ()
    kept = arguments["kept_var_idx"]
    flags = held.donated_invars
    # Flat positions count captured constants first: they are not the caller's arguments.
    positions = sorted(kept) if kept is not None else list(range(len(flags)))
    donated = [i - constants for i, flag in zip(positions, flags, strict=False) if flag and i >= constants]
    return Retargeting(
        module=computation.stablehlo(),
        name=held.name,
        partitions=int(arguments.get("num_devices") or (len(devices) if devices is not None else 1)),
        devices=[int(d.id) for d in devices] if devices is not None else None,
        tuple_arguments=bool(arguments.get("tuple_args")),
        to_inputs=[bool(b) for b in to_inputs],
        to_outputs=[bool(b) for b in to_outputs],
        options=tuple(held.compiler_options_kvs or ()),
        platforms=tuple(map(str, held.platforms or ())),
        donated=donated,
        dropped=[i - constants for i in range(constants, len(avals)) if kept is not None and i not in kept],
    )


def retargeting_of(lowered: Any) -> Retargeting:
    """Return the same as ``retargeting``, for a ``Lowered``.

    Raises:
      LookupError: this JAX does not have what is needed.
    """
    computation = LoweredFunction(lowered).lowering
    if not known(computation):
        raise LookupError(LoweredFunction.lacks() or "what was lowered cannot be read")
    return retargeting(computation)
