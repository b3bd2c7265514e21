"""Compare the number of copies between host and devices with that in a baseline (the saved figures of an
earlier run), relative to the number of training steps."""

from __future__ import annotations

import math
from collections.abc import Iterator

from jaxscope.check.baseline.extract import Extracted
from jaxscope.check.baseline.pairing import REFRESH, SHOWN, note
from jaxscope.check.baseline.schema import Baseline
from jaxscope.schema.findings import CERTAIN, ERROR, Evidence, Finding
from jaxscope.schema.messages import Count, Message, Parts, message


def compare(baseline: Baseline, now: Extracted) -> Iterator[Finding]:
    """Yield an error for each function and kind of copy (``float, device_to_host``) with more copies per step
    in the run ``now`` than in ``baseline``, and one note about functions and kinds with fewer copies. If
    steps were not counted, all copies are compared instead. If the run did not count copies, yield only a
    note about this; if the baseline did not, yield nothing."""
    if baseline.transfers is None:
        return
    if now.baseline.transfers is None:
        yield note("JX901", message("transfers-not-recorded"), message("fix-record-transfers"))
        return
    steps, before = now.baseline.steps, baseline.steps
    scale = steps / before if steps and before else 1.0
    fewer: list[Message] = []
    for where in sorted(baseline.transfers.keys() | now.transfers.keys()):
        old, ways = baseline.transfers.get(where, {}), now.baseline.transfers.get(where, {})
        for way in sorted(old.keys() | ways.keys()):
            n, was = ways.get(way, 0), old.get(way, 0)
            if n > math.ceil(was * scale):
                yield _more_transfers(now, where, way, n, was, before)
            elif n < math.floor(was * scale):
                fewer.append(message("baseline-line-moves", function=where, way=way, now=n, before=was))
    if fewer:
        yield note(
            "JX711", message("baseline-fewer-transfers", lines=Parts((*fewer[:SHOWN],), "; ")), REFRESH
        )


def _more_transfers(now: Extracted, where: str, way: str, n: int, was: int, steps: int | None) -> Finding:
    """Return an error about more copies than in the baseline.

    Args:
      where, way: the function that requests the copies, and their kind and direction.
      n, was: number of copies in the run and in the baseline.
      steps: number of steps in the baseline; None: unknown.
    """
    most = max(now.transfers[where][way], key=lambda t: t.count or 0)
    kind, _, direction = way.rpartition(", ")
    here, there = (
        message("within-steps", steps=Count(s, "step")) if s else None for s in (now.baseline.steps, steps)
    )
    return Finding(
        code="JX714",
        severity=ERROR,
        certainty=CERTAIN,
        title=message(
            "baseline-more-transfers",
            function=where.partition("::")[2],
            kind=kind,
            direction=direction.replace("_", " "),
            now=n,
            steps=here,
            before=was,
            earlier=there if steps != now.baseline.steps else None,
            text=message("baseline-change", change=most.text) if most.text else None,
        ),
        source=most.source,
        evidence=[
            Evidence(message("transferred-times", text=t.text or t.kind, n=t.count or 0), source=t.source)
            for t in sorted(now.transfers[where][way], key=lambda t: -(t.count or 0))[:SHOWN]
        ],
        fix=message("fix-or-accept", fix=message("fix-copy-seldom")),
        seconds=most.blocked_seconds,
        subject=(where, way),
    )
