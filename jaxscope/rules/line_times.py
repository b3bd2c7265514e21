"""Rules about the time that the main thread spends in loops. JX605: in operations outside jit. JX606: in
Python code, while the devices wait. JX608: in starting programs that are too small to be worth a call."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from jaxscope.analysis import line_names, loop_calls
from jaxscope.analysis.element_reads import draws_one, reads_archive
from jaxscope.analysis.jit_decorators import names_of
from jaxscope.analysis.loop_calls import root
from jaxscope.analysis.programs import Texts
from jaxscope.analysis.source_lines import depends_on_a_condition, loop_around, reached_now_and_then
from jaxscope.analysis.syntax import LOOPS, calls_from, last_name, spans, syntax
from jaxscope.model import line_times, payers, sources, transfers
from jaxscope.model.line_times import Loop
from jaxscope.model.records import Compilation, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.rules import computing_operations, element_reads, inner_loops, jit_obstacles, loop_functions
from jaxscope.rules.each_program import users
from jaxscope.rules.finding_parts import at_line
from jaxscope.rules.registry import rule
from jaxscope.rules.transfers import printing_lines
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Evidence, Finding, Fix, extended, slugs_of
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import CALL_WRAPPERS, CALLING_BACK, COMPUTING_ROOTS, JAX_ROOTS, WRAPPER_ROOTS
from jaxscope.schema.line_times import (
    CALLING,
    COMPILING,
    COPYING,
    OPERATIONS,
    PYTHON,
    SLEEPING,
    STANDARD_LIBRARY,
    WAITING,
    LineTime,
)
from jaxscope.schema.messages import Field, Message, Names, Percent, Seconds, message

OPERATIONS_SHARE, OPERATIONS_MUCH = 0.05, 0.15  # shares of the measured time: a note, a warning
MANY_CALLS = 20  # calls of a function, for a library to call it again and again
LEAST_SAVED = 0.1  # share of a line's operations outside jit that jit has to save, for the line to count
PYTHON_SHARE, PYTHON_MUCH = 0.15, 0.4
CALLS_SHARE, CALLS_MUCH = 0.1, 0.3
# A library's code around a call takes several times as long as the call
BY_LIBRARY = 4 * computing_operations.SMALL
PART = 0.2  # share of a loop's time: an inner loop that takes at least this share needs a function of its own
FEW_IN_STEPS = 0.2  # share of the operations' time in the loop of the steps, for those of an epoch
SOME = 0.1  # share of a loop's time: an inner loop that takes at least this share is named
NAMED = 0.9  # share of a loop's time that the named lines take
LINES = 3  # lines that are named
INTEGRATES = re.compile(r"\b(solve_ivp|odeint|ode)\(")  # of SciPy: JX601 and JX210 are about minimize
JOINS = re.compile(r"\b(stack|[vhd]stack|concatenate|append|as?array|array)\(")
NUMERIC = frozenset({"numpy", "scipy", "pandas"})


@rule("JX605", "operations-in-each-step", WARNING)
def operations_in_each_step(run: Run) -> Iterator[Finding]:
    """Yield findings about loops, and about functions that a library calls again and again, that spend much
    time in operations outside jit."""
    for loop in _operations(run):
        yield _finding(run, "JX605", _with_overhead(run, loop), OPERATIONS_MUCH)
    yield from _in_passed_functions(run)


def _in_passed_functions(run: Run) -> Iterator[Finding]:
    """Yield findings about functions of the user that a library other than JAX calls many times, and whose
    operations outside jit take much time."""
    for part, times in _passed_functions(run).items():
        ran = [_with_overhead(run, Loop(at, at.line, False, spent)) for at, spent in times.items()]
        seconds = sum(loop.seconds for loop in ran)
        share = _share(run, seconds)
        if share < OPERATIONS_SHARE or sum(loop.samples for loop in ran) < line_times.FEWEST:
            continue
        if seconds < MANY_CALLS * computing_operations.seconds_of_one_call(run, part):
            continue  # it may be called once, and compute much
        lines = sorted(times, key=lambda at: at.place)
        name, places = part[1].replace(".<locals>", ""), Names(tuple(lines), LINES)
        stack = next(t.stack for t in times[lines[0]] if part[1] in [f.function for f in t.stack])
        k = loop_functions.passed_to_library(run, stack) or 0
        package, called, argument = loop_functions.passing_call(run, stack, k)
        if package not in CALLING_BACK:
            package = called if len(called) <= loop_calls.LONGEST else ""
        fix = loop_functions.jit_passed(name, argument, places)
        text = message(
            "operations-in-passed-function",
            library=package or message("a-library"),
            function=name,
            lines=places,
            seconds=Seconds(seconds),
            share=Percent(line_times.share_of_run(run, seconds)),
        )
        yield Finding(
            code="JX605",
            severity=WARNING if share >= OPERATIONS_MUCH else NOTE,
            certainty=LIKELY,
            title=text,
            source=lines[0],
            evidence=[
                Evidence(message("time-of-line", seconds=Seconds(spent)), source=line)
                for loop in ran[:LINES]
                for line, spent in [(loop.line, loop.seconds), *loop.lines()[:LINES]]
            ],
            fix=jit_obstacles.with_obstacles(run, fix, {part}, {part}),
            seconds=seconds,
            subject=subject("JX605", lines[0]),
            timed=True,
        )


def _passed_functions(run: Run) -> dict[tuple[str, str], dict[Frame, list[LineTime]]]:
    """Return {(file, qualified name) of a function of the user: {line: times}} for lines outside the loops of
    ``_operations`` that pass the function, or a lambda that calls it, to a library other than JAX
    (``table.apply(price)``), with their operations outside jit. Either no loop is in the function, so that
    the library must call it many times if these take long, or the library is known to do so."""
    loops, passing = _operations(run), dict[Frame, list[LineTime]]()
    called = dict[Frame, Counter[tuple[str, str]]]()
    for t in _operation_times(run):
        k = loop_functions.passed_to_library(run, t.stack)
        if k is None or any(_within(t, one) for one in loops):
            continue
        if line_times.in_loop(run, t.stack[: k + 1]) and not _in_loop_of_callback(run, t):
            continue
        line = t.stack[k + 1]
        passing.setdefault(line, []).append(t)
        at = t.stack[k - 1 if k and t.stack[k].function.endswith("<lambda>") else k]
        if not at.function.endswith("<lambda>"):
            called.setdefault(line, Counter())[at.file, at.function] += round(1e9 * t.seconds)
    found = dict[tuple[str, str], dict[Frame, list[LineTime]]]()
    for line, seconds in called.items():
        [(function, _)] = seconds.most_common(1)
        found.setdefault(function, {})[line] = passing[line]
    return found


@rule("JX606", "python-in-each-step", WARNING)
def python_in_each_step(run: Run) -> Iterator[Finding]:
    """Yield a finding for each loop with jitted calls that spends much time in Python code, and more than on
    waiting."""
    entries = line_times.entries(run)
    reported = _by_library(run)  # JX608
    printing = printing_lines(run)  # JX601
    times = [
        t
        for doing, t in entries
        if doing == PYTHON and _is_python(run, t) and (t.library, _at(t)) not in reported
        if not (_at(t) in printing and line_times.makes_text(doing, t))
    ]
    for loop in _loops(run, times, PYTHON_SHARE):
        inside = [(doing, t) for doing, t in entries if _within(t, loop)]
        waiting = sum(t.seconds for doing, t in inside if doing == WAITING)
        if loop.calls and waiting < loop.seconds:
            yield _finding(run, "JX606", loop, PYTHON_MUCH)


@rule("JX608", "small-calls-in-loop", WARNING)
def small_calls_in_loop(run: Run) -> Iterator[Finding]:
    """Yield findings about loops that spend much time on starting small programs and could be scans, and
    about libraries that call small programs."""
    small = {
        c.site.place
        for p, _, texts in users(run)
        for c in p.compilations
        if c.site is not None and _is_small(c, texts)
    }
    outside = {loop.line for loop in _operations(run)}  # JX605 reports these, with the same advice
    times = [t for doing, t in line_times.entries(run) if doing == CALLING and t.stack[0].place in small]
    for loop in _loops(run, times, CALLS_SHARE):
        if loop.line not in outside and _scan_of(run, loop) is not None:
            yield _finding(run, "JX608", loop, CALLS_MUCH)
    yield from _called_by_libraries(run)


def _called_by_libraries(run: Run) -> Iterator[Finding]:
    """Yield findings about libraries that call small jitted functions from Python all the time, such as a
    sampler that is written in NumPy."""
    for (library, place), (c, spent) in _by_library(run).items():
        seconds, at = sum(t.seconds for t in spent), spent[0].stack[0]
        share = _share(run, seconds)
        text = message(
            "small-calls-by-library",
            library=library,
            function=c.function.display_name,
            seconds=Seconds(seconds),
            share=Percent(line_times.share_of_run(run, seconds)),
        )
        yield Finding(
            code="JX608",
            severity=WARNING if share >= PYTHON_MUCH else NOTE,
            certainty=LIKELY,
            **at_line(text, at, c),
            function=c.function.id,
            fix=_with_own_loop(library, sources.line(run, at)),
            seconds=seconds,
            at_most=True,
            subject=("JX608", library, *place),
            timed=True,
        )


def _with_own_loop(library: str, line: str) -> Fix:
    """Return the advice to replace ``library`` by one whose loop is part of the compiled program, for what
    ``line`` (source) calls it for."""
    equations = message("for-differential-equations")
    libraries = Names((equations, message("for-minimization"), message("for-sampling")))
    words = message(
        "fix-solver-in-jit", library=library, libraries=equations if INTEGRATES.search(line) else libraries
    )
    return Fix(words, "solver_in_jit", {"library": library})


@cached_until_changed
def _by_library(run: Run) -> dict[tuple[str, tuple[str, int]], tuple[Compilation, list[LineTime]]]:
    """Return (library, (file, line)) -> (compilation, times) for the libraries that seem to call small jitted
    functions all the time at a line of the user, with the times in Python code of the library there."""
    times: dict[tuple[str, tuple[str, int]], list[LineTime]] = {}
    waits = Counter[tuple[str, tuple[str, int]]]()
    for doing, t in line_times.entries(run):
        own = t.library in JAX_ROOTS | CALL_WRAPPERS or t.library in (None, STANDARD_LIBRARY)
        if t.library is None or own:
            continue
        integrates = t.library in COMPUTING_ROOTS and INTEGRATES.search(sources.line(run, t.stack[0]))
        if doing == PYTHON and (integrates or t.library not in COMPUTING_ROOTS):
            times.setdefault((t.library, _at(t)), []).append(t)
        if doing in (SLEEPING, WAITING) or integrates:  # it waits for results
            waits[t.library, _at(t)] += t.samples
    called, found = _small_calls(run) if times else {}, {}
    for (library, place), spent in times.items():
        c = called.get(place)
        missed = c.missed if c is not None else None
        if c is None or missed is None or waits[library, place] < line_times.FEWEST:
            continue
        # Else the user's line calls the function itself, beside the library: env.step(policy(x)).
        in_lambda = len(c.lines) > 1 and c.lines[0].place == c.lines[1].place
        calls_back = missed.into_library or in_lambda or any(missed.column == t.column for t in spent)
        seconds = line_times.sure_seconds(spent)
        if calls_back and seconds is not None and _share(run, seconds) >= PYTHON_SHARE:
            found[library, place] = c, spent
    return found


def _share(run: Run, seconds: float) -> float:
    """Return the share of the measured time that ``seconds`` are; 0 if nothing was measured."""
    measured = line_times.measured(run)
    return seconds / measured.seconds if measured is not None else 0.0


def _small_calls(run: Run) -> dict[tuple[str, int], Compilation]:
    """Return (file, line) of the user -> the first compilation of a small jitted function that this line
    calls, itself or through a library."""
    found = dict[tuple[str, int], Compilation]()
    for p in run.programs.values():
        for c in p.compilations if p.texts else ():
            at = payers.line_of(c)
            if at is None or c.entry != "call" or c.function.operation:
                continue
            if _is_small(c, run.texts_of(p), BY_LIBRARY):
                found.setdefault(at.place, c)
    return found


def _is_small(c: Compilation, texts: Texts, most: int = computing_operations.SMALL) -> bool:
    """Return whether a call of the program that ``c`` compiled takes longer to start than to compute: the
    program has no loops, and its operations plus the bytes that it moves are at most ``most``."""
    cost = c.compiled.cost if c.compiled is not None else {}
    if texts.hlo is None or texts.hlo.loops or "flops" not in cost or "bytes accessed" not in cost:
        return False
    return cost["flops"] + cost["bytes accessed"] <= most


@cached_until_changed
def _operations(run: Run) -> list[Loop]:
    """Return the loops that spend at least the share OPERATIONS_SHARE of the measured time on
    ``_operation_times``, without loops in functions that a library calls again and again."""
    times = [t for t in _operation_times(run) if not _in_loop_of_callback(run, t)]
    return _loops(run, times, OPERATIONS_SHARE)


def _in_loop_of_callback(run: Run, t: LineTime) -> bool:
    """Return whether ``t`` was spent in a loop inside a function that the program passes to a library which
    calls it again and again: the whole function is to be jitted, not an iteration of the loop."""
    k = loop_functions.passed_to_library(run, t.stack)
    if k is None or not line_times.in_loop(run, t.stack[: k + 1]):
        return False
    return loop_functions.passing_call(run, t.stack, k)[0] in CALLING_BACK


@cached_until_changed
def _operation_times(run: Run) -> list[LineTime]:
    """Return the times of operations outside jit, and of copies of small arrays on lines with such
    operations. The time that rule JX603 reports does not count. Of the time of operations that compute much,
    the part counts that jit would save."""
    reads = element_reads.lines(run)  # JX603 reports their time
    copies = element_reads.small_copies(run)  # jnp.stack of NumPy arrays copies them one at a time.
    shares, entries = computing_operations.saved_shares(run), line_times.entries(run)
    operations = {_at(t) for doing, t in entries if doing == OPERATIONS}
    return [
        _part(t, shares.get(_at(t), 1.0)) if doing == OPERATIONS else t
        for doing, t in entries
        if doing == OPERATIONS or (doing == COPYING and _at(t) in operations & copies)
        if _at(t) not in reads and shares.get(_at(t), 1.0) >= LEAST_SAVED
    ]


def _part(t: LineTime, share: float) -> LineTime:
    """Return ``t`` with the fraction ``share`` of its seconds; ``t`` itself if that is 1."""
    return t if share == 1.0 else replace(t, seconds=share * t.seconds, blocked=share * t.blocked)


def _with_overhead(run: Run, loop: Loop) -> Loop:
    """Return ``loop`` with more of the time that its lines with operations outside jit take, and that jit
    would save: copies of small arrays, Python code of JAX and of libraries such as Flax, and tracing. The
    recorded compilations do not count (JX133)."""
    inside, known = [e for e in line_times.entries(run) if _within(e[1], loop)], {id(t) for t in loop.times}
    lines = {_at(t) for doing, t in inside if doing == OPERATIONS}  # also those that mostly compute
    functions = {_function(t) for doing, t in inside if doing == OPERATIONS}
    # What the loop itself copies may be batches, and what is copied from the host takes as long under jit.
    functions.discard((loop.line.file, loop.line.function))
    fed = {
        t.source.place for t in transfers.transfers(run) if t.source and t.direction == transfers.TO_DEVICE
    }
    copied = [
        t for doing, t in inside if doing == COPYING and _function(t) in functions and _at(t) not in fed
    ]
    inside = [(doing, t) for doing, t in inside if _at(t) in lines and id(t) not in known]
    more = [
        t
        for doing, t in inside
        if doing == COPYING or (doing == PYTHON and t.library in JAX_ROOTS | CALL_WRAPPERS)
    ]
    more += [t for t in copied if _at(t) not in lines and id(t) not in known]
    traced = [t for doing, t in inside if doing == COMPILING]
    spent = sum(t.seconds for t in traced)
    recorded = sum(  # what was only traced, as by jax.eval_shape in Flax, is in no other finding
        c.seconds
        for c in run.compilations.values()
        if c.lowered and c.site is not None and c.site.place in lines
    )
    if spent > recorded:
        more += [_part(t, 1 - recorded / spent) for t in traced]
    return Loop(loop.line, loop.last, loop.calls, [*loop.times, *more])


def _at(t: LineTime) -> tuple[str, int]:
    """Return (file, line) of the user's line where the time ``t`` was spent."""
    return t.stack[0].place


