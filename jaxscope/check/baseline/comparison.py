"""A run beside a baseline: what got worse is a finding that names the change, what got better a note.

Compared only where JAX's minor version, the platform and the devices are the same: another compiler makes other
programs of the same source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from jaxscope.check.baseline import programs, schema, transfers
from jaxscope.check.baseline.extract import Entry, Recorded
from jaxscope.check.baseline.pairing import ACCEPT, REFRESH, SHOWN, definition, name_of, note, pairs
from jaxscope.check.baseline.schema import Baseline
from jaxscope.schema.findings import CERTAIN, ERROR, LIKELY, NOTE, WARNING, Evidence, Finding

COMPILATIONS, UNUSED, IMPROVED, ELSEWHERE = "JX701", "JX710", "JX711", "JX712"
RECOMPILES = ("JX10", "JX11", "JX12")
OPERATIONS = 3  # named in one title
REASON = 300  # of a cause: static values and containers can be of any length


class Comparison(msgspec.Struct, frozen=True):
    """What the baseline has to say.

    Attributes:
      findings: what got worse (errors), what got better or was not seen (notes).
      new: findings of the rules that the baseline does not know. At least warnings: they are new.
      known: those it does.
      comparable: was anything compared?
    """

    findings: list[Finding]
    new: list[Finding]
    known: list[Finding]
    comparable: bool


def compare(baseline: Baseline, now: Recorded) -> Comparison:
    """What is different in ``now``."""
    baseline, moved = _as_named_now(baseline, now)
    different = elsewhere(baseline, now.baseline)
    new, known = _split(baseline, now, raised=not different)
    if different:
        text = f"the baseline is of {' and '.join(different)}: nothing was compared"
        fix = "compare where it was written, or keep a baseline for each environment (--baseline FILE)"
        return Comparison([note(ELSEWHERE, text, fix)], new, known, False)
    found = [
        note(UNUSED, f"{old} of the baseline is taken for {name}", REFRESH, now.functions.get(name))
        for old, name in moved.items()
    ]
    if baseline.functions and now.functions and not baseline.functions.keys() & now.functions.keys():
        text = "this run compiled none of the functions that the baseline knows: was it written from another program?"
        found.append(note(UNUSED, text, "give each program a baseline of its own: --baseline FILE"))
    found += _functions(baseline, now)
    found += _eager(baseline, now)
    found += transfers.compare(baseline, now)
    found += _findings_gone(baseline, now)
    return Comparison(found, new, known, True)


def _as_named_now(baseline: Baseline, now: Recorded) -> tuple[Baseline, dict[str, str]]:
    """The baseline with the names of ``now``, and which of them are others: of a file that was moved, or run from
    another directory, what follows the file is the same."""
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
    """Names that only one side has, where what follows the file is on each side once."""

    def by_tail(names: Iterable[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in names:
            found.setdefault(name.partition("::")[2], []).append(name)
        return found

    gone = by_tail(n for n in before if n not in after)
    came = by_tail(n for n in after if n not in before)
    return {
        olds[0]: came[tail][0]
        for tail, olds in sorted(gone.items())
        if tail and len(olds) == len(came.get(tail, ())) == 1
    }


def elsewhere(before: Baseline, after: Baseline) -> list[str]:
    """In what the two environments differ, in words; empty: they compare."""

    def devices(b: Baseline) -> str | None:
        return ", ".join(f"{n} x {kind}" for kind, n in sorted(b.devices.items())) or None

    pairs = (
        ("JAX", before.jax, after.jax),
        ("platform", before.platform, after.platform),
        ("devices", devices(before), devices(after)),
    )
    return [f"{what} {x or 'unknown'}, this run of {y or 'unknown'}" for what, x, y in pairs if x != y]


def merged(found: list[Finding]) -> list[Finding]:
    """Without the rules' findings about compilations that the comparison tells too: it takes over their advice."""
    told: dict[str | None, int] = {}
    for n, f in enumerate(found):
        if f.code == COMPILATIONS:
            told.update((e.compilation, n) for e in f.evidence if e.compilation is not None)
    kept = dict(enumerate(found))
    for n, f in enumerate(found):
        about = {told[e.compilation] for e in f.evidence if e.compilation in told}
        if f.code.startswith(RECOMPILES) and len(about) == 1:
            at = about.pop()
            kept[at] = msgspec.structs.replace(kept[at], fix=f"{f.fix}; {ACCEPT}" if f.fix else kept[at].fix)
            del kept[n]
    return list(kept.values())


def _split(baseline: Baseline, now: Recorded, *, raised: bool) -> tuple[list[Finding], list[Finding]]:
    """The rules' findings that are new, and those that the baseline knows."""
    new: list[Finding] = []
    known: list[Finding] = []
    for key, members in now.findings.items():
        n = baseline.findings.get(key, 0)
        known += members[:n]
        for f in members[n:]:
            raise_it = raised and f.severity == NOTE
            new.append(msgspec.structs.replace(f, severity=WARNING) if raise_it else f)
    return new, known


def _findings_gone(baseline: Baseline, now: Recorded) -> Iterator[Finding]:
    gone = [k for k, n in baseline.findings.items() if len(now.findings.get(k, ())) < n]
    if gone:
        some = "; ".join(sorted(gone)[:SHOWN]) + ("; ..." if len(gone) > SHOWN else "")
        yield note(IMPROVED, f"findings in the baseline that are no more: {some}", REFRESH)


# -- functions -------------------------------------------------------------------------------------------


