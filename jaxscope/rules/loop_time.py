"""Merge findings about one loop: what its operations outside jit cost to compile (JX133), and the time that
the loop spends on running them (JX605) or on copies (JX602, JX604, JX607)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jaxscope.analysis import loop_calls
from jaxscope.analysis.syntax import spans
from jaxscope.model import line_times, sources
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.rules import computing_operations, iterated_arrays
from jaxscope.rules.inner_loops import with_inner_loops
from jaxscope.rules.line_lists import line_numbers
from jaxscope.rules.size_changes import NAMES
from jaxscope.schema.findings import (
    WARNING,
    Finding,
    Fix,
    extended,
    fix_of,
    merged,
    slug_of,
    slugs_of,
    with_field,
)
from jaxscope.schema.keys import Frame, same_line
from jaxscope.schema.line_times import OPERATIONS, LineTime
from jaxscope.schema.messages import Message, Names, Seconds, Words, message

MORE = 4  # a cost that takes a fourth of the seconds of another one, or less, has no separate advice
# Advice to jit code that JAX compiles again for each size of the arrays
SIZED = frozenset({"fix-one-size-first", "fix-one-program-each-size"})
# Rules about operations outside jit. All operations are outside jit while jit is disabled.
OUTSIDE_JIT = frozenset({"JX133", "JX605", "JX607"})
# Rules about the time of operations or copies
TIMED = frozenset({"JX602", "JX603", "JX604", "JX605", "JX607"})
PART_TO_RUN = 0.3  # running the operations takes at least this part of the seconds that compiling them took


def _of_both(run: Run, fix: Fix, compiled: Finding, running: Finding) -> Fix:
    """Return the advice for two merged findings: ``compiled``, with the advice ``fix`` to jit operations, and
    ``running``, about the time of the loop that runs them. It is the advice of ``running`` if that is to jit
    a function and ``fix`` is not to jit the step; else ``fix``, extended by an inner loop."""
    other = fix_of(running)
    if other is not None and "function" in other.arguments and slug_of(compiled) != "fix-jit-step":
        return other  # nearly all operations of the loop are in this function, not only those of one line
    if other is not None and slug_of(running) == "fix-jit-call-at":
        return other  # it names the line that calls the function
    of_one_line = slug_of(compiled) in ("fix-jit-around", "fix-jit-around-call")
    more = lines_of(running) - lines_of(compiled)
    if other is not None and other.kind == "jit" and of_one_line and more:
        return other
    if of_one_line and more and isinstance(fix.words, Message) and len({file for file, _ in more}) == 1:
        numbers = line_numbers(n for _, n in lines_of(running))
        fields = fix.words.fields | {"lines": message("lines-in", numbers=numbers)}
        fix = msgspec.structs.replace(fix, words=msgspec.structs.replace(fix.words, fields=fields))
    inner = other.arguments.get("inner") if other is not None else None
    loop = Frame(*inner) if inner else None
    timed = _timed_loop(running)
    if loop is None and slug_of(compiled) == "fix-jit-step" and timed is not None:
        file, line = timed
        around, begin = loop_calls.loop_from(sources.of(run)(file), line), _begin(compiled)
        outside = around is not None and begin is not None and begin[0] == file and line < begin[1]
        if not outside or around is None or begin is None or not spans(around, begin[1]):
            loop = Frame(file, line, "")  # a loop inside the iteration that is to be jitted
    return with_inner_loops(run, fix, [loop] if loop is not None and loop.place != compiled.subject else [])


def _timed_loop(f: Finding) -> tuple[str, int] | None:
    """Return (file, first line) of the loop that the finding ``f`` of JX605 is about; None if it is about
    none."""
    match f.subject:
        case ("JX605", str(file), int(line)):
            return file, line
    return None


def _begin(f: Finding) -> tuple[str, int] | None:
    """Return (file, line) of the loop that the finding ``f`` of JX133 is about; None if it is about none."""
    match f.subject:
        case (str(file), int(line), *_):
            return file, line
    return None


def with_time_to_run(run: Run, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge those that are about the operations of one loop.

    A finding about the time of a loop (JX605) is merged into the one about the line that takes this time
    (``_with_time_of_line``), and with those about the compilations of its operations (JX133), unless they are
    about the creation of parameters. Findings about several loops with one advice become one. At last, the
    findings of JX133 get the seconds that their lines ran (``_with_operations``)."""
    kept = _with_time_of_line(run, findings)
    for running in [f for f in kept if f.code == "JX605"]:
        lines = lines_of(running)
        lines |= _line_of_call(running)
        compiled = [f for f in kept if f.code == "JX133" and f.seconds and lines & lines_of(f)]
        compiled = [f for f in compiled if f.source is not None and f.source.place in lines] or compiled
        in_loop = [f for f in compiled if _in_loop_of(run, f, running)]
        if compiled and _passes_a_function(running):
            kept = _with_passed_function(kept, running, compiled)
        elif len(in_loop) > 1:
            kept = _with_all_compilations(kept, running, in_loop)
        else:
            kept = _with_its_compilations(run, kept, running, compiled)
    return _with_operations(run, _of_one_function(kept))


