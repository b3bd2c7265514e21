"""The programs of one function beside those of a baseline, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from jaxscope.check.baseline import schema
from jaxscope.check.baseline.extract import Entry
from jaxscope.check.baseline.pairing import ACCEPT, REFRESH, SHOWN, Pair, name_of, note
from jaxscope.check.baseline.parts import PARTS
from jaxscope.check.baseline.schema import TOLERANCE, Baseline
from jaxscope.schema.findings import Evidence, Finding

NOT_KNOWN = "JX901"
IMPROVED = "JX711"
COMPILATIONS = "JX701"
# What of several parts says most about another dtype or sharding, before what follows from it; and about another size,
# with which whatever is counted in bytes goes.
FIRST = ("JX702", "JX705", "JX706", "JX708", "JX707", "JX709", "JX704", "JX713", "JX703")
FIRST_OF_SIZES = ("JX709", "JX704", "JX713", "JX702", "JX705", "JX706", "JX708", "JX707", "JX703")


def compare(
    baseline: Baseline, old: schema.Function, entry: Entry, paired: Iterable[Pair]
) -> Iterator[Finding]:
    """What is worse in each program that was there before, what has one reason in one finding. One more program is
    told by its compilation."""
    share = {**TOLERANCE, **baseline.tolerance}
    gained: list[str] = []
    unknown: list[str] = []
    reasons: dict[tuple[str, ...], list[tuple[Pair, Finding]]] = {}
    for pair in paired:
        for part, check in PARTS.items():
            before, after = getattr(pair.old, part), getattr(pair.new, part)
            if before is None:
                continue
            if after is None:
                unknown.append(f"{part} of {pair.label}")
                continue
            found, good = check(pair, before, after, share)
            if pair.why:
                reasons.setdefault(tuple(pair.why), []).extend((pair, f) for f in found)
            else:
                yield from found
            gained += [f"{pair.label}: {text}" for text in good if not pair.resized]
    yield from (_for_one_reason(list(why), found) for why, found in reasons.items() if found)
    if unknown:
        text = f"not compared with the baseline, this run does not tell: {', '.join(unknown)}"
        yield note(NOT_KNOWN, text, "record with --ir all, as the baseline was", entry)
    if gained:
        text = f"better than in the baseline: {'; '.join(gained[:SHOWN])}"
        yield note(IMPROVED, text, f"keep it: {REFRESH}", entry)


def _for_one_reason(why: list[str], found: list[tuple[Pair, Finding]]) -> Finding:
    """What other arguments made worse: the first part of it, with what else follows as evidence."""
    order = FIRST_OF_SIZES if found[0][0].resized else FIRST
    ((_, first), *rest) = sorted(found, key=lambda f: order.index(f[1].code))
    if not rest:
        return first
    told = [
        Evidence(
            f"{f.code} {f.title.removesuffix(f': {why[0]}')}", program=pair.made.program.id, source=f.source
        )
        for pair, f in rest
    ]
    return msgspec.structs.replace(
        first,
        title=f"{first.title}; {len(rest):,} {'figure is' if len(rest) == 1 else 'figures are'} worse for it, too",
        evidence=[*first.evidence, *told],
        fix=f"{_again(why[0])}; {ACCEPT}",
    )


def _again(why: str) -> str:
    path, now, rest = why.partition(" is now ")
    before = rest.rpartition(", before ")[2]
    return f"pass {path} as {before} again" if now else "pass the arguments that it was passed before"


def without(entry: Entry, alone: list[Pair]) -> Finding | None:
    """Programs for arguments that the baseline knows nothing of: not compared, as another size is another program."""
    if not alone:
        return None
    first = alone[0]
    texts = [
        f"{p.label} has no counterpart in the baseline, and was not compared: {'; '.join(p.why[:SHOWN])}"
        for p in alone
    ]
    f = first.finding(COMPILATIONS, "", None, [], _again(first.why[0]) if first.why else "")
    more = f" ({len(alone):,} programs)" if len(alone) > 1 else ""
    because = f": {first.why[0]}" if first.why else ""
    return msgspec.structs.replace(
        f,
        title=f"{name_of(entry.function)} is compiled for arguments that the baseline does not have{more}{because}",
        evidence=[
            msgspec.structs.replace(f.evidence[0], text=text, program=p.made.program.id)
            if f.evidence
            else Evidence(text, program=p.made.program.id)
            for p, text in zip(alone, texts, strict=True)
        ][:SHOWN],
    )
