"""Fusions by kind and what they hold; elementwise operations that were left alone; custom calls."""

from __future__ import annotations

from collections import Counter

import msgspec

from jaxscope.analysis.hlo import shapes
from jaxscope.analysis.hlo.attribution import Attribution
from jaxscope.analysis.hlo.calls import Call, CallGraph
from jaxscope.analysis.hlo.lexing import attribute, unquote
from jaxscope.analysis.hlo.module import Computation
from jaxscope.schema.keys import Frame

KINDS = ("loop", "input", "output", "custom")
# XLA's HloInstruction::IsElementwise, plus the two that only spread or number elements.
ELEMENTWISE = frozenset(
    {
        *("abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "clz", "compare", "complex", "convert"),
        *("cosine", "count-leading-zeros", "divide", "erf", "exponential", "exponential-minus-one", "floor"),
        *("imag", "is-finite", "log", "log-plus-one", "logistic", "map", "maximum", "minimum", "multiply"),
        *("negate", "not", "or", "popcnt", "power", "real", "reduce-precision", "remainder", "rsqrt"),
        *("round-nearest-afz", "round-nearest-even", "select", "shift-left", "shift-right-arithmetic"),
        *("shift-right-logical", "sign", "sine", "sqrt", "stochastic-convert", "subtract", "tan", "tanh", "xor"),
        *("acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh", "broadcast", "iota"),
    }
)
_NO_OPS = frozenset({"parameter", "fusion"})
MAX_SOURCES = 8


class Fusion(msgspec.Struct, frozen=True):
    """One fusion outside of other fusions.

    Attributes:
      ops: how many instructions of each opcode it holds, nested fusions opened, parameters and
        the nested fusions themselves left out.
      bytes_in, bytes_out: its parameters and its result on one device; None where one is not known.
      sources: lines of what it holds, the most frequent first, at most eight.
      executions: per call of the program; None where a trip count is not known.
    """

    name: str
    kind: str
    computation: str
    ops: dict[str, int]
    bytes_in: int | None
    bytes_out: int | None
    sources: list[Frame]
    executions: int | None


class Fusions(msgspec.Struct, frozen=True):
    """All fusions that run.

    Attributes:
      total, by_kind: outside of other fusions; ``nested`` and ``nested_by_kind``: inside of them.
    """

    total: int
    by_kind: dict[str, int]
    nested: int
    nested_by_kind: dict[str, int]
    list: list[Fusion]


class Alone(msgspec.Struct, frozen=True):
    """Elementwise operations the compiler did not fuse.

    Attributes:
      unfused: how many stand outside of fusions.
      wrapped: how many fusions hold a single elementwise operation (how XLA's CPU backend runs one
        that was not fused).
    """

    unfused: int
    wrapped: int


def read(graph: CallGraph, attribution: Attribution, executions: dict[str, int | None]) -> Fusions:
    by_kind: Counter[str] = Counter()
    nested: Counter[str] = Counter()
    found: list[Fusion] = []
    contents = _Contents(graph)
    for name in graph.module.computations:
        if name not in graph.reachable:
            continue
        for call in graph.calls.get(name, ()):
            if call.instruction.opcode != "fusion":
                continue
            kind = kind_of(call)
            if name in graph.fused:
                nested[kind] += 1
                continue
            by_kind[kind] += 1
            body = call.callee
            found.append(
                Fusion(
                    name=call.instruction.name,
                    kind=kind,
                    computation=name,
                    ops=contents.of(body),
                    bytes_in=_sum(shapes.text_bytes(p.shape) for p in body.parameters()),
                    bytes_out=shapes.text_bytes(call.instruction.shape),
                    sources=attribution.sources([body])[:MAX_SOURCES],
                    executions=executions.get(name),
                )
            )
    return Fusions(sum(by_kind.values()), dict(by_kind), sum(nested.values()), dict(nested), found)


def kind_of(call: Call) -> str:
    """``loop``, ``input``, ``output``, ``custom``; a kind of the future by its own name."""
    kind = attribute(call.instruction.tail, "kind") or "kUnknown"
    return kind[1:].lower() if kind[:1] == "k" else kind


def alone(graph: CallGraph, fusions: Fusions) -> Alone:
    unfused = sum(i.opcode in ELEMENTWISE for c in graph.top_level() for i in c.instructions)
    wrapped = sum(
        sum(f.ops.values()) == 1 and next(iter(f.ops)) in ELEMENTWISE for f in fusions.list if f.kind == "loop"
    )
    return Alone(unfused, wrapped)


def custom_calls(graph: CallGraph) -> dict[str, int]:
    """Custom calls that run, also inside of fusions, by target."""
    found: Counter[str] = Counter()
    for computation in graph.module.computations.values():
        if computation.name in graph.reachable:
            for instruction in computation.instructions:
                if instruction.opcode.startswith("custom-call") and instruction.opcode != "custom-call-done":
                    found[unquote(attribute(instruction.tail, "custom_call_target") or "?")] += 1
    return dict(found)


class _Contents:
    """Opcodes of fusion bodies, nested ones opened."""

    def __init__(self, graph: CallGraph) -> None:
        self._graph = graph

    def of(self, body: Computation) -> dict[str, int]:
        ops: Counter[str] = Counter()
        waiting, seen = [body], {body.name}
        while waiting:
            current = waiting.pop()
            ops.update(i.opcode for i in current.instructions)
            for call in self._graph.calls.get(current.name, ()):
                if call.callee.name not in seen:  # a circle is no fusion
                    seen.add(call.callee.name)
                    waiting.append(call.callee)
        return {opcode: n for opcode, n in ops.most_common() if opcode not in _NO_OPS}


def _sum(sizes: object) -> int | None:
    total = 0
    for size in sizes:  # type: ignore[attr-defined]
        if size is None:
            return None
        total += size
    return total
