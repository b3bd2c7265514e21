"""The same trace lowered once more for another platform."""

from __future__ import annotations

from types import FrameType
from typing import Any, NamedTuple

from jaxscope.capture import frames
from jaxscope.capture.seams.names import jax_module


class Retargeting(NamedTuple):
    """A lowering for another platform: the module, and what its compilation needs besides.

    Attributes:
      devices: ids in mesh order; None where the mesh has no devices (AbstractMesh).
      to_inputs, to_outputs: whether the partitioner may choose a sharding, per argument and result.
      donated: flat positions; dropped: those of arguments that the module does not take.
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


_LOWERED = ("jaxpr", "in_shardings", "out_shardings", "in_layouts", "out_layouts", "donated_invars", "ctx_mesh", "name", "keep_unused", "inline", "compiler_options_kvs")  # fmt: skip


def lowered_again(frame: FrameType, platform: str) -> Retargeting:
    """What ``_resolve_and_lower``, whose frame this is, would have made for ``platform``.

    Its arguments are resolved by the time it has lowered: the very call it made is made again with another
    platform. The result stays in JAX's cache beside the first, as long as the trace does.

    Raises:
      Exception: what JAX says of a trace that cannot be lowered for the platform; KeyError: another JAX.
    """
    local = frames.read(frame, *_LOWERED, "lowering_parameters")
    computation = jax_module("jax._src.pjit")._pjit_lower(
        *(local[name] for name in _LOWERED),
        lowering_platforms=(platform,),
        lowering_parameters=local["lowering_parameters"],
        pgle_profiler=None,
    )
    return retargeting(computation)


# Primitives that run Python of this process: no other machine's program can hold them.
CALLBACKS = ("pure_callback", "io_callback", "debug_callback", "debug_print")


def callbacks_in(jaxpr: Any, most: int = 100_000) -> list[str]:
    """Names of CALLBACKS that ``jaxpr`` holds, at any depth; at most ``most`` equations are looked at."""
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
    """Keep the frames of ``folder`` out of what JAX lowers from now on, as it keeps out its own.

    A rule that traces while it lowers notes the whole stack: what is lowered inside a callback of ours would
    name our lines beside the user's. JAX's wish list for that is ``source_info_util.register_exclusion``.
    """
    jax_module("jax._src.source_info_util").register_exclusion(folder)


def retargeting(computation: Any) -> Retargeting:
    """What a ``MeshComputation`` (of ``Lowered._lowering``) holds for its compiler, as ``from_hlo`` passes it on."""
    said = computation.compile_args
    ordered = len(said.get("ordered_effects") or ())
    spread = jax_module("jax._src.interpreters.pxla").get_prop_to_input_output
    to_inputs, to_outputs = spread(said["in_shardings"], said["out_shardings"], ordered)
    devices = computation._device_list
    constants = len(computation.const_args or ())
    avals = getattr(said.get("all_args_info"), "in_avals", None) or ()
    kept = said.get("kept_var_idx")
    flags = computation._donated_invars
    # Flat positions count captured constants first: they are not the caller's arguments.
    own = range(constants, len(avals))
    taken = sorted(kept) if kept is not None else list(range(len(flags)))
    donated = [i - constants for i, flag in zip(taken, flags, strict=False) if flag and i >= constants]
    return Retargeting(
        module=computation.stablehlo(),
        name=computation._name,
        partitions=int(said.get("num_devices") or (len(devices) if devices is not None else 1)),
        devices=[int(d.id) for d in devices] if devices is not None else None,
        tuple_arguments=bool(said.get("tuple_args")),
        to_inputs=[bool(b) for b in to_inputs],
        to_outputs=[bool(b) for b in to_outputs],
        options=tuple(computation._compiler_options_kvs or ()),
        platforms=tuple(map(str, computation._platforms or ())),
        donated=donated,
        dropped=[i - constants for i in own if kept is not None and i not in kept],
    )


def lowering_of(lowered: Any) -> Any:
    """The ``MeshComputation`` of a ``Lowered``."""
    return lowered._lowering
