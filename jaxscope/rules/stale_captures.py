"""Rules JX131 (a compiled function still uses an old value of a variable that it read while it was traced),
JX134 and JX136 (random numbers that are the same in each call, or on each device)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxscope.analysis import numpy_draws
from jaxscope.analysis.rewrap_site import in_a_loop
from jaxscope.model import sources
from jaxscope.model.function_lookup import number_of
from jaxscope.model.records import SEEN_AT_CALL, SEEN_AT_EXIT, Compilation, Function, StaleCapture
from jaxscope.model.run import Run
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, ERROR, LIKELY, NOTE, WARNING, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Field, Message, Names, message


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


# Names of functions for evaluation, which may draw the same numbers each time on purpose.
_EVALUATION = re.compile(r"(?:^|_)(?:eval|evaluate|evaluation|valid|validate|validation|test)(?:_|$)")


@rule("JX134", "constant-random-key", WARNING)
def constant_random_key(run: Run) -> Iterator[Finding]:
    changed = {(s.function.id, s.changed.name) for s in run.stale}  # keys that JX131 reports
    for f in run.functions.values():
        traced = [c for c in f.compilations if c.traced is not None] if f.user else []
        last = traced[-1] if traced else None
        if last is None or last.traced is None or last.site is None or not _called_again(run, f):
            continue
        numpy = _drawn_while_traced(run, f, last)
        if numpy is not None:
            yield numpy
        drawn = [c for c in last.traced.captured or () if c.draws and (f.id, c.name) not in changed]
        # A function without arguments computes one value, whatever it draws. A call inside another trace has
        # no key: how often its program runs is unknown.
        if not drawn or last.key is None or not last.key.arguments:
            continue
        names = tuple(dict.fromkeys(c.name for c in drawn if c.name))
        text = message(
            "constant-random-key",
            function=f.display_name,
            keys=Names(names, 3) if names else message("unnamed-key"),
            is_constant="are constants" if len(names) > 1 else "is a constant",
        )
        yield Finding(
            code="JX134",
            severity=NOTE if _EVALUATION.search(f.seen.name) else WARNING,
            certainty=LIKELY,
            title=text,
            function=f.id,
            source=last.site,
            evidence=[Evidence(text, compilation=last.id, source=last.site)],
            fix=Fix(message("fix-pass-key"), "pass_argument", {"name": names[0] if names else None}),
        )


def _drawn_while_traced(run: Run, f: Function, last: Compilation) -> Finding | None:
    """Return a finding if the body of ``f`` draws random numbers with NumPy or with Python's ``random``: the
    numbers are drawn only once, while the function is traced (``last`` is the latest call that traced it).
    None if the body draws none, or if its source is unknown."""
    if f.seen.file is None or f.seen.line is None or last.key is None or not last.key.arguments:
        return None
    found = numpy_draws.find(sources.of(run)(f.seen.file), f.seen.name, f.seen.line)
    if found is None:
        return None
    line, call = found
    text = message("drawn-while-traced", function=f.display_name, call=call)
    at = Frame(f.seen.file, line, f.seen.qualname)
    return Finding(
        code="JX134",
        severity=WARNING,
        certainty=LIKELY,
        title=text,
        function=f.id,
        source=at,
        evidence=[Evidence(text, compilation=last.id, source=at)],
        fix=Fix(message("fix-draw-with-jax"), "pass_argument"),
        subject=call,
    )


@rule("JX136", "same-numbers-on-devices", NOTE)
def same_numbers_on_devices(run: Run) -> Iterator[Finding]:
    for f in run.functions.values():
        traced = [c for c in f.compilations if c.traced is not None] if f.user else []
        last = traced[-1] if traced else None
        for path in (last.traced.draws_alike or ()) if last is not None and last.traced is not None else ():
            text = message("same-numbers-on-devices", function=f.display_name, key=path)
            at = last.site if last is not None else None
            yield Finding(
                code="JX136",
                severity=NOTE,
                certainty=CERTAIN,
                title=text,
                function=f.id,
                source=at,
                evidence=[Evidence(text, compilation=last.id if last is not None else None, source=at)],
                fix=Fix(message("fix-fold-device", key=path), "fold_in", {"name": path}),
                path=path,
            )


def _called_again(run: Run, f: Function) -> bool:
    """Return whether ``f`` is called more than once. If its calls are not counted, that is concluded from the
    source: the call is in a loop, or several lines call it."""
    calls = max(f.counted_calls.values(), default=None)
    if calls is not None:
        return calls > 1
    lines = {(c.site.file, c.site.line) for c in f.compilations if c.site is not None and c.entry == "call"}
    return len(lines) > 1 or any(in_a_loop(sources.of(run)(file), line) for file, line in lines)
