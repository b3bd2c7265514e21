"""JX131: values from outside that a compiled function keeps after they have changed."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model.function_lookup import number_of
from jaxscope.model.records import SEEN_AT_CALL, SEEN_AT_EXIT, StaleCapture
from jaxscope.model.run import Run
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, ERROR, LIKELY, WARNING, Evidence, Finding


@rule("JX131", "stale-capture", ERROR)
def stale_capture(run: Run) -> Iterator[Finding]:
    for stale in run.stale:
        if stale.status != "withdrawn":
            yield _finding(run, stale)


def _finding(run: Run, stale: StaleCapture) -> Finding:
    changed = stale.changed
    compilation = run.compilation(stale.process, changed.call)
    certain = changed.certain and changed.seen == SEEN_AT_CALL
    name = stale.function.display_name
    number = number_of(run, compilation) if compilation is not None else None
    traced = f"{name}#{number}" if number else "its trace"
    evidence = [
        Evidence(
            f"{traced} read {changed.name} ({changed.where}) as {changed.before}",
            compilation=compilation.id if compilation is not None else None,
            source=changed.read,
        ),
        Evidence(_seen(stale), source=changed.site, step=changed.step),
    ]
    if stale.renewed is not None:
        again = run.compilation(stale.process, stale.renewed.by)
        evidence.append(
            Evidence(
                "traced again with the new value",
                compilation=again.id if again is not None else None,
                source=again.site if again is not None else None,
            )
        )
    return Finding(
        code="JX131",
        # Seen at the end only, it may have changed after the last call.
        severity=WARNING if changed.seen == SEEN_AT_EXIT else ERROR,
        certainty=CERTAIN if certain else LIKELY,
        title=_title(stale, name),
        function=stale.function.id,
        source=changed.site or changed.read,
        evidence=evidence,
        fix=_fix(stale),
        seconds=None,
    )


def _title(stale: StaleCapture, name: str) -> str:
    changed = stale.changed
    verb = "computed" if stale.renewed is not None else "computes"
    line = f" (read at line {changed.read.line})" if changed.read is not None else ""
    now = "holds" if changed.how == "in place" else "is"
    return (
        f"{name} {verb} with an old {changed.name}{line}: it was {changed.before} when traced,"
        f" and {now} {changed.after} now; JAX does not trace again for that"
    )


def _seen(stale: StaleCapture) -> str:
    changed = stale.changed
    if changed.seen == SEEN_AT_CALL:
        return f"it was {changed.after} at a call that was not traced again"
    when = "when the program ended" if changed.seen == SEEN_AT_EXIT else "at the end of a step"
    how = "its contents had" if changed.how == "in place" else "it had"
    return f"{how} changed to {changed.after} {when}"


def _fix(stale: StaleCapture) -> str:
    name, where = stale.changed.name, stale.changed.where.partition(" ")[0]
    if stale.changed.how == "in place":
        return f"pass {name} as an argument: what is written into it later is not seen by what is compiled"
    if where == "static":
        return f"pass {name} as an argument, or make a new object instead of changing this one"
    return f"pass {name} as an argument"
