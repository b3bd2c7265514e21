"""Find functions that are traced, lowered or compiled after training step N, the last step that may compile
(rule JX190). This works for a run, a block of code and a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from jaxscope.analysis.cause_grouping import same_change
from jaxscope.check import unknown
from jaxscope.errors import UsageError
from jaxscope.model import causes
from jaxscope.model.function_lookup import matches
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.model.steps import Steps
from jaxscope.rules import recompiles, registry, size_changes
from jaxscope.rules.size_changes import Change, Miss
from jaxscope.schema.causes import Cause, RecordingBegan
from jaxscope.schema.findings import CERTAIN, ERROR, LIKELY, NOTE, Evidence, Finding, Fix, extended
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import UNHEARD
from jaxscope.schema.messages import Count, Message, Parts, Words, message
from jaxscope.schema.steps import Either, Step, single_number

CODE = "JX190"
STEPS_UNKNOWN = "steps-unknown"
EVIDENCE = 5  # compilations in one finding
EVIDENCE_AMONG_OTHERS = 3  # the same, if the finding also lists compilations of other functions

# A part of a run (a test, a block of code): compilation id -> its step, counted from the part's beginning.
Part = Mapping[str, Step]


class Late(msgspec.Struct, frozen=True):
    """A finding about compilations after step N, the last step that may compile.

    Attributes:
      compilations: ids of the compilations that the finding is about. Empty if it is unknown whether they
        were after step N, or if a function does not exist.
    """

    finding: Finding
    compilations: frozenset[str] = frozenset()


def recompiles_after(
    run: Run,
    n: int,
    functions: Sequence[str] | None = None,
    allow_cache_hits: bool = False,
    part_of_run: Part | None = None,
    since: str | None = None,
) -> list[Finding]:
    """Return the findings about functions traced, lowered or compiled after step ``n`` (0: nothing may
    compile at all). The arguments and exceptions are those of ``late_after``."""
    return [late.finding for late in late_after(run, n, functions, allow_cache_hits, part_of_run, since)]


def of_part(
    run: Run, n: int, functions: Sequence[str] | None, part_of_run: Part, since: str | None = None
) -> list[Finding]:
    """Return the findings about functions that a block of code or a test traced, lowered or compiled after
    step ``n``. 0: nothing may compile at all.

    Args:
      functions: names or patterns of the functions to check; None: all.
      part_of_run: id of a compilation in the block or the test -> its step.
      since: what messages call the recorded code (``this block``), if functions may have been compiled before
        the recording started; else None.

    Raises:
      UsageError: the step of a compilation is unknown, and there would be an error if ``n`` were 0.
    """
    if not n or None not in part_of_run.values():
        return recompiles_after(run, n, functions, part_of_run=part_of_run, since=since)
    found = recompiles_after(run, 0, functions, part_of_run=part_of_run)
    if any(f.code == CODE and f.severity == ERROR for f in found):
        raise unknown_steps(run, part_of_run)
    return [f for f in found if f.code != CODE]


def late_after(
    run: Run,
    n: int,
    functions: Sequence[str] | None = None,
    allow_cache_hits: bool = False,
    part_of_run: Part | None = None,
    since: str | None = None,
    keep: Callable[[str, Frame | None], bool] = lambda code, site: True,
) -> list[Late]:
    """Return findings about functions that were traced, lowered or compiled after step ``n``, those with the
    most seconds first.

    Functions that were recompiled because of one change of size share a finding. An operation outside jit or
    a library's function counts only if it was compiled. If a function is traced inside another one that is
    reported, only the outer function is reported. A finding about a library's function is a note. The last
    findings are errors about compilations of which it is unknown whether they were after step ``n``, and
    about ``functions`` that do not exist.

    Args:
      n: the last step that may compile; 0: nothing may compile at all, and steps need not be counted.
      functions: names or patterns of the functions to check; None: all.
      allow_cache_hits: whether to ignore programs that were loaded from the persistent cache, except those of
        library functions.
      part_of_run: id of a compilation in a test or a block of code -> its step; only these are checked. None:
        the whole run.
      since: what messages call the recorded code (``this block``), if functions may have been compiled before
        the recording started; else None.
      keep: takes (the code JX190, the line of a compilation), and returns whether to report this compilation.

    Raises:
      UsageError: ``n`` is not 0, 1, 2, ...; or ``part_of_run`` is None, ``n`` is not 0, and no process counts
        steps.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise UsageError(
            f"no recompiles after step {n!r}: the step must be 0, 1, 2, ...",
            hint="0 allows no compilation; 1 allows those of the first step",
            slug="gate-after",
        )
    steps = Steps(run)
    if part_of_run is None:
        if n and not any(steps.known(p) for p in run.processes.values()):
            raise unknown_steps(run)
        part_of_run = {c.id: steps.of(c) for c in run.compilations.values()}
    late: list[Miss] = []
    unplaced: list[Compilation] = []
    for c in run.compilations.values():
        if c.id not in part_of_run or not (_counts(c, allow_cache_hits) or _of_library(c)):
            continue
        if functions is not None and not any(matches(c.function, pattern) for pattern in functions):
            continue
        step = single_number(part_of_run[c.id], n)
        if (n and step is not None and step <= n) or not keep(CODE, c.site):
            continue
        if n and step is None:
            unplaced.append(c)
        else:
            late.append(Miss(c, step, _cause(run, c, since)))
    return [
        *(
            Late(_finding(run, n, change, since), frozenset(m.compilation.id for m in change.every))
            for change in size_changes.together(run, _grouped(_outermost(run, late)))
        ),
        *map(Late, _unplaced(n, [c for c in unplaced if not _of_library(c)], part_of_run)),
        *(Late(f) for pattern in functions or () for f in unknown.no_such_function(run, pattern)),
    ]