def _function(t: LineTime) -> tuple[str, str]:
    """Return (file, qualified name) of the user's function in which the time ``t`` was spent."""
    return t.stack[0].file, t.stack[0].function


def _scan_of(run: Run, loop: Loop) -> tuple[str, ...] | None:
    """Return what ``loop_calls.scan_of`` returns for ``loop``; None if the source does not show that
    ``jax.lax.scan`` could replace it."""
    source = sources.of(run)(loop.line.file)
    modules = names_of(syntax(source).imports, JAX_ROOTS)
    for c in run.compilations.values():
        at = c.site
        if at is None or at.file != loop.line.file or not loop.line.line <= at.line <= loop.last:
            continue
        if c.missed is None or c.missed.column is None or not c.function.user:
            continue
        call = loop_calls.find(source, at.line, c.missed.column, c.function.seen.name)
        if call is not None and call.loop.lineno == loop.line.line:
            scan = loop_calls.scan_of(call, _jitted_names(run), modules)
            if scan is not None:
                return scan
    return None


def _around_simulator(run: Run, loop: Loop, inner: Sequence[Frame]) -> Fix | None:
    """Return the advice of ``jit_obstacles.around_simulator`` for ``loop``, or for one of ``inner``, the
    first lines of loops inside it. None if it has none."""
    lines = [(loop.line.file, loop.line.line, loop.last)]
    for at in inner:
        statement = loop_calls.loop_from(sources.of(run)(at.file), at.line)
        if statement is not None:
            lines.append((at.file, at.line, statement.end_lineno or at.line))
    return next((fix for each in lines if (fix := jit_obstacles.around_simulator(run, each))), None)


