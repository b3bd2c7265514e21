"""Compare two compiled programs: figures, collectives, fusions, donation, constants, rematerializations.

The result for a kind of figures (such as the collectives) is None if they were not recorded for one of the
programs. An empty result means that there is no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.hlo.program import Program as Compiled
from jaxscope.analysis.rematerialization import Remat
from jaxscope.analysis.stablehlo.donation import Donation
from jaxscope.analysis.stablehlo.reading import Reading
from jaxscope.model import metrics
from jaxscope.model.metrics import Difference
from jaxscope.model.records import Program
from jaxscope.model.run import Run
from jaxscope.schema.keys import Frame

T = TypeVar("T")
Key = Callable[["Item"], Hashable]
Named = Mapping[str, tuple[str, int | None]]  # name -> (text, bytes)


class Item(msgspec.Struct, frozen=True):
    """A collective or a fusion of a compiled program. A fusion has only a ``kind`` and a ``source``.

    Attributes:
      kind: the kind of collective (``all-reduce``) or of fusion (``loop``).
      axes: the mesh axes over which the collective runs; None: unknown.
      bytes: bytes of the result on one device; None: unknown.
      executions: how often, at most, the collective runs in one call of the program; None: unknown.
      origin: asked (written in the program) or inserted (by the partitioner); None: unknown.
      source: the user's line; None: unknown.
    """

    kind: str
    axes: tuple[str, ...] | None = None
    bytes: int | None = None
    executions: int | None = None
    origin: str | None = None
    source: Frame | None = None


class Changed(msgspec.Struct, frozen=True):
    """A collective or fusion (or ``count`` equal ones) that was added, removed or changed. ``before`` is None
    if the first program does not have it, ``after`` if the second one does not."""

    before: Item | None
    after: Item | None
    count: int


class Entry(msgspec.Struct, frozen=True):
    """A constant, a donated argument or a rematerialized value that differs between two programs.

    Attributes:
      name: the name of the constant or value, or the path of the argument.
      before, after: a text about it in the first and in the second program; None: the program does not have
        it.
      bytes_before, bytes_after: the bytes that it takes in these programs; None: unknown, or the program does
        not have it.
    """

    name: str
    before: str | None
    after: str | None
    bytes_before: int | None = None
    bytes_after: int | None = None


class Changes(msgspec.Struct, frozen=True):
    """The differences of two compiled programs.

    Each attribute after ``before`` and ``after`` is a list: figures (such as a count) that differ, or single
    things that differ. It is empty if nothing differs, and None if it is unknown for one of the programs.

    Attributes:
      before, after: the ids of the two programs; None: only the other run has the program.
      ops: StableHLO operations, counted by name.
      instructions: HLO instructions, and custom calls counted by target.
      fusions: the number of fusions in all, and by kind.
      fusions_by_line, collectives: the single fusions and collectives that differ.
      loops: loops, counted by number of iterations.
      memory: bytes on one device.
      cost: operations and bytes as XLA and jaxscope estimate them.
      donation, constants, remats: donated arguments, captured constants, values that XLA rematerializes
        involuntarily.
      upcasts: conversions to a wider dtype.
      products: matrix products, by operands and precision.
      callbacks: calls into Python.
    """

    before: str | None
    after: str | None
    ops: list[Difference] | None = None
    instructions: list[Difference] | None = None
    fusions: list[Difference] | None = None
    fusions_by_line: list[Changed] | None = None
    collectives: list[Changed] | None = None
    loops: list[Difference] | None = None
    memory: list[Difference] | None = None
    cost: list[Difference] | None = None
    donation: list[Entry] | None = None
    constants: list[Entry] | None = None
    remats: list[Entry] | None = None
    upcasts: list[Difference] | None = None
    products: list[Difference] | None = None
    callbacks: list[Difference] | None = None

    @property
    def same(self) -> bool:
        """Return whether the two programs have equal ids and no known difference."""
        # Equal ids do not suffice: another XLA, or other flags, may compile the same StableHLO differently.
        return self.before == self.after and not any(self.parts.values())

    @property
    def parts(self) -> dict[str, list[Difference] | list[Changed] | list[Entry] | None]:
        """Return all attributes but ``before`` and ``after``, as a dict: ``{"ops": [...], "memory": None,
        ...}``."""
        return {f: getattr(self, f) for f in self.__struct_fields__[2:]}


def between(run_a: Run, a: Program, run_b: Run, b: Program) -> Changes:
    """Return the differences between program ``a`` of ``run_a`` and program ``b`` of ``run_b``. Source lines
    are compared only if ``run_a`` is ``run_b``."""
    before, after = run_a.texts_of(a), run_b.texts_of(b)
    old, new = metrics.of(run_a, a), metrics.of(run_b, b)
    hlo = _both(_readable(before.hlo), _readable(after.hlo))
    lowered = _both(before.stablehlo, after.stablehlo)
    remats = _both(before.remats, after.remats)
    one_source = run_a is run_b
    return Changes(
        a.id,
        b.id,
        ops=metrics.OPS.compare(old, new),
        instructions=metrics.INSTRUCTIONS.compare(old, new),
        fusions=metrics.FUSIONS.compare(old, new),
        fusions_by_line=hlo and items(*map(_fusions, hlo), one_source=one_source),
        collectives=hlo and items(*map(_collectives, hlo), one_source=one_source),
        loops=metrics.LOOPS.compare(old, new),
        memory=metrics.MEMORY.compare(old, new),
        cost=metrics.WORK.compare(old, new),
        donation=lowered and _entries(*map(_donation, lowered)),
        constants=lowered and _entries(*map(_constants, lowered)),
        remats=remats and _entries(*map(_remats, remats)),
        upcasts=metrics.UPCASTS.compare(old, new),
        products=metrics.PRODUCTS.compare(old, new),
        callbacks=metrics.CALLBACKS.compare(old, new),
    )


def _both(x: T | None, y: T | None) -> tuple[T, T] | None:
    """Return ``(x, y)``, or None if one of them is None."""
    return None if x is None or y is None else (x, y)


def _readable(p: Compiled | None) -> Compiled | None:
    """Return ``p``, the analyzed HLO text of a program, or None if ``p`` is None or has no instruction."""
    return p if p is not None and p.instructions else None


# -- constants, donated arguments, rematerialized values: compared by name ---------------------------------


def _entries(before: Named, after: Named) -> list[Entry]:
    """Return an Entry for each name whose text differs between two programs, or that only one of them has.
    ``before`` and ``after`` are {name: (text, bytes)} of their constants, donated arguments or rematerialized
    values. Bytes are not compared."""
    found = []
    for name in dict.fromkeys([*after, *before]):
        x, y = before.get(name), after.get(name)
        if (x and x[0]) != (y and y[0]):
            found.append(
                Entry(name, x and x[0], y and y[0], x[1] if x is not None else None, y[1] if y else None)
            )
    return found


def _named(things: Iterable[tuple[str, str, int | None]]) -> Named:
    """Return {name: (text, bytes)} for ``things``: (name, text, bytes or None if unknown). A name that occurs
    again becomes ``name (2)``."""
    found: dict[str, tuple[str, int | None]] = {}
    seen: Counter[str] = Counter()
    for name, text, size in things:
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name} ({seen[name]})"] = text, size
    return found


def _donation(r: Reading) -> Named:
    """Return {path of the argument: (status and reason, bytes)} for the donated arguments."""

    def text(d: Donation) -> str:
        return f"{d.status or 'donated'}: {d.reason}" if d.reason else d.status or "donated"

    return _named((d.path or "?", text(d), d.bytes) for d in r.donation)


def _constants(r: Reading) -> Named:
    """Return {name: (type, bytes)} for the captured constants."""
    return _named((c.name or "unnamed", c.type, c.bytes) for c in r.constants)


def _remats(remats: list[Remat]) -> Named:
    """Return {name: ("sharding before to sharding after", bytes)} for the rematerialized values."""
    return _named((r.name or "?", f"{r.before or '?'} to {r.after or '?'}", r.bytes) for r in remats)


# -- collectives and fusions: compared by line -------------------------------------------------------------


def _fusions(p: Compiled) -> list[Item]:
    return [Item(f.kind, source=f.sources[0] if f.sources else None) for f in p.fusions.each]


def _collectives(p: Compiled) -> list[Item]:
    return [
        Item(
            c.kind,
            None if c.axes is None else tuple(c.axes),
            c.bytes,
            c.executions,
            c.origin,
            c.source,
        )
        for c in p.collectives
    ]


def items(before: Sequence[Item], after: Sequence[Item], *, one_source: bool) -> list[Changed]:
    """Return the collectives or fusions that were added, removed or changed, those with the most bytes in one
    call of the program first.

    Items that are equal in both programs are left out. If an item of the first program and an item of the
    second one differ but have the same kind and line, they are returned as one changed item.

    Args:
      before, after: all collectives, or all fusions, of the first and of the second program.
      one_source: whether both programs are from the same source files. If not, line numbers have no meaning:
        items that differ only in line or function are equal, and changed items are matched by function
        instead of line.
    """
    gone, came = Counter(before) - Counter(after), Counter(after) - Counter(before)
    for key in () if one_source else (_in_function, _without_source):
        for _ in _alike(gone, came, key):
            pass  # these items did not change
    changed: list[Changed] = []
    where = _line if one_source else _function
    for key in (lambda i: (i.kind, i.axes, where(i)), lambda i: (i.kind, where(i))):
        changed += [Changed(x, y, n) for x, y, n in _alike(gone, came, key) if x != y]
    changed += [Changed(None, item, n) for item, n in came.items()]
    changed += [Changed(item, None, n) for item, n in gone.items()]
    return sorted(changed, key=_weight)


def _alike(gone: Counter[Item], came: Counter[Item], key: Key) -> Iterator[tuple[Item, Item, int]]:
    """Yield (item of ``gone``, item of ``came``, number of such pairs) for items with an equal ``key(item)``,
    such as the same line, and remove these pairs from both counters. ``gone`` counts items (collectives or
    fusions) of the first program, ``came`` items of the second one."""
    waiting = grouped((key(item), item) for item in gone)
    for item in list(came):
        for other in waiting.get(key(item), ()):
            n = min(gone[other], came[item])
            if n:
                gone[other] -= n
                came[item] -= n
                yield other, item, n
    for side in (gone, came):
        for item in [i for i, n in side.items() if not n]:
            del side[item]


def _in_function(i: Item) -> Hashable:
    """Return all properties of ``i``, but of its source only the function: the line may have moved."""
    return (*_without_source(i), _function(i))


def _without_source(i: Item) -> tuple[Hashable, ...]:
    """Return all properties of ``i`` except its source."""
    return i.kind, i.axes, i.bytes, i.executions, i.origin


def _function(i: Item) -> Hashable:
    return None if i.source is None else i.source.function


def _line(i: Item) -> Hashable:
    return None if i.source is None else i.source.place


def _weight(c: Changed) -> tuple[Hashable, ...]:
    """Return a key to sort changes by: the most bytes in one call of the program come first."""
    item = c.after or c.before
    assert item is not None
    total = (item.bytes or 0) * (item.executions or 1) * c.count
    at = item.source.place if item.source is not None else ("", 0)
    return -total, at, item.kind, str(item.axes), c.before is None, c.after is None
