"""Rule JX140: a statement calls a function that only returns a new value, and does not use that value."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.analysis import ignored_results, key_reuse
from jaxscope.analysis.ignored_results import Ignored
from jaxscope.model import sources
from jaxscope.model.run import Run
from jaxscope.rules.finding_parts import at_line
from jaxscope.rules.random_keys import functions_that_ran
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Message, message


@rule("JX140", "ignored-result", WARNING)
def ignored_result(run: Run) -> Iterator[Finding]:
    """Yield a finding for each statement that does not use a returned value, the only effect of its call:
    ``x.at[0].set(1)``."""
    for file, functions in functions_that_ran(run).items():
        source = sources.of(run)(file)
        ignored = ignored_results.find(source)
        ran = key_reuse.called_in(source, functions) if ignored else set()
        surely = key_reuse.called_in(source, functions, surely=True) if ignored else set()
        for one in ignored:
            if one.function not in ran:
                continue
            text, at = _title(one), Frame(file, one.line, one.function)
            if one.function not in surely:
                text = message("may-not-have-run", finding=text, function=one.function)
            yield Finding(
                code="JX140",
                severity=WARNING if one.function in surely else NOTE,
                certainty=CERTAIN if one.certain else LIKELY,
                **at_line(text, at),
                fix=Fix(_fix(one), "assign_result", {"name": one.target}),
                subject=(one.function, one.call, one.line),
            )


def _title(one: Ignored) -> Message:
    line, call = str(one.line), one.call
    if one.kind == "context":
        return message("context-not-entered", line=line, call=call)
    if one.kind == "statistics":
        return message("statistics-ignored", line=line, call=call, name=one.target)
    if one.kind == "wrap":
        return message("wrapped-function-ignored", line=line, call=call, name=one.target)
    if one.kind == "key":
        return message("new-keys-ignored", line=line, call=call, name=one.target)
    if one.target is None:
        return message("result-ignored", line=line, call=call)
    return message("changed-copy-ignored", line=line, call=call, name=one.target)


def _fix(one: Ignored) -> Message:
    if one.kind == "context":
        return message("fix-with-statement", call=one.call)
    if one.kind == "statistics":
        return message("fix-keep-statistics", name=one.target)
    if one.kind == "key":
        return message("fix-assign-keys", name=one.target)
    if one.target is None:
        return message("fix-assign-result", call=one.call)
    owner = one.target.rpartition(".")[0]
    frozen = message("or-replace-field", owner=owner, field=one.target.rpartition(".")[2]) if owner else None
    return message("fix-assign-back", call=one.call, name=one.target, frozen=frozen)
