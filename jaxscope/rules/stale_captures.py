"""Rule JX131: a compiled function still uses an old value of a variable that it read while it was traced."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model.function_lookup import number_of
from jaxscope.model.records import SEEN_AT_CALL, SEEN_AT_EXIT, StaleCapture
from jaxscope.model.run import Run
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, ERROR, LIKELY, WARNING, Evidence, Finding
from jaxscope.schema.messages import Field, Message, message


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
    evidence = [
        Evidence(
            message(
                "traced-with-value",
                program=f"{name}#{number}" if number else message("a-trace"),
                name=changed.name,
                where=changed.where,
                before=changed.before,
            ),
            compilation=compilation.id if compilation is not None else None,
            source=changed.read,
        ),
        Evidence(_seen(stale), source=changed.site, step=changed.step),
    ]
    if stale.renewed is not None:
        again = run.compilation(stale.process, stale.renewed.by)
        evidence.append(
            Evidence(
                message("traced-again-with-new-value"),
                compilation=again.id if again is not None else None,
                source=again.site if again is not None else None,
            )
        )
    return Finding(
        code="JX131",
        # If the change was only noticed at the end of the run, it may have come after the last call.
        severity=WARNING if changed.seen == SEEN_AT_EXIT else ERROR,
        certainty=CERTAIN if certain else LIKELY,
        title=_title(stale, name),
        function=stale.function.id,
        source=changed.site or changed.read,
        evidence=evidence,
        fix=_fix(stale),
        seconds=None,
    )


def _title(stale: StaleCapture, name: str) -> Message:
    changed = stale.changed
    line = message("read-at-line", line=str(changed.read.line)) if changed.read is not None else None
    values = {"before": changed.before, "after": changed.after}
    in_place = changed.how == "in place"
    change = message("contents-changed", **values) if in_place else message("value-changed", **values)
    fields: dict[str, Field] = {"function": name, "name": changed.name, "line": line, "change": change}
    if stale.renewed is not None:
        return message("computed-with-old-value", **fields)
    return message("computes-with-old-value", **fields)


def _seen(stale: StaleCapture) -> Message:
    changed = stale.changed
    if changed.seen == SEEN_AT_CALL:
        return message("changed-at-call", after=changed.after)
    when = message("at-the-end") if changed.seen == SEEN_AT_EXIT else message("at-the-end-of-a-step")
    if changed.how == "in place":
        return message("contents-had-changed", after=changed.after, when=when)
    return message("value-had-changed", after=changed.after, when=when)


def _fix(stale: StaleCapture) -> Message:
    name, where = stale.changed.name, stale.changed.where.partition(" ")[0]
    if stale.changed.how == "in place":
        return message("fix-pass-what-is-written-into", name=name)
    if where == "static":
        return message("fix-pass-or-make-anew", name=name)
    return message("fix-pass-as-argument", constant=name)
