"""A run held against a baseline: what is new of the rules' findings, what got worse, merged into one list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from jaxscope.check.baseline import comparison, extract
from jaxscope.check.baseline.schema import Baseline
from jaxscope.check.selection import Filter
from jaxscope.model.run import Run
from jaxscope.rules import registry
from jaxscope.schema.findings import NOTE, Finding

# Notes that say something good: no strictness makes a failure of them.
GOOD = frozenset({comparison.IMPROVED})


def read(run: Run, chosen: Filter, roots: Sequence[str] = ()) -> extract.Recorded:
    """What a baseline of ``run`` would hold. What is left out by comments or by choice is not pinned."""
    return extract.read(run, chosen.keep(registry.findings(run)), roots)


def compare(baseline: Baseline, now: extract.Recorded, chosen: Filter) -> list[Finding]:
    """What does not hold, and notes: what is better, what was not seen."""
    # What is not looked at is not gone.
    pinned = {key: n for key, n in baseline.findings.items() if chosen.takes(key.partition(" ")[0])}
    found = comparison.compare(msgspec.structs.replace(baseline, findings=pinned), now)
    return comparison.merged([*chosen.keep(found.findings), *found.new])


def failing(found: Iterable[Finding], *, strict: bool) -> list[Finding]:
    """Those that make a check fail: errors and warnings; with ``strict`` notes too, save those that say that
    something is better than it was."""
    return [f for f in found if f.severity != NOTE or (strict and f.code not in GOOD)]
