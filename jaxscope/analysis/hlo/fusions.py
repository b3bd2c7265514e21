"""List the fusions of a compiled program by kind and contents, the elementwise operations outside of fusions,
and the custom calls."""

from __future__ import annotations

import re

import msgspec

from jaxscope.analysis.hlo import shapes
from jaxscope.analysis.hlo.attribution import MAX_NESTING, Attribution
from jaxscope.analysis.hlo.calls import FUSIONS, CallGraph
from jaxscope.analysis.hlo.cost import CUSTOM_CALLS
from jaxscope.analysis.hlo.lexing import attribute, unquote
from jaxscope.analysis.hlo.module import Computation, Instruction
from jaxscope.analysis.sums import known_sum
from jaxscope.schema.keys import Frame

KINDS = ("loop", "input", "output", "custom")
# XLA's HloInstruction::IsElementwise, and also broadcast and iota.
ELEMENTWISE = frozenset(
    {
        *("abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "clz", "compare", "complex", "convert"),
        *("cosine", "count-leading-zeros", "divide", "erf", "exponential", "exponential-minus-one", "floor"),
        *("imag", "is-finite", "log", "log-plus-one", "logistic", "map", "maximum", "minimum", "multiply"),
        *("negate", "not", "or", "popcnt", "power", "real", "reduce-precision", "remainder", "rsqrt"),
        *("round-nearest-afz", "round-nearest-even", "select", "shift-left", "shift-right-arithmetic"),
        *("shift-right-logical", "sign", "sine", "sqrt", "stochastic-convert", "subtract", "tan", "tanh"),
        *("xor", "acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh", "broadcast", "iota"),
    }
)
_NO_OPS = frozenset({"parameter", *FUSIONS})
_KIND = re.compile(r"\), kind=(k[A-Za-z]++)(?:,|$)")
MAX_SOURCES = 8


class Fusion(msgspec.Struct, frozen=True, gc=False):
    """One fusion outside of other fusions.

    Attributes:
      kind: ``loop``, ``input``, ``output``, ``custom``, or the name of an unknown kind.
      ops: opcode -> number of instructions in the fusion, including nested fusions. Parameters and the
        ``fusion`` instructions themselves are not counted.
      bytes_in, bytes_out: bytes of the fusion's parameters and of its result on one device, without padding;
        None: unknown.
      sources: Python lines from which the fused instructions come, the most frequent first, at most eight. If
        no such line is known, the line of the fusion itself, if known.
      executions: executions in one call of the program, an upper bound in a branch of a conditional; None if
        a trip count is unknown.
    """

    name: str
    kind: str
    computation: str
    ops: dict[str, int]
    bytes_in: int | None
    bytes_out: int | None
    sources: list[Frame]
    executions: int | None

    @property
    def moved_bytes(self) -> int | None:
        """``bytes_in + bytes_out``, times ``executions``; None if unknown. The fusion may read only parts of
        its parameters."""
        if self.bytes_in is None or self.bytes_out is None or self.executions is None:
            return None
        return (self.bytes_in + self.bytes_out) * self.executions


class Fusions(msgspec.Struct, frozen=True):
    """The fusions that run in a program.

    Attributes:
      total, by_kind: number of fusions outside of other fusions, in all and by kind.
      nested, nested_by_kind: number of fusions inside other fusions, in all and by kind.
      each: the fusions outside of other fusions.
    """

    total: int
    by_kind: dict[str, int]
    nested: int
    nested_by_kind: dict[str, int]
    each: list[Fusion]


def read(graph: CallGraph, attribution: Attribution, executions: dict[str, int | None]) -> Fusions:
    """Return the fusions that run in a program. ``executions`` is name of a computation -> how often it runs
    in one call; None: unknown."""
    by_kind: dict[str, int] = {}
    nested: dict[str, int] = {}
    found: list[Fusion] = []
    held: dict[str, tuple[dict[str, int], int | None]] = {}
    for caller, instruction in graph.all(*FUSIONS):
        kind = kind_of(instruction)
        if caller.name in graph.fused:
            nested[kind] = nested.get(kind, 0) + 1
            continue
        by_kind[kind] = by_kind.get(kind, 0) + 1
        calls = graph.of(caller, instruction)
        body = calls[0].callee if calls else None  # None in a truncated text
        if body is not None and body.name not in held:
            sizes = [shapes.text_bytes(i.shape) for i in body.instructions if i.opcode == "parameter"]
            held[body.name] = contents(graph, body), known_sum(sizes)
        ops, bytes_in = held[body.name] if body else ({}, None)
        found.append(
            Fusion(
                name=instruction.name,
                kind=kind,
                computation=caller.name,
                ops=ops,
                bytes_in=bytes_in,
                bytes_out=shapes.result_bytes(instruction.opcode, instruction.shape),
                sources=_lines(attribution, instruction, body),
                executions=executions.get(caller.name),
            )
        )
    return Fusions(sum(by_kind.values()), by_kind, sum(nested.values()), nested, found)


def _lines(attribution: Attribution, fusion: Instruction, body: Computation | None) -> list[Frame]:
    """Return the Python lines of the instructions in a fusion, the most frequent first, at most eight. If no
    line is known, return only the line of the fusion itself, or an empty list. ``body`` is None if the text
    is truncated."""
    found = attribution.sources([body])[:MAX_SOURCES] if body else []
    own = None if found else attribution.own(fusion)
    return found if own is None else [own]


def kind_of(fusion: Instruction) -> str:
    """Return the kind of a fusion: ``loop``, ``input``, ``output``, ``custom``, or the name of an unknown
    kind. It is ``unknown`` if the text states no kind."""
    tail = fusion.tail
    found = _KIND.match(tail, tail.find(")"))
    kind = found[1] if found else attribute(tail, "kind") or "kUnknown"
    return kind[1:].lower() if kind[:1] == "k" else kind


def count_unfused(graph: CallGraph) -> int:
    """Return the number of elementwise operations outside of fusions, without scalars."""
    # Scalars are counters and indices, no work of a device.
    return sum(i.opcode in ELEMENTWISE and not i.is_scalar for c in graph.top_level() for i in c.instructions)


def custom_calls(graph: CallGraph) -> dict[str, int]:
    """Return the number of custom calls, also inside of fusions: target -> number of instructions, not of
    executions. Those in computations that do not run are not counted."""
    found: dict[str, int] = {}
    for _, instruction in graph.all(*CUSTOM_CALLS):
        target = unquote(attribute(instruction.tail, "custom_call_target") or "?")
        found[target] = found.get(target, 0) + 1
    return found


def contents(graph: CallGraph, body: Computation) -> dict[str, int]:
    """Count the instructions in a fusion's body, including those in nested fusions: opcode -> number.
    Parameters and the ``fusion`` instructions themselves are not counted."""
    ops: dict[str, int] = {}
    waiting, seen = [(body, 0)], {body.name}
    while waiting:
        current, depth = waiting.pop()
        for instruction in current.instructions:
            opcode = instruction.opcode
            ops[opcode] = ops.get(opcode, 0) + 1
        for call in graph.calls.get(current.name, ()) if depth < MAX_NESTING else ():
            if call.callee.name not in seen:  # only a damaged text has computations that call each other
                seen.add(call.callee.name)
                waiting.append((call.callee, depth + 1))
    for opcode in _NO_OPS:
        ops.pop(opcode, None)
    return ops
