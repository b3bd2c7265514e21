"""Lower a traced function again, for another platform than the one on which the program runs."""

from __future__ import annotations

from types import FrameType
from typing import Any, NamedTuple

from jaxscope.jax_internals import attributes
from jaxscope.jax_internals.base import known, known_or_none
from jaxscope.jax_internals.frames import ResolveFrame
from jaxscope.jax_internals.objects import ArgumentsInfo, Computation, LoweredFunction


class Retargeting(NamedTuple):
    """A traced function that was lowered for another platform: the StableHLO module and the other inputs of
    its compilation.

    Attributes:
      module: the StableHLO module.
      name: the name that JAX gives the program.
      partitions: the number of devices that the program runs on.
      devices: device ids in mesh order; None: the mesh has no devices (AbstractMesh).
      tuple_arguments: whether the executable takes its arguments as one tuple.
      to_inputs: for each argument of the module, whether the partitioner may choose its sharding.
      to_outputs: for each result of the module, whether the partitioner may choose its sharding.
      options: the ``compiler_options`` of jit, as (name, value).
      platforms: the platforms for which the function is lowered: ``tpu``.
      donated: positions of the donated arguments in the flat list of the call's arguments.
      dropped: positions, in the flat list, of the arguments that the module does not take.
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
    """Make JAX lower a program once more, for ``platform`` (``tpu``), and return the result. ``frame`` is the
    frame of JAX's ``_resolve_and_lower``, which has just lowered the program for this process's platform.

    Raises:
      LookupError: the installed JAX does not have a private name that this needs.
      Exception: JAX cannot lower the program for the platform.
    """
    local = ResolveFrame(frame)
    given = {name: getattr(local, name) for name in (*_POSITIONAL, "lowering_parameters")}
    lost = [ResolveFrame.names[name] for name, value in given.items() if not known(value)]
    if lost:
        raise LookupError(f"{ResolveFrame.where()} has no local {', '.join(lost)}")
    # The call of ``frame`` with another platform. JAX's cache keeps both results as long as the trace.
    computation = attributes.LOWER(
        *(given[name] for name in _POSITIONAL),
        lowering_platforms=(platform,),
        lowering_parameters=given["lowering_parameters"],
        pgle_profiler=None,
    )
    return retargeting(computation)


# Primitives that call Python functions of this process: a program with one cannot run on another machine.
CALLBACKS = ("pure_callback", "io_callback", "debug_callback", "debug_print")
MOST = 100_000  # equations that are searched for them


def callbacks_in(jaxpr: Any) -> list[str]:
    """Return the sorted names of the callback primitives (``pure_callback``, ``debug_callback``, ...) in
    ``jaxpr`` and its inner jaxprs. The search ends after about MOST (100,000) equations."""
    found: set[str] = set()
    waiting, left = [jaxpr], MOST
    while waiting and left > 0:
        current = getattr(waiting[-1], "jaxpr", waiting[-1])
        waiting.pop()
        for equation in getattr(current, "eqns", ()):
            left -= 1
            found |= {equation.primitive.name} & set(CALLBACKS)
            for value in equation.params.values():
                inner = value if isinstance(value, (tuple, list)) else (value,)
                waiting += [v for v in inner if hasattr(v, "eqns") or hasattr(v, "jaxpr")]
    return sorted(found)


def hide_frames(folder: str) -> None:
    """Make JAX omit the files in ``folder`` from the source locations in programs, as JAX omits its own
    files."""
    # Otherwise a program that is lowered in a callback of jaxscope could contain lines of jaxscope: some
    # lowering rules trace a function, and JAX then records the whole stack.
    attributes.HIDE_FILES(folder)


def retargeting(computation: Any) -> Retargeting:
    """Return what another platform's compiler needs to compile ``computation``, a program that JAX has
    lowered for this platform (JAX's ``MeshComputation``).

    Raises:
      LookupError: the installed JAX does not have a private name that this needs.
    """
    held = Computation(computation)
    lost = [Computation.names[f] for f in Computation.names if not known(getattr(held, f))]
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
    # JAX counts captured constants as the first arguments. They are not arguments of the call.
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
    """Return what another platform's compiler needs to compile ``lowered``, a result of ``f.lower``.

    Raises:
      LookupError: the installed JAX does not have a private name that this needs.
    """
    computation = LoweredFunction(lowered).lowering
    if not known(computation):
        raise LookupError(LoweredFunction.lacks() or "what was lowered cannot be read")
    return retargeting(computation)
