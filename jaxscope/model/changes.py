"""Two programs beside one another: operations, fusions, collectives, memory, donation and constants that differ.

What one of the two does not say is not compared: the part is None, which is not the same as no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from jaxscope.analysis.hlo.program import Program as Compiled
from jaxscope.analysis.programs import Texts, peak_bytes
from jaxscope.analysis.remats import Remat
from jaxscope.analysis.stablehlo.donation import Donation
from jaxscope.analysis.stablehlo.reading import Reading
from jaxscope.model.records import Program
from jaxscope.schema.keys import Frame, Memory

T = TypeVar("T")
S = TypeVar("S")
R = TypeVar("R")
Key = Callable[["Item"], Hashable]


class Figure(msgspec.Struct, frozen=True):
    """One number that differs; ``what`` names it and its unit (``temp_bytes``, ``stablehlo.dot_general``)."""

    what: str
    before: float | None
    after: float | None


class Item(msgspec.Struct, frozen=True):
    """A collective, or a fusion of some ``kind`` (then the other fields are None)."""

    kind: str
    axes: tuple[str, ...] | None = None
    bytes: int | None = None
    executions: int | None = None
    origin: str | None = None
    source: Frame | None = None


class Changed(msgspec.Struct, frozen=True):
    """``count`` items that came (``before`` is None), went (``after`` is None) or became another."""

    before: Item | None
    after: Item | None
    count: int


class Entry(msgspec.Struct, frozen=True):
    """One thing by name: an argument's donation, a constant. Texts; None where it is not there."""

    name: str
    before: str | None
    after: str | None
    bytes_before: int | None = None
    bytes_after: int | None = None


class Changes(msgspec.Struct, frozen=True):
    """What differs. Lists are empty where nothing does, None where one side is not known."""

    before: str | None
    after: str | None
    ops: list[Figure] | None = None
    instructions: list[Figure] | None = None  # and custom calls by target
    fusions: list[Figure] | None = None  # total, and by kind
    fusions_by_line: list[Changed] | None = None
    collectives: list[Changed] | None = None
    loops: list[Figure] | None = None  # by trip count
    memory: list[Figure] | None = None
    cost: list[Figure] | None = None
    donation: list[Entry] | None = None
    constants: list[Entry] | None = None
    remats: list[Entry] | None = None

    @property
    def same(self) -> bool:
        """One StableHLO with the same options and target, and no difference in what it was compiled to.

        The id alone does not say it: another XLA, or other flags of it, compile the same text otherwise.
        """
        return self.before == self.after and not any(self.parts.values())

    @property
    def parts(self) -> dict[str, list[Figure] | list[Changed] | list[Entry] | None]:
        return {f: getattr(self, f) for f in self.__struct_fields__[2:]}


def between(a: Program, before: Texts, b: Program, after: Texts, *, one_source: bool) -> Changes:
    """What is different in ``b``. ``one_source``: both were traced from the same files, so that lines compare."""
    old, new = before.hlo, after.hlo
    then, now = before.stablehlo, after.stablehlo
    hlo = _both(old if _readable(old) else None, new if _readable(new) else None)
    mlir = _both(then, now)
    heard = _both(before.remats, after.remats)
    return Changes(
        a.id,
        b.id,
        ops=_both_of(mlir, lambda r: r.op_counts, _figures),
        instructions=_both_of(hlo, _instructions, _figures),
        fusions=_both_of(hlo, lambda p: {"total": p.fusions.total, **p.fusions.by_kind}, _figures),
        fusions_by_line=_both_of(hlo, _fusions, lambda x, y: items(x, y, one_source=one_source)),
        collectives=_both_of(hlo, _collectives, lambda x, y: items(x, y, one_source=one_source)),
        loops=_both_of(hlo, _loops, _figures),
        memory=_both_of(_both(_memory(a), _memory(b)), lambda m: m, _figures),
        cost=_both_of(_both(_cost(a, old), _cost(b, new)), lambda m: m, _figures),
        donation=_both_of(mlir, _donation, _entries),
        constants=_both_of(mlir, _constants, _entries),
        remats=_both_of(heard, _remats, _entries),
    )


def alone(p: Program, *, before: bool) -> Changes:
    """A program that only one side has."""
    return Changes(p.id, None) if before else Changes(None, p.id)


def _both(x: T | None, y: T | None) -> tuple[T, T] | None:
    return None if x is None or y is None else (x, y)


def _both_of(
    pair: tuple[T, T] | None, take: Callable[[T], S], compare: Callable[[S, S], list[R]]
) -> list[R] | None:
    return None if pair is None else compare(take(pair[0]), take(pair[1]))


def _readable(p: Compiled | None) -> bool:
    return p is not None and p.instructions > 0


# -- numbers by name -------------------------------------------------------------------------------------


def _figures(before: Mapping[str, float | None], after: Mapping[str, float | None]) -> list[Figure]:
    """The numbers that differ, in the order of ``after``. One that is None on a side is not known there."""
    names = list(dict.fromkeys([*after, *before]))
    found = [Figure(n, before.get(n, 0), after.get(n, 0)) for n in names]
    return [f for f in found if f.before != f.after and f.before is not None and f.after is not None]