def _with_passed_function(
    kept: list[Finding], running: Finding, compiled: Sequence[Finding]
) -> list[Finding]:
    """Return ``kept``, but merge ``running``, about a function that a library calls, with the findings
    ``compiled`` about its compilations. The larger cost comes first."""
    largest = max(compiled, key=lambda f: f.seconds or 0.0)
    if (largest.seconds or 0.0) <= (running.seconds or 0.0):
        return _with_all_compilations(kept, running, compiled)
    title = message("with-running", finding=largest.title, seconds=Seconds(running.seconds or 0.0))
    return merged(kept, largest, [running], titles=True, title=title, fix=largest.fix)


def _with_its_compilations(
    run: Run, kept: list[Finding], running: Finding, compiled: Sequence[Finding]
) -> list[Finding]:
    """Return ``kept``, but merge ``running``, about the time of a loop, with the first of the findings
    ``compiled`` that has the same remedy: jit solves both, or the loop takes at least MORE times as long as
    the compilations."""
    header = _timed_loop(running)
    for f in compiled:
        fix = fix_of(f)
        if fix is not None and header is not None and _are_of_the_header(running, f, header):
            return _of_library_loop(kept, f, running)
        short = MORE * (f.seconds or 0.0) <= (running.seconds or 0.0)
        if fix is None or _creates(f) or (fix.kind != "jit" and not short):
            continue
        if _is_of_another_loop(run, f, running):
            continue
        one_jit = fix.kind == "jit" and slug_of(running) != "fix-jit-each" and _runs(run, f, running)
        instead = fix_of(running)
        if not one_jit and instead is not None and "fix-jit-output" in slugs_of(instead):
            continue  # the lines of ``f`` run in each iteration
        both = _of_both(run, fix, f, running) if one_jit else instead
        if both is not None and not SIZED.isdisjoint(slugs_of(fix)):
            sized = not SIZED.isdisjoint(slugs_of(both))
            both = both if sized else extended(both, "fix-one-program-each-size")
        # "This line" in the advice is the line of ``f``.
        of_its_line = one_jit and both is not None and (slug_of(f) or "") in slugs_of(both)
        first, second = sorted((f, running), key=lambda one: -(one.seconds or 0.0))
        seconds = Seconds(second.seconds or 0.0)
        loop = _timed_loop(running)
        if first is f and both is not None and loop is not None:  # the title names no loop
            both = with_field(both, "fix-jit-iteration", of=message("of-the-loop-at", loop=Frame(*loop, "")))
        return merged(
            kept,
            first,
            [second],
            titles=True,
            title=message(
                "with-running" if first is f else "with-compiling", finding=first.title, seconds=seconds
            ),
            severity=WARNING if WARNING in (f.severity, running.severity) else first.severity,
            fix=both,
            source=f.source if of_its_line else first.source,
            at_most=f.at_most,
        )
    return kept


def _are_of_the_header(running: Finding, compiled: Finding, header: tuple[str, int]) -> bool:
    """Return whether the operations of both findings run on the first line of the loop, ``header``: in the
    library whose object the loop goes through, not in the body."""
    return lines_of(running) == {header} and compiled.source is not None and compiled.source.place == header


def _of_library_loop(kept: list[Finding], compiled: Finding, running: Finding) -> list[Finding]:
    """Return ``kept`` with both findings about the first line of a loop as one, with the advice of
    ``compiled``: to jit the body of the loop would not help."""
    title = message("with-running", finding=compiled.title, seconds=Seconds(running.seconds or 0.0))
    return merged(kept, compiled, [running], titles=True, title=title)


