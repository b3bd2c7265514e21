"""Merge operations outside jit that recompile for new sizes into the finding about a jitted function that
recompiles for the same sizes: data of one size are the remedy for both."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec

from jaxscope.analysis.causes import SHAPES
from jaxscope.analysis.source_lines import loops_around
from jaxscope.model import causes, payers, sources
from jaxscope.model.payers import Payer
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.rules.line_lists import line_numbers
from jaxscope.schema.findings import Evidence, Finding, extended, slug_of
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Count, Message, Names, Seconds, message

# Advice of JX133 about changing sizes
OF_SIZES = frozenset({"fix-one-size-or-numpy", "fix-final-length", "fix-one-size-first"})
LINES = 8  # lines that are named
FEWEST = 3  # recompiles of the function
PART = 3  # at least one of so many recompiles of a line has a change of size that the function has
LITTLE = 0.1  # share of the seconds of the function's finding below which the operations are not mentioned
# Takes a recompile of an operation; returns its changes of sizes: (size before, size now).
Sizes = Callable[[Compilation], set[tuple[int, int]]]


def merged(run: Run, findings: Sequence[Finding], sizes: Sizes) -> list[Finding]:
    """Return ``findings`` with some about operations outside jit (JX133) merged into one about a jitted
    function (JX101). They are merged if one loop runs both, and if many of their recompiles have a change of
    size that the function has, too."""
    kept, left = list(findings), [p for p in payers.payers(run) if p.again]
    for f in [f for f in findings if f.code == "JX101" and f.function in run.functions]:
        resized = _resized(run, f.function or "")
        if len(resized) < FEWEST:
            continue  # a last batch: what cuts it out of the data cannot be padded
        changes = {pair for c in resized for pair in sizes(c)}
        loops = _loops(run, resized)
        beside = (p for p in left if not loops.isdisjoint(_loops(run, p.again)))
        called = {c.lines[0].place for c in resized if c.lines}  # operations there make the arguments
        alike = [
            (p, again)
            for p in beside
            if (again := p.again if p.line.place in called else _alike(p, changes, sizes))
        ]
        seconds = sum(c.seconds for _, again in alike for c in again)
        if not alike or seconds < LITTLE * (f.seconds or 0.0):
            continue
        left = [p for p in left if all(p is not other for other, _ in alike)]
        alike.sort(key=lambda pair: -sum(c.seconds for c in pair[1]))
        lines = sorted((p.line for p, _ in alike), key=lambda line: line.place)
        words = message(
            "resized-too",
            n=Count(sum(len(again) for _, again in alike), "recompile"),
            lines=_named(f, lines),
            seconds=Seconds(seconds),
        )
        together = msgspec.structs.replace(
            f,
            title=message("passed-on", first=f.title, also=words),
            evidence=[*f.evidence, *(_at_line(p, again) for p, again in alike)],
            fix=extended(f.fix, "fix-sizes-of-operations"),
            seconds=(f.seconds or 0.0) + seconds,
        )
        places = {line.place for line in lines}
        kept = [together if g is f else g for g in kept if not _is_about(g, places)]
    return kept


def _at_line(p: Payer, again: Sequence[Compilation]) -> Evidence:
    """Return the evidence that operations on the line of ``p`` recompiled: ``again``."""
    recompiles, seconds = Count(len(again), "recompile"), Seconds(sum(c.seconds for c in again))
    return Evidence(message("resized-there", n=recompiles, seconds=seconds), source=p.line)


def _named(f: Finding, lines: Sequence[Frame]) -> Message:
    """Return ``lines`` for a message: ``lines 8 and 31 to 33``; with their file if it is not that of the line
    of the finding ``f``."""
    numbers = line_numbers((line.line for line in lines), LINES)
    if f.source is not None and all(line.file == f.source.file for line in lines):
        return message("lines-known" if len(lines) > 1 else "line-known", lines=numbers)
    return message("all-lines", lines=Names(tuple(lines), LINES, "lines"))


def _resized(run: Run, function: str) -> list[Compilation]:
    """Return the recompiles of the function with the id ``function`` because of another shape."""
    again = causes.recompiles(run.functions[function], run)
    return [c for c in again if causes.of(run, c)[0].kind in SHAPES]


def _loops(run: Run, calls: Sequence[Compilation]) -> set[tuple[str, int]]:
    """Return (file, first line) of the loops that ran ``calls``."""
    text, lines = sources.of(run), {at for c in calls for at in c.lines}
    return {(at.file, first) for at in lines for first, _ in loops_around(text(at.file), at.line)}


def _alike(p: Payer, changes: Collection[tuple[int, int]], sizes: Sizes) -> list[Compilation]:
    """Return the recompiles of the line ``p`` if a good part of them has one of these ``changes`` of sizes;
    else an empty list. Of a line that runs for two arrays in turn, every other recompile has one."""
    same = sum(not sizes(c).isdisjoint(changes) for c in p.again)
    return p.again if PART * same >= len(p.again) and same else []


def _is_about(f: Finding, places: Collection[tuple[str, int]]) -> bool:
    """Return whether ``f`` is a finding of JX133 about changing sizes, all of whose lines are in ``places``
    (pairs of file and line)."""
    if f.code != payers.CODE or slug_of(f) not in OF_SIZES or f.source is None:
        return False
    lines = {at.place for at in (f.source, *(e.source for e in f.evidence)) if at is not None}
    return lines <= set(places)