def _cause(run: Run, c: Compilation, since: str | None) -> Cause:
    """Return the main cause of the compilation ``c``. If this is the first recorded compilation of its
    function and ``since`` is not None, the cause also says that the recording began with ``since`` (``this
    block``)."""
    cause = causes.of(run, c)[0]
    if cause.kind != "first" or since is None:
        return cause
    return msgspec.structs.replace(cause, detail=RecordingBegan(since))


def within(part_of_run: Part | None, compilations: Sequence[Compilation]) -> list[Compilation]:
    """Return those of ``compilations`` that belong to ``part_of_run`` (a block of code or a test); None:
    all."""
    return [c for c in compilations if part_of_run is None or c.id in part_of_run]


def unknown_steps(run: Run | None = None, part_of_run: Part | None = None) -> UsageError:
    """Return the error that nothing counted the training steps. The hint says how to count them: with
    ``run``, it may suggest the calls of the user's function that was compiled most often.

    Args:
      run: the run that was checked.
      part_of_run: the compilations of a test or a block of code, to suggest only a function among these.
    """
    busiest = None
    if run is not None:
        users = [
            f for f in run.functions.values() if f.user and f.compiled and within(part_of_run, f.compilations)
        ]
        busiest = max(users, key=lambda f: (f.compiled, f.seconds), default=None)
    name = busiest.seen.name if busiest is not None else "NAME"
    reasons = [lost.reason for lost in run.lost if lost.seam == "step_function"] if run is not None else []
    why = f" ({reasons[0]})" if reasons else ""
    # --step-function cannot count calls through a library's wrapper, nor calls of a lambda: it has no name.
    wrappers = busiest.seen.wrappers if busiest is not None else []
    outside = not reasons and name.isidentifier() and not any(w.startswith(UNHEARD) for w in wrappers)
    option = f", or record with jaxscope run --step-function {name}" if outside else ""
    return UsageError(
        f"nothing counted the steps, so it is unknown what was compiled after which step{why}",
        hint="call jaxscope.step() at the end of each step, or put @jaxscope.watch(step=True) on the"
        " step function"
        f"{option}; with 0 (nothing may compile) no steps are needed",
        slug=STEPS_UNKNOWN,
    )


def _counts(c: Compilation, allow_cache_hits: bool) -> bool:
    """Return whether ``c`` is forbidden after step N: it traced, lowered or compiled a function of the user,
    or compiled an operation outside jit or a function whose name is unknown. With ``allow_cache_hits``, a
    program from the persistent cache is allowed."""
    f = c.function
    if not c.reached_phases or (allow_cache_hits and c.persistent_hit):
        return False
    return f.user or bool(c.reached_phases & 4 and (f.operation or _nameless(f)))


def _of_library(c: Compilation) -> bool:
    """Return whether ``c`` compiled a library's jitted function that a line of the user calls."""
    library = c.function.seen.library and not c.function.operation and not _nameless(c.function)
    return library and c.entry == "call" and c.site is not None and bool(c.reached_phases & 4)


