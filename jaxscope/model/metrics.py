"""Extract the figures of a compiled program (operations, bytes, collectives, ...), and compare them.

All comparisons of programs use these figures: ``jaxscope diff`` compares the programs of two runs, ``jaxscope
check`` compares a run with figures saved in a baseline file or with limits, and the table of ``--target`` or
``--vary`` prints the figures of several targets or settings side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from jaxscope.analysis.avals import short_aval
from jaxscope.analysis.bounds import Bounds
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.hlo import branches
from jaxscope.analysis.hlo.axes import Axes
from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.analysis.hlo.program import Program as Compiled
from jaxscope.analysis.memory_fit import Fit
from jaxscope.analysis.programs import peak_bytes
from jaxscope.analysis.stablehlo.callbacks import Callback
from jaxscope.analysis.stablehlo.constants import Constant
from jaxscope.analysis.stablehlo.matmuls import Product
from jaxscope.analysis.stablehlo.precision import Upcast
from jaxscope.analysis.stablehlo.reading import Reading
from jaxscope.analysis.sums import known_sum
from jaxscope.log.jobs import EXHAUSTED, OK
from jaxscope.model import target_programs
from jaxscope.model.records import Program
from jaxscope.model.run import Run
from jaxscope.model.stable_names import clean, pattern, root
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Key, Memory, table_entry

N = TypeVar("N", int, float)
COUNT, BYTES, FLOPS = "count", "bytes", "flops"
LESS = "less"  # Metric.better: a smaller figure is better

Figures = Mapping[str, float | None]


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base class of the types that are stored in a baseline file. Unknown keys in the file are an error:
    they may come from a wrong merge of two versions of the file."""


class Collectives(Saved, frozen=True):
    """The collectives of a program that have the same kind and the same mesh axes.

    Attributes:
      count: number of instructions in the program.
      executions: how often all of them together run in one call of the program, counting the iterations of
        loops and the largest branch of each conditional; None: a number of iterations is unknown.
      bytes: bytes of the results of all instructions on one device, each instruction counted once; None: the
        size of a result is unknown.
      within: number of these instructions by name of the user's function that they come from; ``?`` if
        unknown. Not compared.
    """

    count: int
    executions: int | None = None
    bytes: int | None = None
    within: dict[str, int] = {}  # not compared: a renamed function makes no difference


class Traffic(msgspec.Struct, frozen=True):
    """The collectives of a program over the same mesh axes, and the bytes that they send.

    Attributes:
      count: number of instructions.
      executions: how often all instructions together run in one call of the program; None: unknown.
      wire_bytes: largest number of bytes that one device sends for them in one call; None: unknown. In
        ``executions`` and ``wire_bytes``, only the branch with the largest number counts of each conditional.
    """

    count: int
    executions: int | None
    wire_bytes: int | None


class SavedMetrics(Saved, frozen=True):
    """The figures of one program that a baseline file keeps.

    A field is None if its figures are unknown, and empty or 0 if the program has nothing of the kind.

    Attributes:
      arguments: number of arguments by path, type and sharding: ``{"batch['x']: f32[64,32] P('data',)": 1}``.
        Numbers in paths are written ``*``. The arguments explain why another figure changed, but are not
        compared. Empty if they are unknown.
      collectives: the collectives by kind and axes: ``all-reduce over data``.
      fusions: number of fusions: ``total``, by kind, and ``unfused`` elementwise operations.
      memory: bytes on one device: ``argument``, ``output``, ``temp``, ``peak``.
      donation: number of donated arrays, by the first name in their path and then by status: aliased (the
        memory is used again), unused (it is not), offered (unknown): ``{"state": {"aliased": 12}}``.
      constants: bytes of captured arrays by name, without arrays of equal elements.
      upcasts: number of conversions to a wider dtype: ``bfloat16 to float32``.
      products: number of matrix products by operands and precision: ``f32 x f32 -> f32, DEFAULT``.
      callbacks: number of calls into Python by kind.
      loops: number of loops by number of iterations; ``?`` if the number of iterations is unknown.
      flops: operations of matrix products and convolutions on one device in one call: ``{"matrix": ...}``.
    """

    arguments: dict[str, int] = {}
    collectives: dict[str, Collectives] | None = None
    fusions: dict[str, int] | None = None
    memory: dict[str, int] | None = None
    donation: dict[str, dict[str, int]] | None = None
    constants: dict[str, int] | None = None
    upcasts: dict[str, int] | None = None
    products: dict[str, int] | None = None
    callbacks: dict[str, int] | None = None
    loops: dict[str, int] | None = None
    flops: dict[str, int] | None = None


