"""Rule JX133: lines that make JAX compile many operations outside jit."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from jaxscope.analysis import jit_decorators, line_names
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.loop_calls import goes_through_layers, goes_through_leaves, loop_from
from jaxscope.analysis.source_lines import callback_around, depends_on_a_condition, loop_around, loops_around
from jaxscope.analysis.syntax import function_around, imports, syntax
from jaxscope.model import causes, payers, sources
from jaxscope.model.arrays import Growth
from jaxscope.model.payers import Payer
from jaxscope.model.records import Compilation, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.rules import (
    functions,
    functions_outside_jit,
    inner_loops,
    jit_obstacles,
    library_calls,
    loop_calls,
    loop_functions,
    outside_jit,
    repeated_loops,
)
from jaxscope.rules.line_lists import line_numbers
from jaxscope.rules.outside_jit import BARRAGE, RECOMPILES, Advice
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import (
    CERTAIN,
    NOTE,
    WARNING,
    Evidence,
    Finding,
    Fix,
    extended,
    fix_of,
    slug_of,
    slugs_of,
)
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import JAX_ROOTS
from jaxscope.schema.messages import Count, Field, Message, Names, Seconds, message

SHARE = 0.1  # share of all seconds of the run: below it, a line with few recompiles is not reported
# A line with BARRAGE compilations has a note if its share of all seconds is at least SOME x SHARE.
SOME = 0.2
# Functions and methods that create parameters, and that jit accepts
APPLY = frozenset({"apply", "apply_fn"})  # methods of models that run the operations of init again
INIT = frozenset({"init", "init_with_output", "init_fun", "init_fn"})
# A line beside a function that recompiles for its size is reported if it costs more than TIMES as much.
TIMES = 2
ALIKE = 2.0  # parameters of each shape, on average, with which jit gains nothing for ``init`` (measured)
ONCE = 0.1  # share of all seconds: a line that recompiles nothing and costs less is not reported
# A line with this many recompiles of functions that a library jits (each a whole program) has a warning.
PROGRAMS = 2
FEW_CLEARED = 3  # the fewest recompiles after clearings that the advice mentions
LISTED = 5  # functions in the evidence of one line
LINES = 4  # functions and lines in a title
# Slugs of advice for one line. If several lines of a loop have it, the advice is to jit the whole step
# instead.
INTO_ONE_STEP = frozenset(
    {
        "fix-jit-this-call",
        "fix-jit-through-library",
        "fix-jit-around",
        "fix-jit-around-call",
        "fix-jit-method",
        "fix-jit-around-body",
        "fix-jit-step-function",
        "fix-jit-new-function",
    }
)
MOST_LINES = 12  # that advice to jit lines names
FEW_FUNCTIONS = 2  # whose lines a finding names; if there are more, it names their caller
MOST_OF_SIZES = 0.8  # share of a line's recompiles that one loop has to lead to
FEW_SIZES = 8  # with more sizes, jit alone may compile longer than the operations outside jit did
FINAL = "fix-final-length"  # advice for a line that makes an array longer in each iteration
ONE_SIZE = "fix-one-size-or-numpy"  # advice for lines whose sizes change
OF_SIZES = frozenset({ONE_SIZE, "fix-where-for-mask"})  # advice to keep sizes equal
# Slugs of advice for one line of a function that a compiled program calls back. All lines of that function
# have one root: their arrays could be NumPy arrays.
TO_NUMPY = INTO_ONE_STEP | {ONE_SIZE, "fix-iterate-numpy"}
# Functions of JAX and Flax that put one array for each device on the devices
PLACES = frozenset({"replicate", "unreplicate", "device_put_replicated", "device_put_sharded"})
PLACING = frozenset({None, "jax", "flax"})


class Avoidable(NamedTuple):
    """A line of the user that makes JAX compile operations outside jit, which the user could avoid.

    Attributes:
      payer: the line, with the compilations that it causes.
      finding: the finding about this line alone.
      counted: whether the line has at least BARRAGE recompiles, or PROGRAMS recompiles of library functions.
        It is then reported however few seconds they take.
      long: whether the line takes a large enough share of all seconds to be reported.
    """

    payer: Payer
    finding: Finding
    counted: bool
    long: bool


@rule(payers.CODE, "eager-barrage", WARNING)
def eager_barrage(run: Run) -> Iterator[Finding]:
    """Yield findings about lines that make JAX compile operations outside jit, if that can be avoided. A
    finding is about one line, or about several lines of a loop, a function or a callback."""
    # Grouping and advice depend on counts, not on times: two runs of one program have the same findings.
    total, reported, single = payers.total_seconds(run), set[Frame](), list[Avoidable]()
    together = _with_sizes_of_one_loop(run, list(_together(run)))
    for place, lines in together:
        if _passes_other_sizes(lines, [other for _, other in together]):
            continue
        least = (SHARE if any(line.payer.again for line in lines) else ONCE) * total
        all_long = len(lines) > 1 and sum(line.finding.seconds or 0.0 for line in lines) >= least
        if not all_long and not any(line.counted or line.long for line in lines):
            continue
        if isinstance(place, Callback):
            found = _of_callback(run, place, lines)
        elif isinstance(place, Iteration) and len(lines) > 1:
            found = _of_iteration(run, place, lines)
        elif slug_of(lines[0].finding) == "fix-jit-around" and lines[0].payer.line.function != "<module>":
            single.append(lines[0])  # its whole function may have a finding
            continue
        else:
            found = lines[0].finding
        reported.update(line.payer.line for line in lines)
        yield found
    alone = {one.payer.line for one in single}
    left = [p for p in payers.payers(run) if p.line not in reported]
    for repeated in repeated_loops.find(run, [p for p in left if p.line not in alone]):
        yield repeated
        reported.update(e.source for e in repeated.evidence if e.source is not None)
    whole = list(functions_outside_jit.find(run, [p for p in left if p.line not in reported]))
    yield from (finding for finding, _ in whole)
    inside = {compilation for _, compilations in whole for compilation in compilations}
    yield from (one.finding for one in single if not all(c.id in inside for c in one.payer.compilations))


def _with_sizes_of_one_loop(
    run: Run, together: Sequence[tuple[Place, list[Avoidable]]]
) -> list[tuple[Place, list[Avoidable]]]:
    """Return ``together``, groups of lines, but join those whose operations recompile because sizes of arrays
    change, if one loop leads to all of them: the remedy is one size in this loop. Of several loops, that
    counts which leads to the most groups, and of these the innermost."""
    loops = {k: _loops_of_sizes(run, lines) for k, (_, lines) in enumerate(together)}
    leads = Counter((loop.file, loop.line) for found in loops.values() for loop in found)
    groups: dict[tuple[str, int], dict[int, Iteration]] = {}
    for k, found in loops.items():
        if found:
            loop = max(found, key=lambda one: leads[one.file, one.line])
            groups.setdefault((loop.file, loop.line), {})[k] = loop
    whole, joined = list[tuple[Place, list[Avoidable]]](), set[int]()
    for members in (members for members in groups.values() if len(members) > 1):
        first = next(iter(members.values()))
        one = len({loop.function for loop in members.values()}) == 1
        lines = [line for k in members for line in together[k][1]]
        whole.append((first if one else first._replace(function=None), lines))
        joined.update(members)
    return [*whole, *(group for k, group in enumerate(together) if k not in joined)]


def _loops_of_sizes(run: Run, lines: Sequence[Avoidable]) -> list[Iteration]:
    """Return the loops, innermost first, that led to most recompiles of ``lines``, each with the function
    that it called, or None if it called several. Empty if fewer than half of the lines recompile because
    sizes of arrays change, or if the advice for a line is neither jit nor one size."""
    resized = [line.payer for line in lines if payers.sizes_change(run, line.payer)]
    again = [c for p in resized for c in p.again]
    advised = {slug_of(line.finding) for line in lines} <= INTO_ONE_STEP | OF_SIZES | {FINAL}
    if 2 * len(resized) < len(lines) or len(again) < BARRAGE or not advised:
        return []
    text = sources.of(run)
    chains = []
    for c in again:
        chain, below = list[Iteration](), None
        for at in c.lines:
            for first, _ in reversed(loops_around(text(at.file), at.line)):
                if not _over_layers(run, at):
                    chain.append(Iteration(at.file, first, below))
            below = at.function
        chains.append(chain)
    called: dict[tuple[str, int], list[str | None]] = {}
    for chain in chains:
        for loop in set(chain):
            called.setdefault((loop.file, loop.line), []).append(loop.function)
    longest = max(chains, key=lambda chain: sum(len(called[loop.file, loop.line]) for loop in chain))
    return [
        loop if len({*called[loop.file, loop.line]}) == 1 else loop._replace(function=None)
        for loop in longest
        if len(called[loop.file, loop.line]) >= MOST_OF_SIZES * len(chains)
    ]


def _passes_other_sizes(lines: Sequence[Avoidable], others: Sequence[Sequence[Avoidable]]) -> bool:
    """Return whether ``lines`` is a single line that passes arrays of changing sizes to a function, and JAX
    compiles more operations in this function than on the line. ``others`` has all groups of lines, also that
    of the function."""
    if len(lines) != 1 or slug_of(lines[0].finding) != ONE_SIZE:
        return False
    at, here = lines[0].payer.line, len(lines[0].payer.compilations)
    return any(
        slug_of(other[0].finding) == ONE_SIZE
        and sum(at in c.lines[1:] for line in other for c in line.payer.compilations) > here
        for other in others
        if other is not lines and other
    )


def _together(run: Run) -> Iterator[tuple[Place, list[Avoidable]]]:
    """Yield (place, lines) for each group of lines that get one finding. The place is the callback or loop
    around the lines, or the only line. If one line has nearly all compilations of its loop, each line of the
    loop is a group."""
    places: dict[tuple[Place, str | None], list[Avoidable]] = {}
    for line in _by_line(run):
        slug = slug_of(line.finding)
        place = _place(run, line.payer, slug)
        of_sizes = slug if slug in OF_SIZES and not isinstance(place, Callback) else None
        if slug == ONE_SIZE and isinstance(place, Iteration) and _is_called_in_a_loop(run, line.payer):
            of_sizes = None  # each call may have one size, so that jit of an iteration helps
        places.setdefault((place, of_sizes), []).append(line)
    for (place, _), lines in places.items():
        counts = [len(line.payer.compilations) for line in lines]
        if isinstance(place, Iteration) and max(counts) > (1 - SHARE) * sum(counts):
            yield from ((line.payer.line.place, [line]) for line in lines)
        else:
            yield place, lines


def _is_called_in_a_loop(run: Run, p: Payer) -> bool:
    """Return whether at least two loops repeat the line of ``p``: the innermost one, and a loop that calls
    the function with the innermost loop."""
    text, missed = sources.of(run), p.compilations[0].missed
    stack = [p.line, *missed.stack[missed.into_library or 0 :]] if missed is not None else []
    looped = [loop_around(text(at.file), at.line) is not None for at in stack]
    return looped.count(True) > 1


def _place(run: Run, p: Payer, slug: str | None) -> Place:
    """Return the code whose lines are reported together with the line of ``p``: the callback or the loop
    around it, if the advice for the line can be given for the whole callback or loop; else the line alone.
    ``slug`` is the name of the advice's message template; None: there is no advice."""
    if slug in TO_NUMPY and (callback := callback_around(sources.of(run)(p.line.file), p.line.line)):
        return Callback(p.line.file, callback.lineno, callback.name)
    loop = _iterations(run).get(p.line.place) if slug in INTO_ONE_STEP | OF_SIZES else None
    return loop or p.line.place


