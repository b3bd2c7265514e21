"""Which seams are there on this JAX and why not: one entry each, with what it gives."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any, NamedTuple

from jaxscope.capture.seams.arrays import array_class
from jaxscope.capture.seams.names import (
    COPY_FRAME,
    COPY_METHODS,
    PUT_FRAME,
    TRACE_GUARD,
    VALUE_FRAME,
    jax_module,
)

TESTED = ((0, 10), (0, 12))


def untested(version: str) -> str | None:
    """What to say of a JAX outside the tested versions; None: it is within."""
    parts = version.split(".")[:2]
    if len(parts) < 2 or not all(p.isdecimal() for p in parts):
        return None
    found = int(parts[0]), int(parts[1])
    if TESTED[0] <= found <= TESTED[1]:
        return None
    low, high = (".".join(map(str, v)) for v in TESTED)
    return f"jaxscope is tested with JAX {low} to {high}; this one is {'older' if found < TESTED[0] else 'newer'}"


class Seam(NamedTuple):
    """One behaviour of this JAX: what it gives, and how to tell that it is there."""

    name: str
    gives: str
    check: Callable[[], str | None]  # None: available; else the reason why not


class Status(NamedTuple):
    name: str
    gives: str
    available: bool
    reason: str | None


def _code(function: Any) -> CodeType | None:
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    if code is None:
        # JAX's weakref_lru_cache is a C++ object without __wrapped__; the garbage collector knows
        # the function in it, beside the key function and the explainer (both defined elsewhere).
        for held in gc.get_referents(function):
            found = getattr(held, "__code__", None)
            if isinstance(found, CodeType) and found.co_name not in ("trace_context", "<lambda>", "_ignore"):
                return found
    return code


def _inner(code: CodeType | None, name: str) -> CodeType | None:
    """The code of the function ``name`` that ``code`` defines."""
    for const in code.co_consts if code is not None else ():
        if isinstance(const, CodeType) and const.co_name == name:
            return const
    return None


def _lacks(code: CodeType | None, where: str, names: Iterable[str]) -> str | None:
    if code is None:
        return f"{where} is not there"
    have = {*code.co_varnames, *code.co_freevars, *code.co_cellvars}
    lost = [n for n in names if n not in have]
    return f"{where} has no local {', '.join(lost)}" if lost else None


def _frame_of(module: str, function: str, *names: str) -> Callable[[], str | None]:
    def check() -> str | None:
        found = getattr(jax_module(module), function, None)
        if found is None:
            return f"{module}.{function} is not there"
        return _lacks(_code(found), f"{module}.{function}", names)

    return check


def _cache_miss() -> str | None:
    pjit = jax_module("jax._src.pjit")
    return _lacks(
        _inner(_code(getattr(pjit, "_cpp_pjit", None)), "cache_miss"),
        "jax._src.pjit.cache_miss",
        ("fun", "jit_info", "args", "kwargs"),
    )


def _from_hlo() -> str | None:
    pxla = jax_module("jax._src.interpreters.pxla")
    owner = getattr(pxla, "UnloadedMeshExecutable", None)
    return _lacks(
        _code(getattr(owner, "from_hlo", None)),
        "UnloadedMeshExecutable.from_hlo",
        ("out_shardings", "kept_var_idx", "backend", "device_list", "committed", "global_out_avals"),
    )


def _attribute(module: str, name: str) -> Callable[[], str | None]:
    return lambda: None if hasattr(jax_module(module), name) else f"{module}.{name} is not there"


def _copies() -> str | None:
    array = array_class()
    value = array.__dict__.get(VALUE_FRAME)
    names = getattr(_code(getattr(value, "fget", None)), "co_names", ())
    if not any(n in names and n in array.__dict__ for n in COPY_METHODS):
        return f"ArrayImpl.{VALUE_FRAME} calls none of {', '.join(COPY_METHODS)}"
    return None


def _scalars() -> str | None:
    monitoring = jax_module("jax.monitoring")
    if not hasattr(monitoring, "register_scalar_listener"):
        return "jax.monitoring.register_scalar_listener is not there"
    enter = getattr(
        getattr(jax_module("jax._src.dispatch"), "LogElapsedTimeContextManager", None), "__enter__", None
    )
    code = _code(enter)
    if code is None or "record_scalar" not in code.co_names:
        return "phases do not announce their beginning"
    return None


SEAMS = (
    Seam("phase_durations", "seconds of every trace, lowering and compilation", _attribute("jax.monitoring", "register_event_duration_secs_listener")),
    Seam("phase_starts", "what is being compiled now", _scalars),
    Seam("cache_events", "persistent-cache hits and misses", _attribute("jax.monitoring", "register_event_listener")),
    Seam("miss_event", "calls that leave the fast path; traces told from trace-cache hits", _attribute("jax._src.util", "test_event_listener")),
    Seam("call_frame", "the function, its jit options and its arguments by name", _cache_miss),
    Seam("trace_frame", "results of a trace, captured constants", _frame_of("jax._src.pjit", "_trace_for_jit", "fun", "jaxpr", "out_avals", "args", "kwargs")),
    Seam("nested_end", "whether a trace inside another ended or raised", _frame_of("jax._src.pjit", "_trace_for_jit", TRACE_GUARD)),
    Seam("impl_frame", "calls under grad, vmap and other transforms", _frame_of("jax._src.pjit", "_pjit_call_impl_python", "args", "jaxpr", "donated_invars")),
    Seam("asked_shardings", "in_shardings and out_shardings of jit", _frame_of("jax._src.pjit", "_pjit_call_impl_python", "in_shardings", "out_shardings")),
    Seam("lower_frame", "StableHLO, donation", _frame_of("jax._src.interpreters.pxla", "_cached_lowering_to_hlo", "lowering_result", "num_const_args", "module_name", "platforms", "num_devices")),
    Seam("retarget", "programs for machines that are not there", _frame_of("jax._src.pjit", "_resolve_and_lower", "jaxpr", "in_shardings", "out_layouts", "ctx_mesh", "lowering_parameters")),
    Seam("compile_frame", "compiled HLO, memory and cost", _frame_of("jax._src.interpreters.pxla", "_cached_compilation", "xla_executable", "computation", "host_callbacks")),
    Seam("executable_frame", "shardings of results, arguments XLA drops", _from_hlo),
    Seam("trace_context", "every setting that is part of the cache key", lambda: None if hasattr(jax_module("jax._src.config"), "trace_context_names") else "jax._src.config.trace_context_names is not there"),
    Seam("recover_shardings", "result shardings in the user's mesh axes", _attribute("jax._src.interpreters.pxla", "_maybe_get_and_check_out_shardings")),
    Seam("in_shardings", "what a program takes its arguments as", _attribute("jax._src.interpreters.pxla", "_maybe_get_and_check_in_shardings")),
    Seam("cache_gauge", "whether JAX's caches were cleared, and how full they are", _attribute("jax._src.pjit", "_infer_params_cached")),
    Seam("live_arrays", "the arrays that are alive", _attribute("jax._src.xla_bridge", "_backends")),
    Seam("array_traceback", "the line that made an array", lambda: None if hasattr(jax_module("jax._src.array").ArrayImpl, "traceback") else "ArrayImpl has no traceback"),
    Seam("host_copies", "copies of arrays to the host, and how long they took (methods of ArrayImpl are replaced for it: off with --no-transfers)", _copies),
    Seam("device_puts", "copies to devices and between them", _frame_of("jax._src.interpreters.pxla", PUT_FRAME, "aval", "xs", "devices")),
    Seam("device_copies", "copies between devices at calls", _frame_of("jax._src.array", COPY_FRAME, "batch_xs", "batch_devs")),
    Seam("post_hook", "counting calls of --step-function", _attribute("jax._src.api", "_post_hook_state")),
)  # fmt: skip


def table() -> list[Status]:
    """Every seam with whether this JAX has it; imports jax."""
    rows = []
    for seam in SEAMS:
        try:
            reason = seam.check()
        except Exception as e:  # a module moved: that is the reason
            reason = f"{type(e).__name__}: {e}"
        rows.append(Status(seam.name, seam.gives, reason is None, reason))
    return rows