class ProgramMetrics(SavedMetrics, frozen=True):
    """All figures of one program. None: unknown. A target is a machine given by ``--target``.

    Attributes:
      ops: number of StableHLO operations by name.
      instructions: number of HLO instructions: all (``instructions``), elementwise ones outside of fusions
        (``unfused_elementwise``), and custom calls (``custom_call.TARGET``).
      unsaved_memory: bytes on one device: ``alias``, ``code``.
      cost: ``flops`` and ``bytes_accessed`` of XLA's cost analysis, without unknown figures.
      traffic: the collectives by mesh axes (``analysis.hlo.axes.Axes``).
      fit: whether a program for a target fits into the target's memory.
      bounds: lower bounds on the time of one call on a target.
      cycles: cycles of one call, estimated by a TPU's compiler.
      state: ``Program.state`` of a program for a target; ``ok`` for any other program.
      seconds: seconds that compiling for a target took.
    """

    ops: dict[str, int] | None = None
    instructions: dict[str, int] | None = None
    unsaved_memory: dict[str, int] | None = None
    cost: dict[str, float] | None = None
    traffic: dict[Axes, Traffic] | None = None
    fit: Fit | None = None
    bounds: Bounds | None = None
    cycles: int | None = None
    state: str = OK
    seconds: float | None = None

    @property
    def saved(self) -> SavedMetrics:
        """Return those of the figures that a baseline file keeps."""
        return SavedMetrics(**{name: getattr(self, name) for name in SavedMetrics.__struct_fields__})

    @property
    def used_bytes(self) -> int | None:
        """Return the bytes of memory that the program needs on one device, as the compiler estimates them.
        None if unknown."""
        return self.fit.used if self.fit is not None else (self.memory or {}).get("peak")


class Difference(msgspec.Struct, frozen=True):
    """The values that one figure has for two programs. The values may be equal.

    Attributes:
      what: the figure's name: ``temp_bytes``, ``stablehlo.dot_general``, ``trip_count.6``.
      before, after: the value for the first and for the second program.
      unit: COUNT, BYTES, FLOPS or ``seconds``.
      worse: whether ``after`` is worse; None: neither more nor less is better, or this was not decided.
      key: the figure's name in its group: ``temp``, ``stablehlo.dot_general``, ``6``.
    """

    what: str
    before: float
    after: float
    unit: str = COUNT
    worse: bool | None = None
    key: str = ""

    @property
    def share(self) -> float | None:
        """Return the relative change, (after - before) / before; None if ``before`` is 0."""
        return (self.after - self.before) / self.before if self.before else None


class Metric(msgspec.Struct, frozen=True):
    """A group of figures: how to get them from a program, and how to compare them.

    Attributes:
      name: the name of the group in a baseline file: ``memory``, ``fusions``.
      unit: COUNT, BYTES, FLOPS or ``seconds``.
      better: LESS if smaller figures are better; None: neither more nor less is better.
      extract: a function that returns the figures of a program by name; None: they are unknown.
      tolerance: the relative change that is allowed (0.05 is 5 %), unless the baseline file has another
        value.
      spelled: a format for the name of a figure outside of the baseline file: ``{}_bytes`` turns ``temp``
        into ``temp_bytes``.
      missing: the value of a figure that only the other program has; None: unknown.
    """

    name: str
    unit: str
    better: str | None
    extract: Callable[[SavedMetrics], Figures | None]
    tolerance: float = 0.0
    spelled: str = "{}"
    missing: int | None = 0

    def compare(
        self, before: SavedMetrics, after: SavedMetrics, tolerance: float = 0.0
    ) -> list[Difference] | None:
        """Return the figures that are known for both programs and differ by more than ``tolerance``, a
        fraction of the value in ``before`` (0.05 is 5 %). None if all figures of one of the programs are
        unknown."""
        old, new = self.extract(before), self.extract(after)
        if old is None or new is None:
            return None
        found = self.differences(old, new)
        return [d for d in found if abs(d.after - d.before) > tolerance * d.before]

    def differences(self, old: Figures, new: Figures) -> Iterator[Difference]:
        """Yield a Difference for each figure that is known for both programs, even if its values are equal.
        ``old`` and ``new`` are {name of the figure: value, None if unknown}. For a figure that only one of
        them has, the other value is ``missing``."""
        for name in dict.fromkeys([*new, *old]):
            x, y = old.get(name, self.missing), new.get(name, self.missing)
            if x is not None and y is not None:
                unit = BYTES if name == "bytes_accessed" else self.unit
                worse = y > x if self.better == LESS else None
                yield Difference(self.spelled.format(name), x, y, unit, worse, name)


def _figures(field: str) -> Callable[[SavedMetrics], Figures | None]:
    """Return a function that takes the figures of a program and returns their attribute ``field``, such as
    ``fusions``. The function returns None for figures without this attribute."""
    return lambda metrics: getattr(metrics, field, None)


