"""Compare a run with a baseline, the saved figures of an earlier run. A figure that became worse gives an
error, a figure that became better gives a note.

If the baseline is from another JAX minor version, another platform or other devices, no figures are compared,
because another compiler makes other programs from the same source. The result is then a note with these
differences.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from jaxscope.analysis.grouping import grouped
from jaxscope.check.baseline import extract, programs, schema, transfers
from jaxscope.check.baseline.extract import Extracted, FunctionEntry
from jaxscope.check.baseline.pairing import ACCEPT, REFRESH, SHOWN, note, pairs
from jaxscope.check.baseline.schema import Baseline
from jaxscope.check.selection import Filter
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.rules import registry
from jaxscope.schema.causes import Cause
from jaxscope.schema.findings import CERTAIN, ERROR, LIKELY, NOTE, WARNING, Evidence, Finding, extended
from jaxscope.schema.messages import Count, Field, Message, Parts, message

COMPILATIONS, UNUSED, IMPROVED, ELSEWHERE = "JX701", "JX710", "JX711", "JX712"
RECOMPILES = ("JX10", "JX11", "JX12")
OPERATIONS = 3  # operations that are named in a title


class Comparison(msgspec.Struct, frozen=True):
    """The result of comparing a run with a baseline (the saved figures of an earlier run).

    Attributes:
      findings: errors about figures that became worse, and notes about figures that became better or were not
        compared.
      new: findings of the rules (such as JX101) that the baseline does not have. If figures were compared,
        notes become warnings, which make the check fail.
    """

    findings: list[Finding]
    new: list[Finding]


def extract_run(run: Run, chosen: Filter, roots: Sequence[str] = ()) -> Extracted:
    """Return the figures of ``run`` as a baseline file keeps them, with the records that they come from.
    ``chosen`` removes findings that comments or options exclude. File names become relative to the
    directories ``roots``; empty: to the directory in which the program ran."""
    return extract.extract(run, chosen.keep(registry.findings(run)), roots)


def findings(baseline: Baseline, now: Extracted, chosen: Filter) -> list[Finding]:
    """Return the findings of a comparison of ``now``, the figures of a run, with ``baseline``: errors about
    figures that became worse, findings that the baseline does not have, and notes. ``chosen``, with which
    ``now`` was extracted, removes findings that comments or options exclude."""
    # A finding whose code is not selected is not computed for the run. That does not mean that it is gone.
    saved = {key: n for key, n in baseline.findings.items() if chosen.takes(key.partition(" ")[0])}
    found = compare(msgspec.structs.replace(baseline, findings=saved), now)
    return merged([*chosen.keep(found.findings), *found.new])


def failing(all_findings: Iterable[Finding], *, strict: bool) -> list[Finding]:
    """Return the findings in ``all_findings`` that make a check fail: errors and warnings, and with
    ``strict`` also notes, except notes about figures that became better. Findings that depend on measured
    seconds (``Finding.by_chance``) are never among them, because another run may not have them."""
    sure = [f for f in all_findings if not f.by_chance]
    return [f for f in sure if f.severity != NOTE or (strict and f.code != IMPROVED)]


def compare(baseline: Baseline, now: Extracted) -> Comparison:
    """Compare ``now``, the figures of a run, with ``baseline``, the saved figures of an earlier run.

    Functions that were moved are paired with their old names. New findings of the rules are looked for in any
    case. If JAX version, platform or devices differ, the figures are not compared, and a note lists the
    differences."""
    baseline, renamed = _with_current_names(baseline, now)
    different = _environment_differences(baseline, now.baseline)
    new = _new(baseline, now, raised=not different)
    if different:
        text = message("baseline-of-other-environment", differences=Parts((*different,), "; "))
        return Comparison([note(ELSEWHERE, text, message("fix-same-environment"))], new)
    found = []
    for old, name in renamed.items():
        entry = now.functions.get(name)
        f = entry.function if entry is not None else None
        found.append(note(UNUSED, message("baseline-renamed", before=old, now=name), REFRESH, f, old))
    if baseline.functions and now.functions and not baseline.functions.keys() & now.functions.keys():
        found.append(note(UNUSED, message("baseline-of-other-program"), message("fix-own-baseline")))
    found += _functions(baseline, now)
    found += _eager(baseline, now)
    found += transfers.compare(baseline, now)
    found += _resolved(baseline, now)
    return Comparison(found, new)


def _with_current_names(baseline: Baseline, now: Extracted) -> tuple[Baseline, dict[str, str]]:
    """Return ``baseline`` with the names that its moved functions have in the run ``now``, and a dict: old
    name -> new name, ``old.py::step`` -> ``new.py::step``. See ``_moved``."""
    moved = {
        **_moved(baseline.functions, now.functions),
        **_moved(baseline.eager, now.eager),
        **_moved(baseline.transfers or {}, now.transfers),
    }
    if not moved:
        return baseline, {}

    def key(text: str) -> str:
        code, _, rest = text.partition(" ")
        old = next((old for old in moved if rest == old or rest.startswith(old + " ")), None)
        return text if old is None else f"{code} {moved[old]}{rest[len(old) :]}"

    renamed = msgspec.structs.replace(
        baseline,
        functions={moved.get(name, name): f for name, f in baseline.functions.items()},
        eager={moved.get(name, name): ops for name, ops in baseline.eager.items()},
        transfers=None
        if baseline.transfers is None
        else {moved.get(name, name): ways for name, ways in baseline.transfers.items()},
        findings={key(text): n for text, n in baseline.findings.items()},
    )
    return renamed, moved


def _moved(before: Collection[str], after: Collection[str]) -> dict[str, str]:
    """Return old name -> new name of functions whose file was moved: ``old.py::step`` -> ``new.py::step``.
    ``step`` counts as moved if exactly one name that ends in ``::step`` is only in ``before``, and exactly
    one is only in ``after``."""

    def by_tail(names: Iterable[str]) -> dict[str, list[str]]:
        return grouped((name.partition("::")[2], name) for name in names)

    gone = by_tail(n for n in before if n not in after)
    came = by_tail(n for n in after if n not in before)
    return {
        olds[0]: came[tail][0]
        for tail, olds in sorted(gone.items())
        if tail and len(olds) == len(came.get(tail, ())) == 1
    }


def _environment_differences(before: Baseline, after: Baseline) -> list[Message]:
    """Return a message for each difference in JAX version, platform and devices between the baseline
    ``before`` and the run ``after``. Empty: their figures can be compared."""

    def devices(b: Baseline) -> str | None:
        return ", ".join(f"{n} x {kind}" for kind, n in sorted(b.devices.items())) or None

    pairs = (
        ("JAX", before.jax, after.jax),
        ("platform", before.platform, after.platform),
        ("devices", devices(before), devices(after)),
    )
    unknown = message("environment-unknown")
    return [
        message("environment-differs", what=what, before=x or unknown, now=y or unknown)
        for what, x, y in pairs
        if x != y
    ]


def merged(all_findings: list[Finding]) -> list[Finding]:
    """Return ``all_findings`` without findings that report the same recompiles twice. A finding of a rule
    about recompiles (JX10x to JX12x) is removed if compilations in its evidence are also in the evidence of
    exactly one JX701 finding, which comes from the comparison with the baseline. That finding gets the advice
    of the removed one."""
    reported: dict[str | None, int] = {}
    for n, f in enumerate(all_findings):
        if f.code == COMPILATIONS:
            reported.update((e.compilation, n) for e in f.evidence if e.compilation is not None)
    kept = dict(enumerate(all_findings))
    for n, f in enumerate(all_findings):
        about = {reported[e.compilation] for e in f.evidence if e.compilation in reported}
        if f.code.startswith(RECOMPILES) and len(about) == 1:
            at = about.pop()
            kept[at] = msgspec.structs.replace(kept[at], fix=extended(f.fix, "fix-or-accept") or kept[at].fix)
            del kept[n]
    return list(kept.values())


def _new(baseline: Baseline, now: Extracted, *, raised: bool) -> list[Finding]:
    """Return the findings of the rules in the run ``now`` that ``baseline`` does not have: of a finding that
    the run has 3 times and the baseline once, 2 are new. With ``raised``, notes become warnings."""
    new = [f for key, members in now.findings.items() for f in members[baseline.findings.get(key, 0) :]]
    return [msgspec.structs.replace(f, severity=WARNING) if raised and f.severity == NOTE else f for f in new]


def _resolved(baseline: Baseline, now: Extracted) -> Iterator[Finding]:
    gone = [k for k, n in baseline.findings.items() if len(now.findings.get(k, ())) < n]
    if gone:
        yield note(IMPROVED, message("baseline-findings-gone", findings=_some(sorted(gone))), REFRESH)


def _some(parts: Sequence[Field]) -> Parts:
    """Return the first five of ``parts`` joined by ``;`` as one field of a message, with ``...`` if there are
    more."""
    return Parts((*parts[:SHOWN], *([message("and-so-on")] if len(parts) > SHOWN else [])), "; ")


# -- functions -------------------------------------------------------------------------------------------


def _functions(baseline: Baseline, now: Extracted) -> Iterator[Finding]:
    for name in sorted(baseline.functions.keys() | now.functions.keys()):
        old, entry = baseline.functions.get(name), now.functions.get(name)
        if entry is None:
            text = message("baseline-function-gone", function=name)
            yield note(UNUSED, text, message("fix-run-or-remove"), about=name)
        elif old is None:
            yield _new_function(entry)
        else:
            paired, unmatched = pairs(old, entry)
            yield from _with_unmatched_programs(
                list(_counts(old, entry)), programs.without_counterpart(entry, unmatched)
            )
            yield from programs.compare(baseline, entry, paired)


def _with_unmatched_programs(counts: list[Finding], unmatched: Finding | None) -> Iterator[Finding]:
    """Yield the findings ``counts``, about how often one function was compiled, and ``unmatched``, about
    programs of this function that the baseline does not have (or None).

    If one of ``counts`` is an error (JX701), it gets the evidence of ``unmatched``, which is then not
    yielded: both report the same additional compilations.
    """
    for f in counts:
        if unmatched is not None and f.code == COMPILATIONS:
            f = msgspec.structs.replace(f, evidence=[*f.evidence, *unmatched.evidence])
            unmatched = None
        yield f
    if unmatched is not None:
        yield unmatched


# kind of call (``Compilation.entry``) -> how the evidence describes it
_CALLED = message("called-here")
_ENTERED = {
    "nested": message("called-inside-trace"),
    "transform": message("called-under-transform"),
    "aot": message("prepared-ahead-of-time"),
}


def _new_function(entry: FunctionEntry) -> Finding:
    f, n = entry.function, entry.saved
    counted = (
        message("counted-compiled", n=n.compilations)
        if n.compilations
        else message("counted-traced", n=n.traces)
    )
    first = f.compilations[0]
    return Finding(
        code=COMPILATIONS,
        severity=ERROR,
        certainty=CERTAIN,
        title=message("baseline-new-function", function=f.display_name, counted=counted),
        function=f.id,
        source=first.site or f.defined,
        evidence=[
            Evidence(_ENTERED.get(c.entry, _CALLED), compilation=c.id, source=c.site, step=c.step)
            for c in f.compilations[:SHOWN]
        ],
        fix=message("fix-or-accept", fix=message("fix-call-inside")),
        seconds=f.seconds,
    )


def _recompiled(f: Function, surplus: Sequence[tuple[Compilation, Cause]], total: Message | None) -> Finding:
    """Return an error about ``surplus``, recompiles of ``f`` in order of time, with a cause that the baseline
    does not have, or has less often. ``total`` is a message with a count that grew, now and in the baseline;
    None if no count grew."""
    last, cause = surplus[-1]
    times = message("baseline-times", n=len(surplus)) if len(surplus) > 1 else None
    return Finding(
        code=COMPILATIONS,
        severity=ERROR,
        certainty=CERTAIN if cause.certainty == CERTAIN else LIKELY,
        title=message("baseline-recompiled", total=total, times=times, cause=cause)
        if total is not None
        else message("baseline-recompiled-otherwise", function=f.display_name, times=times, cause=cause),
        function=f.id,
        source=last.site or f.defined,
        evidence=[
            Evidence(
                message("because", cause=c), compilation=o.id, program=o.program, source=o.site, step=o.step
            )
            for o, c in surplus[-SHOWN:]
        ],
        fix=message("fix-show-keys", function=f.seen.name),
        seconds=sum(o.seconds for o, _ in surplus),
        path=cause.path,
    )


def _counts(old: schema.Function, entry: FunctionEntry) -> Iterator[Finding]:
    """Yield errors if a function was traced, lowered or compiled more often than in the baseline, or
    recompiled more often for one of the causes. If there is no error and one of the counts fell, yield a
    note.

    Args:
      old: the function in the baseline.
      entry: the function in the run.
    """
    f, new = entry.function, entry.saved
    name = f.display_name
    counts = [
        (message("counted-compiled", n=new.compilations), old.compilations, new.compilations),
        (message("counted-lowered", n=new.lowerings), old.lowerings, new.lowerings),
        (message("counted-traced", n=new.traces), old.traces, new.traces),
    ]
    more = [message("baseline-count", counted=text, before=x) for text, x, y in counts if y > x]
    total = message("baseline-counted", function=name, counted=next(iter(more), None))
    caused = [k for k in new.causes if new.causes[k] > old.causes.get(k, 0)]
    for key in caused:
        surplus = entry.recompiles[key][old.causes.get(key, 0) :]
        yield _recompiled(f, surplus, total if more else None)
    if more and not caused:
        last_call = next((c for c in reversed(f.compilations) if c.reached_phases), f.compilations[-1])
        anew = message("baseline-counted-anew", function=name, counted=more[0])
        yield Finding(
            code=COMPILATIONS,
            severity=ERROR,
            certainty=CERTAIN,
            title=anew if new.compilations > old.compilations else total,
            function=f.id,
            source=last_call.site or f.defined,
            evidence=[Evidence(total, compilation=last_call.id, source=last_call.site, step=last_call.step)],
            fix=ACCEPT,
            seconds=last_call.seconds,
        )
    less = tuple(message("baseline-count", counted=text, before=x) for text, x, y in counts if y < x)
    if less and not more and not caused:
        text = message("baseline-function-improved", function=name, counts=Parts(less, "; "))
        yield note(IMPROVED, text, REFRESH, f)


def _eager(baseline: Baseline, now: Extracted) -> Iterator[Finding]:
    """Yield an error for each calling function with operations outside jit that were compiled more often
    in the run ``now`` than in ``baseline``. Yield one note about all operations that were compiled less
    often."""
    for where, ops in now.eager.items():
        old = baseline.eager.get(where, {})
        more = {op: members for op, members in ops.items() if len(members) > old.get(op, 0)}
        if not more:
            continue
        worst = sorted(more, key=lambda op: old.get(op, 0) - len(more[op]))
        each = [
            message("baseline-operation", operation=op, now=len(more[op]), before=old.get(op, 0))
            for op in worst
        ]
        extra = [c for op in worst for c in more[op][old.get(op, 0) :]]
        yield Finding(
            code=COMPILATIONS,
            severity=ERROR,
            certainty=CERTAIN,
            title=message(
                "baseline-eager-operations", function=where.partition("::")[2], operations=_first(each)
            ),
            source=extra[0].site,
            evidence=[
                Evidence(c.function.seen.name, compilation=c.id, source=c.site, step=c.step)
                for c in extra[:SHOWN]
            ],
            fix=message("fix-or-accept", fix=message("fix-jit-or-numpy")),
            seconds=sum(c.seconds for c in extra),
            subject=("eager", where),
        )
    fewer = sorted(
        (where, op)
        for where, ops in baseline.eager.items()
        for op, n in ops.items()
        if len(now.eager.get(where, {}).get(op, ())) < n
    )
    if fewer:
        some = _some([message("operation-of-function", function=w, operation=op) for w, op in fewer])
        yield note(IMPROVED, message("baseline-fewer-operations", operations=some), REFRESH)


def _first(parts: list[Message]) -> Parts:
    """Return the first three of ``parts`` and the number of the others as one field of a message: ``a, b, c
    and 4 more operations``."""
    left = len(parts) - OPERATIONS
    listed = Parts((*parts[:OPERATIONS],))
    return Parts(
        (listed, message("and-more", others=Count(left, "more operation")) if left > 0 else None), ""
    )
