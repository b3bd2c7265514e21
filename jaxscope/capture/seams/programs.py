"""What a trace, a lowering and a compilation hold: constants, names, results, shardings."""

from __future__ import annotations

from types import FrameType
from typing import Any

from jaxscope.capture import frames
from jaxscope.capture.seams.names import AOT_FRAME, IMPL_FRAME, jax_module


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
    keystr = jax_module("jax.tree_util").keystr
    avals = list(out_avals)
    tree = str(out_avals.tree)
    try:
        paths = [keystr(p) for p in out_avals.paths]
    except Exception:
        paths = []
    if len(paths) != len(avals):
        paths = [f"[{i}]" for i in range(len(avals))]
    return tree, list(zip(paths, avals, strict=True))


def asked_shardings(stack: dict[str, FrameType]) -> tuple[list[Any], list[Any]] | None:
    """(in, out) as jit was given them, spread over the flat arguments and results; None for each that was
    left open. None: not on this stack.

    The frames further in have the arguments' own shardings filled in. Ahead of time they stand in the
    parameters of ``Traced.lojax`` (0.10.2 and 0.12.0.1).
    """
    frame = stack.get(IMPL_FRAME)
    if frame is not None:
        local = frames.read(frame, "in_shardings", "out_shardings")
    else:
        frame = stack.get(AOT_FRAME)
        params = getattr(frames.read(frame, "lo").get("lo"), "_params", None) if frame is not None else None
        local = params if isinstance(params, dict) else {}
    if "in_shardings" not in local or "out_shardings" not in local:
        return None

    def given(side: str) -> list[Any]:
        return [None if "Unspecified" in type(s).__name__ else s for s in local[side]]

    return given("in_shardings"), given("out_shardings")


def executable_in_shardings(executable: Any, local: dict[str, Any]) -> list[Any]:
    """What the program takes its arguments as, from ``from_hlo``'s locals: those asked or committed as they
    are, the others as XLA chose, in the user's mesh axes where JAX finds them. One for each argument kept,
    captured constants first."""
    pxla = jax_module("jax._src.interpreters.pxla")
    devices, avals, given = local["device_list"], local["global_in_avals"], local["in_shardings"]
    ordered = len(local.get("ordered_effects") or ())
    found = pxla._maybe_get_and_check_in_shardings(executable, given, devices, avals, ordered)
    try:
        return list(
            pxla.maybe_recover_user_shardings(
                given, found, avals, avals, local.get("intermediate_shardings"), local.get("context_mesh")
            )
        )
    except ValueError:  # IndivisibleError: XLA's choice has no spelling in the mesh axes
        return list(found)


def recovered_out_shardings(executable: Any, local: dict[str, Any]) -> list[Any]:
    """The result shardings as JAX will report them, from ``from_hlo``'s locals.

    Calls the two pure functions that JAX itself calls a moment later; on one device it is trivial.
    """
    pxla = jax_module("jax._src.interpreters.pxla")
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
    single = jax_module("jax.sharding").SingleDeviceSharding
    return single(next(iter(devices)), memory_kind=sharding.memory_kind)
