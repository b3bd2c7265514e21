"""Read what a trace, a lowering or a compilation has produced: captured arrays, names, results, shardings."""

from __future__ import annotations

from types import FrameType
from typing import Any

from jaxscope.jax_internals import attributes
from jaxscope.jax_internals.base import Missing, known, known_or_none
from jaxscope.jax_internals.frames import ExecutableFrame, ImplFrame, LowerAheadOfTimeFrame
from jaxscope.jax_internals.objects import ArgumentsInfo, DebugInfo, Jaxpr, JitInfo, TracedFunction


def const_arrays(jaxpr: Any) -> list[Any] | None:
    """Return the arrays that the function traced to ``jaxpr`` captured; None if the installed JAX does not
    show them."""
    consts = Jaxpr(jaxpr).consts
    return list(consts) if known(consts) else None


def debug_info(jaxpr: Any) -> DebugInfo:
    """Return JAX's record of the name and file of the function that was traced to ``jaxpr``, and of the names
    of its arguments."""
    found: DebugInfo = DebugInfo(Jaxpr(jaxpr).debug_info)
    return found


def function_source(jaxpr: Any) -> tuple[str, str | None, int | None]:
    """Return (name, file, line) of the function that was traced to ``jaxpr``: JAX's text ``"step at
    /path/train.py:12"`` gives ``("step", "/path/train.py", 12)``. If this text cannot be read, the name is
    ``?``; if the text is empty, ``<unknown>``. File and line are None where the text has none."""
    found = debug_info(jaxpr).func_src_info
    if not known(found):
        return "?", None, None
    source = str(found or "")
    name, _, place = source.partition(" at ")
    file, _, line = place.rpartition(":")
    return name or "<unknown>", file or None, int(line) if line.isdigit() else None


def is_trace_of(jaxpr: Any, info: JitInfo) -> bool:
    """Return whether ``jaxpr`` was traced from a function with the name, file and line of the jitted function
    with the jit options ``info``; False if unknown."""
    traced = debug_info(jaxpr).func_src_info
    return known(traced) and known(info.fun_sourceinfo) and bool(traced == info.fun_sourceinfo)


def equation_count(jaxpr: Any) -> int | None:
    """Return the number of equations of ``jaxpr``, without those of inner jaxprs; None if unknown."""
    equations = Jaxpr(jaxpr).eqns
    return len(equations) if known(equations) else None


def out_paths(out_avals: Any) -> tuple[str, list[tuple[str, Any]]]:
    """Return (the tree of a trace's results as text, [(path, aval) of each result]). A path is
    ``['loss'][0]``, or the position ``[3]`` if JAX gives no paths. ``out_avals`` is the FlatTree of the
    results' avals in JAX's ``_trace_for_jit``."""
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
    """Return (in_shardings, out_shardings) as they were passed to jit; None if they cannot be read. The lists
    have one sharding for each flat argument and each flat result. An entry is None where jit was given no
    sharding.

    ``stack`` is a dict: name of a function of JAX on the stack -> its frame.
    """
    # The outermost frame of JAX that has the shardings is read: inner frames have the arguments' own
    # shardings instead of None. For ``f.lower``, this is the frame of ``Traced.lower`` (seen in JAX 0.10.2
    # and 0.12.0.1).
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
    """Return the positions of the arguments that XLA drops because the program does not use them, in the flat
    list of a call's arguments; None if unknown.

    Args:
      frame: the frame of JAX that makes the executable.
      constants: the number of captured constants, which JAX counts as the first arguments; None: unknown.
    """
    avals = known_or_none(ArgumentsInfo(frame.all_args_info).in_avals)
    kept = known_or_none(frame.kept_var_idx)
    if avals is None or kept is None or constants is None:
        return None
    return [i - constants for i in range(constants, len(avals)) if i not in kept]


def in_shardings_by_position(
    executable: Any, frame: ExecutableFrame, constants: int | None
) -> list[Any] | None:
    """Return a list with the sharding that ``executable`` requires for each flat argument of the call; None
    for an argument that XLA drops. Return None if the shardings are unknown, or if there is only one device.

    Args:
      frame: the frame of JAX that makes ``executable``.
      constants: the number of captured constants, which JAX counts as the first arguments; None: unknown.
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
    """Return the sharding of each argument of ``executable`` that XLA keeps, captured constants first; None
    if unknown. ``frame`` is the frame of JAX that makes ``executable``.

    Each sharding was passed to jit, or is that of a committed argument, or is XLA's choice. If possible, the
    shardings are expressed in the axes of the user's mesh.
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
    except ValueError:  # IndivisibleError: XLA's choice cannot be expressed in the mesh axes
        return list(found)


def _around(frame: ExecutableFrame) -> tuple[Any, Any, Any]:
    """Return (ordered effects, intermediate shardings, mesh) of a program from ``frame``, for the functions
    of JAX that compute its shardings. A value that cannot be read is a ``Missing``."""
    return frame.ordered_effects, frame.intermediate_shardings, frame.context_mesh


def recovered_out_shardings(executable: Any, frame: ExecutableFrame) -> list[Any] | None:
    """Return the shardings that the result arrays of ``executable`` will have; None if they cannot be read.
    ``frame`` is the frame of JAX that makes ``executable``."""
    devices, avals = frame.device_list, frame.global_out_avals
    needed = (devices, avals, frame.out_shardings, frame.in_shardings, frame.global_in_avals, *_around(frame))
    if not all(map(known, needed)):
        return None
    ordered = len(frame.ordered_effects or ())
    # The two pure functions that JAX itself calls later
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
    """Return the sharding that the result array of a program on one device will have: a GSPMDSharding becomes
    a SingleDeviceSharding, any other ``sharding`` is unchanged. ``devices`` has only this device."""
    import jax

    if type(sharding).__name__ != "GSPMDSharding":
        return sharding
    return jax.sharding.SingleDeviceSharding(next(iter(devices)), memory_kind=sharding.memory_kind)
