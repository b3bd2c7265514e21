"""Rule JX132: functions that keep recompiling for various causes."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.analysis.grouping import grouped
from jaxscope.model import causes
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.rules import recompiles
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, WARNING, Evidence, Finding, Fix
from jaxscope.schema.messages import Message, message

WINDOW = 50  # the latest calls of a function, among which recompiles are counted
COMMON = 2  # causes of one function that other rules report, so that this one is silent
FEWEST = 10  # recompiles that are worth a finding


@rule("JX132", "recompile-rate", WARNING)
def recompile_rate(run: Run) -> Iterator[Finding]:
    """Yield a finding for each function that recompiles often, unless most recompiles have one or two causes,
    for which other rules have advice."""
    for f in run.functions.values():
        repeats = causes.recompiles(f, run) if f.user else []
        rate = _by_calls(f, repeats) or _by_number(f, repeats)
        if rate is None or _has_own_finding(run, repeats):
            continue
        last = repeats[-1]
        yield Finding(
            code="JX132",
            severity=WARNING,
            certainty=CERTAIN,
            title=message("keeps-recompiling", function=f.display_name, rate=rate),
            function=f.id,
            source=last.site,
            evidence=[Evidence(rate, compilation=last.id, source=last.site)],
            fix=Fix(message("fix-many-causes", function=f.display_name)),
        )


def _has_own_finding(run: Run, repeats: list[Compilation]) -> bool:
    """Return whether other rules report ``repeats``, the recompiles of a function: more than half of them
    have one of the COMMON most frequent causes, and there is advice about these causes."""
    decisive = ((c, causes.of(run, c)[0]) for c in repeats)
    groups = grouped(((why.kind, why.path), (c, why)) for c, why in decisive).values()
    common = sorted(groups, key=len, reverse=True)[:COMMON]
    reported = (g for g in common if recompiles.advice(recompiles.group_of(run, g)) is not None)
    return 2 * sum(map(len, reported)) > len(repeats)


def _by_calls(f: Function, repeats: list[Compilation]) -> Message | None:
    """Return a clause with the recompiles of ``f`` among its latest calls, at most WINDOW. Return None if
    they are too few, or if calls are not counted."""
    calls = max(f.counted_calls.values(), default=0)
    window = min(WINDOW, calls)
    recent = [c for c in repeats if c.calls_then is not None and c.calls_then > calls - window]
    if not calls or len(recent) < FEWEST or 5 * len(recent) < window:
        return None
    return message("recompiled-of-calls", n=len(recent), window=window, function=f.display_name)


def _by_number(f: Function, repeats: list[Compilation]) -> Message | None:
    """Return a clause with the number of recompiles of ``f``, which are ``repeats``. Return None if they are
    too few for a finding, or if the calls of ``f`` are counted."""
    if f.counted_calls or len(repeats) < FEWEST:
        return None
    return message("recompiled-so-often", n=len(repeats))
