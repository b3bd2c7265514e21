"""Extend the advice to jit functions by what must change in their code: a jitted function cannot read the
value of an array, and cannot compute an array whose size depends on values."""

from __future__ import annotations

import re
from collections.abc import Collection

from jaxscope.analysis import line_names, masks
from jaxscope.analysis.rewrap_site import ends_the_loop
from jaxscope.model import sources, transfers
from jaxscope.model.run import Run
from jaxscope.model.transfers import Transfer
from jaxscope.schema.findings import Fix, extended
from jaxscope.schema.keys import Frame

_CONDITION = re.compile(r"\b(?:if|elif|while|assert|and|or|not)\b|\bbool\(")
Functions = Collection[tuple[str, str]]  # (file, qualified name) of each


def with_obstacles(
    run: Run, fix: Fix, reading: Functions, indexing: Functions, loop: tuple[str, int, int] | None = None
) -> Fix:
    """Return ``fix``, extended by the first obstacle found: what has to be changed before jit can trace the
    code.

    Args:
      fix: the advice; advice other than to jit is returned unchanged.
      reading: functions that may read the value of an array.
      indexing: functions that may index with a condition, or compute an array whose size depends on values.
      loop: (file, first line, last line) of a loop whose iterations are to be jitted; None: there is none.
        Values that the loop reads for a condition matter; others can be read after the jitted function.
    """
    if fix.kind != "jit":
        return fix
    read = _read(run, reading, loop)
    if read is not None:
        line = sources.line(run, read.source) if read.source is not None else ""
        expression = read.text or line.strip().rstrip(":")  # the line has several such expressions
        if (read.kind == "bool" or _CONDITION.search(line)) and not _ends(run, read.source, loop):
            return extended(fix, "fix-reads-value", line=read.source, expression=expression) or fix
        return extended(fix, "fix-returns-value", line=read.source, expression=expression) or fix
    masked = _masked(run, indexing)
    if masked is not None:
        return extended(fix, "fix-mask-index", line=masked[0], condition=masked[1]) or fix
    sized = _sized(run, indexing, loop)
    if sized is not None:
        return extended(fix, "fix-size-by-values", line=sized[0], expression=sized[1], option=sized[2]) or fix
    return fix


def _ends(run: Run, at: Frame | None, loop: tuple[str, int, int] | None) -> bool:
    """Return whether the line ``at`` decides whether ``loop`` (as in ``with_obstacles``) ends, so that its
    condition can stay outside of a function that computes one iteration."""
    if at is None or loop is None or at.file != loop[0] or not loop[1] <= at.line <= loop[2]:
        return False
    return ends_the_loop(sources.of(run)(at.file), at.line)


def _read(run: Run, functions: Functions, loop: tuple[str, int, int] | None) -> Transfer | None:
    """Return a copy to the host that one of ``functions`` makes because Python needs the value (``if x > 0``,
    ``float(x)``), or that the lines of ``loop`` make for a condition; None if there is none."""
    for t in transfers.transfers(run):
        at = t.source
        if t.direction != transfers.TO_HOST or at is None:
            continue
        in_loop = loop is not None and at.file == loop[0] and loop[1] <= at.line <= loop[2]
        if (at.file, at.function) in functions or (in_loop and t.kind == "bool"):
            text = sources.line(run, at)
            if text and _needs_the_value(t.kind, text):
                return t
    return None


def _needs_the_value(kind: str, line: str) -> bool:
    """Return whether ``line``, a line of source, needs the value of the array that it copied to the host.
    ``kind`` is the kind of the copy (``bool``, ``float``, ...)."""
    if kind == "bool":
        return _CONDITION.search(line) is not None
    # A library may only check the value, and skips the check under jit.
    return kind in ("float", "int", "item") and f"{kind}(" in line


def _masked(run: Run, functions: Functions) -> tuple[Frame, str] | None:
    """Return the first place at which one of ``functions`` indexes an array with a condition, and the
    condition as source; None if there is none."""
    for file, function in functions:
        found = masks.index_with_mask(sources.of(run)(file), function)
        if found is not None:
            return Frame(file, found[0], function), found[1]
    return None


def _sized(
    run: Run, functions: Functions, loop: tuple[str, int, int] | None
) -> tuple[Frame, str, str] | None:
    """Return the first call in ``functions`` or on the lines of ``loop`` whose result has a size that depends
    on values, as (its line, its source, the option that would fix the size). None if there is none."""
    text = sources.of(run)
    places = [(loop[0], "", *loop[1:])] if loop is not None else []
    for file, name in functions:
        defined = line_names.function(text(file), name)
        if defined is not None:
            places.append((file, name, defined.lineno, defined.end_lineno or 0))
    for file, name, first, last in places:
        found = masks.sized_by_values(text(file), first, last)
        if found is not None:
            return Frame(file, found[0], name), *found[1:]
    return None