def _memory(metrics: SavedMetrics) -> Figures | None:
    """Return the memory figures of a program, in bytes on one device: ``{"temp": 4096, "alias": 1024, ...}``.
    None if unknown. Figures that a baseline file does not keep are included."""
    return metrics.memory and {**metrics.memory, **(getattr(metrics, "unsaved_memory", None) or {})}


def _work(metrics: SavedMetrics) -> Figures:
    """Return the figures of XLA's cost analysis of a program, and the operations of its matrix products:
    ``{"flops": 2e9, "matrix_flops": 1e9, ...}``. Unknown figures are missing or None."""
    cost: Figures = getattr(metrics, "cost", None) or {}
    return {**cost, "matrix_flops": (metrics.flops or {}).get("matrix")}


OPS = Metric("ops", COUNT, None, _figures("ops"))
INSTRUCTIONS = Metric("instructions", COUNT, None, _figures("instructions"))
FUSIONS = Metric("fusions", COUNT, LESS, _figures("fusions"), 0.05)
LOOPS = Metric("loops", COUNT, None, _figures("loops"), spelled="trip_count.{}")
MEMORY = Metric("memory", BYTES, LESS, _memory, 0.05, "{}_bytes", None)
WORK = Metric("flops", FLOPS, LESS, _work, 0.05, missing=None)
UPCASTS = Metric("upcasts", COUNT, LESS, _figures("upcasts"))
PRODUCTS = Metric("products", COUNT, None, _figures("products"))
CALLBACKS = Metric("callbacks", COUNT, LESS, _figures("callbacks"))
CONSTANTS = Metric("constants", BYTES, LESS, _figures("constants"))
METRICS = (OPS, INSTRUCTIONS, FUSIONS, LOOPS, MEMORY, WORK, UPCASTS, PRODUCTS, CALLBACKS, CONSTANTS)
TOLERANCE = {m.name: m.tolerance for m in METRICS if m.tolerance}


def of(run: Run, p: Program) -> ProgramMetrics:
    """Return all figures of the program ``p``, which ran or was compiled for a target (``--target``)."""
    texts, target = run.texts_of(p), run.retargeted.get(p.id) is p
    fit = target_programs.fit(run, p) if target else None
    memory, peak = memory_of(p, fit)
    saved = {
        "argument": memory.argument_bytes,
        "output": memory.output_bytes,
        "temp": memory.temp_bytes,
        "peak": peak,
    }
    unsaved = {"alias": memory.alias_bytes, "code": memory.code_bytes}
    known = any(n is not None for n in saved.values())
    cost = p.compiled.cost if p.compiled is not None else {}
    costs = {"flops": cost.get("flops"), "bytes_accessed": cost.get("bytes accessed")}
    key = next((c.key for c in p.compilations if c.key is not None), None)
    return ProgramMetrics(
        arguments=_arguments(key) if key is not None else {},
        memory=_present(saved) if known else None,
        unsaved_memory=_present(unsaved) if known else None,
        cost=_present(costs),
        fit=fit,
        bounds=target_programs.bounds_of(run, p) if target else None,
        state=p.state if target else OK,
        seconds=p.target_compiled.seconds if p.target_compiled is not None else None,
        **_of_hlo(texts.hlo),
        **_of_stablehlo(texts.stablehlo),
    )


def memory_of(p: Program, fit: Fit | None = None) -> tuple[Memory, int | None]:
    """Return (the compiler's byte counts for one device, peak bytes or None if unknown) of the program ``p``.
    If ``p`` does not fit into the memory of its target (``--target``), only the peak and perhaps the
    temporaries are known.

    Args:
      fit: the result of ``target_programs.fit``, if ``p`` was compiled for a target; otherwise None.
    """
    if fit is None:
        return sizes(p.compiled)
    if p.state == EXHAUSTED:
        return Memory(temp_bytes=fit.temporaries), fit.used
    return (p.target_compiled.memory if p.target_compiled is not None else None) or Memory(), fit.used


def sizes(compiled: ev.Compiled | None) -> tuple[Memory, int | None]:
    """Return (the compiler's byte counts for one device, peak bytes or None if unknown) of a program that
    ran. ``compiled`` is the event of its compilation; if it is None (not recorded), all counts are
    unknown."""
    memory = (compiled.memory if compiled is not None else None) or Memory()
    return memory, peak_bytes(memory)


def _present(values: Mapping[str, N | None]) -> dict[str, N]:
    """Return ``values`` without those that are None."""
    return {name: n for name, n in values.items() if n is not None}


