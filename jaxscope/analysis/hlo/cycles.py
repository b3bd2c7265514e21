"""Sum the cycles that the TPU compiler estimates for a program.

The ``backend_config`` of fusions, copies and slices contains ``"estimated_cycles":"5432"``. Loops, calls and
collectives have no such figure. The compiler uses these figures to schedule the program. They are for one
core and include no waiting.
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
    """Return a lower and an upper bound of the estimated cycles of one call of the program, without
    collectives. Return None if no instruction has an estimate.

    The cycles of a loop's body are multiplied by the trip count. If a trip count is unknown, the body counts
    as 0 in the lower bound, and there is no upper bound.

    Args:
      graph: the calls of the module.
      executions: name of a computation -> how often it runs in one call; None: unknown.
      paths: name of a computation -> the branches of conditionals that contain it.
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
