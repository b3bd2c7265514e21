"""Rules JX132 (functions that keep recompiling for various causes) and JX133 (lines that make JAX compile
many operations outside jit)."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from jaxscope.analysis import jit_decorators, line_names
from jaxscope.analysis.causes import SHAPES
from jaxscope.analysis.loop_calls import call_at, iterated
from jaxscope.analysis.rewrap_site import callback_around, imports, loop_around
from jaxscope.model import arrays, causes, payers, sources
from jaxscope.model.arrays import Growth
from jaxscope.model.payers import Payer
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.rules import library_calls, loop_calls, recompiles
from jaxscope.rules.registry import rule
from jaxscope.schema.causes import Cause, NewFunction
from jaxscope.schema.findings import CERTAIN, NOTE, WARNING, Evidence, Finding, Fix, extended, fix_of
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import COMPUTING_ROOTS, JAX_ROOTS, TRACED_WHOLE, WRAPPER_ROOTS
from jaxscope.schema.messages import Count, Field, Message, Names, Seconds, message

WINDOW = 50  # the latest calls of a function, among which recompiles are counted
FEWEST = 10  # recompiles that are worth a finding
SHARE = 0.1  # of all seconds of the run: a line with fewer recompiles that costs less is not reported
# A line with so many recompiles has a warning. A line with so many compilations has a note if it costs this
# part of SHARE.
BARRAGE, SOME = 20, 0.2
INIT = frozenset({"init", "init_with_output"})  # methods that create parameters, and that jit accepts
ONCE = 0.2  # share of all seconds: a line that recompiles nothing and costs less is not reported
# The same of a line that mostly draws random numbers, as for the parameters of a model: jit may not help.
DRAWN = 0.4
PROGRAMS = (
    2  # recompiles of functions that a library jits, each a whole program, from which on it is a warning
)
SEVERAL = 10  # compilations of a line, or of all lines of its loop, that are worth replacing by one program
# Lines of one function with few compilations each: so many lines, with this share of all seconds, are
# reported.
FEW_LINES, TOGETHER = 3, 0.25
LISTED = 5  # functions in the evidence of one line
LINES = 4  # line numbers in a title
ITERATED = "unstack"  # the operation of iterating over an array
ROWS = 4  # so many rows of an iterated array take about as long to compile as one operation
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
    }
)
ONE_SIZE = "fix-one-size-or-numpy"  # advice for lines whose sizes change
# Slugs of advice for one line of a function that a compiled program calls back. All lines of that function
# have one root: their arrays could be NumPy arrays.
TO_NUMPY = INTO_ONE_STEP | {ONE_SIZE, "fix-iterate-numpy"}
OF_SIZES = SHAPES | {"tree"}  # a list to concatenate has more arrays each time
ARGUMENTS = frozenset({"weak_type", "dtype", "tree", "committed", "sharding"})
# Functions of JAX and Flax that put one array for each device on the devices
PLACES = frozenset({"replicate", "unreplicate", "device_put_replicated", "device_put_sharded"})
PLACING = frozenset({None, "jax", "flax"})
PLAIN = frozenset(
    {"scipy", "numpy"}
)  # libraries without JAX, which call the user's functions with NumPy arrays
STEPS = frozenset(
    {"update", "step", "init", "init_state", "evaluate"}
)  # methods of a library that can be jitted
MAKES_ANEW = frozenset(
    {"numpyro"}
)  # libraries whose objects define new functions in each run, even if the object is the same
# The reason why the operations of a line are compiled again, as a clause.
RECOMPILES = "of them is a recompile", "of them are recompiles"
BODIES, SIZES, MADE = message("because-of-bodies"), message("because-of-sizes"), message("because-made-anew")


@rule("JX132", "recompile-rate", WARNING)
def recompile_rate(run: Run) -> Iterator[Finding]:
    for f in run.functions.values():
        repeats = causes.recompiles(f, run) if f.user else []
        rate = _by_calls(f, repeats) or _by_number(f, repeats)
        if rate is None or _has_own_finding(run, repeats):
            continue
        last = repeats[-1]
        yield Finding(
            code="JX132",
            severity=WARNING,
            certainty=CERTAIN,
            title=message("keeps-recompiling", function=f.name.replace(".<locals>", ""), rate=rate),
            function=f.id,
            source=last.site,
            evidence=[Evidence(rate, compilation=last.id, source=last.site)],
            fix=Fix(message("fix-many-causes", function=f.name.replace(".<locals>", ""))),
            seconds=None,
        )


def _has_own_finding(run: Run, repeats: list[Compilation]) -> bool:
    """Return whether another rule reports ``repeats``, the recompiles of a function, so that JX132 reports
    nothing: more than half of them have the same cause, and there is advice about that cause."""
    found: dict[tuple[str, str | None], list[tuple[Compilation, Cause]]] = {}
    for c in repeats:
        cause = causes.of(run, c)[0]
        found.setdefault((cause.kind, cause.path), []).append((c, cause))
    most = max(found.values(), key=len)
    if 2 * len(most) <= len(repeats):
        return False
    group = recompiles.group_of(run, [c for c, _ in most], [cause for _, cause in most])
    return recompiles.advice(group) is not None


def _by_calls(f: Function, repeats: list[Compilation]) -> Message | None:
    calls = max(f.counted_calls.values(), default=0)
    window = min(WINDOW, calls)
    recent = [c for c in repeats if c.calls_then is not None and c.calls_then > calls - window]
    if not calls or len(recent) < FEWEST or 5 * len(recent) < window:
        return None
    name = f.name.replace(".<locals>", "")
    return message("recompiled-of-calls", n=len(recent), window=window, function=name)


def _by_number(f: Function, repeats: list[Compilation]) -> Message | None:
    """Return a clause that says how often ``f`` recompiled, in ``repeats``. None if there are too few
    recompiles, or if the calls of ``f`` are counted: the share of calls that recompile decides then."""
    if f.counted_calls or len(repeats) < FEWEST:
        return None
    return message("recompiled-so-often", n=len(repeats))


class Avoidable(NamedTuple):
    """A line of the user that makes JAX compile operations outside jit, which it could avoid.

    Attributes:
      finding: the finding about this line alone.
      counted: whether its recompiles are so many, or so large, that it is reported whatever its seconds are.
      long: whether its seconds are a large enough share of all seconds.
    """

    payer: Payer
    finding: Finding
    counted: bool
    long: bool


@rule(payers.CODE, "eager-barrage", WARNING)
def eager_barrage(run: Run) -> Iterator[Finding]:
    """Yield a finding for each line, or for all lines of a loop or of a callback, that makes JAX compile
    operations outside jit, if that can be avoided.

    Which lines are together, and what to do about them, is decided by counts, so that two runs of one program
    are told the same. A line that recompiles at least BARRAGE times, or library functions at least PROGRAMS
    times, is always reported, as a warning. Any other is a note, and is reported if it costs enough seconds.
    """
    total, reported = payers.total_seconds(run), set[Frame]()
    for place, lines in _together(run):
        least = (SHARE if any(line.payer.again for line in lines) else ONCE) * total
        all_long = len(lines) > 1 and sum(line.finding.seconds or 0.0 for line in lines) >= least
        if not all_long and not any(line.counted or line.long for line in lines):
            continue
        if isinstance(place, Callback):
            found = _of_callback(run, place, lines)
        elif isinstance(place, Iteration) and len(lines) > 1:
            found = _of_iteration(run, place, lines)
        else:
            found = lines[0].finding
        reported.update(line.payer.line for line in lines)
        yield found
    yield from _in_functions(run, [p for p in payers.payers(run) if p.line not in reported])


def _in_functions(run: Run, left: Sequence[Payer]) -> Iterator[Finding]:
    """Yield findings about functions of the user in which many lines, each with few compilations outside jit,
    take much of the time together. ``left`` are the lines that no finding is about.

    It is the innermost such function, unless enough compilations of the function that calls it are elsewhere.
    A function that calls jitted functions is none: it cannot become one program.
    """
    least, calls = TOGETHER * payers.total_seconds(run), dict[_Part, dict[str, _Applied]]()
    calling = {
        (c.site.file, c.site.function)
        for f in run.functions.values()
        for c in (f.compilations if f.user else ())
        if c.site is not None and c.entry == "call"
    }
    direct = [p for p in left if not p.within and (p.library or "jax") in JAX_ROOTS and not _creates(run, p)]
    for c in (c for p in direct for c in p.compilations):
        for at in (c.site, *c.missed.stack) if c.missed is not None else ():
            if at is not None and at.function != "<module>" and (at.file, at.function) not in calling:
                calls.setdefault((at.file, at.function), {}).setdefault(c.id, (c, at.line))
    found = dict[_Part, dict[str, _Applied]]()
    for part, members in sorted(calls.items(), key=lambda item: len(item[1])):
        covered = {n for inner in found.values() for n in inner}
        own = [a for n, a in members.items() if n not in covered]
        lines = {line for _, line in own}
        if len(own) >= BARRAGE and len(lines) >= FEW_LINES and sum(c.seconds for c, _ in own) >= least:
            found = {inner: m for inner, m in found.items() if not m.keys() <= members.keys()}
            found[part] = members
    resized = {c.id for p in direct if payers.sizes_change(run, p) for c in p.compilations}
    for (file, function), members in found.items():
        grows = 3 * len(resized & members.keys()) >= len(members)
        yield _of_function(file, function, [*members.values()], grows=grows)


def _of_function(file: str, function: str, applied: Sequence[_Applied], *, grows: bool) -> Finding:
    """Return the finding about ``applied``, the compilations outside jit that lines of ``function`` in
    ``file`` cause, each with its line. ``grows``: many are compiled again because sizes change."""
    lines = sorted({line for _, line in applied})
    names = tuple(sorted({c.function.seen.name for c, _ in applied}))
    where = message(
        "lines-of-one-function",
        numbers=Names(tuple(map(str, lines)), LINES),
        function=function.replace(".<locals>", ""),
    )
    return Finding(
        code=payers.CODE,
        severity=NOTE,
        certainty=CERTAIN,
        title=message(
            "compiled-outside-jit",
            compilations=Count(len(applied), "compilation"),
            come="come",
            lines=where,
            names=Names(names, 4, "operations"),
            again=None,
        ),
        source=Frame(file, lines[0], function),
        evidence=[_of_line(Frame(file, line, function), applied) for line in lines[:LISTED]],
        fix=Fix(message("fix-jit-parts", pad=message("and-pad-inside") if grows else None), "jit"),
        seconds=sum(c.seconds for c, _ in applied),
        subject=(file, function),
        at_most=True,
        timed=True,
    )


def _of_line(line: Frame, applied: Sequence[_Applied]) -> Evidence:
    here = [c for c, at in applied if at == line.line]
    seconds = Seconds(sum(c.seconds for c in here))
    words = message(
        "compiled-of-line", line=line, compilations=Count(len(here), "compilation"), seconds=seconds
    )
    return Evidence(words, compilation=here[0].id, source=line)


def _together(run: Run) -> Iterator[tuple[Place, list[Avoidable]]]:
    """Yield (place, lines) for the lines that are reported in one finding. The place is the callback or the
    loop in which the lines are, or else the only line. A line with less than a tenth of the compilations of
    its loop is not reported with the others, unless it recompiles as often as a warning."""
    places: dict[tuple[Place, bool], list[Avoidable]] = {}
    for line in _by_line(run):
        slug = _slug(line.finding)
        place = _place(run, line.payer, slug)
        of_sizes = slug == ONE_SIZE and not isinstance(place, Callback)
        places.setdefault((place, of_sizes), []).append(line)
    for (place, _), lines in places.items():
        least = SHARE * sum(len(line.payer.compilations) for line in lines)
        small = [line for line in lines if len(line.payer.compilations) < least and not line.counted]
        apart = small if isinstance(place, Iteration) else []
        yield place, [line for line in lines if line not in apart]
        for line in apart:
            yield (line.payer.line.file, line.payer.line.line), [line]


def _place(run: Run, p: Payer, slug: str | None) -> Place:
    """Return where the line of ``p`` is, for which the slug of the advice is ``slug``: the callback or the
    loop of which all lines have that advice, or else the line."""
    if slug in TO_NUMPY and (callback := callback_around(sources.of(run)(p.line.file), p.line.line)):
        return Callback(p.line.file, callback.lineno, callback.name)
    loop = _iteration(run, p) if slug in INTO_ONE_STEP or slug == ONE_SIZE else None
    return loop or (p.line.file, p.line.line)


def _by_line(run: Run) -> Iterator[Avoidable]:
    """Yield each line of the user's code that makes JAX compile operations outside jit, if that can be
    avoided, in the order of the source. A finding is a warning if the line recompiles at least BARRAGE times,
    or functions that a library jits at least PROGRAMS times; else a note."""
    least, resized = SHARE * payers.total_seconds(run), payers.resized_lines(run)
    called = {
        (c.site.file, c.site.line)
        for f in run.functions.values()
        for c in f.compilations
        if f.user and c.site is not None and c.entry == "call"
    }
    row_by_row = [(f.source.file, lines) for f, lines in loop_calls.for_each_row(run) if f.source is not None]
    found = sorted(payers.payers(run), key=lambda p: (p.line.file, p.line.line))
    loops = [_iteration(run, p) for p in found]
    compiled = Counter[Iteration | None]()
    for p, loop in zip(found, loops, strict=True):
        compiled[loop] += len(p.compilations)
    for p, loop in zip(found, loops, strict=True):
        if any(p.line.file == file and p.line.line in lines for file, lines in row_by_row):
            continue  # the loop that takes the rows one by one has its own finding
        if p.within and p.library in JAX_ROOTS and (p.line.file, p.line.line) in called:
            continue  # computed while a jitted function is traced: the line is jitted already
        jitted = jit_decorators.jitted_calls(sources.of(run)(p.line.file), p.line.line)
        if jitted.issuperset(c.missed.column for c in p.compilations if c.missed is not None):
            continue  # likewise, while a library's function is traced
        if imports(sources.of(run)(p.line.file), p.line.line):
            continue  # a package that computes while it is imported: no change of this line helps
        if p.library in PLACING and jit_decorators.calls(sources.of(run)(p.line.file), p.line.line, PLACES):
            continue  # arrays are put on devices, which jit cannot do
        why, fix, cost = _what_to_do(run, p, compiled[loop] if loop is not None else len(p.compilations))
        if fix is None:
            continue
        if p.again and why in (SIZES, None) and _beside_a_resized_function(run, p, resized):
            continue
        title = message("compiled-outside-jit", lines="one line", again=_repeats(p, why), **_compiled([p]))
        initializes = not p.again and jit_decorators.calls(sources.of(run)(p.line.file), p.line.line, INIT)
        fix = (extended(fix, "fix-if-faster") or fix) if initializes or _creates(run, p) else fix
        serious = len(p.again) >= BARRAGE or library_calls.repeats(p) >= PROGRAMS
        enough = least * SOME if len(p.compilations) >= BARRAGE else least
        creates = _creates(run, p)
        if creates or not p.again:  # it is paid once, for example to look at the results
            enough = (DRAWN if creates and not initializes else ONCE) * payers.total_seconds(run)
        finding = _finding(run, [p], title, fix, cost, WARNING if serious else NOTE)
        yield Avoidable(p, finding, serious, cost >= enough)


def _beside_a_resized_function(run: Run, p: Payer, resized: set[tuple[str, int]]) -> bool:
    """Return whether the line of ``p``, which makes JAX compile operations outside jit, or another line of
    its loop, calls a user's function that recompiles for another size: ``resized`` has (file, line) of such
    calls. The line then needs no finding: that function has one, and the operations of the line compute the
    function's arguments or results."""
    if (p.line.file, p.line.line) in resized:
        return True
    sizes = sum(causes.reason(run, c).kind in OF_SIZES for c in p.again)
    mostly = 2 * sizes >= len(p.compilations)
    loop = loop_around(sources.of(run)(p.line.file), p.line.line) if mostly else None
    return loop is not None and any(f == p.line.file and loop[0] <= n <= loop[1] for f, n in resized)