def _of_hlo(hlo: Compiled | None) -> dict[str, Any]:
    """Return the fields of ProgramMetrics that are read from ``hlo``, the analyzed text of the compiled
    program, as {field: value}; empty if there is no text, or no instruction in it."""
    if hlo is None or not hlo.instructions:
        return {}
    custom_calls = {f"custom_call.{target}": n for target, n in hlo.custom_calls.items()}
    return {
        "instructions": {
            "instructions": hlo.instructions,
            "unfused_elementwise": hlo.unfused_elementwise,
            **custom_calls,
        },
        "fusions": {"total": hlo.fusions.total, **hlo.fusions.by_kind, "unfused": hlo.unfused_elementwise},
        "loops": _counted(("?" if x.trip_count is None else str(x.trip_count), 1) for x in hlo.loops),
        "flops": None if hlo.matrix_flops is None else {"matrix": hlo.matrix_flops},
        "cycles": hlo.estimated_cycles,
        "collectives": {
            name: Collectives(
                count=len(members),
                executions=_executions(members),
                bytes=known_sum(c.bytes for c in members),
                within=_counted((source_function(c), 1) for c in members),
            )
            for name, members in grouped((collective_key(c), c) for c in hlo.collectives).items()
        },
        "traffic": {
            over: Traffic(len(members), _executions(members), hlo.wire_by_axes[over].most)
            for over, members in grouped((c.over, c) for c in hlo.collectives).items()
        },
    }


def _executions(members: Iterable[Collective]) -> int | None:
    """Return how often, at most, the collectives ``members`` together run in one call of the program. None if
    unknown. Of each conditional, only the branch that runs them most often counts."""
    return branches.bounds_of((c.branches, c.executions) for c in members).most


def _of_stablehlo(lowered: Reading | None) -> dict[str, Any]:
    """Return the fields of ProgramMetrics that are read from ``lowered``, the analyzed StableHLO text, as
    {field: value}; empty if there is no text."""
    if lowered is None:
        return {}
    donated = [d for d in lowered.donation if d.status != "possible"]
    return {
        "ops": lowered.op_counts,
        "donation": {
            name: dict(Counter(d.status or "offered" for d in members))
            for name, members in grouped((root(d.path or "?"), d) for d in donated).items()
        },
        # XLA stores a constant of equal elements as one number.
        "constants": _counted((constant_key(c), c.bytes or 0) for c in lowered.constants if not c.splat),
        "upcasts": _counted((upcast_key(u), u.count) for u in lowered.upcasts),
        "products": _counted((product_key(x), x.count) for x in lowered.products),
        "callbacks": _counted((callback_key(c), c.count) for c in lowered.callbacks),
    }


# -- names of figures: figures in a baseline file and in a program with the same name are compared ---------


def collective_key(c: Collective) -> str:
    """Return the name of the collective ``c`` in a baseline: its kind and mesh axes, ``all-gather over data,
    model``. If the axes are unknown, the name has the size of the groups of devices (if known):
    ``all-gather over groups of 4``."""
    if c.axes is None:
        return f"{c.kind} over {f'groups of {c.group_size}' if c.group_size else 'unknown axes'}"
    return f"{c.kind} over {', '.join(map(clean, c.axes)) or 'no axis'}"


def source_function(c: Collective) -> str:
    """Return the name of the user's function that the collective ``c`` comes from; ``?`` if unknown."""
    return clean(c.source.function.replace(".<locals>", "")) if c.source is not None else "?"


def constant_key(c: Constant) -> str:
    """Return the name of the captured constant ``c`` in a baseline: the name of its variable, or ``unnamed
    f32[4]``."""
    return clean(c.name or f"unnamed {c.type}")


def upcast_key(u: Upcast) -> str:
    """Return the name of the conversion ``u`` in a baseline: ``bfloat16 to float32``."""
    return clean(f"{u.before} to {u.after}")


def product_key(p: Product) -> str:
    """Return the name of the matrix product ``p`` in a baseline, by its operands and its precision: ``f32 x
    f32 -> f32, DEFAULT``."""
    return clean(f"{p.operands}, {p.precision}")


def callback_key(c: Callback) -> str:
    """Return the name of the callback ``c`` in a baseline: its kind, such as ``pure_callback in a loop``."""
    return clean((c.kind or "callback") + (" in a loop" if c.in_loop else ""))


def _arguments(key: Key) -> dict[str, int]:
    """Return {path, type and sharding: number of such arguments} for the cache key ``key``: ``{"batch['x']:
    f32[64,32] P('data',)": 1}``. Numbers in paths become ``*``."""

    def spec(index: int | None) -> str:
        s = table_entry(key.shardings, index)
        return f" {s.spec}" if s is not None and s.spec else ""

    return _counted(
        (f"{pattern(a.path)}: {short_aval(a.shape, a.dtype, a.weak_type)}{spec(a.sharding)}", 1)
        for a in key.arguments
    )


def _counted(figures: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return {name: sum of its numbers} for the pairs ``figures`` (name, number). Names are shortened, and
    addresses in them removed (``clean``)."""
    found: Counter[str] = Counter()
    for name, n in figures:
        found[clean(name)] += n
    return dict(found)
