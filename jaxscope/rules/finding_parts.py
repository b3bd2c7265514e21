"""Parts of findings that several rules share: lines in messages, and titles with their evidence."""

from __future__ import annotations

from collections.abc import Sequence
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