def _loops(run: Run, times: list[LineTime], share: float) -> list[Loop]:
    """Return the loops in which at least ``share`` of the measured time was spent on ``times``, without loops
    that have fewer than FEWEST samples and take less than LONG_S seconds. Empty if no times were measured."""
    measured = line_times.measured(run)
    if measured is None:
        return []
    return [
        loop
        for loop in line_times.loops(run, times, share * measured.seconds)
        if loop.samples >= line_times.FEWEST or loop.seconds >= line_times.LONG_S
    ]


def _finding(run: Run, code: str, loop: Loop, much: float) -> Finding:
    """Return the finding of the rule ``code`` about ``loop``. It is a warning if the loop takes at least the
    share ``much`` of the measured time, else a note."""
    lines = _named_lines(code, loop)
    what: dict[str, Field] = {
        "loop": loop.line,
        "seconds": Seconds(loop.seconds),
        "share": Percent(line_times.share_of_run(run, loop.seconds)),
        "where": _where(loop, _most_of(lines)),
    }
    if code == "JX605":
        title, fix = message("operations-in-loop", **what), _of_operations(run, loop)
    elif code == "JX606":
        title, fix = message("python-in-loop", **what), _of_python(run, loop, lines[0][0])
    else:
        title, fix = message("small-calls-in-loop", **what), _scanned(_scan_of(run, loop))
    jitted = {fix.arguments.get("function"), *fix.arguments.get("functions", ())} - {None}
    # The loop stays outside of functions that it calls.
    inside = not jitted or loop.line.function.replace(".<locals>", "") in jitted
    # A gradient of a jitted function runs its operations on the lines of the loop.
    own = loop.line.function
    reached = [t for t in loop.times if inside or t.stack[0].function == own or _is_in(t, jitted)]
    if "fix-jit-around-read" not in slugs_of(fix):
        functions = {(at.file, at.function) for at, _ in loop.lines()} - {(loop.line.file, own)}
        whole = (loop.line.file, loop.line.line, loop.last) if inside else None
        fix = jit_obstacles.with_obstacles(run, fix, functions, functions, whole)
    return Finding(
        code=code,
        severity=WARNING if _share(run, loop.seconds) >= much else NOTE,
        certainty=LIKELY,
        title=title,
        source=lines[0][0],
        evidence=[
            Evidence(message("time-of-line", seconds=Seconds(seconds)), source=line)
            for line, seconds in dict.fromkeys([*lines[:LINES], *loop.lines()[:LINES]])
        ],
        fix=fix,
        seconds=loop.seconds * sum(t.seconds for t in reached) / sum(t.seconds for t in loop.times),
        at_most=code == "JX606",  # the device may compute meanwhile
        subject=subject(code, loop.line),
        timed=True,
    )


