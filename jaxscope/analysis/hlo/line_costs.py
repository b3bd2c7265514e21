"""Sum the work of a compiled program by line of the user's code: number of fusions, bytes that fusions move,
bytes sent in collectives, flops."""

from __future__ import annotations

import msgspec

from jaxscope.analysis.hlo.program import Program
from jaxscope.analysis.sums import known_sum


class LineCost(msgspec.Struct):
    """The work that comes from one Python line in one call of a program, on one device. ``fusions`` and
    ``collectives`` count instructions in the text, not executions.

    Attributes:
      fusions: number of fusions that have the line in ``Fusion.sources``.
      moved_bytes: the sum of ``Fusion.moved_bytes`` over the fusions in which this line has the most
        instructions; None: unknown.
      collectives: kind -> number of the line's collectives.
      sent_bytes: the most bytes that the line's collectives send together; None: unknown.
      flops: the flops of the line's dots, convolutions and custom calls (``cost.LineFlops``); None: unknown.
    """

    fusions: int = 0
    moved_bytes: int | None = 0
    collectives: dict[str, int] = {}
    sent_bytes: int | None = 0
    flops: int | None = 0


Place = tuple[str, int]  # (file, line), lines counted from 1


def of_program(program: Program) -> dict[Place, LineCost]:
    """Return the work of each Python line in one call of the program: (file, line) -> cost. Only lines with a
    fusion, a collective, or an entry in ``flops_by_line`` are in the result."""
    found: dict[Place, LineCost] = {}

    def at(file: str, line: int) -> LineCost:
        return found.setdefault((file, line), LineCost())

    for fusion in program.fusions.each:
        for n, frame in enumerate(fusion.sources):
            cost = at(frame.file, frame.line)
            cost.fusions += 1
            if n == 0:
                cost.moved_bytes = known_sum((cost.moved_bytes, fusion.moved_bytes))
    for collective in program.collectives:
        if collective.source is not None:
            cost = at(collective.source.file, collective.source.line)
            cost.collectives[collective.kind] = cost.collectives.get(collective.kind, 0) + 1
            cost.sent_bytes = known_sum((cost.sent_bytes, collective.sent_bytes))
    for line in program.flops_by_line:
        at(line.source.file, line.source.line).flops = line.flops
    return found
