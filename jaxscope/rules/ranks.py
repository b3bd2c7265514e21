"""Rules JX850 to JX854: processes (ranks) of one job that do not run the same programs in the same order.
Such a job usually hangs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jaxscope.analysis.avals import short_aval
from jaxscope.analysis.stablehlo import differences
from jaxscope.model import ranks
from jaxscope.model.rank_log import Rank, Seen
from jaxscope.model.ranks import Divergence, Job
from jaxscope.model.run import Run
from jaxscope.rules.registry import add, declare, in_order
from jaxscope.schema import function_ids
from jaxscope.schema.events import RankGroup, RanksCompiled
from jaxscope.schema.findings import CERTAIN, ERROR, LIKELY, WARNING, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame, Key
from jaxscope.schema.messages import Field, Message, Seconds, message

MOST_EVIDENCE = 6
PUBLISHED = "published"
DIFFERENCES = ("setting-differs", "argument-differs", "line-differs")

add("JX850", "ranks-run-other-programs", ERROR, lambda run: _published(run, "JX850"), needs_comparison=True)
add("JX851", "rank-runs-one-program-more", ERROR, lambda run: _published(run, "JX851"), needs_comparison=True)
declare("JX852", "ranks-run-in-another-order", ERROR)
add("JX853", "rank-ended-first", WARNING, lambda run: _published(run, "JX853"), needs_comparison=True)
declare("JX854", "ranks-compiled-other-collectives", ERROR)

_CODES = {
    ranks.OTHER: "JX850",
    ranks.EXTRA: "JX851",
    ranks.MISSING: "JX851",
    ranks.ORDER: "JX852",
    ranks.STEP: "JX852",
}


def findings(job: Job) -> list[Finding]:
    """Return the findings about ``job``, a job of several processes (ranks): ranks whose programs differ from
    those of the majority, a rank that ended first, and ranks that compiled other collectives."""
    return in_order(_all(job))


def _all(job: Job) -> Iterator[Finding]:
    # A rank that ended before the position at which the programs differ does not count as different.
    found = [d for d in (*job.divergences(), *job.rest()) if job.certain(d) is not None]
    first = job.first_to_leave()
    if first is not None and not (_left_orderly(first) and any(first in d.most for d in found)):
        yield ended_first(job, first)  # otherwise the ranks that differ from the majority are the cause
    for d in found:
        yield differs(job, d)
    for program in job.collectives_differ():
        ranks, function = named(job, program.ranks), program.here.name
        yield Finding(
            code="JX854",
            severity=ERROR,
            certainty=CERTAIN,
            title=message(
                "ranks-other-collectives",
                ranks=ranks,
                function=function,
                others=_others(job, program.most),
            ),
            source=program.here.site,
            evidence=[Evidence(message("rank-compiled", ranks=ranks, function=function))],
            fix=Fix(message("fix-same-compiler")),
            subject=("collectives", program.there.program),
        )


def _left_orderly(rank: Rank) -> bool:
    """Return whether ``rank`` ended without an error, as far as this is known."""
    return rank.died is None and (rank.left or rank.code in (0, None))


def differs(job: Job, d: Divergence) -> Finding:
    """Return the finding that some ranks of ``job`` did not compile the same programs in the same order, or
    not in the same training step, as the majority. ``d`` has the ranks, and the position of the difference in
    their sequences of programs."""
    shown = d.here or d.there
    assert shown is not None
    title, evidence = _title(job, d), list(_evidence(job, d))
    if evidence and isinstance(evidence[0].text, Message) and evidence[0].text.slug in DIFFERENCES:
        title = message("ranks-differ-in", finding=title, difference=evidence[0].text)
    source = next((e.source for e in evidence if e.source is not None), None) or shown.site or shown.defined
    return Finding(
        code=_CODES[d.kind],
        severity=ERROR,
        certainty=CERTAIN if shown.ordered and job.certain(d) else LIKELY,
        title=title,
        source=source,
        evidence=evidence[:MOST_EVIDENCE],
        fix=Fix(message("fix-same-on-all-ranks")),
        subject=(d.kind, d.position, shown.program),
    )


def _title(job: Job, d: Divergence) -> Message:
    odd, most = named(job, d.ranks), _others(job, d.most)
    after = message("after-program", program=spelled(d.before)) if d.before is not None else None
    if d.kind == ranks.EXTRA and d.here is not None:
        return message("rank-extra-program", ranks=odd, program=spelled(d.here), after=after, others=most)
    if d.kind == ranks.MISSING and d.there is not None:
        return message("rank-missing-program", ranks=odd, program=spelled(d.there), after=after, others=most)
    assert d.here is not None and d.there is not None
    fields: dict[str, Field] = {"ranks": odd, "program": spelled(d.here), "others": most}
    if d.kind == ranks.STEP:
        step, other = str(d.here.step), str(d.there.step)
        return message("ranks-other-step", step=step, other=other, **fields)
    if d.kind != ranks.ORDER and d.here.function == d.there.function:
        return message("ranks-other-version", after=after, **fields)
    fields |= {"after": after, "other": spelled(d.there)}
    return message("ranks-other-order" if d.kind == ranks.ORDER else "ranks-other-program", **fields)


def spelled(compilation: Seen) -> Message:
    """Return the program that ``compilation`` compiled as text for a message, by its function and
    the line of the call or definition: ``train_step at train.py:48``."""
    return message("program-of-line", function=compilation.name, line=compilation.site or compilation.defined)


def _evidence(job: Job, d: Divergence) -> Iterator[Evidence]:
    """Yield evidence for ``d``, a difference between the programs of some ranks of ``job`` and of the
    majority: settings of JAX, arguments or operations that differ, and last the lines of the compilations."""
    here, there = d.here, d.there
    if d.kind == ranks.EXTRA and here is not None:  # compare with the majority's version of the function
        same = [s for s in d.most[0].seen if s.function == here.function]
        there = same[-1] if same else there
    if (
        d.kind in (ranks.OTHER, ranks.EXTRA)
        and here is not None
        and there is not None
        and here.name == there.name
    ):
        who: dict[str, Field] = {"ranks": named(job, d.ranks), "others": _others(job, d.most)}
        for name, value, other in _settings(here, there):
            yield Evidence(message("setting-differs", name=name, value=value, other=other, **who))
        for path, value, other in _arguments(here.key, there.key):
            yield Evidence(message("argument-differs", path=path, value=value, other=other, **who))
        texts = ranks.text_of(d.ranks[0], here.stablehlo), ranks.text_of(d.most[0], there.stablehlo)
        if texts[0] is not None and texts[1] is not None and not _arguments(here.key, there.key):
            for at in differences.by_line(texts[1], texts[0])[:MOST_EVIDENCE]:
                text = message(
                    "line-differs",
                    line=at.source,
                    **who,
                    here=", ".join(at.after) or "nothing",
                    there=", ".join(at.before) or "nothing",
                )
                yield Evidence(text, source=at.source)
    for seen, holders in ((d.here, d.ranks), (d.there, d.most)):
        if seen is not None:
            text = message("rank-compiled", ranks=named(job, holders), function=spelled(seen))
            yield Evidence(text, source=seen.site, step=seen.step)


def _published(run: Run, code: str) -> Iterator[Finding]:
    """Yield the findings with the code ``code`` about ranks (processes of one job) that have no common run
    directory. They are made from events of rank 0, whose recording is ``run``."""
    seen = set()
    for event in run.main.ranks_compiled if run.main is not None else ():
        found, ranks_that_differ, text = _of_published(event)
        if found == code and ranks_that_differ not in seen:
            seen.add(ranks_that_differ)
            yield Finding(
                code=code,
                severity=WARNING if code == "JX853" else ERROR,
                certainty=CERTAIN if code == "JX850" else LIKELY,
                title=text,
                fix=Fix(message("fix-same-on-all-ranks")),
                subject=(PUBLISHED, event.position, ranks_that_differ),
            )


def published(run: Run) -> list[Finding]:
    """Return the findings about ranks (processes of one job) that have no common run directory: where they
    compiled different programs, or ended early. They are made from events of rank 0, whose recording is
    ``run``."""
    return [f for code in ("JX850", "JX851", "JX853") for f in _published(run, code)]


def without_published(rank_0_findings: Iterable[Finding], job: Job | None) -> list[Finding]:
    """Return ``rank_0_findings``, the findings of rank 0 (the first process of a job). If ``job`` has the
    logs of all ranks, the findings about different ranks that rank 0 made while the job ran are left out.
    ``job`` is None if there is no job."""
    if job is None or job.missing:
        return [*rank_0_findings]
    return [
        f for f in rank_0_findings if not (isinstance(f.subject, tuple) and f.subject[:1] == (PUBLISHED,))
    ]


def _of_published(event: RanksCompiled) -> tuple[str, tuple[int, ...], Message]:
    """Return (code of the finding, ranks that differ from the majority, title) for ``event``, in which rank 0
    recorded that some ranks (processes of one job) compiled other programs, compiled one program more, or
    ended early."""
    groups = sorted(event.groups, key=lambda g: (-len(g.ranks), g.ranks))
    usual, odd = groups[0], next((g for g in groups[1:] if g.program), groups[-1])
    if not usual.program and len(groups) > 2:  # two groups differ; the largest has compiled nothing yet
        usual, odd = groups[1], groups[2]
    if len(groups) == 1:
        left = tuple(event.left)
        return "JX853", left, message("ranks-left-first", ranks=_numbers(left))
    these, others = _numbers(odd.ranks), _numbers(usual.ranks)
    if usual.program and odd.program and odd.function == usual.function:
        name = _published_name(odd)
        text = message("ranks-other-version", ranks=these, program=name, after=None, others=others)
        return "JX850", tuple(odd.ranks), text
    if usual.program and odd.program:
        return (
            "JX850",
            tuple(odd.ranks),
            message(
                "ranks-other-program",
                ranks=these,
                program=_published_name(odd),
                after=None,
                others=others,
                other=_published_name(usual),
            ),
        )
    return (
        "JX851",
        tuple(odd.ranks),
        message("rank-extra-program", ranks=these, program=_published_name(odd), after=None, others=others),
    )


def _numbers(numbers: Sequence[int]) -> Message:
    return message(
        "rank-named" if len(numbers) == 1 else "ranks-named", numbers=ranks.as_ranges(sorted(numbers))
    )


def _published_name(group: RankGroup) -> Message | str:
    """Return the name of the function that the ranks of ``group`` compiled, with the line of its definition;
    only the name if the line is unknown."""
    name, file, line = function_ids.read(group.function or "?")
    if file is None or line is None:
        return name
    return message("program-of-line", function=name.replace(".<locals>", ""), line=Frame(file, line, name))


def _settings(here: Seen, there: Seen) -> list[tuple[str, str, str]]:
    """Return (name, value in ``here``, value in ``there``) for each setting of JAX, such as
    ``jax_enable_x64``, that both compilations have with different values."""
    one, other = here.settings or {}, there.settings or {}
    both = [name for name in one if name in other]
    return [(name, one[name], other[name]) for name in both if one[name] != other[name]]


def _arguments(here: Key | None, there: Key | None) -> list[tuple[str, str, str]]:
    """Return (path, value in ``here``, value in ``there``) for each argument that differs between two cache
    keys: ``("x", "f32[8]", "f32[16]")``. The value is ``nothing`` if one key does not have the argument.
    Return an empty list if one of the keys is unknown."""
    if here is None or there is None:
        return []
    values = [
        {a.path: short_aval(a.shape, a.dtype, a.weak_type) for a in key.arguments}
        | {s.path: s.repr for s in key.static}
        for key in (here, there)
    ]
    paths = dict.fromkeys([*values[0], *values[1]])
    pairs = [(path, values[0].get(path, "nothing"), values[1].get(path, "nothing")) for path in paths]
    return [(path, a or "?", b or "?") for path, a, b in pairs if a != b]


def ended_first(job: Job, rank: Rank) -> Finding:
    """Return the finding that ``rank`` ended while the other ranks of ``job`` continued."""
    others = [r for r in job.ranks if r is not rank]
    ended = max((r.left_ns or r.last_ns or 0 for r in others), default=0)
    later = max(0, ended - (rank.left_ns or 0)) / 1e9
    code = rank.code
    if (rank.left or code is None) and rank.died is None:
        how = message("rank-left")
    elif rank.died is not None:
        how = message("rank-raised", error=rank.died)
    elif code is not None and code < 0:
        how = message("rank-signal", number=-code)
    else:
        how = message("rank-exit-code", code=str(code))
    last = message("rank-last", program=spelled(rank.seen[-1])) if rank.seen else None
    steps = max((r.steps for r in others if r.steps is not None), default=None)
    behind = None
    if steps is not None and rank.steps is not None and rank.steps < steps:
        behind = message("rank-behind", steps=rank.steps, others=steps)
    return Finding(
        code="JX853",
        severity=WARNING,
        certainty=CERTAIN,
        title=message(
            "rank-ended-first",
            ranks=named(job, [rank]),
            how=how,
            behind=behind,
            last=last,
            later=Seconds(later),
        ),
        source=rank.died_at or (rank.seen[-1].site if rank.seen else None),
        evidence=[
            Evidence(message("rank-exit-code-of", ranks=named(job, [r]), code=str(r.code))) for r in others
        ][:MOST_EVIDENCE],
        fix=Fix(message("fix-ended-first", rank=str(rank.number))),
        subject=("left", rank.number),
    )


def named(job: Job, selected: Sequence[Rank]) -> Message:
    """Return the text for ``selected``, some ranks of ``job``: ``rank 3``, or ``ranks 0-63 but 37``."""
    return message(
        "rank-named" if len(selected) == 1 else "ranks-named", numbers=ranks.numbers(selected, job.ranks)
    )


def _others(job: Job, majority: Sequence[Rank]) -> Message:
    """Return the text for ``majority``, the ranks of ``job`` that agree: ``the others``. If there is only one
    such rank, or if the ranks form more than two groups, return their numbers instead."""
    return named(job, majority) if len(majority) < 2 or len(job.groups()) > 2 else message("the-other-ranks")
