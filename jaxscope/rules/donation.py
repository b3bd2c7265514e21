"""JX505 to JX507: memory that a program holds twice, or holds for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from jaxscope.analysis.programs import Texts
from jaxscope.analysis.stablehlo.donation import Donation
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.rules.each_program import of_compiled, users
from jaxscope.rules.programs import MIB, evidence
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Bytes, Message, Names, message

LARGE = 0.1  # share of the bytes: an argument that is worth naming


@rule("JX505", "unused-donation", WARNING)
def unused_donation(run: Run) -> Iterator[Finding]:
    yield from of_compiled(run, _unused)


def _unused(p: Program, f: Function, texts: Texts) -> Iterator[tuple[Hashable, Finding]]:
    unused = [d for d in _donation(texts) if d.status == "unused"]
    if not unused:
        return
    first = max(unused, key=lambda d: d.bytes or 0)
    text = message(
        "unused-donation",
        function=f.display_name,
        path=first.path or "argument",
        more=_more(unused),
        bytes=_bytes(unused),
        reason=message("unused-donation-reason", reason=first.reason) if first.reason else None,
    )
    yield first.path, _finding("JX505", WARNING, CERTAIN, text, p, f, Fix(message("fix-unused-donation")))


@rule("JX506", "possible-donation", NOTE)
def possible_donation(run: Run) -> Iterator[Finding]:
    yield from of_compiled(run, _possible)


def _possible(p: Program, f: Function, texts: Texts) -> Iterator[tuple[Hashable, Finding]]:
    gone = {path: c.fate.seen for c in p.compilations if c.fate is not None for path in c.fate.gone}
    kept = {path for c in f.compilations if c.fate is not None for path in c.fate.kept}
    free = [d for d in _donation(texts) if d.status == "possible" and d.path in gone.keys() - kept]
    if sum(d.bytes or 0 for d in free) < MIB:
        return
    first = max(free, key=lambda d: d.bytes or 0)
    text = message(
        "possible-donation",
        function=f.display_name,
        path=first.path,
        more=_more(free),
        bytes=_bytes(free),
        when="at the end" if gone[first.path or ""] == "exit" else "after the call",
    )
    held: Counter[str] = Counter()
    for d in free:
        held[(d.path or "x").partition("[")[0].partition(".")[0]] += d.bytes or 0
    names = tuple(name for name, size in held.most_common() if size >= LARGE * held.total())
    them = "it" if len(names) == 1 else "them"
    words = message(
        "fix-donate", argnames=repr(names[0] if len(names) == 1 else names), names=Names(names), them=them
    )
    fix = Fix(words, "donate", {"donate_argnames": list(names)})
    yield first.path, _finding("JX506", NOTE, LIKELY, text, p, f, fix)


@rule("JX507", "captured-constant", WARNING)
def captured_constant(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        for c in texts.stablehlo.constants if texts.stablehlo is not None else ():
            if c.splat or c.bytes is None or c.bytes < MIB:
                continue
            unnamed = message("one-of", names=Names(c.names)) if c.names else "an array without a name"
            text = message(
                "captured-constant", function=f.display_name, constant=c.name or unnamed, bytes=Bytes(c.bytes)
            )
            fix = Fix(
                message("fix-pass-as-argument", constant=c.name or "it"), "pass_argument", {"name": c.name}
            )
            yield _finding("JX507", WARNING, CERTAIN, text, p, f, fix, c.source)


def _donation(texts: Texts) -> Sequence[Donation]:
    return texts.stablehlo.donation if texts.stablehlo is not None else ()


def _more(found: Sequence[Donation]) -> Message | None:
    return message("and-more", n=len(found) - 1) if len(found) > 1 else None


def _bytes(found: Sequence[Donation]) -> Bytes:
    return Bytes(sum(d.bytes or 0 for d in found))


def _finding(
    code: str,
    severity: str,
    certainty: str,
    text: Message,
    p: Program,
    f: Function,
    fix: Fix,
    source: Frame | None = None,
) -> Finding:
    line = source or p.compilations[-1].site
    return Finding(code, severity, certainty, text, f.id, line, evidence(p, text, line), fix)