def _repeats(p: Payer, why: Message | None) -> Message | None:
    """Return a clause with the number of compilations of the line ``p`` that are recompiles, and with their
    reason, ``why``. If the reason is unknown (None), the clause has their seconds instead. Return None if
    there are no recompiles."""
    if not p.again:
        return None
    if why is not None:
        return message("of-them-again", n=Count(len(p.again), *RECOMPILES), why=why)
    return message(
        "of-them-recompiles",
        n=Count(len(p.again), *RECOMPILES),
        seconds=Seconds(sum(c.seconds for c in p.again)),
    )


def _compiled(lines: Sequence[Payer]) -> dict[str, Field]:
    """Return fields of a message about ``lines``, which make JAX compile operations outside jit: the number
    of compilations, and the names of what was compiled."""
    names = tuple(sorted({name for p in lines for name in p.names}))
    number = sum(len(p.compilations) for p in lines)
    come = "comes" if number == 1 else "come"
    return {
        "compilations": Count(number, "compilation"),
        "come": come,
        "names": Names(names, 4, "operations"),
    }


def _finding(
    run: Run,
    lines: Sequence[Payer],
    title: Message,
    fix: Fix,
    seconds: float,
    severity: str,
    place: Iteration | Callback | None = None,
) -> Finding:
    """Return the finding about ``lines``, sorted by line. ``place`` is the loop or the callback that has them
    all, and which identifies the finding; None: it is about one line."""
    line = lines[0].line
    about = line if place is None else place
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