def _named_lines(code: str, loop: Loop) -> list[tuple[Frame, float]]:
    """Return (line, seconds) for the lines that the finding of the rule ``code`` about ``loop`` names: the
    lines of the loop itself, or, if one of them calls functions that take nearly all the time, their
    lines."""
    of_the_loop = loop.lines(own=True)
    several = code == "JX605" and of_the_loop[0][1] < line_times.MOST * loop.seconds
    return of_the_loop if several else loop.lines()


def _of_operations(run: Run, loop: Loop) -> Fix:
    """Return the advice of JX605 about ``loop``. Advice that needs something special comes first; the last is
    to jit an iteration."""
    of_the_loop = loop.lines(own=True)
    copied = [t for t in loop.times if _at(t) in element_reads.small_copies(run)]
    joined = sum(t.seconds for t in copied if JOINS.search(sources.line(run, t.stack[0])))
    if 2 * joined > loop.seconds:
        return Fix(message("fix-join-on-host"), "numpy")
    of_function = loop_functions.advice(run, loop)
    if of_function is not None:
        return of_function
    if _below_an_if(run, of_the_loop):
        return Fix(message("fix-jit-output"), "jit")
    scan = _scan_of(run, loop)
    if scan is not None:
        return _scanned(scan)
    if any(draws_one(sources.line(run, line)) for line, _ in loop.lines()):
        return Fix(message("fix-draw-on-host"), "numpy")
    several = of_the_loop[0][1] < line_times.MOST * loop.seconds
    if several and _in_several_loops(run, of_the_loop) and _needs_python(run, loop):
        within = line_times.innermost_loops(run, loop, SOME)
        return Fix(message("fix-jit-each", loops=Names(tuple(within), LINES)), "jit")
    inner = line_times.inner_loops(run, loop, loop_functions.INNER, loop_functions.OTHER_INNER)
    simulated = _around_simulator(run, loop, inner)
    if simulated is not None:
        return simulated
    if _beside_a_loop_of_steps(run, loop, of_the_loop):
        return Fix(message("fix-jit-lines"), "jit")
    fix = inner_loops.with_inner_loops(run, Fix(message("fix-jit-iteration", of=None), "jit"), inner)
    return _without_attributes(run, inner_loops.with_vmap(run, fix, loop.line), loop)


