"""Merge what a loop over a JAX array costs into the finding about this loop (JX133): JAX takes each element
or row out of the array with operations, and each read of an element waits for the device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jaxscope.analysis import sizes_under_jit
from jaxscope.analysis.element_reads import only_iterates_or_unpacks
from jaxscope.analysis.source_lines import loop_around
from jaxscope.model import line_times, sources, transfers
from jaxscope.model.run import Run
from jaxscope.schema.findings import WARNING, Finding, merged, slug_of
from jaxscope.schema.keys import same_line
from jaxscope.schema.line_times import WAITING
from jaxscope.schema.messages import Message, Seconds, message

ITERATES = frozenset({"fix-iterate-numpy", "fix-iterate-numpy-arrays"})  # advice for loops over arrays
MOSTLY = 0.8  # share of a loop's time in operations: going through rows
FEWEST, SCALAR = 1_000, 16  # reads at one line, and bytes of a number
MUCH = 0.1  # share of the run's time from which iterating over an array is a warning
SHORT = 0.2  # share of the seconds of compiling: shorter times to iterate are not told


def with_time(run: Run, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge into a finding about a loop over a JAX array (JX133) those about the
    time in this loop that NumPy would save, too: to read elements one at a time (JX603, JX601), and to go
    through rows (JX605). The time in which functions that the loop calls read elements is added, too."""
    numpy = [f.source for f in findings if f.code == "JX133" and slug_of(f) == "fix-give-numpy"]
    # The line does not read the arrays any more if it gets NumPy arrays.
    kept = [f for f in findings if f.code != "JX601" or not any(same_line(f.source, at) for at in numpy)]
    for f in [f for f in kept if f.code == "JX133" and slug_of(f) in ITERATES]:
        inside = [g for g in kept if _is_time_of_rows(run, g, f)]
        seconds = sum(g.seconds or 0.0 for g in inside)
        if not any(g.code == "JX603" for g in inside):
            seconds += _reading_below(run, f)
        if not inside and seconds < SHORT * (f.seconds or 0.0):
            continue
        kept = merged(
            kept,
            f,
            inside,
            titles=True,
            title=message("with-reading", finding=f.title, seconds=Seconds(seconds)),
            severity=WARNING if _is_much(run, f, inside, seconds) else f.severity,
            seconds=(f.seconds or 0.0) + seconds,
        )
    return kept


def _is_much(run: Run, f: Finding, inside: Sequence[Finding], seconds: float) -> bool:
    """Return whether the finding ``f``, about a loop over an array, is a warning, because it or one of the
    findings ``inside`` is one, or because iterating took ``seconds``, much of the run."""
    if WARNING in (f.severity, *(g.severity for g in inside)):
        return True
    return run.seconds is not None and seconds >= MUCH * run.seconds


def _reading_below(run: Run, f: Finding) -> float:
    """Return the seconds in which functions called from the line of the finding ``f``, which iterates over a
    JAX array, waited for numbers: ``self.buffer[i]`` in ``__getitem__``."""
    reads = {
        t.source.place
        for t in transfers.transfers(run)
        if t.direction == transfers.TO_HOST and t.source is not None
        if (t.count or 0) >= FEWEST and t.bytes_each is not None and t.bytes_each <= SCALAR
        if sizes_under_jit.dynamic_slice(t.text) is None  # the bounds of a slice have advice of their own
    }
    return sum(
        t.seconds
        for doing, t in line_times.entries(run)
        if doing == WAITING and t.stack[0].place in reads
        if any(same_line(at, f.source) for at in t.stack[1:])
    )


def _is_time_of_rows(run: Run, f: Finding, over: Finding) -> bool:
    """Return whether ``f`` is about the time that a loop takes to read the elements or rows of the array of
    the finding ``over``, which is about the line that iterates over this array."""
    at = over.source
    if at is None or f.code not in ("JX601", "JX603", "JX605") or f.source is None:
        return False
    if f.code == "JX601":
        return same_line(f.source, at) and slug_of(f) != "fix-slice-on-device"
    source = sources.of(run)(at.file)
    first, last = loop_around(source, at.line, comprehensions=True) or (at.line, at.line)
    if f.code == "JX603":
        return f.source.file == at.file and first <= f.source.line <= last
    spent = Counter[tuple[str, int]]()
    for e in f.evidence:
        seconds = e.text.fields.get("seconds") if isinstance(e.text, Message) else None
        if e.source is not None and isinstance(seconds, Seconds):
            spent[e.source.place] += round(1e9 * (seconds.seconds or 0.0))
    rows = [
        ns
        for (file, line), ns in spent.items()
        if file == at.file and first <= line <= last
        if only_iterates_or_unpacks(source, line) or _reading_below(run, over)
    ]
    return sum(rows) >= MOSTLY * sum(spent.values()) > 0
