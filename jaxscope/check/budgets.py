"""Check limits on the number and the seconds of compilations, for a run or for one function.

If a figure was not recorded, its limit cannot be checked; this is reported as a note (JX901).
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from jaxscope.check import gate
from jaxscope.check.gate import Late, Part, within
from jaxscope.check.limits import Limits
from jaxscope.check.program_limits import of_programs
from jaxscope.check.unknown import no_such_function, unchecked, unchecked_note
from jaxscope.model import causes
from jaxscope.model.function_lookup import matches
from jaxscope.model.intervals import MOST_SECONDS, UnionOfSpans
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.rules import recompiles
from jaxscope.rules.size_changes import Miss
from jaxscope.schema.causes import Cause
from jaxscope.schema.findings import CERTAIN, ERROR, Evidence, Finding, Fix, extended
from jaxscope.schema.messages import Count, Message, Parts, Seconds, message

COMPILATIONS, SECONDS = "JX191", "JX291"
MOST = 3  # functions that are named in a title
SMALLER = Fix(message("fix-smaller-program"))


def findings(
    run: Run,
    limits: Limits,
    functions: Mapping[str, Limits] | None = None,
    part_of_run: Part | None = None,
    *,
    programs: bool = True,
    late: Sequence[Late] = (),
) -> list[Finding]:
    """Return an error for each limit that ``run`` exceeds, a note for each limit that cannot be checked, and
    an error for each mesh axis or function that the limits name and that does not exist in ``run``.

    Args:
      limits: limits on the whole run, and on each program of the user's functions.
      functions: name or pattern of functions -> the limits of each function that matches. A limit on single
        programs given here replaces the one in ``limits``.
      part_of_run: the compilations of a test or a block of code, to check only these; None: the whole run.
      programs: whether to check the limits on single programs, too.
      late: findings about compilations after step N, the last step that may compile. A limit on the number of
        compilations that is met without these compilations gets no finding.
    """
    functions = functions or {}
    reported = {id for item in late for id in item.compilations}
    counts = _counts(run, limits, functions, part_of_run)
    return [
        *_no_such_axes(run, [limits, *functions.values()]),
        *(_too_many(run, count, reported) for count in counts if not count.allowed_without(reported)),
        *_over(run, limits, functions, part_of_run, programs),
    ]


def with_counts(
    run: Run, limits: Limits, functions: Mapping[str, Limits] | None, late: Sequence[Late]
) -> list[Finding]:
    """Return the findings in ``late``, about compilations after step N (the last step that may compile). If a
    limit on the number of compilations is exceeded only because of such compilations, the finding about most
    of them gets the limit as further evidence.

    Args:
      limits: the limits on the whole run.
      functions: name or pattern of functions -> their limits.
    """
    reported = {id for item in late for id in item.compilations}
    extra: dict[int, list[Evidence]] = {}
    for count in _counts(run, limits, functions or {}, None):
        ids = {c.id for c in count.compilations}
        at = max(range(len(late)), key=lambda i: len(ids & late[i].compilations), default=None)
        if at is not None and count.allowed_without(reported):
            text = message("exceeded-with-these", count=count.text, code=COMPILATIONS)
            extra.setdefault(at, []).append(Evidence(text, source=late[at].finding.source))
    return [
        msgspec.structs.replace(item.finding, evidence=[*item.finding.evidence, *extra.get(i, ())])
        for i, item in enumerate(late)
    ]


def _no_such_axes(run: Run, limits: Sequence[Limits]) -> Iterator[Finding]:
    """Yield an error for each mesh axis that ``limits`` name (``all-gather@data``) and that does not exist in
    the run. Yield nothing if the run has no known axes."""
    limited = {k.partition("@")[2] for x in limits for k in (*x.collectives, *x.collective_bytes)} - {""}
    known = axes(run) if limited else set()
    for axis in sorted(limited - known) if known else ():
        near = difflib.get_close_matches(axis, known, 1, 0.5)
        fix = (
            message("fix-similar-name", name=near[0])
            if near
            else message("fix-known-axes", axes=Parts(tuple(sorted(known))))
        )
        text = message("no-such-axis", axis=repr(axis))
        yield unchecked(text, fix=fix)


def axes(run: Run) -> set[str]:
    """Return the names of all mesh axes that occur in ``run``: in shardings of arrays and jitted functions,
    and in collectives."""
    shardings = [
        s
        for c in run.compilations.values()
        for listed in (
            c.key.shardings if c.key is not None else (),
            (c.lowered.asked or ()) if c.lowered is not None else (),
            (*c.compiled.in_shardings, *c.compiled.out_shardings) if c.compiled is not None else (),
        )
        for s in listed
    ]
    named = {axis for s in shardings for axis, *_ in s.mesh or ()}
    for program in run.programs.values():
        hlo = run.texts_of(program).hlo
        for collective in hlo.collectives if hlo is not None else ():
            named |= {a.partition(":")[0] for a in collective.axes or ()}
    return named


def _over(
    run: Run, limits: Limits, functions: Mapping[str, Limits], part_of_run: Part | None, programs: bool
) -> Iterator[Finding]:
    """Yield those of ``findings`` about seconds, functions that do not exist, and (if ``programs``) single
    programs. The arguments are those of ``findings``."""
    users = [f for f in run.functions.values() if f.user]
    if limits.seconds is not None:
        yield from _seconds_of_run(run, limits.seconds, part_of_run)
    special: dict[str, list[Limits]] = {}
    for pattern, own in functions.items():
        yield from no_such_function(run, pattern)
        for f in users:
            if matches(f, pattern):
                special.setdefault(f.id, []).append(own)
                if own.seconds is not None:
                    yield from _seconds_of(f, own.seconds, part_of_run)
    for f in users if programs else ():
        own_limits = special.get(f.id, [])
        for allowed in [*own_limits, limits.without(own_limits)]:
            yield from of_programs(run, f, allowed, part_of_run)


# -- compilations ----------------------------------------------------------------------------------


class _Count(msgspec.Struct, frozen=True):
    """A limit on the number of compilations that was exceeded, and the compilations that count against it.

    Attributes:
      function: the name of the function that has the limit; None: the limit is on all functions together.
      limit: the number of compilations that is allowed.
      compilations: all compilations that count against the limit, in order of time.
      several: whether the limit is on several functions together.
    """

    function: str | None
    limit: int
    compilations: list[Compilation]
    several: bool

    @property
    def text(self) -> Message:
        """Return the number and the limit as a message: ``step was compiled 5 times, 2 allowed``."""
        times = _times(len(self.compilations))
        if self.function is None:
            return message("compiled-all-times", times=times, limit=self.limit)
        return message("compiled-own-times", function=self.function, times=times, limit=self.limit)

    def allowed_without(self, reported: Collection[str]) -> bool:
        """Return whether the limit is met without the compilations whose ids are in ``reported``."""
        return sum(c.id not in reported for c in self.compilations) <= self.limit


def _counts(
    run: Run, limits: Limits, functions: Mapping[str, Limits], part_of_run: Part | None
) -> Iterator[_Count]:
    """Yield a ``_Count`` for each limit on the number of compilations that is exceeded: the limit of the run
    first, then the limits of functions. The arguments are those of ``findings``."""
    users = [f for f in run.functions.values() if f.user]
    limited: list[tuple[str | None, int | None, list[Function]]] = [(None, limits.compilations, users)]
    limited += [
        (f.display_name, own.compilations, [f])
        for pattern, own in functions.items()
        for f in users
        if matches(f, pattern)
    ]
    for function, limit, members in limited:
        compiled = [c for f in members for c in within(part_of_run, f.compilations) if c.reached_phases & 4]
        if limit is not None and len(compiled) > limit:
            compiled.sort(key=lambda c: c.t_ns)
            yield _Count(function, limit, compiled, len(users) > 1 and len(members) > 1)


def _too_many(run: Run, count: _Count, reported: Collection[str]) -> Finding:
    """Return an error about the exceeded limit ``count``. The evidence has the last five compilations of the
    function that was compiled most often, without those whose ids are in ``reported``."""
    others = [c for c in count.compilations if c.id not in reported]
    n = Counter(c.function.id for c in others)
    busiest = sorted({c.function.id: c.function for c in others}.values(), key=lambda f: -n[f.id])
    some = tuple(
        message("compiled-times", function=f.display_name, times=_times(n[f.id])) for f in busiest[:MOST]
    )
    of_busiest = [c for c in others if c.function is busiest[0]]
    last = of_busiest[-1]
    cause = causes.of(run, last)[0]
    late = len(count.compilations) - len(others)
    listed = message("in-parentheses", parts=Parts(some)) if count.several else None
    return Finding(
        COMPILATIONS,
        ERROR,
        CERTAIN,
        message(
            "too-many-compilations",
            count=count.text,
            which=message("others-were-late", n=late, code=gate.CODE, listed=listed) if late else listed,
            function=busiest[0].display_name,
            cause=cause,
        ),
        busiest[0].id,
        last.site,
        [gate.call_evidence(run, Miss(c, c.step, causes.of(run, c)[0]), named=True) for c in of_busiest[-5:]],
        extended(_advice(run, of_busiest, cause), "fix-or-allow-more-compilations"),
        sum(c.seconds for c in count.compilations),
    )


def _advice(run: Run, compilations: Sequence[Compilation], cause: Cause) -> Fix:
    """Return advice on how to avoid compilations with the cause ``cause``. ``compilations`` are of one
    function; those with other causes are ignored."""
    if cause.kind == "first":
        return Fix(message("fix-one-jit"))
    found = [(c, causes.of(run, c)[0]) for c in compilations]
    same = [(c, why) for c, why in found if (why.kind, why.path) == (cause.kind, cause.path)]
    fix = recompiles.advice(recompiles.group_of(run, same))
    return fix or Fix(message("fix-equal-calls"))


# -- seconds ---------------------------------------------------------------------------------------


def _seconds_of_run(run: Run, limit: float, part_of_run: Part | None) -> Iterator[Finding]:
    """Yield an error if tracing, lowering and compiling took more than ``limit`` seconds in ``part_of_run``
    (None: in the main process of the run), or a note if the seconds are unknown."""
    compilations = [c for c in within(part_of_run, list(run.compilations.values())) if c.entry != "nested"]
    spent = seconds_within(compilations) if part_of_run is not None else run.compiling_seconds
    if spent is None:
        yield unchecked_note(message("unknown-seconds"))
        return
    if spent <= limit:
        return
    by_function: dict[str, float] = {}
    for c in compilations:
        by_function[c.function.id] = by_function.get(c.function.id, 0.0) + c.seconds
    slowest = sorted(by_function, key=lambda i: -by_function[i])[:MOST]
    some = tuple(
        message(
            "seconds-of-function", function=run.functions[i].display_name, seconds=Seconds(by_function[i])
        )
        for i in slowest
    )
    text = message(
        "too-many-seconds",
        spent=Seconds(spent),
        limit=Seconds(limit),
        slowest=Parts(some) if some else "unknown",
    )
    worst = max(compilations, key=lambda c: c.seconds, default=None)
    if worst is None:
        yield Finding(SECONDS, ERROR, CERTAIN, text, fix=SMALLER, seconds=spent)
        return
    function, longest = worst.function.display_name, Seconds(worst.seconds)
    yield _too_slow(worst, text, message("slowest-compilation", function=function, seconds=longest), spent)


def seconds_within(compilations: Sequence[Compilation]) -> float:
    """Return the wall time in seconds that tracing, lowering and compiling took in ``compilations``. Seconds
    in which several phases ran at once (in threads, or one inside another) count once."""
    phases = [
        (event.t_ns, event.seconds)
        for c in compilations
        for event in (c.traced, c.lowered, c.compiled, c.failed)
        if event is not None and event.seconds is not None and 0 <= event.seconds < MOST_SECONDS
    ]
    found = UnionOfSpans((end - int(spent * 1e9), end) for end, spent in phases).with_spans(()) / 1e9
    # If a call reuses an earlier trace, only its seconds are recorded.
    reused = sum(c.trace_seconds or 0.0 for c in compilations if c.traced is None and c.failed is None)
    return found + reused


def _seconds_of(f: Function, limit: float, part_of_run: Part | None) -> Iterator[Finding]:
    compilations = within(part_of_run, f.compilations)
    spent = seconds_within(compilations)
    if spent <= limit:
        return
    worst = max(compilations, key=lambda c: c.seconds)
    text = message(
        "too-many-seconds-of-function", function=f.display_name, spent=Seconds(spent), limit=Seconds(limit)
    )
    title = message(
        "longest-of",
        text=text,
        compilations=Count(len(compilations), "compilation"),
        seconds=Seconds(worst.seconds),
    )
    yield _too_slow(worst, title, text, spent)


def _too_slow(worst: Compilation, text: Message, evidence: Message, spent: float) -> Finding:
    found = [Evidence(evidence, compilation=worst.id, source=worst.site, step=worst.step)]
    return Finding(SECONDS, ERROR, CERTAIN, text, worst.function.id, worst.site, found, SMALLER, spent)


def _times(n: int) -> Message:
    return message("once") if n == 1 else message("so-often", n=n)
