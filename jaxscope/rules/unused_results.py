"""Rule JX514: large arrays that a jitted function returns and no code reads."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.analysis import result_uses
from jaxscope.analysis.stablehlo.values import Value
from jaxscope.model import sources
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.rules import memory_scale
from jaxscope.rules.each_program import users
from jaxscope.rules.programs import MOST, evidence, small
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.messages import Bytes, Names, message


@rule("JX514", "unused-results", WARNING)
def unused_results(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        results = texts.stablehlo.results if texts.stablehlo is not None else ()
        device = memory_scale.of_program(run, p)
        least = max(memory_scale.WORTH_A_NOTE * device, small(p))
        if sum(r.device_bytes or 0 for r in results) < least:
            continue
        uses = _uses(run, p, f)
        if uses is None:
            continue
        unread: list[tuple[int, str]] = []
        nearly: list[tuple[int, str]] = []
        for r in results:
            leaf = result_uses.steps((r.name or "?").removeprefix("result"))
            if leaf is None or r.device_bytes is None:
                continue
            read = result_uses.parts_read(leaf, uses.paths)
            if read is None:
                unread.append((r.device_bytes, result_uses.named(leaf, uses.names)))
            elif read == "element" and (spared := _but_one_element(r)):
                nearly.append((spared, result_uses.named(leaf, uses.names)))
        total = sum(size for size, _ in (*unread, *nearly))
        if total < least:
            continue
        of, elements = _names(unread), _names(nearly)
        name, size = f.display_name, Bytes(total)
        if unread:
            also = message("and-elements", paths=elements) if nearly else None
            text = message("results-not-read", function=name, bytes=size, paths=of, elements=also)
        else:
            text = message("results-nearly-not-read", function=name, bytes=size, paths=elements)
        fix = message("fix-return-what-is-read")
        c = p.compilations[-1]
        yield Finding(
            code="JX514",
            severity=WARNING if total >= memory_scale.WORTH_A_WARNING * device else NOTE,
            certainty=LIKELY,
            title=text,
            function=f.id,
            source=c.site,
            evidence=evidence(p, text, c.site),
            fix=Fix(fix, "return_less", {"paths": [name for _, name in (*unread, *nearly)]}),
        )


def _uses(run: Run, p: Program, f: Function) -> result_uses.Uses | None:
    """Return the parts of the result of ``f`` that are used; None: unknown.

    They are unknown if ``f`` is called in another file than the one that defines it, because further files
    may call it. They are also unknown under a wrapper of another library than JAX, such as ``nnx.jit``, which
    may return further arrays.
    """
    at = p.compilations[-1].site
    if at is None or f.seen.file != at.file or not all(w.startswith("jax.") for w in f.seen.wrappers):
        return None
    missed = p.compilations[-1].missed
    column = missed.column if missed is not None else None
    return result_uses.of_calls(sources.of(run)(at.file), at.line, column, f.seen.name)


def _but_one_element(r: Value) -> int:
    """Return the bytes of the array ``r`` on one device without one element along its first axis."""
    rows = r.shape[0] if r.shape else None
    return (r.device_bytes or 0) * (rows - 1) // rows if rows else 0


def _names(arrays: list[tuple[int, str]]) -> Names:
    return Names(tuple(name for _, name in sorted(arrays, reverse=True)), MOST)
