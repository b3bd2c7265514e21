"""Sum the cycles that the TPU compiler estimates for a program.

``backend_config`` of fusions, copies and slices has ``"estimated_cycles":"5432"``; a loop, a call and a
collective have none. It is the figure the compiler schedules by, of one core, without waiting for anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from jaxscope.analysis.hlo import branches
from jaxscope.analysis.hlo.calls import CallGraph

_KEY = '"estimated_cycles":"'
_FIGURE = re.compile(r"\d{1,15}(?=\")")


def total(
    graph: CallGraph, executions: Mapping[str, int | None], paths: Mapping[str, branches.Path]
) -> branches.Bounds | None:
    """Return the cycles of one call of the program, loops times their trip counts, without collectives.

    None where no instruction has the figure.
    """
    found: list[tuple[branches.Path, int | None]] = []
    for computation in graph.top_level():
        for instruction in computation.instructions:
            at = instruction.tail.find(_KEY)
            figure = _FIGURE.match(instruction.tail, at + len(_KEY)) if at >= 0 else None
            if figure is None:
                continue
            times = executions.get(computation.name)
            row = None if times is None else int(figure[0]) * times
            found.append((paths.get(computation.name, ()), row))
    return branches.bounds_of(found) if found else None
