"""JX131, JX134 and JX136: values from outside that a compiled function keeps, and random numbers that are the
same in each call, or on each device.
"""

from __future__ import annotations

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
from jaxscope.schema.messages import Names, message


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


@rule("JX134", "constant-random-key", WARNING)
def constant_random_key(run: Run) -> Iterator[Finding]:
    changed = {(s.function.id, s.changed.name) for s in run.stale}  # JX131 reports these
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
            keys=Names(names, 3) if names else "a key without a name",
            is_constant="are constants" if len(names) > 1 else "is a constant",
        )
        yield Finding(
            code="JX134",
            severity=WARNING,
            certainty=LIKELY,
            title=text,
            function=f.id,
            source=last.site,
            evidence=[Evidence(text, compilation=last.id, source=last.site)],
            fix=Fix(message("fix-pass-key"), "pass_argument", {"name": names[0] if names else None}),
        )


def _drawn_while_traced(run: Run, f: Function, last: Compilation) -> Finding | None:
    """Report random numbers of NumPy's or Python's in the function's body: drawn once, while it is traced."""
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
    """Return whether ``f`` is called in a loop or from several lines; its count of calls decides if it is
    known.
    """
    calls = max(f.counted_calls.values(), default=None)
    if calls is not None:
        return calls > 1
    lines = {(c.site.file, c.site.line) for c in f.compilations if c.site is not None and c.entry == "call"}
    return len(lines) > 1 or any(in_a_loop(sources.of(run)(file), line) for file, line in lines)
