"""Find matrix products that ``jax.checkpoint`` computes a second time for the gradient.

They are found by JAX's names: ``.../jvp(...)/dot_general`` in the forward pass, and
``.../transpose(jvp(...))/checkpoint/rematted_computation/dot_general`` for the second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from jaxscope.analysis.hlo import cost
from jaxscope.analysis.hlo.attribution import frame_id, op_name
from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.frames import Frames, in_library
from jaxscope.schema.keys import Frame

_AGAIN = "rematted_computation"


class Recomputed(msgspec.Struct, frozen=True):
    """The matrix products that ``jax.checkpoint`` computes a second time, in one call of the program on one
    device.

    Attributes:
      flops: the flops of these products.
      forward_flops: the flops of all products in the forward pass.
      all_flops: the flops of all products of the program.
      stack: the frames of the user's code that all recomputed products have in common, innermost first.
    """

    flops: int
    forward_flops: int
    all_flops: int
    stack: list[Frame]


def find(graph: CallGraph, frames: Frames, executions: Mapping[str, int | None]) -> Recomputed | None:
    """Return the matrix products that ``jax.checkpoint`` computes a second time. Return None if there are
    none, or if one of them is in a loop that is differentiated. Return None also if the flops or the
    executions of any product of the program, or the Python frames of a recomputed one, are unknown.

    Args:
      graph: the calls of the module; created with ``also=cost.WORK``.
      frames: the Python frames of the module.
      executions: name of a computation -> how often it runs in one call; None: unknown.
    """
    forward = every = again = 0
    stacks: set[int | None] = set()
    for computation, instruction in graph.all(*cost.WORK):
        name = op_name(instruction) or ""
        once, times = cost.flops(graph, computation, instruction), executions.get(computation.name)
        if once is None or times is None:
            return None
        flops = once * times
        every += flops
        if _AGAIN in name:
            if _in_a_loop(name):
                return None
            again += flops
            stacks.add(frame_id(instruction))
        elif "transpose(" not in name and "jvp(" in name:
            forward += flops
    if not again or None in stacks:
        return None
    return Recomputed(again, forward, every, _common(frames.stack(s) for s in stacks if s is not None))


def _in_a_loop(name: str) -> bool:
    """Return whether the operation ``name``, which ``jax.checkpoint`` computes again, is in a loop that is
    differentiated: ``.../transpose(jvp(...))/while/.../rematted_computation/...``."""
    outer = name.partition(_AGAIN)[0]
    return "/while/" in outer[outer.find("transpose(") :]


def _common(stacks: Iterable[list[Frame]]) -> list[Frame]:
    """Return the frames of the user's code that all ``stacks`` have in common, counted from the outermost
    frame. The stacks and the result have the innermost frame first."""
    common: list[Frame] | None = None
    for stack in stacks:
        outer = [f for f in reversed(stack) if not in_library(f.file)]
        if common is None:
            common = outer
            continue
        n = next((n for n, (a, b) in enumerate(zip(common, outer, strict=False)) if a != b), None)
        common = common[: min(len(common), len(outer)) if n is None else n]
    return (common or [])[::-1]