def _by_function(run: Run, p: Payer, most: int) -> list[Evidence]:
    """Return the evidence for ``p``, a line that makes JAX compile operations outside jit: an entry for each
    function or operation that was compiled for the line, the most expensive first, at most ``most`` entries.
    An entry has the cause of the function's most expensive recompile."""
    parts: dict[str, list[Compilation]] = {}
    for c in p.compilations:
        parts.setdefault(c.function.seen.name, []).append(c)
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
    """Code that runs repeatedly: the body of a loop that begins at ``file`` and ``line``, or the ``function``
    that a line of a loop calls. If ``function`` is None, the line that the finding is about is in the loop
    itself."""

    file: str
    line: int
    function: str | None


class Callback(NamedTuple):
    """A function of the user that a compiled program calls back, defined at ``file`` and ``line``."""

    file: str
    line: int
    function: str


_Part: TypeAlias = tuple[str, str]  # (file, function)
_Applied: TypeAlias = tuple[Compilation, int]  # (an operation, the line of a function that applied it)
Place: TypeAlias = Iteration | Callback | tuple[str, int]  # the last: (file, line)


def _iteration(run: Run, p: Payer) -> Iteration | None:
    """Return the loop, in the same file, that runs the line of ``p``, which makes JAX compile operations
    outside jit, repeatedly, directly or through functions that the loop calls. None if no such loop is
    known."""
    missed = p.compilations[0].missed
    if missed is None:
        return None
    text, below = sources.of(run), None
    for f in [p.line, *missed.stack[missed.into_library or 0 :]]:
        if f.file != p.line.file:  # a loop in another file may run each line only once, with other settings
            return None
        loop = loop_around(text(f.file), f.line)
        if loop is not None:
            return Iteration(f.file, loop[0], below)
        below = f.function
    return None


