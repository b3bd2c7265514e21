"""The name each operation goes by in the compiled program's ``op_name``: what joins the two texts.

JAX names the operations of a private function without the call around it, and those inside a
``shard_map`` without the shard_map. XLA writes both out and puts the outer name in front:
``jit(f)/jit(relu)`` and ``max`` become ``jit(f)/jit(relu)/max``. It leaves names bare in the regions of a
reduction, and leaves out some of the middle where loops stand inside called functions inside loops: what is
not found by name, the line still joins (``Sources.lines``).
"""

from __future__ import annotations

from jaxscope.analysis.stablehlo.module import CALLS, Module
from jaxscope.analysis.stablehlo.sources import Sources

OUTLINED = frozenset({"sdy.manual_computation", "sdy.named_computation"})
MAX_PREFIXES = 64  # of a function called from many places
MAX_NAME = 2_000  # characters; names grow with every call around them
MAX_ALL = 50_000_000  # characters of all names: where calls multiply, the rest goes without


def by_op_name(module: Module, sources: Sources) -> dict[str, list[int]]:
    """``op_name`` -> the operations that go by it. Where XLA joins several with ``;``, ask for each. A bare
    name leads to all that bear it only where it is nobody's full name."""
    bare: dict[str, list[int]] = {}
    found: dict[str, list[int]] = {}
    left = MAX_ALL
    around: list[list[str]] = [[] for _ in module.functions]  # the names of a function's calls
    inside: dict[int, list[str]] = {}  # of an operation with regions: what stands before the names in them
    names = {f.name: i for i, f in enumerate(module.functions)}
    for f in sources.order:
        function = module.functions[f]
        for index in range(function.first, function.end):
            op = module.ops[index]
            before = inside.get(op.parent, around[f]) if op.parent is not None else around[f]
            name = sources.place(index).name
            full = _full(before, name)
            left -= sum(map(len, full))
            if left < 0:
                return bare | found
            for each in full:
                found.setdefault(each, []).append(index)
            if before and name is not None:
                bare.setdefault(name, []).append(index)
            inside[index] = full if op.name in OUTLINED and name else before
            callee = names.get(op.callee) if op.name in CALLS and op.callee is not None else None
            if callee is not None:
                known = around[callee]
                known += [n for n in full if n not in known][: MAX_PREFIXES - len(known)]
    return bare | found


def _full(before: list[str], name: str | None) -> list[str]:
    if name is None:
        return []
    return [n for p in before if len(n := f"{p}/{name}") <= MAX_NAME] if before else [name]