def _by_line(run: Run) -> Iterator[Avoidable]:
    """Yield each line of the user's code that makes JAX compile operations outside jit, if that can be
    avoided, in the order of the source."""
    total = payers.total_seconds(run)
    called, resized = payers.call_lines(run), payers.resized_lines(run)
    row_by_row = [(f.source.file, lines) for f, lines in loop_calls.for_each_row(run) if f.source is not None]
    found = sorted(payers.payers(run), key=lambda p: p.line.place)
    loops = [_iterations(run).get(p.line.place) for p in found]
    compiled = Counter[Iteration | None]()
    for p, loop in zip(found, loops, strict=True):
        compiled[loop] += len(p.compilations)
    for p, loop in zip(found, loops, strict=True):
        if any(p.line.file == file and p.line.line in lines for file, lines in row_by_row):
            continue  # the loop that takes the rows one by one has its own finding
        if _is_inevitable(run, p, called):
            continue
        several = compiled[loop] if loop is not None else len(p.compilations)
        advice = outside_jit.what_to_do(run, p, several)
        of_sizes = advice.reason in (outside_jit.SIZES, outside_jit.PARAMETERS, None)
        if p.again and of_sizes and _beside_a_resized_function(run, p, advice.seconds, resized):
            continue
        if (line := _avoidable(run, p, advice, total)) is not None:
            yield line