def _line_of_call(running: Finding) -> set[tuple[str, int]]:
    """Return (file, number) of the line whose call the advice of ``running`` is to jit, in a set; empty if
    the advice is another one."""
    words: object = running.fix.words if isinstance(running.fix, Fix) else None
    while isinstance(words, Message):
        line = words.fields.get("line")
        if words.slug == "fix-jit-call-at" and isinstance(line, Frame):
            return {line.place}
        words = words.fields.get("fix")
    return set()


def _is_of_another_loop(run: Run, compiled: Finding, running: Finding) -> bool:
    """Return whether the advice of ``compiled`` (JX133) is to jit the iterations of a loop that is neither
    inside nor around the loop of ``running`` (JX605). Both loops may call the same function."""
    begin = _begin(compiled)
    slugs = slugs_of(fix) if (fix := fix_of(compiled)) is not None else ()
    other = _timed_loop(running)
    if "fix-jit-step" not in slugs or begin is None or other is None:
        return False
    first, second = (loop_calls.loop_from(sources.of(run)(file), line) for file, line in (begin, other))
    if begin[0] != other[0] or first is None or second is None:
        return False
    return not spans(first, second.lineno) and not spans(second, first.lineno)


def _of_one_function(findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge those about several loops (JX605) with one advice, to jit a function
    that they all call."""
    kept, left = findings, [f for f in findings if f.code == "JX605" and _names_a_function(f)]
    while left:
        members = [f for f in left if fix_of(f) == fix_of(left[0])]
        left = [f for f in left if f not in members]
        loops = [Frame(*loop, "") for loop in sorted(filter(None, map(_timed_loop, members)))]
        if len(members) > 1:
            first, *rest = sorted(members, key=lambda f: -(f.seconds or 0.0))
            seconds = sum(f.seconds or 0.0 for f in members)
            title = message("operations-in-loops", loops=Names(tuple(loops), NAMES), seconds=Seconds(seconds))
            kept = merged(kept, first, rest, titles=True, title=title)
    return kept


def _names_a_function(f: Finding) -> bool:
    """Return whether the advice of ``f`` (JX605) is to jit a function, or several, that the loop calls."""
    fix = fix_of(f)
    return (
        fix is not None
        and not _passes_a_function(f)
        and not {"function", "functions"}.isdisjoint(fix.arguments)
    )


def _with_operations(run: Run, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but add to each finding about lines that compile operations outside jit (JX133),
    and that jit solves, the seconds that these lines ran such operations, if they are a large part. Lines
    that another finding names with their time are left out, and so are operations that mostly compute."""
    alone = [
        f
        for f in findings
        if f.code == "JX133" and f.seconds and advises_jit(f) and not _creates(f)
        if not isinstance(f.title, Message) or f.title.slug not in ("with-running", "with-compiling")
    ]
    timed = {
        place for f in findings if f.code in TIMED for place in lines_of(f)
    } | computing_operations.lines(run)
    lines = {place: f for f in alone for place in lines_of(f)}
    times: dict[int, list[LineTime]] = {}
    for doing, t in line_times.entries(run) if lines else ():
        of = next((lines[at.place] for at in t.stack if at.place in lines), None)
        if doing == OPERATIONS and of is not None and timed.isdisjoint(at.place for at in t.stack):
            times.setdefault(id(of), []).append(t)
    found = []
    for f in findings:
        more = line_times.sure_seconds(times.get(id(f), []))
        if more is not None and more >= PART_TO_RUN * (f.seconds or 0.0):
            title = message("with-running", finding=f.title, seconds=Seconds(more))
            f = msgspec.structs.replace(f, title=title, seconds=(f.seconds or 0.0) + more)
        found.append(f)
    return found


def _passes_a_function(running: Finding) -> bool:
    """Return whether the finding ``running`` (JX605) is about a function that a library calls."""
    fix = fix_of(running)
    of_function = {"fix-jit-passed-function", "fix-jit-passed-method"}
    return fix is not None and not of_function.isdisjoint(slugs_of(fix))


def _in_loop_of(run: Run, compiled: Finding, running: Finding) -> bool:
    """Return whether the finding ``compiled`` (JX133) is about lines of the loop of the finding ``running``
    (JX605) itself, which jit of an iteration would compile together, and not about creating parameters."""
    timed = _timed_loop(running)
    if compiled.fix is None or _creates(compiled) or timed is None:
        return False
    file, first = timed
    loop = loop_calls.loop_from(sources.of(run)(file), first)
    last = (loop.end_lineno or first) if loop is not None else first
    return all(at[0] == file and first <= at[1] <= last for at in lines_of(compiled))


def _with_all_compilations(
    kept: list[Finding], running: Finding, compiled: Sequence[Finding]
) -> list[Finding]:
    """Return ``kept``, but merge the findings ``compiled`` (JX133), all about lines of one loop, into
    ``running``, the finding about the time of this loop."""
    seconds = sum(f.seconds or 0.0 for f in compiled)
    return merged(
        kept,
        running,
        compiled,
        titles=True,
        title=message("with-compiling", finding=running.title, seconds=Seconds(seconds)),
        severity=WARNING if WARNING in (f.severity for f in (running, *compiled)) else running.severity,
        seconds=(running.seconds or 0.0) + seconds,
        at_most=True,
    )


def _runs(run: Run, compiled: Finding, running: Finding) -> bool:
    """Return whether the advice of ``compiled`` (JX133) to jit a function, or its lines, reaches most of the
    operations at the lines of ``running``, a finding about the time of a loop."""
    fix, lines = fix_of(compiled), lines_of(running)
    name = fix.arguments.get("function") if fix is not None else None
    times = [t for doing, t in line_times.entries(run) if doing == OPERATIONS and t.stack[0].place in lines]
    jitted = lines_of(compiled)
    inside = [
        t
        for t in times
        if any(
            (at.function.replace(".<locals>", "") == name) if name else at.place in jitted for at in t.stack
        )
    ]
    return 2 * sum(t.seconds for t in inside) >= sum(t.seconds for t in times)


def _with_time_of_line(run: Run, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge each finding about the time of operations in a loop (JX605) into the
    finding about the line that takes most of this time: about writes into a large array (JX607), items that
    are copied one at a time (JX604), or copies of which few rows are used (JX602)."""
    kept = list(findings)
    for running in [f for f in findings if f.code == "JX605"]:
        here = (f for f in kept if _is_time_of(f) and same_line(f.source, running.source))
        # A list whose conversion takes less than half of the time: the loop has other costs.
        half = (running.seconds or 0.0) / 2
        line = next((f for f in here if slug_of(f) != "fix-convert-list" or (f.seconds or 0.0) >= half), None)
        if line is not None:
            severity = WARNING if WARNING in (line.severity, running.severity) else line.severity
            seconds = running.seconds or 0.0
            if line.code == "JX607" and line.source is not None:  # waiting, too, is for the copies
                seconds = max(seconds, line_times.seconds_at(run, {line.source.place}) or 0.0)
            kept = merged(kept, line, [running], titles=True, severity=severity, seconds=seconds)
    for running in [f for f in kept if f.code == "JX605" and advises_jit(f)]:
        # The arrays of an iteration that is to be jitted are no items of a batch.
        copied = [f for f in kept if f.code == "JX604" and _copied_in(run, f, running)]
        kept = merged(kept, running, copied, titles=True, seconds=running.seconds) if copied else kept
    jitted = {f.subject: f for f in kept if f.code == "JX605" and advises_jit(f)}
    for f in [f for f in kept if f.code == "JX607" and not f.seconds]:
        loop = jitted.get(("JX605", *_loop_of(f)))
        if loop is not None and isinstance(f.title, Message):
            # The writes of a loop whose operations are to be jitted are then inside jit, too.
            seconds = loop.seconds or 0.0
            whole = line_times.seconds_in_loop(run, [f.source] if f.source is not None else ())
            more = max(0.0, (whole or 0.0) - seconds)
            fields = {name: f.title.fields[name] for name in ("expression", "bytes")}
            title: Words = message("with-copies", finding=loop.title, more=Seconds(more), **fields)
            title = title if more >= PART_TO_RUN * seconds else loop.title
            fix, write = fix_of(loop), fix_of(f)
            if fix is not None and write is not None and slug_of(loop) != "fix-scan-loop":
                fix = extended(fix, "fix-donate-written", name=str(write.arguments["name"]))
            kept = merged(kept, loop, [f], titles=True, title=title, fix=fix, seconds=seconds + more)
    return kept


def _copied_in(run: Run, f: Finding, running: Finding) -> bool:
    """Return whether the finding ``f`` is about small arrays that the loop of ``running`` (JX605) copies one
    at a time, itself or in a function that it calls, and takes far less time than ``running``."""
    timed = _timed_loop(running)
    if slug_of(f) != "fix-copy-batch" or timed is None:
        return False
    file, first = timed
    loop = loop_calls.loop_from(sources.of(run)(file), first)
    helper = f.title.fields.get("helper") if isinstance(f.title, Message) else None
    called = helper.fields.get("caller") if isinstance(helper, Message) else f.source
    if not isinstance(called, Frame) or called.file != file or loop is None:
        return False
    return spans(loop, called.line) and MORE * (f.seconds or 0.0) <= (running.seconds or 0.0)


def _loop_of(f: Finding) -> tuple[str, int] | tuple[()]:
    """Return (file, first line) of the loop that the title of ``f`` names; empty if it names none."""
    loop = f.title.fields.get("loop") if isinstance(f.title, Message) else None
    return loop.place if isinstance(loop, Frame) else ()


def _is_time_of(f: Finding) -> bool:
    """Return whether ``f`` is about what takes the time of operations on one line."""
    fix = fix_of(f)
    return f.code in ("JX604", "JX607") or (f.code == "JX602" and fix is not None and fix.kind == "index")


def advises_jit(f: Finding) -> bool:
    """Return whether the advice of ``f`` is to jit something."""
    fix = fix_of(f)
    return fix is not None and fix.kind == "jit"


def _creates(f: Finding) -> bool:
    """Return whether the advice of ``f``, a finding of JX133, is about a line that creates parameters."""
    fix = fix_of(f)
    return fix is not None and fix.arguments.get("parameters") is True


def lines_of(f: Finding) -> set[tuple[str, int]]:
    """Return (file, number) of the lines that the finding ``f`` names."""
    return {at.place for at in (f.source, *(e.source for e in f.evidence)) if at is not None}


def compilations(run: Run, f: Finding) -> list[Compilation]:
    """Return the compilations in the evidence of the finding ``f``."""
    return [c for e in f.evidence if (c := run.compilations.get(e.compilation or "")) is not None]


def with_functions_below(run: Run, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``, but merge a finding whose advice is jit, or about a loop over an array (JX133),
    into one that advises to jit a function or the iteration of a loop (JX133 or JX605), if calls of this
    function, or this loop, led to all compilations in the evidence of the merged finding."""
    below = [
        f
        for f in findings
        if f.code == "JX133" and (advises_jit(f) or slug_of(f) in iterated_arrays.ITERATES)
    ]
    for inner in [f for f in below if not _creates(f)]:
        compiled = compilations(run, inner)
        callers = [{at.function.replace(".<locals>", "") for at in c.lines} for c in compiled]
        longer = [f for f in findings if f is not inner and (f.seconds or 0.0) >= (inner.seconds or 0.0)]
        others = longer if inner in findings else []
        outer = next((f for f in others if callers and all(_to_jit(f) & each for each in callers)), None)
        outer = outer or next((f for f in others if _in_jitted_loop(run, f, compiled)), None)
        if outer is not None:
            title, seconds = outer.title, inner.seconds or 0.0
            if isinstance(title, Message) and title.slug == "with-compiling":
                before = title.fields["seconds"]
                both = Seconds(seconds + ((before.seconds or 0.0) if isinstance(before, Seconds) else 0.0))
                title = msgspec.structs.replace(title, fields={**title.fields, "seconds": both})
            findings = merged(findings, outer, [inner], title=title, at_most=True)
    return findings


def _in_jitted_loop(run: Run, f: Finding, compiled: Sequence[Compilation]) -> bool:
    """Return whether ``f`` advises to jit the iteration of a loop that led to all of ``compiled``."""
    fix = fix_of(f)
    if fix is None or "fix-jit-iteration" not in slugs_of(fix) or not compiled:
        return False
    match f.subject:
        case ("JX605", str(file), int(line)) | (str(file), int(line)):
            loop = loop_calls.loop_from(sources.of(run)(file), line)
        case _:
            return False
    return loop is not None and all(
        any(at.file == file and spans(loop, at.line) for at in c.lines) for c in compiled
    )


def _to_jit(f: Finding) -> set[str]:
    """Return the names of the functions that the advice of ``f``, about operations outside jit, says to
    jit."""
    fix = fix_of(f) if f.code in OUTSIDE_JIT else None
    if fix is None or fix.kind != "jit":
        return set()
    names = [fix.arguments.get("function"), *fix.arguments.get("functions", ())]
    return {name for name in names if isinstance(name, str)}