def _of_python(run: Run, loop: Loop, slowest: Frame) -> Fix:
    """Return the advice of JX606 about ``loop``, whose line ``slowest`` takes most of the time."""
    archive = reads_archive(sources.of(run)(slowest.file), slowest.line)
    if archive is not None:
        return Fix(message("fix-read-archive-once", archive=archive), "read_once", {"archive": archive})
    name = _needed_next(run, loop)
    if name is not None:
        return Fix(message("fix-python-for-next", name=name), "batch", {"name": name})
    return Fix(message("fix-python-in-loop"), "prefetch")


def _is_in(t: LineTime, functions: Collection[str]) -> bool:
    """Return whether ``t`` was spent in one of ``functions`` (qualified names without ``<locals>``), or in
    functions that they call."""
    return any(at.function.replace(".<locals>", "") in functions for at in t.stack)


def _without_attributes(run: Run, fix: Fix, loop: Loop) -> Fix:
    """Return ``fix``, the advice to jit the operations of ``loop``, extended by what to do with the
    attributes that functions with these operations assign. Attributes on other lines are left out."""
    lines = dict[tuple[str, str], set[int]]()
    for at in (at for t in loop.times for at in t.stack):
        lines.setdefault((at.file, at.function), set()).add(at.line)
    written = set[str]()
    for (file, function), numbers in lines.items():
        source = sources.of(run)(file)
        used = line_names.attributes_on(source, numbers)
        written |= {name for name in line_names.attributes_set(source, function) if name in used}
    names = Names(tuple(sorted(written)), LINES)
    return extended(fix, "fix-without-attributes", names=names) if written else fix


