"""Compare the copies between host and devices with those of a baseline, relative to the number of steps."""

from __future__ import annotations

import math
from collections.abc import Iterator

from jaxscope.check.baseline.extract import Extracted
from jaxscope.check.baseline.pairing import ACCEPT, REFRESH, SHOWN, note
from jaxscope.check.baseline.schema import Baseline
from jaxscope.schema.findings import CERTAIN, ERROR, Evidence, Finding


def compare(baseline: Baseline, now: Extracted) -> Iterator[Finding]:
    """Report lines that request more copies for as many steps."""
    if baseline.transfers is None:
        return
    if now.baseline.transfers is None:
        text = "transfers between host and devices are not compared with the baseline: this run did not record them"
        yield note("JX901", text, "record with --transfers, like the baseline")
        return
    steps, before = now.baseline.steps, baseline.steps
    scale = steps / before if steps and before else 1.0
    fewer = []
    for where in sorted(baseline.transfers.keys() | now.transfers.keys()):
        old, ways = baseline.transfers.get(where, {}), now.baseline.transfers.get(where, {})
        for how in sorted(old.keys() | ways.keys()):
            n, was = ways.get(how, 0), old.get(how, 0)
            if n > math.ceil(was * scale):
                yield _more_transfers(now, where, how, n, was, before)
            elif n < math.floor(was * scale):
                fewer.append(f"{where}: {how} {n:,}x, {was:,}x in the baseline")
    if fewer:
        yield note("JX711", f"fewer transfers: {'; '.join(fewer[:SHOWN])}", REFRESH)


def _in_steps(n: int | None) -> str:
    return f" in {n:,} step{'s' * (n != 1)}" if n else ""


def _more_transfers(now: Extracted, where: str, how: str, n: int, was: int, steps: int | None) -> Finding:
    most = max(now.transfers[where][how], key=lambda t: t.count or 0)
    kind, _, direction = how.rpartition(", ")
    here = _in_steps(now.baseline.steps)
    there = _in_steps(steps) if steps != now.baseline.steps else ""
    what = f"{kind} ({direction.replace('_', ' ')})"
    text = f"{where.partition('::')[2]} moves data with {what} {n:,}x{here}, {was:,}x{there} in the baseline"
    return Finding(
        code="JX714",
        severity=ERROR,
        certainty=CERTAIN,
        title=text + (f": {most.text}" if most.text else ""),
        source=most.source,
        evidence=[
            Evidence(f"{t.text or t.kind} {t.count or 0:,}x", source=t.source)
            for t in sorted(now.transfers[where][how], key=lambda t: -(t.count or 0))[:SHOWN]
        ],
        fix=f"keep the value on the device, and copy it every few steps; {ACCEPT}",
        seconds=most.blocked_seconds,
    )