def _nameless(f: Function) -> bool:
    """Return whether the name of ``f`` is unknown, because it was lowered before the recording began."""
    seen = f.seen
    return seen.library and not seen.eager and seen.file is None and seen.module is None


def _outermost(run: Run, late: Sequence[Miss]) -> list[Miss]:
    """Return ``late`` without the compilations that happened while another function in ``late`` (but no
    library's function) was traced, lowered or compiled."""
    by_id = {m.compilation.id: m for m in late if not _of_library(m.compilation)}
    return [m for m in late if not any(_runs_at(by_id.get(o.id), m) for o in _around(run, m.compilation))]


def _runs_at(outer: Miss | None, inner: Miss) -> bool:
    """Return whether ``inner`` happened before the last phase of ``outer`` ended; False if ``outer`` is
    None."""
    if outer is None:
        return False
    c = outer.compilation
    ends = [e.t_ns for e in (c.traced, c.lowered, c.compiled, c.failed) if e is not None]
    return c.phase is not None or inner.compilation.t_ns <= max(ends, default=0)


def _around(run: Run, c: Compilation) -> Iterator[Compilation]:
    """Yield the calls that were being traced when ``c`` happened, the innermost first."""
    seen = {c.id}
    while c.missed is not None and c.missed.inside is not None:
        outer = run.compilation(c.process, c.missed.inside)
        if outer is None or outer.id in seen:
            return
        seen.add(outer.id)
        yield outer
        c = outer


def _grouped(late: Sequence[Miss]) -> list[list[Miss]]:
    """Return ``late`` in groups that become one finding each, the group with the most seconds first. A group
    has the compilations of one function with the same cause, and outside jit also with the same line, in
    order of time."""
    groups: dict[object, list[Miss]] = {}
    for one in sorted(late, key=lambda x: (x.compilation.t_ns, x.compilation.call)):
        c, cause = one.compilation, one.cause
        line = c.site.place if c.site is not None and c.function.operation else None
        groups.setdefault((c.function.id, cause.kind, cause.path, line), []).append(one)
    return sorted(groups.values(), key=lambda g: -sum(x.compilation.seconds for x in g))


def _finding(run: Run, n: int, change: Change, since: str | None) -> Finding:
    """Return the finding about ``change``, recompiles after step ``n``: an error, or a note if a library's
    function was recompiled. ``since`` is an argument of ``late_after``."""
    group = change.group
    first, last = group[0], group[-1]
    f = first.compilation.function
    name = f.display_name
    subject: Words = message("eager-operation", name=name) if f.operation else name
    if _nameless(f):
        subject = message("function-without-name")
    library = _of_library(last.compilation)
    if library:
        package = (f.seen.module or "a library").partition(".")[0]
        subject = message("function-of-library", name=name, library=package)
    # If other functions are listed, too, each call has its function and step, and all are in order of time.
    apart = [
        (x.compilation.t_ns, call_evidence(run, x, named=bool(change.others))) for x in _shown(group, change)
    ]
    return Finding(
        code=CODE,
        severity=NOTE if library else ERROR,
        certainty=CERTAIN if all(x.cause.certainty == CERTAIN for x in group) else LIKELY,
        title=message(
            "compiled-late"
            if all(same_change(x.cause, last.cause) for x in group)
            else "compiled-late-variously",
            function=subject,
            done=_done(group),
            when=_when(n, group),
            cause=last.cause,
            also=size_changes.also(change),
        ),
        function=f.id,
        source=last.compilation.site,
        evidence=[
            e for _, e in sorted([*apart, *size_changes.evidence(run, change)], key=lambda item: item[0])
        ],
        fix=_fix(run, n, change, since),
        seconds=change.seconds,
        subject=(last.cause.kind, last.cause.path, last.compilation.site if f.operation else None),
    )


def _shown(group: Sequence[Miss], change: Change) -> list[Miss]:
    """Return the compilations of ``group`` that a finding lists as evidence: the first ones and the last, at
    most EVIDENCE, or EVIDENCE_AMONG_OTHERS if the finding also lists other functions (``change.others``)."""
    most = EVIDENCE_AMONG_OTHERS if change.others else EVIDENCE
    return [*group[: most - 1], *group[most - 1 :][-1:]]


