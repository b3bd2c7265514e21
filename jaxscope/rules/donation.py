"""JX505 to JX507: memory that a program holds twice, or holds for nothing."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from jaxscope.analysis.programs import Texts
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.rules.everywhere import of_compiled, users
from jaxscope.rules.programs import MIB, evidence, mib, name_of
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Finding


@rule("JX505", "unused-donation", WARNING)
def unused_donation(run: Run) -> Iterator[Finding]:
    yield from of_compiled(run, _unused)


def _unused(p: Program, f: Function, texts: Texts) -> Iterator[tuple[Hashable, Finding]]:
    unused = (
        [d for d in texts.stablehlo.donation if d.status == "unused"] if texts.stablehlo is not None else []
    )
    if not unused:
        return
    first = max(unused, key=lambda d: d.bytes or 0)
    more = f" and {len(unused) - 1} more" if len(unused) > 1 else ""
    held = sum(d.bytes or 0 for d in unused)
    why = f": {first.reason}" if first.reason else ""
    text = f"{name_of(f)}: {first.path or 'an argument'}{more} ({mib(held)}) was donated in vain{why}"
    found = Finding(
        "JX505", WARNING, CERTAIN, text, f.id, p.compilations[-1].site,
        evidence(p, text, p.compilations[-1].site),
        "do not donate it, or return a result of its shape, dtype and sharding",
    )  # fmt: skip
    yield first.path, found


@rule("JX506", "possible-donation", NOTE)
def possible_donation(run: Run) -> Iterator[Finding]:
    yield from of_compiled(run, _possible)


def _possible(p: Program, f: Function, texts: Texts) -> Iterator[tuple[Hashable, Finding]]:
    gone = {path: c.fate.seen for c in p.compilations if c.fate is not None for path in c.fate.gone}
    kept = {path for c in f.compilations if c.fate is not None for path in c.fate.kept}
    free = [
        d
        for d in (texts.stablehlo.donation if texts.stablehlo is not None else ())
        if d.status == "possible" and d.path in gone.keys() - kept
    ]
    held = sum(d.bytes or 0 for d in free)
    if held < MIB:
        return
    first = max(free, key=lambda d: d.bytes or 0)
    more = f" and {len(free) - 1} more" if len(free) > 1 else ""
    when = "at the end" if gone[first.path or ""] == "exit" else "soon after the call"
    text = f"{name_of(f)}: {first.path}{more} ({mib(held)}) may be donated: nothing held it any more {when}"
    name = (first.path or "x").partition("[")[0].partition(".")[0]
    found = Finding(
        "JX506", NOTE, LIKELY, text, f.id, p.compilations[-1].site,
        evidence(p, text, p.compilations[-1].site),
        f"jit it with donate_argnames={name!r}, if nothing reads {name} after the call, under another name either:"
        " the call deletes it",
    )  # fmt: skip
    yield first.path, found


@rule("JX507", "captured-constant", WARNING)
def captured_constant(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        for c in texts.stablehlo.constants if texts.stablehlo is not None else ():
            if c.splat or c.bytes is None or c.bytes < MIB:
                continue
            what = c.name or (f"one of {', '.join(c.names)}" if c.names else "an array without a name")
            text = f"{name_of(f)} holds {what} ({mib(c.bytes)}) as a constant"
            source = c.source or p.compilations[-1].site
            yield Finding(
                "JX507", WARNING, CERTAIN, text, f.id, source, evidence(p, text, source),
                f"pass {c.name or 'it'} as an argument",
            )  # fmt: skip