def _is_inevitable(run: Run, p: Payer, called: Collection[tuple[str, int]]) -> bool:
    """Return whether no change of the line ``p`` would keep JAX from compiling its operations. ``called`` has
    the (file, line) of the lines that call jitted functions of the user."""
    if p.within and p.library in JAX_ROOTS and p.line.place in called:
        return True  # computed while a jitted function is traced: the line is jitted already
    source, n = sources.of(run)(p.line.file), p.line.line
    jitted = jit_decorators.jitted_calls(source, n)
    if jitted.issuperset(c.missed.column for c in p.compilations if c.missed is not None):
        return True  # likewise, while a library's function is traced
    if imports(source, n):
        return True  # a package that computes while it is imported
    # Arrays are put on devices, which jit cannot do; for replicate, jax.device_put can.
    if outside_jit.replicates(run, p):
        return False
    return p.library in PLACING and jit_decorators.calls(source, n, PLACES)


def _avoidable(run: Run, p: Payer, advice: Advice, total: float) -> Avoidable | None:
    """Return the line ``p`` with its finding, which is a warning if the line recompiles at least BARRAGE
    times, or functions that a library jits at least PROGRAMS times; else a note. Return None if there is no
    advice, or if the line creates parameters, and jit gains nothing. ``total`` is the seconds of all
    compilations of the run."""
    if advice.fix is None:
        return None
    cost = advice.seconds
    initializes = not p.again and jit_decorators.calls(sources.of(run)(p.line.file), p.line.line, INIT)
    creates = outside_jit.creates(run, p)
    if creates or initializes:
        # A jitted function compiles the random draws, too: where they take most of the seconds, jit may gain
        # nothing. Measured for init (benchmarks/README.md): with draws of up to two thirds, jit gains.
        others = sum(c.seconds for c in p.compilations if not library_calls.draws(c.function))
        if (3 if initializes else 2) * others < sum(c.seconds for c in p.compilations):
            return None
        if initializes and outside_jit.parameters_of_one_shape(run) >= ALIKE:
            return None
        cost = min(cost, others)
    again = _repeats(p, advice.reason if not _after_clearings(run, [p]) else None)
    line = message("line-number", number=str(p.line.line))
    in_library = 2 * library_calls.repeats(p) > len(p.again)
    what = {"lines": line, "again": again, **_compiled([p])}
    title = message("compiled-outside-jit", **what)
    if in_library and set(p.names) == {payers.UNNAMED}:
        title = message("compiled-one-by-one", **what)
    elif in_library:
        title = message("compiled-in-library", **what)
    fix = _with_conditions(run, p, advice.fix, initializes, creates)
    serious = len(p.again) >= BARRAGE or library_calls.repeats(p) >= PROGRAMS
    enough = SHARE * total * SOME if len(p.compilations) >= BARRAGE else SHARE * total
    if creates or not p.again:  # these seconds are spent once, for example to look at the results
        enough = ONCE * total
    finding = _finding(run, [p], title, fix, cost, WARNING if serious else NOTE)
    return Avoidable(p, finding, serious, cost >= enough)