def call_evidence(run: Run, x: Miss, *, named: bool) -> Evidence:
    """Return the call ``x`` with its number and its cause as evidence; with ``named``, the name of the
    function is before the number: ``step#3``."""
    c = x.compilation
    name = c.function.display_name if named else ""
    text = message("recompiled-call", call=f"{name}#{run.number(c)}", cause=x.cause, than=None)
    return Evidence(text, compilation=c.id, program=c.program, source=c.site, step=x.step)


def _fix(run: Run, n: int, change: Change, since: str | None) -> Fix | None:
    """Return advice on how to avoid the recompiles ``change`` after step ``n``; None: there is none.
    ``since`` is an argument of ``late_after``."""
    group = change.group
    if group[-1].cause.kind == "first" and since is not None:
        return Fix(message("fix-record-all"))
    if group[-1].cause.kind == "first":
        return Fix(
            message("fix-warm-up", when=message("by-step", n=n) if n else message("before")),
            "warm_up",
            {"step": n},
        )
    known = recompiles.group_of(run, [(x.compilation, x.cause) for x in group])
    fix = recompiles.advice(known)
    eagerly = change.eager and change.others and fix is not None
    return extended(fix, "fix-pad-before-jit") if eagerly else fix


def _done(group: Sequence[Miss]) -> Message:
    """Return a message that says what happened to the function in ``group``: ``traced and compiled``,
    ``lowered and compiled 3 times``."""
    traced, lowered, compiled = (
        any(x.compilation.reached_phases & phase for x in group) for phase in (1, 2, 4)
    )
    phases: Words
    if compiled and traced:
        phases = message("traced-and-compiled")
    elif compiled and lowered:
        phases = message("lowered-and-compiled")
    elif traced and lowered:
        phases = message("traced-and-lowered")
    else:
        phases = "compiled" if compiled else "lowered" if lowered else "traced"
    cached = all(x.compilation.persistent_hit for x in group)
    return message(
        "done",
        phases=phases,
        cached=message("from-persistent-cache") if cached else None,
        times=message("done-times", n=len(group)) if len(group) > 1 else None,
    )


def _when(n: int, group: Sequence[Miss]) -> Message:
    """Return a message with the steps of the compilations of ``group``: `` in steps 3 to 5, but nothing may
    compile after step 2``. ``n``, in this example 2, is the last step that may compile. If ``n`` is 0 or no
    step is known, the message has no steps."""
    steps = sorted({x.step for x in group if x.step is not None})
    if not n or not steps:
        return message("where-nothing-may-compile")
    if len(steps) == 1:
        return message("in-step-after", step=steps[0], n=n)
    return message("in-steps-after", first=steps[0], last=steps[-1], n=n)


def _unplaced(n: int, compilations: Sequence[Compilation], part_of_run: Part) -> Iterator[Finding]:
    """Yield errors that it is unknown whether ``compilations`` were after step ``n``, one error for each
    reason. ``part_of_run`` is a dict: id of a compilation -> its step."""
    by_reason: dict[object, tuple[Message, list[Compilation]]] = {}
    for c in compilations:
        step, pid = part_of_run[c.id], c.process.pid
        key, reason = (
            (step.because.slug, step.because)
            if isinstance(step, Either)
            else (pid, message("process-without-steps", pid=str(pid)))
        )
        by_reason.setdefault(key, (reason, []))[1].append(c)
    for reason, uncertain in by_reason.values():
        names = sorted({c.function.name for c in uncertain})
        more = (message("and-so-on"),) if len(names) > 3 else ()
        text = message(
            "maybe-late",
            compilations=message("a-compilation")
            if len(uncertain) == 1
            else Count(len(uncertain), "compilation"),
            functions=Parts((*names[:3], *more)),
            step=n,
            reason=reason,
        )
        yield unknown.unchecked(text, uncertain[0], message("fix-count-in-one-way"))


def without_late(findings: Sequence[Finding], late: Sequence[Finding]) -> list[Finding]:
    """Return ``findings`` without the findings of rules about recompiles (such as JX101) that have a
    compilation in their evidence which the evidence of ``late`` has, too."""
    reported = {e.compilation for f in late for e in f.evidence} - {None}
    codes = {r.code for r in registry.rules().values() if r.recompiles}
    return [
        f for f in findings if f.code not in codes or not any(e.compilation in reported for e in f.evidence)
    ]