def _slug(finding: Finding) -> str | None:
    fix = fix_of(finding)
    return fix.words.slug if fix is not None and isinstance(fix.words, Message) else None


def _of_iteration(run: Run, iteration: Iteration, found: Sequence[Avoidable]) -> Finding:
    """Merge the findings of ``found``, several lines of one loop that make JAX compile operations outside
    jit, into one finding. Its advice is to jit the body of the loop as a whole.

    If the lines recompile because the sizes of arrays change, one jit would recompile, too. The advice is
    then that of the first finding: to keep the sizes equal.
    """
    lines, first = [one.payer for one in found], found[0].finding
    repeats = Count(sum(len(p.again) for p in lines), *RECOMPILES)
    sizes = _slug(first) == ONE_SIZE
    again = message("of-them-again", n=repeats, why=SIZES) if sizes else message("compiled-again", n=repeats)
    loop, numbers = Frame(iteration.file, iteration.line, ""), _numbers(lines)
    function = (iteration.function or "").replace(".<locals>", "") or None
    where = message("lines-of-a-loop", numbers=numbers, line=loop)
    if function is not None:
        where = message("lines-of-a-function", numbers=numbers, function=function, line=loop)
    title = message(
        "compiled-outside-jit", lines=where, again=again if repeats.n else None, **_compiled(lines)
    )
    fix = fix_of(first)
    if fix is None or not sizes:
        equinox = any(p.library == "equinox" for p in lines)
        how = jit_decorators.MODULES["equinox"] if equinox else "jit"
        words = message("fix-jit-step", how=how)
        if function is not None:
            statics = None if equinox else message("python-values-static")  # filter_jit has no such option
            words = message("fix-jit-step-function", function=function, how=how, statics=statics)
        fix = Fix(words, "jit")
    return _merged(run, found, title, fix, iteration)