def _with_conditions(run: Run, p: Payer, fix: Fix, initializes: bool, creates: bool) -> Fix:
    """Return ``fix``, the advice for the line ``p``, extended by conditions under which it helps and by
    further changes that it needs.

    Args:
      initializes: whether the line calls a method that creates parameters (``init``).
      creates: whether the line seems to create parameters by random draws (``outside_jit.creates``).
    """
    if initializes or creates:
        fix = msgspec.structs.replace(fix, arguments={**fix.arguments, "parameters": True})
    called = _called(p)
    fix = jit_obstacles.with_obstacles(run, fix, called, _called_through(run, called), line=p.line)
    source, n = sources.of(run)(p.line.file), p.line.line
    if fix.kind == "jit" and jit_decorators.calls(source, n, INIT):
        # What init compiles outside jit, these calls would have to compile otherwise.
        others = jit_decorators.further_calls(source, n, INIT) if initializes else ()
        others += jit_decorators.later_method_calls(source, n, APPLY)
        if others:
            fix = extended(fix, "fix-also-inits", lines=Names(others, LINES))
    return fix


def _called(p: Payer) -> dict[tuple[str, str], None]:
    """Return the functions that the line ``p`` calls, directly or through others, and in which JAX compiles:
    {(file, qualified name): None}."""
    called: dict[tuple[str, str], None] = {}
    for c in p.compilations:
        for line in c.lines:
            if line.place == p.line.place:
                break
            called[line.file, line.function] = None
    called.pop((p.line.file, p.line.function), None)
    return called


def _called_through(run: Run, called: Mapping[tuple[str, str], None]) -> dict[tuple[str, str], None]:
    """Return ``called``, {(file, qualified name): None}, extended by all functions that a function in
    ``called`` calls and in which JAX compiled, also for another line."""
    inside = dict(called)
    for c in run.compilations.values():
        functions = [(at.file, at.function) for at in c.lines]
        outer = next((k for k, f in enumerate(functions) if f in called), 0)
        inside |= dict.fromkeys(functions[:outer])
    return inside


def _beside_a_resized_function(
    run: Run, p: Payer, cost: float, resized: Mapping[tuple[str, int], Sequence[Compilation]]
) -> bool:
    """Return whether the line of ``p``, or another line of its loop, calls a user's function that recompiles
    for new sizes, so that ``p`` needs no finding of its own. A call on another line counts only if ``p``
    compiles mostly for new sizes, and if its recompiles are neither far more frequent nor far costlier than
    the function's.

    Args:
      cost: seconds that the advice for the line saves.
      resized: (file, line) of such calls -> the recompiles.
    """
    if p.line.place in resized:
        return True
    sizes = sum(causes.reason(run, c).kind in outside_jit.OF_SIZES for c in p.again)
    mostly = 2 * sizes >= len(p.compilations)
    loop = loop_around(sources.of(run)(p.line.file), p.line.line) if mostly else None
    if loop is None:
        return False
    calls = [found for (f, n), found in resized.items() if f == p.line.file and loop[0] <= n <= loop[1]]
    inside = [c for found in calls for c in found]
    often = max(Counter(c.function.seen.name for c in p.again).values())
    return often <= TIMES * len(inside) and cost <= TIMES * sum(c.seconds for c in inside)


