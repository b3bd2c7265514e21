"""Loops such as ``lax.scan`` outside jit that several lines of the program compile again for the same
operations (a part of rule JX133)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from jaxscope.model import payers
from jaxscope.model.payers import Payer
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.rules.line_lists import line_numbers
from jaxscope.schema.findings import CERTAIN, NOTE, WARNING, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import JAX_ROOTS, LOOPS
from jaxscope.schema.messages import Seconds, message

SHARE = 0.1  # of all seconds of compiling, for a finding
MUCH = 5  # recompiles: a warning


def find(run: Run, left: Sequence[Payer]) -> Iterator[Finding]:
    """Yield findings about loops of the same operations on arrays of the same types, except for the number of
    iterations, that several lines compile. ``left`` are the lines that have no other finding."""
    same: dict[Hashable, list[tuple[Payer, Compilation]]] = {}
    for p in left:
        for c in p.compilations:
            if c.function.seen.name in LOOPS and c.function.seen.eager and not p.within:
                kind = _kind(run, c)
                if kind is not None:
                    same.setdefault(kind, []).append((p, c))
    least = SHARE * payers.total_seconds(run)
    for members in same.values():
        members.sort(key=lambda item: item[1].t_ns)
        lines = list(dict.fromkeys(p.line for p, _ in members))
        library = members[0][0].library
        again = sum(c.seconds for _, c in members[1:])
        if len(lines) > 1 and len({line.file for line in lines}) == 1 and again >= least:
            yield _finding(lines, [c for _, c in members], again, None if library in JAX_ROOTS else library)


def _kind(run: Run, c: Compilation) -> Hashable | None:
    """Return what the loop that ``c`` compiled computes, without the number of its iterations: its
    operations, and the types of its arguments without their first axes. None if it is unknown."""
    read = run.stablehlo(c)
    if read is None or c.key is None:
        return None
    types = tuple((leaf.dtype, (leaf.shape or ())[1:]) for leaf in c.key.arguments)
    return c.function.seen.name, frozenset(read.op_counts.items()), types


def _finding(
    lines: Sequence[Frame], compiled: Sequence[Compilation], seconds: float, library: str | None
) -> Finding:
    """Return the finding that ``lines`` compiled a loop several times: ``compiled``, of which those after the
    first took ``seconds``. ``library`` is the library that runs the loop; None: the lines do so themselves.
    """
    name = {"scan": "jax.lax.scan", "while": "jax.lax.while_loop or fori_loop"}[
        compiled[0].function.seen.name
    ]
    text = message(
        "same-loop-compiled",
        loop=name,
        lines=line_numbers(line.line for line in lines),
        n=len(compiled),
        seconds=Seconds(seconds),
    )
    return Finding(
        code=payers.CODE,
        severity=WARNING if len(compiled) > MUCH else NOTE,
        certainty=CERTAIN,
        title=text,
        source=lines[0],
        evidence=[
            Evidence(
                message("compiled-in", seconds=Seconds(c.seconds)),
                compilation=c.id,
                source=line,
            )
            for line, c in zip((c.lines[0] for c in compiled), compiled, strict=True)
        ],
        fix=Fix(
            message("fix-one-jitted-loop")
            if library is None
            else message("fix-jit-loop-of-library", library=library),
            "jit",
        ),
        seconds=seconds,
        at_most=True,
        subject=(lines[0].file, lines[0].line, name),
        timed=True,
    )