def _below_an_if(run: Run, lines: Sequence[tuple[Frame, float]]) -> bool:
    """Return whether most of the time of ``lines``, (line, seconds), is below an ``if`` of the loop."""
    below = sum(s for at, s in lines if depends_on_a_condition(sources.of(run)(at.file), at.line))
    return 2 * below > sum(s for _, s in lines)


def _beside_a_loop_of_steps(run: Run, loop: Loop, lines: Sequence[tuple[Frame, float]]) -> bool:
    """Return whether another loop inside ``loop`` calls the user's jitted functions, and hardly any of the
    time of ``lines``, (line, seconds): most run once in each epoch, for example, and not in each step."""
    around = loop_calls.loop_from(sources.of(run)(loop.line.file), loop.line.line)
    calls = {line for file, line in payers.call_lines(run) if file == loop.line.file}
    inside = [n for n in ast.walk(around) if isinstance(n, LOOPS) and n is not around] if around else []
    of_steps = [n for n in inside if any(spans(n, line) for line in calls)]
    in_steps = sum(
        s for at, s in lines if at.file == loop.line.file and any(spans(n, at.line) for n in of_steps)
    )
    return bool(of_steps) and in_steps <= FEW_IN_STEPS * sum(s for _, s in lines)


def _in_several_loops(run: Run, lines: Sequence[tuple[Frame, float]]) -> bool:
    """Return whether much of the time of ``lines``, (line, seconds), is spent in each of at least two loops,
    of which one may be around the other. Lines outside loops count as a loop."""
    loops: dict[tuple[str, tuple[int, int] | None], float] = {}
    for line, seconds in lines:
        inner = line.file, loop_around(sources.of(run)(line.file), line.line)
        loops[inner] = loops.get(inner, 0.0) + seconds
    return sum(seconds >= PART * sum(loops.values()) for seconds in loops.values()) > 1