def _repeats(p: Payer, why: Message | None) -> Message | None:
    """Return a clause with the number of compilations of the line ``p`` that are recompiles, and with their
    reason, ``why``; with their seconds if ``why`` is None (unknown). Return None if there are no
    recompiles."""
    if not p.again:
        return None
    n = Count(len(p.again), *RECOMPILES)
    if why is not None:
        return message("of-them-again", n=n, why=why)
    return message("of-them-recompiles", n=n, seconds=Seconds(sum(c.seconds for c in p.again)))


def _compiled(lines: Sequence[Payer]) -> dict[str, Field]:
    """Return fields of a message about ``lines``, which make JAX compile operations outside jit: the number
    of compilations, and the names of what was compiled."""
    names = tuple(sorted({name for p in lines for name in p.names}))
    number = sum(len(p.compilations) for p in lines)
    return {"compilations": Count(number, "compilation"), "names": Names(names, 4, "operations")}


def _finding(
    run: Run,
    lines: Sequence[Payer],
    title: Message,
    fix: Fix,
    seconds: float,
    severity: str,
    place: Iteration | Callback | None = None,
) -> Finding:
    """Return a finding about ``lines``, which make JAX compile operations outside jit, sorted by line. If
    most of their seconds are recompiles after JAX's caches were cleared, the advice is not to clear them.

    Args:
      title, fix, seconds, severity: those of the finding.
      place: the loop or the callback that contains all the lines; the finding is identified by its position.
        None: the finding is about one line.
    """
    line = lines[0].line
    about = line if place is None else place
    if cleared := _after_clearings(run, lines):
        files = [at.file for c in cleared for at in c.lines]
        fix = functions.not_to_clear(sources.of(run), files)
        title = message("after-clearing", finding=title)
    elif between := _cleared_between(lines):
        files = [at.file for c in between for at in c.lines]
        named = functions.clearing_lines(sources.of(run), files)
        fix = extended(fix, "fix-and-keep-caches", lines=named)
    return Finding(
        code=payers.CODE,
        severity=severity,
        certainty=CERTAIN,
        title=title,
        function=None,
        source=line,
        evidence=[e for p in lines for e in _by_function(run, p, LISTED if len(lines) == 1 else 1)],
        fix=fix,
        seconds=seconds,
        subject=(about.file, about.line),
        at_most=True,
        timed=severity == NOTE,
    )


def _after_clearings(run: Run, lines: Sequence[Payer]) -> list[Compilation]:
    """Return the recompiles of ``lines`` because JAX's caches were cleared, if they took more than half of
    the time of all compilations of ``lines``; else an empty list."""
    cleared = [c for p in lines for c in p.again if _after_clearing(run, c)]
    whole = sum(p.seconds for p in lines)
    return cleared if 2 * sum(c.seconds for c in cleared) > whole else []


def _cleared_between(lines: Sequence[Payer]) -> list[Compilation]:
    """Return the recompiles of ``lines`` before which JAX's caches were cleared, if they are most of the
    recompiles; else an empty list."""
    again = [c for p in lines for c in p.again]
    compiled = {c.function.id: c.function.compilations for c in again}
    before = {c.id: b for of in compiled.values() for b, c in itertools.pairwise(of)}
    cleared = [c for c in again if c.id in before and _clearings(before[c.id]) < _clearings(c)]
    return cleared if 2 * len(cleared) > len(again) >= FEW_CLEARED else []


def _clearings(c: Compilation) -> int:
    """Return how often JAX's caches had been cleared before ``c``; 0 if unknown."""
    return (c.missed.cleared if c.missed is not None else None) or 0


def _after_clearing(run: Run, c: Compilation) -> bool:
    """Return whether ``c`` seems to recompile because JAX's caches were cleared: with the same key as before,
    or, if parameters of the operation are unknown, if the operation was compiled more often before a clearing
    than it has been since the last one."""
    cause = causes.reason(run, c)
    if cause.kind == "cleared":
        return True
    if cause.kind != "static_value" or cause.path is not None or c.missed is None:
        return False
    before = itertools.takewhile(lambda o: o is not c, c.function.compilations)
    times = Counter(o.missed.cleared or 0 for o in before if o.missed is not None)
    since = times.pop(c.missed.cleared or 0, 0)
    return since < max(times.values(), default=0)