def _of_callback(run: Run, callback: Callback, found: Sequence[Avoidable]) -> Finding:
    """Merge the findings of ``found``, lines of a function that a compiled program calls back, into one. Its
    advice is to compute in NumPy there."""
    lines = [one.payer for one in found]
    repeats = Count(sum(len(p.again) for p in lines), *RECOMPILES)
    name, numbers = callback.function, _numbers(lines)
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
    return _merged(run, found, title, fix, callback)


def _merged(
    run: Run, found: Sequence[Avoidable], title: Message, fix: Fix, place: Iteration | Callback
) -> Finding:
    severity = WARNING if any(one.finding.severity == WARNING for one in found) else NOTE
    seconds = sum(one.finding.seconds or 0.0 for one in found)
    return _finding(run, [one.payer for one in found], title, fix, seconds, severity, place)


def _numbers(lines: Sequence[Payer]) -> Names:
    """Return the line numbers of ``lines`` for a message, at most LINES of them: ``17, 18 and 2 more``."""
    return Names(tuple(str(n) for n in sorted({p.line.line for p in lines})), LINES)


def _of_one_cause(run: Run, repeats: list[Compilation]) -> recompiles.Group | None:
    """Return the group of those recompiles in ``repeats`` that belong to one jitted function of a library and
    have the same kind of cause in its arguments, such as a changing dtype. If there are several such groups,
    return the one with the most recompiles; None if there is none."""
    found: dict[tuple[str, str], list[tuple[Compilation, Cause]]] = {}
    for c in repeats:
        cause, module = causes.of(run, c)[0], c.function.seen.module or ""
        if (
            cause.kind in ARGUMENTS
            and not c.function.seen.eager
            and module.partition(".")[0] not in JAX_ROOTS
        ):
            found.setdefault((c.function.id, cause.kind), []).append((c, cause))
    groups = [
        recompiles.group_of(run, [c for c, _ in members], [cause for _, cause in members])
        for members in found.values()
    ]
    return max(groups, key=lambda group: len(group.compilations), default=None)