def _functions(baseline: Baseline, now: Recorded) -> Iterator[Finding]:
    for name in sorted(baseline.functions.keys() | now.functions.keys()):
        old, entry = baseline.functions.get(name), now.functions.get(name)
        if entry is None:
            yield note(
                UNUSED,
                f"{name} is in the baseline and was not compiled in this run",
                f"run what the baseline was written from, or take the entry out: {REFRESH}",
            )
        elif old is None:
            yield _new_function(entry)
        else:
            paired, alone = pairs(old, entry)
            yield from _with_those_apart(list(_counts(old, entry)), programs.without(entry, alone))
            yield from programs.compare(baseline, old, entry, paired)


def _with_those_apart(counted: list[Finding], apart: Finding | None) -> Iterator[Finding]:
    """``apart`` is told with the compilations that are more than before, where there are: they are of it."""
    for f in counted:
        if apart is not None and f.code == COMPILATIONS:
            f = msgspec.structs.replace(f, evidence=[*f.evidence, *apart.evidence])
            apart = None
        yield f
    if apart is not None:
        yield apart


def _new_function(entry: Entry) -> Finding:
    f, n = entry.function, entry.facts
    done = f"compiled {n.compilations:,}x" if n.compilations else f"traced {n.traces:,}x"
    first = f.compilations[0]
    return Finding(
        code=COMPILATIONS,
        severity=ERROR,
        certainty=CERTAIN,
        title=f"{name_of(f)} is {done} and is not in the baseline",
        function=f.id,
        source=first.site or definition(f),
        evidence=[
            Evidence(f"{c.entry} from here", compilation=c.id, source=c.site, step=c.step)
            for c in f.compilations[:SHOWN]
        ],
        fix=f"call it under the function that was there before, or {ACCEPT}",
        seconds=f.seconds,
    )


def _counts(old: schema.Function, entry: Entry) -> Iterator[Finding]:
    """Compilations and their causes, exactly."""
    f, new = entry.function, entry.facts
    name = name_of(f)
    counts = [
        (verb, getattr(old, field), getattr(new, field))
        for verb, field in (("compiled", "compilations"), ("lowered", "lowerings"), ("traced", "traces"))
    ]
    more = [(verb, x, y) for verb, x, y in counts if y > x]
    verb, before, after = next(iter(more), counts[0])
    total = f"{name} is {verb} {after:,}x, {before:,}x in the baseline"
    caused = [k for k in new.causes if new.causes[k] > old.causes.get(k, 0)]
    for key in caused:
        members = entry.caused[key]
        surplus = members[old.causes.get(key, 0) :]
        last, cause = surplus[-1]
        again = "" if len(surplus) == 1 else f" {len(surplus):,} times, most recently because"
        yield Finding(
            code=COMPILATIONS,
            severity=ERROR,
            certainty=CERTAIN if cause.certainty == CERTAIN else LIKELY,
            title=f"{total if more else f'{name} is compiled again for another reason'}:{again} {_shortened(cause.text)}",
            function=f.id,
            source=last.site or definition(f),
            evidence=[
                Evidence(c.text, compilation=o.id, program=o.program, source=o.site, step=o.step)
                for o, c in surplus[-SHOWN:]
            ],
            fix=f"jaxscope report --function {f.seen.name} shows both keys; {ACCEPT}",
            seconds=sum(o.seconds for o, _ in surplus),
            path=cause.path,
        )
    if more and not caused:
        last_call = next((c for c in reversed(f.compilations) if c.reached_phases), f.compilations[-1])
        yield Finding(
            code=COMPILATIONS,
            severity=ERROR,
            certainty=CERTAIN,
            title=f"{total}, each time for the first time in its process" if verb == "compiled" else total,
            function=f.id,
            source=last_call.site or definition(f),
            evidence=[Evidence(total, compilation=last_call.id, source=last_call.site, step=last_call.step)],
            fix=ACCEPT,
            seconds=last_call.seconds,
        )
    less = [f"{verb} {y:,}x, {x:,}x in the baseline" for verb, x, y in counts if y < x]
    if less and not more and not caused:
        yield note(IMPROVED, f"{name} is better: {'; '.join(less)}", REFRESH, entry)


def _shortened(text: str) -> str:
    return text if len(text) <= REASON else text[: REASON - 1] + "…"


def _eager(baseline: Baseline, now: Recorded) -> Iterator[Finding]:
    """Operations that are compiled one by one outside jit, by the function that calls them."""
    for where, ops in now.eager.items():
        old = baseline.eager.get(where, {})
        more = {op: members for op, members in ops.items() if len(members) > old.get(op, 0)}
        if not more:
            continue
        worst = sorted(more, key=lambda op: old.get(op, 0) - len(more[op]))
        told = ", ".join(
            f"{op} {len(more[op]):,}x ({old.get(op, 0):,}x in the baseline)" for op in worst[:OPERATIONS]
        ) + (f" and {len(worst) - OPERATIONS:,} more" if len(worst) > OPERATIONS else "")
        extra = [c for op in worst for c in more[op][old.get(op, 0) :]]
        yield Finding(
            code=COMPILATIONS,
            severity=ERROR,
            certainty=CERTAIN,
            title=f"{where.partition('::')[2]} compiles operations outside jit: {told}",
            source=extra[0].site,
            evidence=[
                Evidence(c.function.seen.name, compilation=c.id, source=c.site, step=c.step)
                for c in extra[:SHOWN]
            ],
            fix=f"put them under the jit around, or do them in NumPy; {ACCEPT}",
            seconds=sum(c.seconds for c in extra),
        )  # fmt: skip
    fewer = sorted(
        f"{where}: {op}"
        for where, ops in baseline.eager.items()
        for op, n in ops.items()
        if len(now.eager.get(where, {}).get(op, ())) < n
    )
    if fewer:
        some = "; ".join(fewer[:SHOWN]) + ("; ..." if len(fewer) > SHOWN else "")
        yield note(IMPROVED, f"fewer operations are compiled outside jit: {some}", REFRESH)