def _instructions(p: Compiled) -> dict[str, float | None]:
    calls = {f"custom_call.{target}": n for target, n in p.custom_calls.items()}
    return {"instructions": p.instructions, "unfused_elementwise": p.unfused_elementwise, **calls}


def _loops(p: Compiled) -> dict[str, float | None]:
    counts = Counter("?" if loop.trip_count is None else str(loop.trip_count) for loop in p.loops)
    return {f"trip_count.{trips}": n for trips, n in counts.items()}


def _memory(p: Program) -> dict[str, float | None] | None:
    memory: Memory | None = p.compiled.memory if p.compiled is not None else None
    if memory is None:
        return None
    named = ("argument_bytes", "output_bytes", "temp_bytes", "alias_bytes", "code_bytes")
    return {**{n: getattr(memory, n) for n in named}, "peak_bytes": peak_bytes(memory)}


def _cost(p: Program, made: Compiled | None) -> dict[str, float | None]:
    cost = p.compiled.cost if p.compiled is not None else {}
    return {
        "flops": cost.get("flops"),
        "bytes_accessed": cost.get("bytes accessed"),
        "matrix_flops": made.matrix_flops if made is not None else None,
    }


# -- things by name --------------------------------------------------------------------------------------


def _entries(
    before: Mapping[str, tuple[str, int | None]], after: Mapping[str, tuple[str, int | None]]
) -> list[Entry]:
    """The things of which something else is said; a size that grew with the shapes is not that."""
    found = []
    for name in dict.fromkeys([*after, *before]):
        x, y = before.get(name), after.get(name)
        if (x and x[0]) != (y and y[0]):
            found.append(
                Entry(name, x and x[0], y and y[0], x[1] if x is not None else None, y[1] if y else None)
            )
    return found


def _named(things: Iterable[tuple[str, str, int | None]]) -> dict[str, tuple[str, int | None]]:
    """By name; the second of one name is ``name (2)``."""
    found: dict[str, tuple[str, int | None]] = {}
    seen: Counter[str] = Counter()
    for name, text, size in things:
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name} ({seen[name]})"] = text, size
    return found


def _donation(r: Reading) -> dict[str, tuple[str, int | None]]:
    def text(d: Donation) -> str:
        return f"{d.status or 'donated'}: {d.reason}" if d.reason else d.status or "donated"

    return _named((d.path or "?", text(d), d.bytes) for d in r.donation)


def _constants(r: Reading) -> dict[str, tuple[str, int | None]]:
    return _named((c.name or "unnamed", c.type, c.bytes) for c in r.constants)


def _remats(found: list[Remat]) -> dict[str, tuple[str, int | None]]:
    return _named((r.name or "?", f"{r.before or '?'} to {r.after or '?'}", r.bytes) for r in found)


# -- things by line --------------------------------------------------------------------------------------


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
    """What is left when equal items have been taken from both sides, and what changed into what.

    Lines of two versions of a file do not compare: without ``one_source`` an item is also equal to one of
    another line, of the same function first.
    """
    gone, came = Counter(before), Counter(after)
    for key in (_whole,) if one_source else (_whole, _in_function, _anywhere):
        _cancel(gone, came, key)
    changed: list[Changed] = []
    where = _line if one_source else _function
    for key in (lambda i: (i.kind, i.axes, where(i)), lambda i: (i.kind, where(i))):
        changed += _paired(gone, came, key)
    changed += [Changed(None, item, n) for item, n in came.items()]
    changed += [Changed(item, None, n) for item, n in gone.items()]
    return sorted(changed, key=_weight)


def _cancel(gone: Counter[Item], came: Counter[Item], key: Key) -> None:
    for _ in _alike(gone, came, key):
        pass


def _paired(gone: Counter[Item], came: Counter[Item], key: Key) -> list[Changed]:
    return [Changed(x, y, n) for x, y, n in _alike(gone, came, key) if x != y]


def _alike(gone: Counter[Item], came: Counter[Item], key: Key) -> Iterator[tuple[Item, Item, int]]:
    """Takes pairs with one key from both sides."""
    waiting: dict[Hashable, list[Item]] = {}
    for item in gone:
        waiting.setdefault(key(item), []).append(item)
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


def _whole(i: Item) -> Hashable:
    return i


def _in_function(i: Item) -> Hashable:
    return (*_anywhere(i), _function(i))


def _anywhere(i: Item) -> tuple[Hashable, ...]:
    return i.kind, i.axes, i.bytes, i.executions, i.origin


def _function(i: Item) -> Hashable:
    return None if i.source is None else i.source.function


def _line(i: Item) -> Hashable:
    return None if i.source is None else (i.source.file, i.source.line)


def _weight(c: Changed) -> tuple[Hashable, ...]:
    """The most bytes first."""
    item = c.after or c.before
    assert item is not None
    total = (item.bytes or 0) * (item.executions or 1) * c.count
    at = (item.source.file, item.source.line) if item.source is not None else ("", 0)
    return -total, at, item.kind, str(item.axes), c.before is None, c.after is None