def _creates(run: Run, p: Payer) -> bool:
    """Return whether a line seems to create the parameters of a model: at least a quarter of its compilations
    are random draws, and it compiles nothing again but operations of other sizes, as those of the next layer.

    jit may not help on such a line, because one program would contain all these draws. Measured for ten
    models (benchmarks/README.md), creation with jit took between half and 2.3 times as long as without.
    """
    for c in p.again:
        kind = causes.reason(run, c).kind
        of_size = kind == "static_value" and (c.function.seen.eager or library_calls.draws(c.function))
        if kind not in OF_SIZES and not of_size:
            return False  # the shape of a draw, or of a result, is a static value
    return 4 * sum(library_calls.draws(c.function) for c in p.compilations) >= len(p.compilations)


def _what_to_do(run: Run, p: Payer, compiled: int) -> tuple[Message | None, Fix | None, float]:
    """Return what to do about the line ``p``, which makes JAX compile operations outside jit: (why the
    operations are compiled again, the advice, the seconds that it saves). The advice depends on the library
    that the line calls.

    The reason is None if nothing is compiled again, or if it is unknown. The advice is None if nothing is
    known to help. ``compiled`` is the number of compilations of all lines of the loop in which the line is,
    or of the line alone if it is in no loop.
    """
    jax = p.library is None or p.library in JAX_ROOTS
    again = sum(c.seconds for c in p.again)
    unstacked = [c for c in p.compilations if c.function.seen.name == ITERATED]
    decisive = library_calls.whole_programs(p.again)
    created = [c for c in decisive if causes.created_again(run, c)]
    anew = 2 * len(created) >= len(decisive) > 0
    paths = [path for c in created if (path := causes.of(run, c)[0].path) is not None and path[0] != "_"]
    objects = paths if anew else []  # without private ones of the library
    changing = not anew and payers.sizes_change(run, p)
    if unstacked and _rows(unstacked) >= ROWS * (len(p.compilations) - len(unstacked)):
        return None, _instead_of_iterating(run, p, unstacked), sum(c.seconds for c in unstacked)
    if (group := _of_one_cause(run, p.again)) is not None and 2 * len(group.compilations) >= len(decisive):
        first = recompiles.group_of(
            run, group.compilations[:1], group.causes[:1]
        )  # the others may follow from it
        return message("because-of-cause", cause=first.cause), recompiles.advice(first), again
    at_once = p.seconds if compiled >= SEVERAL else 0.0
    of_equinox = library_calls.makes_equinox_modules(run, p.library)
    jitted = jit_decorators.advice(
        sources.of(run)(p.line.file), p.line.line, p.library, of_equinox=of_equinox
    )
    if jax and anew:
        where = None if p.line.function == "<module>" else p.line.function.replace(".<locals>", "")
        words = message("fix-jit-around-body", function=where or message("function-around"))
        return BODIES, Fix(words, "jit"), again
    if jax and changing and not p.within:
        grown = next((g for g in _lengthened(run) if made_at(g, p)), None)
        if grown is not None:
            path = grown.group.path
            return SIZES, Fix(message("fix-final-length", path=path), "preallocate", {"path": path}), again
        return SIZES, Fix(message("fix-one-size-or-numpy"), "pad"), again
    if anew and not jax and payers.repeated_by_library(run, p):
        return (MADE, *library_calls.cache_programs(run, p))  # the library makes the functions, in a loop
    if objects and not jax:
        given_to = library_calls.package_of(created, p.library)
        made = next((line for c in reversed(created) if (line := _made_at(run, c)) is not None), None)
        at = message("that-line-creates", line=made) if made is not None else None
        words = message("fix-make-object-once", path=objects[-1], made=at, library=given_to)
        return MADE, Fix(words, "make_once", {"path": objects[-1]}), again
    if jax or p.library in TRACED_WHOLE:
        # Other sizes may be those of the layers that one call makes.
        why = BODIES if anew and not p.within else None
        if p.within and not jax and not (jitted is not None and jitted.checked):
            words = message("fix-jit-through-library", how=_as_in(jitted), library=p.library)
            return None, Fix(words, "jit"), at_once
        return why, Fix(_jit(run, p, jitted), "jit"), at_once
    return _for_library(run, p, jitted, (anew, changing), again, at_once)


