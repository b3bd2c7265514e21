"""Read the results of a trace, a lowering and a compilation: constants, names, results, shardings."""

from __future__ import annotations

from types import FrameType
from typing import Any

from jaxscope.jax_internals import attributes
from jaxscope.jax_internals.base import Missing, known, known_or_none
from jaxscope.jax_internals.frames import ExecutableFrame, ImplFrame, LowerAheadOfTimeFrame
from jaxscope.jax_internals.objects import ArgumentsInfo, DebugInfo, Jaxpr, JitInfo, TracedFunction


def const_arrays(jaxpr: Any) -> list[Any] | None:
    """Return the arrays a trace captured; None: not known."""
    consts = Jaxpr(jaxpr).consts
    return list(consts) if known(consts) else None


def debug_info(jaxpr: Any) -> DebugInfo:
    """Return where the traced function comes from."""
    found: DebugInfo = DebugInfo(Jaxpr(jaxpr).debug_info)
    return found


def function_source(jaxpr: Any) -> tuple[str, str | None, int | None]:
    """Return (name, file, line) of a traced function from its jaxpr alone.

    ``debug_info.func_src_info`` reads ``"name at /path/file.py:12"``. The name is ``?`` if it cannot be
    read, and ``<unknown>`` if JAX has none.
    """
    found = debug_info(jaxpr).func_src_info
    if not known(found):
        return "?", None, None
    source = str(found or "")
    name, _, place = source.partition(" at ")
    file, _, line = place.rpartition(":")
    return name or "<unknown>", file or None, int(line) if line.isdigit() else None


def is_trace_of(jaxpr: Any, info: JitInfo) -> bool:
    """Return whether ``jaxpr`` was traced from the function that jit was given with the options ``info``."""
    traced = debug_info(jaxpr).func_src_info
    return known(traced) and known(info.fun_sourceinfo) and bool(traced == info.fun_sourceinfo)


def equation_count(jaxpr: Any) -> int | None:
    """Return the number of a trace's equations; None: not known."""
    equations = Jaxpr(jaxpr).eqns
    return len(equations) if known(equations) else None


def out_paths(out_avals: Any) -> tuple[str, list[tuple[str, Any]]]:
    """Return (tree, [(path, aval)]) of a trace's results; ``out_avals`` is a FlatTree."""
    import jax

    avals = list(out_avals)
    tree = str(out_avals.tree)
    try:
        paths = [jax.tree_util.keystr(p) for p in out_avals.paths]
    except Exception:
        paths = []
    if len(paths) != len(avals):
        paths = [f"[{i}]" for i in range(len(avals))]
    return tree, list(zip(paths, avals, strict=True))


def asked_shardings(stack: dict[str, FrameType]) -> tuple[list[Any], list[Any]] | None:
    """Return (in, out) as jit was given them, spread over the flat arguments and results, with None for each
    that was left open; None: not known.

    The frames further in have the arguments' own shardings filled in. Ahead of time they stand in the
    parameters of ``Traced.lojax`` (0.10.2 and 0.12.0.1).
    """
    impl = ImplFrame.on(stack)
    if impl is not None:
        found = {"in_shardings": impl.in_shardings, "out_shardings": impl.out_shardings}
    else:
        ahead = LowerAheadOfTimeFrame.on(stack)
        parameters = known_or_none(TracedFunction(ahead.lo).params) if ahead is not None else None
        found = parameters if isinstance(parameters, dict) else {}
    sides = [found.get(side, Missing.UNKNOWN) for side in ("in_shardings", "out_shardings")]
    if not all(map(known, sides)):
        return None
    given, wanted = ([None if "Unspecified" in type(s).__name__ else s for s in side] for side in sides)
    return given, wanted


def dropped_arguments(frame: ExecutableFrame, constants: int | None) -> list[int] | None:
    """Return the flat positions of the arguments that XLA drops; None: not known.

    Args:
      constants: number of captured constants that come before the caller's arguments.
    """
    avals = known_or_none(ArgumentsInfo(frame.all_args_info).in_avals)
    kept = known_or_none(frame.kept_var_idx)
    if avals is None or kept is None or constants is None:
        return None
    return [i - constants for i in range(constants, len(avals)) if i not in kept]


def in_shardings_by_position(
    executable: Any, frame: ExecutableFrame, constants: int | None
) -> list[Any] | None:
    """Return the sharding that the program requires for each of the caller's arguments; None for a dropped
    argument.

    None: unknown, or there is only one device. See ``_executable_in_shardings``.
    """
    avals = known_or_none(ArgumentsInfo(frame.all_args_info).in_avals)
    kept, devices = known_or_none(frame.kept_var_idx), known_or_none(frame.device_list)
    if avals is None or kept is None or constants is None or devices is None or len(devices) < 2:
        return None
    found = _executable_in_shardings(executable, frame)
    if found is None or len(found) != len(kept):
        return None
    by_position = dict(zip(sorted(kept), found, strict=True))
    return [by_position.get(i) for i in range(constants, len(avals))]


def _executable_in_shardings(executable: Any, frame: ExecutableFrame) -> list[Any] | None:
    """Return the shardings of the kept arguments, captured constants first, in the user's mesh axes if JAX
    finds them.

    Requested and committed shardings are kept; XLA chooses the others.
    """
    avals, given = frame.global_in_avals, frame.in_shardings
    needed = (frame.device_list, avals, given, *_around(frame))
    if not all(map(known, needed)):
        return None
    found = attributes.IN_SHARDINGS(
        executable, given, frame.device_list, avals, len(frame.ordered_effects or ())
    )
    try:
        return list(
            attributes.RECOVER_SHARDINGS(
                given, found, avals, avals, frame.intermediate_shardings, frame.context_mesh
            )
        )
    except ValueError:  # IndivisibleError: XLA's choice has no spelling in the mesh axes
        return list(found)


def _around(frame: ExecutableFrame) -> tuple[Any, Any, Any]:
    return frame.ordered_effects, frame.intermediate_shardings, frame.context_mesh


def recovered_out_shardings(executable: Any, frame: ExecutableFrame) -> list[Any] | None:
    """Return the result shardings as JAX will report them; None: not known.

    Calls the two pure functions that JAX itself calls a moment later; on one device it is trivial.
    """
    devices, avals = frame.device_list, frame.global_out_avals
    needed = (devices, avals, frame.out_shardings, frame.in_shardings, frame.global_in_avals, *_around(frame))
    if not all(map(known, needed)):
        return None
    ordered = len(frame.ordered_effects or ())
    found = attributes.OUT_SHARDINGS(executable, frame.out_shardings, devices, avals, ordered)
    recovered = attributes.RECOVER_SHARDINGS(
        frame.in_shardings,
        found,
        frame.global_in_avals,
        avals,
        frame.intermediate_shardings,
        frame.context_mesh,
    )
    return [_on_one_device(s, devices) if len(devices) == 1 else s for s in recovered]


def _on_one_device(sharding: Any, devices: Any) -> Any:
    """Return a SingleDeviceSharding for a program on one device, whatever the executable reports."""
    import jax

    if type(sharding).__name__ != "GSPMDSharding":
        return sharding
    return jax.sharding.SingleDeviceSharding(next(iter(devices)), memory_kind=sharding.memory_kind)
