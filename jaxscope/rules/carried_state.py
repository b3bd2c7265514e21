"""Rule JX130: a function returns an array (such as a training state) with another dtype, sharding or device
than the argument had. The next call, which gets that result as its argument, will recompile."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxscope.analysis.paths import root, tokens
from jaxscope.model import causes, predictions
from jaxscope.model.predictions import PENDING, WITHDRAWN, Prediction
from jaxscope.model.run import Run
from jaxscope.rules.arguments import dtype_of, typed
from jaxscope.rules.placement import kept
from jaxscope.rules.registry import rule
from jaxscope.rules.shardings import moved
from jaxscope.schema.causes import Commitment, Layout, MemoryKind, Placement, Value
from jaxscope.schema.findings import LIKELY, WARNING, Evidence, Finding, Fix
from jaxscope.schema.messages import message


@rule("JX130", "carried-state", WARNING)
def carried_state(run: Run) -> Iterator[Finding]:
    """Yield a finding for each recompile that is predicted for the next call, because it will get a result of
    another form."""
    placed = {(f.id, root(i.path)) for f, (_, found) in moved(run) for i, _ in found}
    recompiles = (c for f in run.functions.values() if f.user for c in causes.recompiles(f, run))
    after = (causes.of(run, c)[0].after for c in recompiles)
    recompiled = {value for value in after if isinstance(value, Placement)}
    found = predictions.predictions(run)
    other = {(p.after.function.id, p.argument) for p in found if p.status == WITHDRAWN}
    for p in found:
        if (p.after.function.id, p.argument) in other:
            continue  # after an earlier call, the next call did not get the result
        if (p.after.function.id, p.argument) in placed:
            continue  # JX508 advises to place this argument before the first call
        if p.status != PENDING and not (p.status is None and p.leaves > 1):
            # Confirmed: the recompile itself is a finding. A single array that was never passed again may
            # be no state at all.
            continue
        if p.status is None and _has_another_name(p):
            continue  # for example an optimizer's first moments, a tree like the parameters
        if p.status is None and isinstance(p.causes[0].after, Placement) and p.causes[0].after in recompiled:
            continue  # a recompile for arrays with this sharding is a finding
        yield Finding(
            code="JX130",
            severity=WARNING,
            certainty=LIKELY,
            title=predictions.sentence(p),
            function=p.after.function.id,
            source=p.after.site,
            evidence=[
                Evidence(message("because", cause=c), compilation=p.after.id, source=p.after.site)
                for c in p.causes
            ],
            fix=fix(p),
            subject=("carried", p.argument),
        )


def _has_another_name(p: Prediction) -> bool:
    """Return whether the result of the prediction ``p`` has a name that is not the argument's: ``result.mu``
    for ``params``. False for an item of a tuple, ``result[0]``, which has no name."""
    name = re.fullmatch(r".*(?:\.|\[')(\w+)(?:'\])?", p.result)
    return name is not None and name[1] != (tokens(p.argument)[-1].strip(".[]'\"") if p.argument else None)


def fix(p: Prediction) -> Fix:
    """Return the advice for ``p``, the prediction that the next call recompiles because the function returns
    an array in another form (dtype, sharding, ...) than it received. If the forms differ in several ways,
    only the first of ``p.causes`` counts."""
    cause = p.causes[0]
    path = cause.path or p.argument
    if cause.kind in ("weak_type", "dtype"):
        dtype = dtype_of(cause.after)
        words = message("fix-start-typed", path=path, typed=typed(path, dtype))
        return Fix(words, "typed_array", {"path": path, "dtype": dtype})
    if cause.kind in ("sharding", "mesh"):
        return kept(p.after.function, path, cause)
    if isinstance(cause.after, Commitment):
        committed = cause.after.committed
        words = message("fix-commit-first" if committed else "fix-uncommitted-result", path=path)
        return Fix(words, "device_put", {"path": path})
    if cause.kind in ("device", "memory_kind", "layout"):
        words = message("fix-place-first", path=path, where=_where(cause.after))
        return Fix(words, "device_put", {"path": path})
    return Fix(message("fix-start-as-returned", path=path), "start_as_returned", {"path": path})


def _where(value: Value | None) -> str:
    """Return the text of a placement of an array, for a message: its sharding or device, its memory kind, or
    its layout; ``?`` if ``value`` is none of these, or if the memory kind or the layout is unknown."""
    match value:
        case Placement():
            return value.text
        case MemoryKind():
            return value.memory_kind or "?"
        case Layout():
            return value.layout or "?"
    return "?"
