"""Rule JX514: large arrays that a jitted function returns or stacks, and of which no code reads much. Also
the work in a scan for such arrays."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jaxscope.analysis import result_uses
from jaxscope.analysis.stablehlo.reading import Reading
from jaxscope.analysis.stablehlo.stacked_results import StackedResult
from jaxscope.analysis.stablehlo.unread_work import UnreadWork
from jaxscope.analysis.stablehlo.values import Value
from jaxscope.analysis.syntax import calls_at, last_name
from jaxscope.model import sources
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.rules import memory_scale
from jaxscope.rules.each_program import takes_time, users
from jaxscope.rules.finding_parts import MOST, about, running_share, small
from jaxscope.rules.line_lists import known_lines
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Bytes, Message, Names, Percent, message

FEW = 0.25  # share of an array's rows: more than that is worth keeping as one array
MUCH = 0.2  # share of the operations of a program: less unread work is not reported


@rule("JX514", "unused-results", WARNING)
def unused_results(run: Run) -> Iterator[Finding]:
    """Yield findings about arrays that a function keeps although little of them is read, and about work for
    such arrays."""
    for p, f, texts in users(run):
        lowered = texts.stablehlo
        if lowered is None:
            continue
        device = memory_scale.of_program(run, p)
        least = max(memory_scale.WORTH_A_NOTE * device, small(p))
        found = _returned(run, p, f, lowered.results, least)
        site = p.compilations[-1].site
        if found is not None:
            yield _finding(p, f, found, site, found.total >= memory_scale.WORTH_A_WARNING * device)
        computed = [u for u in lowered.unread_work if u.share >= MUCH and takes_time(run, p, f, u.operations)]
        for u in computed:
            yield _computed(run, p, f, u, u.source or site)
        scans: dict[tuple[Frame | None, bool], list[StackedResult]] = {}
        for s in lowered.stacked:
            if not any(u.source == s.source for u in computed):
                scans.setdefault((s.source, s.reduced), []).append(s)
        for (line, _), stacked in scans.items():
            size = sum(s.bytes for s in stacked) // (lowered.num_partitions or 1)
            if size >= least:
                found = _stacked(f, stacked, size)
                yield _finding(p, f, found, line or site, size >= memory_scale.WORTH_A_WARNING * device)
        for line, whole in _dense(run, lowered).items():
            size = whole // (lowered.num_partitions or 1)
            if size >= least:
                much = size >= memory_scale.WORTH_A_WARNING * device
                yield _finding(p, f, _kept_steps(f, size), line, much)


def _dense(run: Run, lowered: Reading) -> dict[Frame, int]:
    """Return a dict: line that calls diffrax's ``diffeqsolve`` with ``SaveAt(dense=True)`` -> bytes of the
    arrays that it keeps, on all devices together. Arrays of the same shape count once."""
    shapes: dict[Frame, dict[str, int]] = {}
    for v in lowered.large:
        if v.source is not None and v.operation in ("scatter", "while"):
            shapes.setdefault(v.source, {})[v.shape] = v.bytes
    return {
        line: sum(sizes.values())
        for line, sizes in shapes.items()
        if _saves_dense(sources.of(run)(line.file), line.line)
    }


def _saves_dense(source: str | None, line: int) -> bool:
    """Return whether ``line`` is in a call of ``diffeqsolve`` with ``SaveAt(dense=...)``."""
    solves = [c for c in calls_at(source, line) if last_name(c.func) == "diffeqsolve"]
    return any(
        isinstance(n, ast.Call) and last_name(n.func) == "SaveAt" and "dense" in {k.arg for k in n.keywords}
        for c in solves
        for n in ast.walk(c)
    )


def _kept_steps(f: Function, size: int) -> _Unread:
    """Return what ``diffeqsolve`` keeps in ``f`` for a dense solution: ``size`` bytes on one device. The
    advice is to save the solution only at some times."""
    text = message("dense-solution", function=f.display_name, bytes=Bytes(size))
    return _Unread(size, text, message("fix-save-at-times"), [])


class _Unread(NamedTuple):
    """Arrays that are kept, but not read.

    Attributes:
      total: their bytes on one device.
      text: the title of the finding.
      fix: the advice.
      names: the names of the arrays; empty if they have none.
    """

    total: int
    text: Message
    fix: Message
    names: list[str]


def _finding(p: Program, f: Function, unread: _Unread, at: Frame | None, warning: bool) -> Finding:
    return Finding(
        code="JX514",
        severity=WARNING if warning else NOTE,
        certainty=LIKELY,
        **about(p, f, unread.text, at),
        fix=Fix(unread.fix, "return_less", {"paths": unread.names}),
    )


def _returned(run: Run, p: Program, f: Function, results: Sequence[Value], least: float) -> _Unread | None:
    """Return the arrays among ``results`` that the function ``f`` with the program ``p`` returns and that the
    calling code never reads, or of which it reads few rows. Return None if their unread bytes are fewer than
    ``least``, or if it is unknown what is read."""
    if sum(r.device_bytes or 0 for r in results) < least:
        return None
    uses = _uses(run, p, f)
    if uses is None:
        return None
    leaves = [steps for r in results if (steps := _leaf(r)) is not None]
    unread: list[tuple[int, str]] = []
    nearly: list[tuple[int, str]] = []
    for r in results:
        leaf = _leaf(r)
        if leaf is None or r.device_bytes is None:
            continue
        rows = (r.shape[0] if r.shape else None) or 1
        read = result_uses.rows_read(leaf, uses.paths, rows, leaves)
        name = result_uses.named(leaf, uses.names)
        if not read:
            unread.append((r.device_bytes, name))
        elif read <= FEW * rows:
            nearly.append((r.device_bytes * (rows - read) // rows, name))
    total = sum(size for size, _ in (*unread, *nearly))
    if total < least:
        return None
    of, elements = _names(unread), _names(nearly)
    name, size = f.display_name, Bytes(total)
    if unread:
        also = message("and-elements", paths=elements) if nearly else None
        text = message("results-not-read", function=name, bytes=size, paths=of, elements=also)
    else:
        text = message("results-nearly-not-read", function=name, bytes=size, paths=elements)
    return _Unread(total, text, message("fix-return-what-is-read"), [name for _, name in (*unread, *nearly)])


def _leaf(r: Value) -> result_uses.Path | None:
    """Return the steps from the result of a function to its array ``r``: ``("[1]", "['x']")`` for
    ``result[1]['x']``. Return None if they are unknown."""
    return result_uses.steps((r.name or "?").removeprefix("result"))


def _stacked(f: Function, stacked: Sequence[StackedResult], size: int) -> _Unread:
    """Return the arrays ``stacked`` (the largest first) that a scan inside ``f`` stacks and of which ``f``
    reads little, or that it only reduces. ``size``: the bytes on one device that are not read."""
    s, arrays = stacked[0], sum(each.arrays for each in stacked)
    shape = message("stacked-shapes" if len(stacked) > 1 else "stacked-shape", shape=repr(s.shape))
    fields: dict[str, Any] = {
        "function": f.display_name,
        "bytes": Bytes(size),
        "shape": shape,
        "arrays": message("stacked-arrays", n=arrays) if arrays > 1 else message("stacked-array"),
        "line": message("stacked-read-on", line=s.read_at) if s.read_at is not None else None,
    }
    if s.reduced:
        return _Unread(size, message("stacked-reduced", **fields), message("fix-reduce-in-scan"), [])
    text = message("stacked-not-read", share=Percent(max(each.share for each in stacked)), **fields)
    return _Unread(size, text, message("fix-stack-what-is-read"), [])


def _computed(run: Run, p: Program, f: Function, u: UnreadWork, at: Frame | None) -> Finding:
    """Return the finding about ``u``: work that a scan inside ``f`` does in each iteration, for results that
    it stacks and of which ``f`` reads little. ``at`` is the line of the finding; None: unknown."""
    at_lines = tuple(dict.fromkeys(str(frame.line) for frame in u.lines))
    text = message(
        "work-not-read",
        function=f.display_name,
        work=Percent(u.share),
        lines=message("work-on-lines", lines=known_lines(at_lines, MOST)) if at_lines else None,
        share=Percent(u.read),
        line=message("stacked-read-on", line=u.read_at) if u.read_at is not None else None,
    )
    return Finding(
        code="JX514",
        severity=WARNING if u.share >= 2 * MUCH else NOTE,
        certainty=LIKELY,
        **about(p, f, text, at),
        fix=Fix(message("fix-compute-what-is-read"), "return_less"),
        seconds=running_share(run, f, u.share),
        at_most=True,
    )


def _uses(run: Run, p: Program, f: Function) -> result_uses.Uses | None:
    """Return the parts of the result of ``f`` that are used; None if they are unknown, for example because
    other files or notebook cells may read them."""
    at, missed = p.compilations[-1].site, p.compilations[-1].missed
    if at is None or f.seen.file != at.file or not all(w.startswith("jax.") for w in f.seen.wrappers):
        return None
    # Other files may import the function or its results; other wrappers may return further arrays.
    outermost = missed.stack[-1] if missed is not None and missed.stack else at
    if outermost.file != at.file or run.cells:
        return None
    column = missed.column if missed is not None else None
    return result_uses.of_calls(sources.of(run)(at.file), at.line, column, f.seen.name)


def _names(arrays: list[tuple[int, str]]) -> Names:
    names = (name for _, name in sorted(arrays, reverse=True))
    return Names(tuple(message("assigned-to-underscore") if n == "_" else n for n in names), MOST)
