"""Rule JX131: a compiled function still uses an old value of a variable that it read while it was traced."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.analysis import changed_reads
from jaxscope.analysis.causes import SHAPES
from jaxscope.analysis.paths import root
from jaxscope.analysis.syntax import function_around, syntax
from jaxscope.model import causes, sources
from jaxscope.model.records import SEEN_AT_CALL, SEEN_AT_EXIT, Compilation, Function, StaleCapture
from jaxscope.model.run import Run
from jaxscope.rules.finding_parts import at_line
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, ERROR, LIKELY, WARNING, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Field, Message, message

MOST_TRACES = 2


@rule("JX131", "stale-capture", ERROR)
def stale_capture(run: Run) -> Iterator[Finding]:
    for stale in run.stale:
        if stale.status != "withdrawn":
            yield _finding(run, stale)
    yield from _from_source(run)


def _finding(run: Run, stale: StaleCapture) -> Finding:
    changed = stale.changed
    compilation = run.compilation(stale.process, changed.call)
    certain = changed.certain and changed.seen == SEEN_AT_CALL
    name = stale.function.display_name
    number = run.number(compilation) if compilation is not None else None
    evidence = [
        Evidence(
            message(
                "traced-with-value",
                program=f"{name}#{number}" if number else message("a-trace"),
                name=changed.name,
                where=stale.where,
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
    )


def _title(stale: StaleCapture, name: str) -> Message:
    changed = stale.changed
    line = message("read-at-line", line=str(changed.read.line)) if changed.read is not None else None
    values = {"before": changed.before, "after": stale.after}
    in_place = changed.how == "in place"
    change = message("contents-changed", **values) if in_place else message("value-changed", **values)
    fields: dict[str, Field] = {"function": name, "name": changed.name, "line": line, "change": change}
    if stale.renewed is not None:
        return message("computed-with-old-value", **fields)
    return message("computes-with-old-value", **fields)


def _seen(stale: StaleCapture) -> Message:
    changed = stale.changed
    if changed.seen == SEEN_AT_CALL:
        return message("changed-at-call", after=stale.after)
    when = message("at-the-end") if changed.seen == SEEN_AT_EXIT else message("at-the-end-of-a-step")
    if changed.how == "in place":
        return message("contents-had-changed", after=stale.after, when=when)
    return message("value-had-changed", after=stale.after, when=when)


def _fix(stale: StaleCapture) -> Message:
    name = stale.changed.name
    if stale.changed.how == "in place":
        return message("fix-pass-what-is-written-into", name=name)
    if stale.changed.where == "static":
        return message("fix-pass-or-make-anew", name=name)
    return message("fix-pass-as-argument", constant=name)


def _from_source(run: Run) -> Iterator[Finding]:
    """Yield findings about variables that a function reads from outside, while a loop around the calls of the
    function changes them, according to the source. Functions that were passed to ``jaxscope.watch``, or were
    traced often or for several sizes, are left out."""
    for f in run.functions.values():
        traced = [c for c in f.compilations if c.traced is not None and c.entry == "call"] if f.user else []
        seen = f.seen
        # For a watched function, the values are compared while the program runs.
        # A function that was traced often received the new values. So did one that was traced again for
        # arrays of another size, if these come with the new values.
        if f.watched or not 0 < len(traced) <= MOST_TRACES or seen.file is None or seen.line is None:
            continue
        if any(causes.of(run, c)[0].kind in SHAPES for c in traced[1:]):
            continue
        last = traced[-1]
        keys = {c.name for c in (last.traced.captured if last.traced is not None else None) or () if c.draws}
        lines = {frame.line for frame in last.lines if frame.file == seen.file}
        for changed in changed_reads.find(sources.of(run)(seen.file), seen.name, seen.line, lines):
            if changed.name in keys or _is_compared(last, changed.name):
                continue
            line = Frame(seen.file, changed.changed, seen.qualname)
            around = function_around(syntax(sources.of(run)(seen.file)), changed.read)
            inner = around.name if around is not None and around.name != seen.name else None
            text = message(
                "keeps-first-value",
                function=f.display_name,
                name=changed.name,
                inside=message("in-function", function=inner) if inner is not None else None,
                read=str(changed.read),
                changed=str(changed.changed),
            )
            yield Finding(
                code="JX131",
                severity=WARNING,
                certainty=LIKELY,
                **at_line(text, line, last),
                function=f.id,
                fix=Fix(_passed(f, changed.name, inner), "pass_argument"),
                subject=changed.name,
            )


def _passed(f: Function, name: str, inner: str | None) -> Message:
    """Return the advice to pass ``name`` to ``f`` as an argument, and from there to the function ``inner``
    that reads it; None: ``f`` itself reads it."""
    if inner is None:
        return message("fix-pass-as-argument", constant=name)
    return message("fix-pass-on", constant=name, function=f.display_name, inner=inner)


def _is_compared(c: Compilation, name: str) -> bool:
    """Return whether a change of the attribute ``name`` (``self.rate``) makes the call ``c`` recompile: its
    object (``self``) is an argument with arrays, or a static argument that JAX compares by contents. Always
    False for a variable."""
    if "." not in name or c.key is None:
        return False
    own = root(name)
    if any(root(leaf.path) == own for leaf in c.key.arguments):
        return True
    return any(root(s.path) == own and s.compares != "identity" for s in c.key.static)