def _instead_of_iterating(run: Run, p: Payer, unstacked: Sequence[Compilation]) -> Fix:
    """Return the advice for a line that iterates over an array of JAX, which the operations ``unstacked``
    take apart: a NumPy array, or a key for each place where the array contains random keys."""
    by = Counter(c.missed.library for c in unstacked if c.missed is not None).most_common(1)[0][0]
    if by is not None and by not in JAX_ROOTS:
        return Fix(message("fix-give-numpy", library=by), "numpy")
    if any(loop_calls.has_key(c) for c in unstacked):  # np.asarray fails on keys
        typed = any(loop_calls.has_typed_key(c) for c in unstacked)
        words = message("fix-iterate-keys", otherwise=None if typed else message("if-no-keys"))
        return Fix(words, "fold_in")
    over = _iterated(run, p, unstacked)
    words = message("fix-iterate-numpy", array=over or "x", first=None if over else message("first"))
    return Fix(words, "numpy")


def _jit(run: Run, p: Payer, jitted: jit_decorators.Jitted | None) -> Message:
    """Return the advice to jit what the line ``p`` calls (``jitted``; None: that is no single function), or
    the computation on it."""
    if jitted is None:
        return message("fix-jit-around" if not p.within else "fix-jit-around-call", inside=_inside(p))
    new = line_names.defined_in_loop(sources.of(run)(p.line.file), p.line.line)
    if new is None:
        return message("fix-jit-this-call", how=_as_in(jitted))
    name, captured = new
    arguments = "an argument" if len(captured) == 1 else "arguments"
    also = message("with-as-arguments", names=Names(captured), arguments=arguments) if captured else None
    return message("fix-jit-new-function", name=name, captured=also, how=_as_in(jitted))


def _made_at(run: Run, c: Compilation) -> Frame | None:
    """Return the line that defined the new function because of which ``c`` was compiled; None: unknown."""
    detail = causes.of(run, c)[0].detail
    return detail.line if isinstance(detail, NewFunction) else None


def _iterated(run: Run, p: Payer, unstacked: Sequence[Compilation]) -> str | None:
    """Return the expression over which the line of ``p`` iterates, as source; None: unknown, or several."""
    columns = {c.missed.column for c in unstacked if c.missed is not None}
    return iterated(sources.of(run)(p.line.file), p.line.line, columns.pop()) if len(columns) == 1 else None


def _lengthened(run: Run) -> list[Growth]:
    """Return the arrays that are longer in each snapshot of the live arrays than in the one before."""
    return [g for g in arrays.growing(run) if not g.more_arrays]


def made_at(g: Growth, p: Payer) -> bool:
    """Return whether the line of ``p`` creates the array ``g`` anew for each of its lengths."""
    at = g.group.origin
    return at is not None and (at.file, at.line) == (p.line.file, p.line.line)


def compiled_for_each_length(run: Run, g: Growth) -> bool:
    """Return whether JX133 reports the line that makes the array ``g`` longer, because JAX compiles its
    operations again for each length."""
    return any(
        made_at(g, p) and len(p.again) >= BARRAGE and payers.sizes_change(run, p) for p in payers.payers(run)
    )


def _rows(unstacked: Sequence[Compilation]) -> int:
    """Return the number of rows of all arrays that the operations ``unstacked`` take apart."""
    shapes = [leaf.shape for c in unstacked for leaf in (c.key.arguments if c.key is not None else ())]
    return sum(shape[0] for shape in shapes if shape and isinstance(shape[0], int))