def _needs_python(run: Run, loop: Loop) -> bool:
    """Return whether ``loop`` calls jitted functions, or most of its iterations read values from a device:
    then jit cannot take in a whole iteration."""
    source = sources.of(run)(loop.line.file)
    read = (t.source for t in transfers.transfers(run) if t.direction == transfers.TO_HOST)
    lines = {at.line for at in read if at is not None and at.file == loop.line.file}
    inside = (n for n in lines if loop.line.line <= n <= loop.last)
    return loop.calls or any(not reached_now_and_then(source, n) for n in inside)


def _needed_next(run: Run, loop: Loop) -> str | None:
    """Return the variable that Python code in ``loop`` computes from a value of the device, and that the next
    iteration needs. None if there is none: Python could then prepare the next one while the device
    computes."""
    for t in transfers.transfers(run):
        at = t.source
        if at is None or t.direction != transfers.TO_HOST or at.file != loop.line.file:
            continue
        if loop.line.line <= at.line <= loop.last:
            name = loop_calls.reaches_next_iteration(sources.of(run)(at.file), at.line)
            if name is not None:
                return name
    line, _ = loop.lines(own=True)[0]  # a value on the CPU may be read without a copy
    return loop_calls.reaches_next_iteration(sources.of(run)(line.file), line.line, _jitted_names(run))


def _most_of(lines: Sequence[tuple[Frame, float]]) -> list[Frame]:
    """Return the lines that took most of the time, the longest first: as few as take NAMED of it together.
    ``lines`` has (line, seconds), the longest first."""
    left = NAMED * sum(seconds for _, seconds in lines)
    named = []
    for line, seconds in lines:
        if left > 0:
            named.append(line)
        left -= seconds
    return named