def _by_function(run: Run, p: Payer, most: int) -> list[Evidence]:
    """Return the evidence for ``p``, a line that makes JAX compile operations outside jit: an entry for each
    function or operation that was compiled for the line, the most expensive first, at most ``most``
    entries."""
    parts = grouped((c.function.seen.name, c) for c in p.compilations)
    again = {c.id for c in p.again}
    found = []
    for name, members in sorted(parts.items(), key=lambda item: -sum(c.seconds for c in item[1]))[:most]:
        shown = max(members, key=lambda c: (c.id in again, c.seconds))
        because = message("for-example", cause=causes.of(run, shown)[0]) if shown.id in again else None
        words = message(
            "compiled-of-function",
            function=name,
            compilations=Count(len(members), "compilation"),
            seconds=Seconds(sum(c.seconds for c in members)),
            because=because,
        )
        found.append(Evidence(words, compilation=shown.id, source=shown.site))
    return found


class Iteration(NamedTuple):
    """Code that runs repeatedly: the body of the loop that begins at ``file`` and ``line``, or a function
    that this loop calls.

    Attributes:
      function: the function that a line of the loop calls; the lines that the finding is about are in it, or
        in functions that it calls. None: these lines are in the loop itself, or in several functions that it
        calls.
    """

    file: str
    line: int
    function: str | None


class Callback(NamedTuple):
    """A function of the user that a compiled program calls back, defined at ``file`` and ``line``."""

    file: str
    line: int
    function: str


Place: TypeAlias = Iteration | Callback | tuple[str, int]  # the last: (file, line)


@cached_until_changed
def _iterations(run: Run) -> dict[tuple[str, int], Iteration]:
    """Return {(file, line): the loop} for the lines that make JAX compile operations outside jit, and that a
    loop repeats. If a loop calls several functions, but no jitted function and no other such loop,
    ``function`` is None for its lines, which then get one finding. Functions with a line that recompiles
    often, and lines below an ``if``, have findings of their own."""
    every, text = payers.payers(run), sources.of(run)
    frames = {p.line.place: at for p in every if (at := _in_loop(run, p)) is not None}
    found = {p.line.place: i for p in every if (i := _iteration(run, p)) is not None}
    many = {found[p.line.place] for p in every if len(p.again) >= BARRAGE and p.line.place in found}
    few = {
        place
        for place, (at, _) in frames.items()
        if found.get(place) not in (None, *many) and not depends_on_a_condition(text(at.file), at.line)
    }
    functions: dict[tuple[str, int], set[str | None]] = {}
    for i in (found[place] for place in few):
        functions.setdefault((i.file, i.line), set()).add(i.function)
    whole = {loop for loop, names in functions.items() if len(names) > 1} - _calling_more(run)
    for place in few:
        if (found[place].file, found[place].line) in whole:
            found[place] = found[place]._replace(function=None)
    return found


def _calling_more(run: Run) -> set[tuple[str, int]]:
    """Return (file, first line) of the loops that call jitted functions of the user, or in which another loop
    makes JAX compile."""
    text, found = sources.of(run), set[tuple[str, int]]()
    for c in run.compilations.values():
        loops = [(at.file, n) for at in c.lines for n, _ in reversed(loops_around(text(at.file), at.line))]
        found.update(loops if c.function.user else loops[1:])
    return found


def _iteration(run: Run, p: Payer) -> Iteration | None:
    """Return the loop that repeats the line of ``p`` (a line that makes JAX compile operations outside jit),
    directly or through functions that the loop calls. The loop and these functions must be in the file of the
    line. None if no such loop is known."""
    found = _in_loop(run, p)
    if found is None:
        return None
    at, below = found
    loop = loop_around(sources.of(run)(at.file), at.line)
    return Iteration(at.file, loop[0], below) if loop is not None else None


def _in_loop(run: Run, p: Payer) -> tuple[Frame, str | None] | None:
    """Return (line, function) for the loop that repeats the line of ``p``: the line in the loop's body that
    leads to the line of ``p``, and the function called there; None: both lines are the same, or the function
    is called for each leaf of a model. Return None if the file has no such loop. A loop over the layers of a
    model does not count if jit can probably trace the function with this loop as a whole."""
    missed = p.compilations[0].missed
    text, below = sources.of(run), None
    for f in [p.line, *missed.stack[missed.into_library or 0 :]] if missed is not None else ():
        if f.file != p.line.file:  # a loop in another file may run each line only once, with other settings
            return None
        if loop_around(text(f.file), f.line) is not None and not _over_layers(run, f):
            # A function that gets one leaf of a model would be compiled for each of them.
            return f, None if goes_through_leaves(text(f.file), f.line) else below
        below = f.function
    return None