def _inside(p: Payer) -> Message | None:
    """Return a clause with the function of the user that contains the line of ``p``; None if the line is not
    in a function."""
    name = ".".join(part for part in p.line.function.split(".") if not part.startswith("<"))
    return message("inside-function", function=name) if name else None


def _as_in(jitted: jit_decorators.Jitted | None) -> Message | None:
    """Return a clause with the line's own call under jit, ``jitted``, as the example; None: there is none."""
    if jitted is None:
        return None
    return message("as-in-with-statics" if jitted.statics_unknown else "as-in", call=jitted.call)


def _called_back(p: Payer) -> str | None:
    """Return the user's function that the library calls back from the line of ``p``, and in which most
    operations are compiled; None: the library calls none."""
    functions = Counter[str]()
    for c in p.compilations:
        at = c.missed.into_library if c.missed is not None else None
        if at and c.missed is not None and c.site is not None:
            functions[[c.site, *c.missed.stack][at - 1].function] += 1
    name = functions.most_common(1)[0][0] if functions else None
    return name.replace(".<locals>", "") if name is not None else None


def _method_called(run: Run, p: Payer) -> tuple[Field, Field]:
    """Return the object and the method that the line of ``p`` calls, as source: ``solver`` and
    ``solver.run``. Words instead, if that is unknown or the object is no variable. If the line has several
    calls, it is the one that compiles most again."""
    columns = Counter(c.missed.column for c in p.again if c.missed is not None)
    column = columns.most_common(1)[0][0] if columns else None
    call = call_at(sources.of(run)(p.line.file), p.line.line, column, "")
    if call is None or not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
        return message("the-object"), message("its-method")
    return call.func.value.id, ast.unparse(call.func)


def _for_library(
    run: Run,
    p: Payer,
    jitted: jit_decorators.Jitted | None,
    anew_or_changing: tuple[bool, bool],
    repeat_seconds: float,
    all_seconds: float,
) -> tuple[Message | None, Fix | None, float]:
    """Return what to do about a line that makes JAX compile operations outside jit, by calling a library that
    jit cannot trace as a whole: (why the operations are compiled again, the advice, the seconds that it
    saves). The reason is None if unknown; the advice is None if nothing is known to help.

    Args:
      jitted: the line's call written under jit; None: it cannot be.
      anew_or_changing: whether the line recompiles because functions are made anew, and because sizes change.
      repeat_seconds: the seconds of its recompiles.
      all_seconds: the seconds of all its compilations, if there are at least SEVERAL; else 0.
    """
    anew, changing = anew_or_changing
    if p.library in MAKES_ANEW and (anew or changing):
        padded = message("fix-pad-first") if changing else None
        words = message("fix-jit-around-run", first=padded, library=p.library)
        return SIZES if changing else MADE, Fix(words, "jit"), repeat_seconds
    called = _called_back(p) if p.library in PLAIN else None
    if called is not None:
        pad = message("and-pad-inside") if changing else None
        words = message("fix-jit-called-back", library=p.library, function=called, pad=pad)
        return SIZES if changing else None, Fix(words, "jit"), repeat_seconds if p.again else all_seconds
    if changing and p.library in COMPUTING_ROOTS:
        return SIZES, Fix(message("fix-one-size-for-library", library=p.library), "pad"), repeat_seconds
    if p.library in COMPUTING_ROOTS and jit_decorators.calls(
        sources.of(run)(p.line.file), p.line.line, STEPS
    ):
        return (
            MADE if anew else None,
            Fix(message("fix-jit-method", how=_as_in(jitted), library=p.library), "jit"),
            all_seconds,
        )
    if anew:
        object, call = _method_called(run, p)
        words = message("fix-make-once", object=object, call=call, library=p.library)
        return MADE, Fix(words, "make_once"), repeat_seconds
    if p.library in WRAPPER_ROOTS:
        return None, None, 0.0
    if not library_calls.computes(run, p.library):
        return None, Fix(message("fix-numpy-or-jit", library=p.library), "numpy"), all_seconds
    if not jit_decorators.calls_a_function(sources.of(run)(p.line.file), p.line.line):
        return None, None, 0.0  # an object of the library's is created, or computes an attribute
    if library_calls.jits_itself(p):
        return None, None, 0.0  # the library jits its functions itself, and calls them from Python code
    if jitted is not None and library_calls.reads_values(run, p.line, jitted):
        return None, None, 0.0  # jit cannot trace a function that reads values
    return None, Fix(message("fix-jit-method", how=_as_in(jitted), library=p.library), "jit"), all_seconds