def _where(loop: Loop, lines: Sequence[Frame]) -> Message:
    """Return where the time of ``loop`` was spent, as a message: ``on lines 16 and 17``. If one of ``lines``
    is in another file than the loop, the message begins with ``at`` and names the files, too."""
    if any(line.file != loop.line.file for line in lines):
        return message("at-lines", lines=Names(tuple(lines), LINES, "lines"))
    if len(lines) == 1:
        return message("on-line", line=str(lines[0].line))
    most = Names(tuple(map(str, sorted(line.line for line in lines[:LINES]))))
    return message("mostly-on-lines" if len(lines) > LINES else "on-lines", lines=most)


def _scanned(outputs: tuple[str, ...] | None) -> Fix:
    """Return the advice to replace a loop by a scan; if parts of it have to stay in Python under the
    conditions ``outputs``, by a scan between two of these."""
    if outputs:
        conditions = Names(tuple(f"if {condition}" for condition in outputs), LINES)
        return Fix(message("fix-scan-between", conditions=conditions), "scan")
    return Fix(message("fix-scan-loop"), "scan")


def subject(code: str, loop: Frame) -> tuple[str, str, int]:
    """Return the ``subject`` of the finding of the rule ``code`` about ``loop``. It distinguishes the finding
    from other findings."""
    return code, loop.file, loop.line


def _within(t: LineTime, loop: Loop) -> bool:
    """Return whether the time ``t`` was spent in ``loop``, or in a function that it calls."""
    first = loop.line
    return any(f.file == first.file and first.line <= f.line <= loop.last for f in t.stack)


def _is_python(run: Run, t: LineTime) -> bool:
    """Return whether the time ``t`` was surely spent in Python code: in the code of a line itself, or in a
    library that has nothing to do with JAX. False if the line may have called a jitted function at that
    time."""
    if t.library is not None:
        at = t.stack[0]
        if (at.file, at.line, t.column) in _called_at(run) or at.place in _calling_back(run):
            # scipy.optimize.minimize(loss, x): what SciPy computes between the calls is its work
            return False
    if t.library is not None:
        return t.library not in WRAPPER_ROOTS or t.library in NUMERIC
    if t.column is None:
        return True
    source = sources.of(run)(t.stack[0].file)
    found = syntax(source)
    if not found.tree.body:
        return False
    known = names_of(found.imports, sys.stdlib_module_names | NUMERIC) | set(vars(builtins))
    calls = [n for n in found.calls.get(t.stack[0].line, ()) if n.col_offset == t.column]
    return not any(_may_be_jitted(n.func, known, _jitted_names(run)) for n in calls)


def _may_be_jitted(called: ast.expr, known: set[str], jitted: frozenset[str]) -> bool:
    """Return whether the expression ``called`` may be a jitted function: its last name is in ``jitted``, it
    is an attribute of ``self``, or it is no attribute and its name is not in ``known``, the names of modules
    and builtins."""
    if last_name(called) in jitted:
        return True
    if isinstance(called, ast.Attribute):
        return isinstance(called.value, ast.Name) and called.value.id == "self"
    return root(called) not in known


@cached_until_changed
def _called_at(run: Run) -> frozenset[tuple[str, int, int | None]]:
    """Return where jitted functions of the user were called: (file, line, column)."""
    return frozenset(
        (c.site.file, c.site.line, c.missed.column)
        for c in payers.user_calls(run)
        if c.site is not None and c.missed is not None
    )


@cached_until_changed
def _calling_back(run: Run) -> frozenset[tuple[str, int]]:
    """Return (file, line) of the lines that pass a function to a library, which then calls a jitted function
    of the user: ``root(residual, y)``."""
    return frozenset(
        c.lines[k + 1].place
        for c in run.compilations.values()
        if c.function.user and (k := loop_functions.passed_to_library(run, c.lines)) is not None
    )


@cached_until_changed
def _jitted_names(run: Run) -> frozenset[str]:
    """Return the names of the user's jitted functions, and the names by which the program called them."""
    text = sources.of(run)
    names = {f.seen.name for f in run.functions.values() if f.user}
    for c in run.compilations.values():
        if c.function.user and c.site is not None and c.missed is not None:
            for call in calls_from(text(c.site.file), c.site.line):
                if call.col_offset == c.missed.column:
                    names.add(last_name(call.func) or "")
    return frozenset(names)
