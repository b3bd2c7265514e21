"""Parts of findings that several rules share: lines in messages, and titles with their evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from jaxscope.analysis.programs import peak_bytes
from jaxscope.model import line_times
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.schema.findings import Evidence
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import (
    Count,
    Message,
    Names,
    Words,
    message,
)

MIB = 1 << 20
SMALL = 0.05  # share of a program's peak memory below which an array does not matter
MOST = 3  # functions named in one title
LINES = 4  # line numbers in one title
SERIES = 3  # the fewest numbers that are written as ``14 to 16``


def line_numbers(lines: Iterable[int], most: int = LINES) -> Names:
    """Return line numbers for a message, with three or more numbers in a row as one part: ``14 to 17, 20 and
    2 more``. At most ``most`` parts are named; the lines of the others are counted."""
    parts: list[list[int]] = []
    for n in sorted(set(lines)):
        if parts and parts[-1][-1] == n - 1:
            parts[-1].append(n)
        else:
            parts.append([n])
    names: list[str | Message] = []
    for part in parts:
        if len(part) >= SERIES and len(names) < most:
            names.append(message("lines-from-to", first=str(part[0]), last=str(part[-1])))
        else:
            names += [str(n) for n in part]
    return Names(tuple(names), most)


def on_lines(lines: Names) -> Message:
    """Return ``on line 16`` or ``on lines 16 and 17``."""
    one = len(lines.names) == 1
    return message("on-line", line=lines.names[0]) if one else message("on-lines", lines=lines)


def known_lines(at: Sequence[str | Frame], most: int) -> Message:
    """Return ``line 16`` or ``lines 16 and 17`` for the lines ``at``, of which at most ``most`` are named."""
    lines = Names(tuple(at), most, "lines")
    return message("lines-known" if len(at) > 1 else "line-known", lines=lines)


def evidence(p: Program, text: Words, source: Frame | None) -> list[Evidence]:
    """Return one piece of evidence, in a list: ``text`` at the line ``source``, with the latest compilation
    of ``p``."""
    c: Compilation = p.compilations[-1]
    return [Evidence(text, compilation=c.id, program=p.id, source=source)]


class _AtLine(TypedDict):
    title: Words
    source: Frame | None
    evidence: list[Evidence]


class _About(_AtLine):
    function: str


def at_line(text: Words, line: Frame | None, c: Compilation | None = None) -> _AtLine:
    """Return fields of a ``Finding`` about the line ``line``: its title ``text``, which is also its evidence,
    observed in the compilation ``c``; None: the finding is about no compilation."""
    seen = Evidence(text, compilation=c.id if c is not None else None, source=line)
    return {"title": text, "source": line, "evidence": [seen]}


def about(p: Program, f: Function, text: Words, line: Frame | None) -> _About:
    """Return fields of a ``Finding`` about the program ``p`` of the function ``f``: its title ``text``, which
    is also its evidence, and the line ``line``."""
    return {"title": text, "function": f.id, "source": line, "evidence": evidence(p, text, line)}


def and_more(arrays: int) -> Message | None:
    """Return `` and 2 other arrays`` for a message about 3 arrays that names one of them; None for 1."""
    return message("and-more", others=Count(arrays - 1, "other array")) if arrays > 1 else None


def mesh_axes(axes: Sequence[str]) -> Message:
    """Return ``mesh axis 'data'`` or ``mesh axes 'data' and 'model'``."""
    return message("mesh-axis" if len(axes) == 1 else "mesh-axes", names=Names(tuple(map(repr, axes))))


def small(p: Program) -> float:
    """Return the number of bytes below which an array does not matter to the peak memory of ``p``; 0 if that
    memory is unknown."""
    compiled = p.compilations[-1].compiled
    peak = peak_bytes(compiled.memory) if compiled is not None and compiled.memory is not None else None
    return SMALL * (peak or 0)


def running_share(run: Run, f: Function, share: float) -> float | None:
    """Return ``share`` of the seconds in which the main thread called ``f`` or waited for its results. Return
    None if these seconds were not measured, or with too few samples."""
    seconds = line_times.running_seconds(run, f)
    return share * seconds if seconds is not None else None
