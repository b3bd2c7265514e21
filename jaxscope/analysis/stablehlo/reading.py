"""The one entry: a lowered program's text -> everything that can be told from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

import msgspec

from jaxscope.analysis.attribution import STANDING, Standing
from jaxscope.analysis.stablehlo import (
    callbacks,
    constants,
    donation,
    lexing,
    precision,
    reader,
    repeats,
    shardings,
    types,
)
from jaxscope.analysis.stablehlo.module import NOT_OPERATIONS, Argument, Module, Problem, Result
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Captured


class Value(msgspec.Struct, frozen=True):
    """An argument or a result of the program. ``name`` is its path in JAX's spelling."""

    name: str | None
    type: str
    shape: tuple[int | None, ...] | None
    dtype: str | None
    bytes: int | None
    sharding: shardings.Spec | None = None
    memory_kind: str | None = None


class Reading(msgspec.Struct, frozen=True):
    """What a program's StableHLO says.

    ``op_counts`` has calls written out, as XLA does first, and loop bodies once; terminators are not
    counted. ``printed`` counts operations as they stand in the text. ``located`` of those say where they
    come from, and ``resolved`` of these lead to a line of the user's.
    """

    module: str | None = None
    num_partitions: int | None = None
    num_replicas: int | None = None
    printed: int = 0
    op_counts: dict[str, int] = {}
    located: int = 0
    resolved: int = 0
    arguments: tuple[Value, ...] = ()
    results: tuple[Value, ...] = ()
    meshes: tuple[shardings.Mesh, ...] = ()
    shardings: tuple[shardings.Mark, ...] = ()
    repeated: tuple[repeats.Repeated, ...] = ()
    constants: tuple[constants.Constant, ...] = ()
    doubles: precision.Doubles | None = None
    upcasts: tuple[precision.Upcast, ...] = ()
    callbacks: tuple[callbacks.Callback, ...] = ()
    donation: tuple[donation.Donation, ...] = ()
    problems: tuple[Problem, ...] = ()


def analyse(
    text: str,
    *,
    captured: Sequence[Captured] = (),
    donated: Collection[str] | None = None,
    dropped: Collection[str] = (),
    aliased: Collection[int] | None = None,
    standing: Callable[[str], Standing] = STANDING,
) -> Reading:
    """Never raises on any text. ``captured`` (of the trace) names constants; ``donated``, ``dropped`` and
    ``aliased`` are what ``donation.find`` takes; ``standing`` says whose a file is."""
    module = reader.read(text)
    return of_module(module, Sources(module, standing), captured, donated, dropped, aliased)


def of_module(
    module: Module,
    sources: Sources,
    captured: Sequence[Captured] = (),
    donated: Collection[str] | None = None,
    dropped: Collection[str] = (),
    aliased: Collection[int] | None = None,
) -> Reading:
    """The same of a module read before, for a reader who wants its operations too."""
    known = shardings.meshes(module)
    coverage = sources.coverage()
    main = module.main()
    counts: Counter[str] = Counter()
    printed = 0
    for op in module.ops:
        if op.name not in NOT_OPERATIONS:
            printed += 1
            if times := sources.times[op.function]:
                counts[op.name] += times
    problems = list(module.problems)
    if main is None and module.ops:
        problems.append(Problem(1, "no function @main: arguments, results and donation are not known"))
    problems += [Problem(0, f"a location that could not be read: {t[:80]}") for t in _unread(sources)]
    return Reading(
        module=module.name,
        num_partitions=_number(module.attributes.get("mhlo.num_partitions")),
        num_replicas=_number(module.attributes.get("mhlo.num_replicas")),
        printed=printed,
        op_counts=dict(counts.most_common()),
        located=coverage.located,
        resolved=coverage.resolved,
        arguments=() if main is None else tuple(_value(a.name, a, known) for a in main.arguments),
        results=() if main is None else tuple(_value(_info(r.attributes), r, known) for r in main.results),
        meshes=tuple(known.values()),
        shardings=tuple(shardings.marks(module, sources, known)),
        repeated=tuple(repeats.find(module, sources)),
        constants=tuple(constants.find(module, sources, captured)),
        doubles=precision.doubles(module, sources),
        upcasts=tuple(precision.upcasts(module, sources)),
        callbacks=tuple(callbacks.find(module, sources)),
        donation=tuple(donation.find(module, known, donated, dropped, aliased)),
        problems=tuple(problems),
    )


def _unread(sources: Sources) -> list[str]:
    return sorted(sources.locations.unread)[:20]


def _info(attributes: dict[str, str]) -> str | None:
    return lexing.unquote(attributes.get("jax.result_info", "")) or None


def _number(text: str | None) -> int | None:
    digits = (text or "").partition(" ")[0]
    return int(digits) if digits.isdigit() and len(digits) < 10 else None


def _value(name: str | None, value: Argument | Result, known: dict[str, shardings.Mesh]) -> Value:
    t = types.tensor(value.type)
    kind = value.attributes.get("mhlo.memory_kind")
    return Value(
        name,
        value.type,
        t.shape,
        t.dtype,
        t.bytes,
        shardings.of_attributes(value.attributes, known),
        None if kind is None else lexing.unquote(kind),
    )