def _over_layers(run: Run, at: Frame) -> bool:
    """Return whether the innermost loop around the line ``at`` goes through the layers of a model, in a
    function that jit can probably trace as a whole."""
    text = sources.of(run)(at.file)
    modules = line_names.module_library(text, at.function) in ("equinox", "flax.nnx")  # jit takes them
    whole = line_names.computes_only(text, at.function)
    whole = whole and (modules or not line_names.takes_objects(text, at.function))
    return whole and goes_through_layers(text, at.line)


def _of_iteration(run: Run, iteration: Iteration, avoidable: Sequence[Avoidable]) -> Finding:
    """Merge the findings of ``avoidable``, which are about lines of the loop ``iteration``, into one finding.
    The advice is to jit the repeated code; if all advise to keep sizes equal, that of the first finding."""
    lines, first = [one.payer for one in avoidable], avoidable[0].finding
    repeats = Count(sum(len(p.again) for p in lines), *RECOMPILES)
    text = sources.of(run)
    resized = [
        slug_of(one.finding) in OF_SIZES | {FINAL}
        and not goes_through_leaves(text(one.payer.line.file), one.payer.line.line)  # jit takes the tree
        for one in avoidable
    ]
    sizes = all(resized)
    again = (
        message("of-them-again", n=repeats, why=outside_jit.SIZES)
        if sizes
        else message("compiled-again", n=repeats)
    )
    fix = fix_of(first)
    several = len({_place(run, p, ONE_SIZE) for p in lines}) > 1  # places with one cause
    if fix is None or not sizes or several:
        fix = _jit_the_iteration(run, iteration, lines)
        if any(resized) and "fix-size-by-values" not in slugs_of(fix):
            grown = next(
                (f for one in avoidable if slug_of(one.finding) == FINAL and (f := fix_of(one.finding))), None
            )
            first_of_all = grown.words if grown is not None else message("pad-to-one-size")
            many = message("fix-one-size-first", first=first_of_all, fix=fix.words)
            few = message("fix-one-program-each-size", fix=fix.words)
            fix = Fix(many if _sizes(lines) > FEW_SIZES else few, fix.kind, fix.arguments)
    loop = Frame(iteration.file, iteration.line, "")
    place: dict[str, Field] = {"numbers": line_numbers(p.line.line for p in lines), "line": loop}
    function = (iteration.function or "").replace(".<locals>", "") or None
    where = message("lines-of-a-loop", **place)
    inside = tuple(dict.fromkeys(p.line.function.replace(".<locals>", "") for p in lines))
    if function is None and len(inside) > 1:
        where = message("lines-of-a-loop-and-functions", **place)
    if len({p.line.file for p in lines}) > 1:
        lines = sorted(lines, key=lambda p: p.line.file != iteration.file)
        avoidable = sorted(avoidable, key=lambda one: one.payer.line.file != iteration.file)
        where = message("loop-and-functions", functions=Names(inside, LINES), line=loop)
        function = None
    if function is not None:
        place["functions"] = Names(inside, LINES)
        where = message("lines-of-a-function", **place)
        if len(inside) > FEW_FUNCTIONS and fix is not None and "function" in fix.arguments:
            where = message("calls-in-a-loop", function=function, line=loop)
        elif function not in inside:
            where = message("lines-below-a-function", caller=function, **place)
    title = message(
        "compiled-outside-jit", lines=where, again=again if repeats.n else None, **_compiled(lines)
    )
    return _merged(run, avoidable, title, fix, iteration)


