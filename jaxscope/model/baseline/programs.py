"""The programs of one function beside those of a baseline, part by part."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model.baseline import facts
from jaxscope.model.baseline.facts import TOLERANCE, Baseline
from jaxscope.model.baseline.pairs import REFRESH, SHOWN, note, pairs
from jaxscope.model.baseline.parts import PARTS
from jaxscope.model.baseline.recorded import Entry
from jaxscope.schema.findings import Finding

NOT_KNOWN = "JX901"
IMPROVED = "JX711"


def compare(baseline: Baseline, old: facts.Function, entry: Entry) -> Iterator[Finding]:
    """What is worse in each program that was there before. One more program is told by its compilation."""
    share = {**TOLERANCE, **baseline.tolerance}
    gained: list[str] = []
    unknown: list[str] = []
    for pair in pairs(old, entry):
        for part, check in PARTS.items():
            before, after = getattr(pair.old, part), getattr(pair.new, part)
            if before is None:
                continue
            if after is None:
                unknown.append(f"{part} of {pair.label}")
                continue
            found, good = check(pair, before, after, share)
            yield from found
            gained += [f"{pair.label}: {text}" for text in good]
    if unknown:
        text = f"not compared with the baseline, this run does not tell: {', '.join(unknown)}"
        yield note(NOT_KNOWN, text, "record with --ir all, as the baseline was", entry)
    if gained:
        text = f"better than in the baseline: {'; '.join(gained[:SHOWN])}"
        yield note(IMPROVED, text, f"keep it: {REFRESH}", entry)
