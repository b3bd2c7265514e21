"""Count how often each operation of a lowered program runs in one call."""

from __future__ import annotations

from jaxscope.analysis.stablehlo.module import CONSTANTS, INTEGER, Module, Op
from jaxscope.analysis.stablehlo.sources import BRANCHES, LOOPS, Sources

MANUAL = "sdy.manual_computation"
_COUNTERS = frozenset({"tensor<i32>", "tensor<i64>", "tensor<ui32>"})


class Executions:
    """How often each operation of a module runs in one call of the program.

    The number is unknown for operations in a branch and in ``shard_map``. It is known for operations in a
    loop only if the loop counts from a constant to a constant, as the loops of ``jax.lax.scan`` and
    ``jax.lax.fori_loop`` do.
    """

    def __init__(self, module: Module, sources: Sources) -> None:
        self._module = module
        self._inside: dict[int, list[int]] = {}  # index of an operation -> the operations in its regions
        for index, op in enumerate(module.ops):
            if op.parent is not None:
                self._inside.setdefault(op.parent, []).append(index)
        self._of_function: list[int | None] = [0] * len(module.functions)
        self._known: dict[int, int | None] = {}
        main = module.main()
        for f in sources.order:  # callers are counted before the functions that they call
            if module.functions[f] is main:
                self._of_function[f] = 1
                continue
            total: int | None = 0
            for call in sources.called[f]:
                count = self.of(call)
                total = None if total is None or count is None else total + count
            self._of_function[f] = total

    def of(self, index: int) -> int | None:
        """Return how often the operation ``module.ops[index]`` runs in one call of the program, or None if
        this is unknown; 0 if the program does not call its function."""
        op = self._module.ops[index]
        if op.parent is None:
            return self._of_function[op.function]
        if op.parent not in self._known:
            outside = self.of(op.parent)
            times = self.iterations(op.parent)
            self._known[op.parent] = None if outside is None or times is None else outside * times
        return self._known[op.parent]

    def iterations(self, index: int) -> int | None:
        """Return how often the regions of the operation ``module.ops[index]`` run in one execution of the
        operation, or None if this is unknown. Return 1 if the operation is neither a loop nor a
        conditional."""
        op = self._module.ops[index]
        if op.name in BRANCHES or op.name == MANUAL:
            return None
        return self._of_loop(index, op) if op.name in LOOPS else 1

    def _of_loop(self, index: int, op: Op) -> int | None:
        """Return the number of iterations of the loop ``op``, the operation ``module.ops[index]``. Return
        None unless the loop's condition is ``i < constant``, and a value of the loop begins with a constant.
        If several values do, the smallest constant counts, so the result may be too large. A step of 1 is
        assumed."""
        ops = self._module.ops
        inside = self._inside.get(index, [])
        condition = [i for i in inside if ops[i].block == ops[inside[0]].block]
        compares = [ops[i] for i in condition if ops[i].name == "stablehlo.compare"]
        if len(compares) != 1 or not compares[0].detail.strip().startswith("LT"):
            return None
        ends = [n for i in compares[0].operands if (n := self._constant(i)) is not None]
        begins = [n for i in op.operands if (n := self._constant(i)) is not None]
        return max(0, ends[0] - min(begins)) if len(ends) == 1 and begins else None

    def _constant(self, index: int) -> int | None:
        """Return the integer that the operation ``module.ops[index]`` defines, or None if the operation is
        not a constant integer."""
        op = self._module.ops[index] if index >= 0 else None
        if op is None or op.name not in CONSTANTS or not _COUNTERS.issuperset(op.outputs):
            return None
        found = INTEGER.search(op.detail)
        return int(found[1]) if found is not None else None