def _jit_the_iteration(run: Run, iteration: Iteration, lines: Sequence[Payer]) -> Fix:
    """Return the advice to jit what an iteration of the loop ``iteration`` computes on ``lines``: the
    function that the loop calls, or a new one."""
    text, function = sources.of(run)(iteration.file), iteration.function
    of_module = line_names.module_library(text, function or "")
    if of_module in ("flax.linen", "haiku"):
        function = None  # their methods run only inside apply
    around = function_around(syntax(text), iteration.line)
    how = jit_decorators.jit_for(text, function or (around.name if around is not None else ""))
    inside = {line_names.module_library(sources.of(run)(p.line.file), p.line.function) for p in lines}
    inside |= {of_module, *(p.library for p in lines)}
    if "equinox" in inside:
        how = jit_decorators.MODULES["equinox"]
    elif "flax.nnx" in inside:
        how = jit_decorators.MODULES["flax"]
    called = {(p.line.file, p.line.function): None for p in lines if (at := _in_loop(run, p)) and at[1]}
    conditional = [depends_on_a_condition(sources.of(run)(p.line.file), p.line.line) for p in lines]
    if function is None and all(conditional):
        fix = Fix(message("fix-jit-parts", pad=None), "jit")  # they do not run in each iteration
    elif function is None:
        used = line_names.attributes_on(text, {p.line.line for p in lines})
        written = (n for _, f in called for n in line_names.attributes_set(text, f))
        attributes = dict.fromkeys(n for n in written if n in used)
        state = message("attributes-as-arguments", names=Names(tuple(attributes), LINES))
        loop_line = Frame(iteration.file, iteration.line, "")
        what = message("of-an-iteration", loop=loop_line)
        # There is more in the loop than these lines.
        if loop_line.place in _calling_more(run) or _calls_others(text, iteration.line, called):
            within = {at.line for p in lines if (found := _in_loop(run, p)) for at in found[:1]}
            what = message(
                "of-lines-in-each-iteration" if len(within) > 1 else "of-line-in-each-iteration",
                numbers=line_numbers(within, MOST_LINES),
                loop=loop_line,
            )
        words = message("fix-jit-step", what=what, how=how, state=state if attributes else None)
        fix = inner_loops.with_vmap(run, Fix(words, "jit"), loop_line)
        whole = loop_around(text, iteration.line)
        simulated = jit_obstacles.around_simulator(run, (iteration.file, *whole)) if whole else None
        if simulated is not None:
            return simulated
    else:
        name = function.replace(".<locals>", "")
        # filter_jit has no such option, and a module is no static argument.
        statics = loop_functions.of_python(run, iteration.file, function) if how == "jit" else None
        words = message("fix-jit-step-function", function=name, how=how, calls=None, statics=statics)
        whole_function = Fix(words, "jit", {"function": name})
        fix = loop_functions.part_of_method(run, iteration.file, function, how) or whole_function
        calls = ([(at.file, at.function) for at in c.lines] for p in lines for c in p.compilations)
        recurses = any(call.count((iteration.file, function)) > 1 for call in calls)
        if recurses or jit_obstacles.reads_in_loops(run, iteration.file, function):
            fix = Fix(message("fix-jit-parts", pad=None), "jit")  # as a whole, each level is compiled in it
    lines_of_loop = loop_around(text, iteration.line)
    loop = (iteration.file, *lines_of_loop) if lines_of_loop is not None and function is None else None
    return jit_obstacles.with_obstacles(run, fix, called, called, loop)


def _calls_others(text: str | None, line: int, called: Collection[tuple[str, str]]) -> bool:
    """Return whether the loop that begins on ``line`` calls a function of its file that is not among
    ``called``, (file, qualified name), such as one that loads the data."""
    found, loop = syntax(text), loop_from(text, line)
    defined = {f.name for f in found.functions()}
    known = {name.rpartition(".")[2] for _, name in called}
    calls = (n for n in ast.walk(loop) if isinstance(n, ast.Call)) if loop is not None else ()
    return any(isinstance(c.func, ast.Name) and c.func.id in defined - known for c in calls)


def _sizes(lines: Sequence[Payer]) -> int:
    """Return about how many sizes the arrays on ``lines`` have: the largest number of compilations of
    operations with one name by one line."""
    return max(Counter(c.function.seen.name for c in p.compilations).most_common(1)[0][1] for p in lines)


def _of_callback(run: Run, callback: Callback, avoidable: Sequence[Avoidable]) -> Finding:
    """Merge the findings of ``avoidable``, which are about lines of ``callback``, into one finding. The
    advice is to compute in NumPy in the callback."""
    lines = [one.payer for one in avoidable]
    repeats = Count(sum(len(p.again) for p in lines), *RECOMPILES)
    name, numbers = callback.function, line_numbers(p.line.line for p in lines)
    where = message("line-of-a-callback", numbers=numbers, function=name)
    if len(lines) > 1:
        where = message("lines-of-a-callback", numbers=numbers, function=name)
    title = message(
        "compiled-outside-jit",
        lines=where,
        again=message("compiled-again", n=repeats) if repeats.n else None,
        **_compiled(lines),
    )
    fix = Fix(message("fix-numpy-in-callback", function=name), "numpy")
    return _merged(run, avoidable, title, fix, callback)


def _merged(
    run: Run, avoidable: Sequence[Avoidable], title: Message, fix: Fix, place: Iteration | Callback
) -> Finding:
    """Return one finding for ``avoidable``, lines at ``place``, with the sum of their seconds. It is a
    warning if one of their findings is."""
    severity = WARNING if any(one.finding.severity == WARNING for one in avoidable) else NOTE
    seconds = sum(one.finding.seconds or 0.0 for one in avoidable)
    return _finding(run, [one.payer for one in avoidable], title, fix, seconds, severity, place)


def compiled_for_each_length(run: Run, g: Growth) -> bool:
    """Return whether JX133 reports the line that makes the array ``g`` longer, because JAX compiles its
    operations again for each length."""
    return any(
        outside_jit.made_at(g, p) and len(p.again) >= BARRAGE and payers.sizes_change(run, p)
        for p in payers.payers(run)
    )
