"""List the parts of a recording that are read under private names of JAX. For each part, tell whether the
installed JAX has the names, and which event fields are read from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from jaxscope.jax_internals import arrays, attributes, frames, objects
from jaxscope.jax_internals.arrays import array_class
from jaxscope.jax_internals.base import JaxFrame, JaxObject, Private, code_of
from jaxscope.jax_internals.names import COPY_METHODS

TESTED = ((0, 10), (0, 12))


def untested(version: str) -> str | None:
    """Return a warning if ``version`` of JAX is older or newer than the tested versions; None if this version
    is tested, or if ``version`` is no version number."""
    parts = version.split(".")[:2]
    if len(parts) < 2 or not all(p.isdecimal() for p in parts):
        return None
    found = int(parts[0]), int(parts[1])
    if TESTED[0] <= found <= TESTED[1]:
        return None
    low, high = (".".join(map(str, v)) for v in TESTED)
    return (
        f"jaxscope is tested with JAX {low} to {high}; this one is"
        f" {'older' if found < TESTED[0] else 'newer'}"
    )


Kind = type[JaxFrame] | type[JaxObject]
Need = Private | tuple[Kind, list[str]] | Callable[[], str | None]


def _all(*kinds: Kind) -> list[Need]:
    """Return a pair (declaration, names of all its fields) for each of ``kinds``, declarations of frames or
    objects of JAX."""
    return [(kind, list(kind.names)) for kind in kinds]


class Part(NamedTuple):
    """One part of a recording, with the private names of JAX that this part needs.

    Attributes:
      name: a short name: ``compile_frame``.
      gives: what this part adds to a recording, as a text for users.
      needs: what the part needs: private attributes of modules, pairs (declaration of a frame or object,
        names of its fields), and functions that return what is missing (None: nothing).
    """

    name: str
    gives: str
    needs: list[Need]


class Status(NamedTuple):
    """Whether the installed JAX has the private names that one part of a recording needs.

    Attributes:
      name: a short name of the part: ``compile_frame``.
      gives: what this part adds to a recording, as a text for users.
      available: whether JAX has everything that the part needs.
      reason: what is missing; None: nothing is missing.
      fills: the event fields that stay empty: ``Missed.key`` is the field ``key`` of the event ``Missed``.
    """

    name: str
    gives: str
    available: bool
    reason: str | None
    fills: tuple[str, ...] = ()


def _public(name: str) -> Private:
    """Return a declaration of the public function ``name`` of ``jax.monitoring``, to check it like a private
    name."""
    return Private("jax.monitoring", name)


def _copies() -> str | None:
    """Return a sentence that says why copies of arrays to the host cannot be observed in the installed JAX;
    None if they can."""
    array = array_class()
    if frames.ValueFrame.function not in array.__dict__:
        return f"{frames.ValueFrame.where()} is not there"
    called = getattr(frames.ValueFrame.code(), "co_names", ())
    if not any(n in called and n in array.__dict__ for n in COPY_METHODS):
        return f"{frames.ValueFrame.where()} calls none of {', '.join(COPY_METHODS)}"
    return None


def _scalars() -> str | None:
    """Return a sentence that says why the installed JAX does not announce the beginning of a phase (trace,
    lowering, compilation); None if it does."""
    lacks = _public("register_scalar_listener").lacks()
    if lacks is not None:
        return lacks
    code = code_of(attributes.ELAPSED_TIME.needed().__enter__)
    if code is None or "record_scalar" not in code.co_names:
        return "phases do not announce their beginning"
    return None


def _traceback() -> str | None:
    """Return a sentence if the arrays of the installed JAX do not record where they were created, else
    None."""
    return None if hasattr(array_class(), "traceback") else "ArrayImpl has no traceback"


_GUARD = "elapsed_time_ctx"
_TRACE = [f for f in frames.TraceFrame.names if f != _GUARD]

PARTS = (
    Part(
        "phase_durations",
        "seconds of every trace, lowering and compilation",
        [_public("register_event_duration_secs_listener")],
    ),
    Part("phase_starts", "what is being compiled now", [_scalars, attributes.ELAPSED_TIME]),
    Part(
        "listeners",
        "listening again after jax.monitoring.clear_event_listeners()",
        [attributes.DURATION_LISTENERS],
    ),
    Part("cache_events", "persistent-cache hits and misses", [_public("register_event_listener")]),
    Part(
        "miss_event",
        "calls that miss the fast path, and whether each one traces or reuses a trace",
        [attributes.TEST_LISTENER],
    ),
    Part(
        "call_frame",
        "the function, its jit options and its arguments by name",
        [
            *_all(
                frames.CallFrame,
                frames.AheadOfTimeFrame,
                frames.TransformFrame,
                objects.JittedFunction,
                objects.JitInfo,
            )
        ],
    ),
    Part(
        "trace_frame",
        "results of a trace, captured constants",
        [*_all(objects.Jaxpr, objects.DebugInfo), (frames.TraceFrame, _TRACE)],
    ),
    Part("nested_end", "whether a trace inside another ended or raised", [(frames.TraceFrame, [_GUARD])]),
    Part(
        "impl_frame", "calls under grad, vmap and other transforms", [(frames.ImplFrame, ["args", "jaxpr"])]
    ),
    Part(
        "asked_shardings",
        "in_shardings and out_shardings of jit",
        [
            *_all(frames.LowerAheadOfTimeFrame, objects.TracedFunction),
            (frames.ImplFrame, ["in_shardings", "out_shardings"]),
        ],
    ),
    Part(
        "lower_frame",
        "StableHLO, donation",
        [*_all(frames.LoweringFrame, frames.LowererFrame, objects.LoweringResult)],
    ),
    Part(
        "retarget",
        "programs lowered for accelerators you don't have (--target)",
        [
            *_all(frames.ResolveFrame, objects.Computation, objects.LoweredFunction),
            attributes.LOWER,
            attributes.INPUT_OUTPUT,
            attributes.HIDE_FILES,
        ],
    ),
    Part(
        "target_compiler",
        "compiling for accelerators you don't have (--target)",
        [attributes.COMPILE_OPTIONS, attributes.MLIR_CONTEXT, attributes.XLA_CLIENT],
    ),
    Part("compile_frame", "compiled HLO, memory and cost", [*_all(frames.CompileFrame)]),
    Part(
        "executable_frame",
        "shardings of results, unused arguments that XLA removes",
        [*_all(frames.ExecutableFrame, objects.ArgumentsInfo)],
    ),
    Part(
        "trace_context",
        "every setting that is part of the cache key",
        [
            attributes.TRACE_CONTEXT,
            attributes.TRACE_CONTEXT_NAMES,
            attributes.DEFAULT_DEVICE,
            attributes.CONCRETE_MESH,
        ],
    ),
    Part(
        "recover_shardings",
        "result shardings in the user's mesh axes",
        [attributes.OUT_SHARDINGS, attributes.RECOVER_SHARDINGS],
    ),
    Part("in_shardings", "shardings that a program expects of its arguments", [attributes.IN_SHARDINGS]),
    Part(
        "cache_gauge",
        "whether JAX's caches were cleared, and how full they are",
        [attributes.SIGNATURES, attributes.FAST_PATH, attributes.FAST_PATH_NO_OPTIONS],
    ),
    Part("peers", "comparison of ranks without a shared directory", [attributes.DISTRIBUTED]),
    Part("live_arrays", "live arrays", [attributes.BACKENDS, attributes.ARRAY]),
    Part("array_metadata", "committedness, layout and memory of arrays", [arrays.lacks]),
    Part("array_traceback", "the line that made an array", [_traceback]),
    Part(
        "host_copies",
        "copies of arrays to the host, and how long they took (methods of ArrayImpl are replaced for it:"
        " off with --no-transfers)",
        [*_all(frames.ValueFrame), _copies],
    ),
    Part("device_puts", "copies to devices and between them", [*_all(frames.DevicePutFrame)]),
    Part(
        "staged_arrays",
        "copies to devices by jnp.asarray and jnp.array (the implementation of two primitives is"
        " replaced for it: off with --no-transfers)",
        [*_all(frames.EagerFrame), attributes.STAGE, attributes.CONVERT, attributes.HOST_ARRAY],
    ),
    Part(
        "rounding",
        "numbers that become equal when jnp.asarray rounds them (off with --no-transfers)",
        [*_all(frames.NumpyArrayFrame)],
    ),
    Part("device_copies", "copies between devices at calls", [*_all(frames.DeviceCopyFrame)]),
    Part("pmap", "the function and arguments of jax.pmap as they were passed", [*_all(frames.PmapFrame)]),
    Part(
        "post_hook",
        "counting calls of --step-function",
        [attributes.POST_HOOK, attributes.DEBUG_NANS, attributes.DEBUG_INFS],
    ),
)


Lost = tuple[str, tuple[str, ...]]


def _lost(need: Need) -> Lost | None:
    """Return None if the installed JAX has ``need``, which a part of a recording needs. Otherwise return (a
    sentence that names what is missing, the event fields that stay empty)."""
    fills: tuple[str, ...] = ()
    if isinstance(need, Private):
        lacks, fills = need.lacks(), need.fills
    elif isinstance(need, tuple):
        kind, fields = need
        lacks = kind.lacks(fields)
        if lacks is not None:
            fills = tuple(filled for f in fields if kind.lacks([f]) for filled in kind.fills(f))
    else:
        lacks = need()
    return (lacks, fills) if lacks is not None else None


def table() -> list[Status]:
    """Return a ``Status`` for each part of a recording: whether the installed JAX has the private names that
    the part needs. This imports jax."""
    rows = []
    for part in PARTS:
        lost: list[Lost] = []
        for need in part.needs:
            try:
                found = _lost(need)
            except Exception as e:  # such as an ImportError, if JAX moved a module
                found = f"{type(e).__name__}: {e}", ()
            lost += [found] if found is not None else []
        reason = "; ".join(why for why, _ in lost) if lost else None
        fills = tuple(dict.fromkeys(f for _, fields in lost for f in fields))
        rows.append(Status(part.name, part.gives, not lost, reason, fills))
    return rows


def needed_for(field: str) -> list[tuple[bool, str]]:
    """Return (whether the installed JAX has the name, the full name) for each private name of JAX from which
    the event field ``field`` is read. ``Missed.key`` is the field ``key`` of the event ``Missed``."""
    found: list[tuple[bool, str]] = []
    for kind in (*frames.FRAMES, *objects.OBJECTS):
        for name in kind.names:
            if field in kind.fills(name):
                found.append((_there(kind.lacks, [name]), f"{kind.where()}: {kind.names[name]}"))
    for attribute in attributes.ATTRIBUTES.values():
        if field in attribute.fills:
            found.append((_there(attribute.lacks), f"{attribute.module}.{attribute.name}"))
    return found


def _there(lacks: Callable[..., str | None], *args: list[str]) -> bool:
    """Return whether ``lacks(*args)`` returns None, which means that JAX lacks nothing. False if it returns a
    sentence or raises an exception."""
    try:
        return lacks(*args) is None
    except Exception:
        return False
