"""JX130: a state that will not fit when it comes back."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model import predictions
from jaxscope.model.predictions import PENDING, Prediction
from jaxscope.model.run import Run
from jaxscope.rules.arguments import typed
from jaxscope.rules.placement import kept
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, WARNING, Evidence, Finding


@rule("JX130", "carried-state", WARNING)
def carried_state(run: Run) -> Iterator[Finding]:
    for p in predictions.predictions(run):
        if p.status != PENDING and not (p.status is None and p.leaves > 1):
            continue  # confirmed: the recompile itself is a finding; a lone array that nobody passed again: none
        name = p.after.function.name.replace(".<locals>", "")
        yield Finding(
            code="JX130",
            severity=WARNING,
            certainty=LIKELY,
            title=f"{name}: {predictions.text(p)}",
            function=p.after.function.id,
            source=p.after.site,
            evidence=[Evidence(c.text, compilation=p.after.id, source=p.after.site) for c in p.causes],
            fix=fix(p),
            seconds=None,
        )


def fix(p: Prediction) -> str:
    """What to do about the first of its causes."""
    cause = p.causes[0]
    path = cause.path or p.argument
    if cause.kind in ("weak_type", "dtype"):
        return f"start {path} as {typed(cause.after)}"
    if cause.kind in ("sharding", "mesh"):
        return kept(p.after.function.name.replace(".<locals>", ""), path, cause)
    if cause.kind in ("committed", "device", "memory_kind", "layout"):
        return f"jax.device_put {path} to where it will lie ({cause.after}) before the first call"
    return f"start {path} as what the function returns for it"
