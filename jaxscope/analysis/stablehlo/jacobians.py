"""Find Jacobians that ``jax.jacrev`` or ``jax.jacfwd`` computes, and their sizes.

Both functions start from an identity matrix, with one row for each pass through the derivative: ``jacrev``
for each output of the differentiated function, ``jacfwd`` for each of its inputs. They split this matrix into
the arrays of the function's results or arguments, and at the end they split the Jacobian. The lowered program
has these operations on the line of the call.
"""

from __future__ import annotations

import math
from collections import Counter

import msgspec

from jaxscope.analysis.stablehlo import types
from jaxscope.analysis.stablehlo.flow import Flow, ReachedValue
from jaxscope.analysis.stablehlo.module import Module
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Frame

IDENTITY, PART = "/iota", "/split"  # ends of JAX's names of the operations that make and split the matrices
INSIDE = ("vmap(", "jvp(")  # in the name of an operation of a derivative
BATCHED = "vmap()"  # in the name of an operation of a batch of Jacobians


FEWEST_SHIFTS = 16
_SCALED = frozenset(
    f"stablehlo.{name}"
    for name in ("reshape", "convert", "multiply", "divide", "negate", "broadcast_in_dim", "transpose")
)
DEPTH = 12  # through how many operations a value is followed


class Shifted(msgspec.Struct, frozen=True):
    """A function that is evaluated with each element of an argument a little larger, and a little smaller:
    ``vmap(f)(x + h * eye)`` and ``vmap(f)(x - h * eye)``, for an estimate of its gradient.

    Attributes:
      evaluations: how often the function is evaluated.
      source: the line of the user's code that adds to the argument.
    """

    evaluations: int
    source: Frame


class Jacobian(msgspec.Struct, frozen=True):
    """A Jacobian that the program computes with ``jax.jacrev`` or ``jax.jacfwd``.

    Attributes:
      passes: how often the derivative is evaluated: once for each output of the function with ``jacrev``,
        once for each input with ``jacfwd``.
      others: how often the derivative would be evaluated with the other function, ``jacfwd`` or ``jacrev``.
      source: the line of the user's code that calls ``jacrev`` or ``jacfwd``.
    """

    passes: int
    others: int
    source: Frame


def find(module: Module, sources: Sources) -> list[Jacobian]:
    """Return the Jacobians of ``module``, also batches of Jacobians (``jax.vmap``), whose numbers of passes
    are those for one element of the batch. Jacobians whose numbers of rows and columns do not follow from the
    text are left out."""
    identities: dict[Frame, Counter[int]] = {}
    parts: dict[Frame, list[tuple[list[int], bool]]] = {}  # shape of each part, and whether of a batch
    for index, op in enumerate(module.ops):
        if op.name not in ("stablehlo.iota", "stablehlo.slice") or not sources.times[op.function]:
            continue
        name, source = sources.place(index).name or "", sources.frame(index)
        shape = types.tensor(op.outputs[0]).shape if op.outputs else None
        sizes = [n for n in shape or () if n is not None]
        if source is None or not sizes or any(inner in name.replace(BATCHED, "") for inner in INSIDE):
            continue
        if op.name == "stablehlo.iota" and name.endswith(IDENTITY) and len(sizes) == 2:
            if sizes[0] == sizes[1]:
                identities.setdefault(source, Counter())[sizes[0]] += 1
        elif op.name == "stablehlo.slice" and name.endswith(PART):
            parts.setdefault(source, []).append((sizes, BATCHED in name))
    found = []
    for source, rows in identities.items():
        [(passes, numbers)] = rows.most_common(1)
        matrices = numbers // 2  # the numbers of the rows and of the columns are compared
        # The identity matrix is the same for all elements of a batch; the Jacobian has the batch in front.
        elements = sum(
            math.prod(sizes[1:] if batched and sizes[0] != passes else sizes)
            for sizes, batched in parts.get(source, ())
        )
        if len(rows) > 1 or not matrices or elements % (matrices * passes):
            continue
        others = elements // (matrices * passes) - passes
        if others > 0:
            found.append(Jacobian(passes, others, source))
    return found


def shifted(module: Module, sources: Sources) -> list[Shifted]:
    """Return the gradients that the program estimates by finite differences: it evaluates a function with
    each element of an argument a little larger, and a little smaller. Arguments with fewer than
    FEWEST_SHIFTS (16) elements are left out."""
    flow = Flow(module)
    signs: dict[tuple[int, int], dict[str, Frame]] = {}  # (function, elements) -> operation -> its line
    for index, op in enumerate(module.ops):
        if op.name not in ("stablehlo.add", "stablehlo.subtract") or not sources.times[op.function]:
            continue
        shape = [n or 0 for n in (types.tensor(op.outputs[0]).shape or ())] if op.outputs else []
        n, source = (shape[0], sources.frame(index)) if len(shape) > 1 else (0, None)
        if n < FEWEST_SHIFTS or math.prod(shape[1:]) != n or source is None:
            continue
        for k in (0, 1):
            if _is_identity(flow, flow.operand(ReachedValue(index), k), n, DEPTH) and _is_repeated(
                flow, flow.operand(ReachedValue(index), 1 - k), n
            ):
                signs.setdefault((op.function, n), {})[op.name] = source
    return [
        Shifted(2 * n, lines["stablehlo.add"])
        for (function, n), lines in signs.items()
        if len(lines) == 2 and _subtracts(module, function, n)
    ]


def _subtracts(module: Module, function: int, n: int) -> bool:
    """Return whether the function ``module.functions[function]`` subtracts two arrays whose first dimension
    has size ``n``, except the ``n`` shifted arguments themselves."""
    f = module.functions[function]
    results = [op for op in module.ops[f.first : f.end] if op.name == "stablehlo.subtract" and op.outputs]
    shapes = [types.tensor(op.outputs[0]).shape or () for op in results]
    return any(shape[:1] == (n,) and math.prod(m or 0 for m in shape[1:]) != n for shape in shapes)


def _is_identity(flow: Flow, value: ReachedValue | None, n: int, depth: int) -> bool:
    """Return whether ``value`` is an identity matrix with ``n`` rows, which may be scaled or reshaped."""
    if value is None or depth == 0:
        return False
    op = flow.module.ops[value.at]
    if op.name == "stablehlo.compare":
        return "EQ" in op.detail and op.outputs == (f"tensor<{n}x{n}xi1>",)
    operands = range(2 if op.name in ("stablehlo.multiply", "stablehlo.divide") else 1)
    return op.name in _SCALED and any(
        _is_identity(flow, flow.operand(value, k), n, depth - 1) for k in operands
    )


def _is_repeated(flow: Flow, value: ReachedValue | None, n: int) -> bool:
    """Return whether ``value`` consists of ``n`` copies of an array with ``n`` elements."""
    for _ in range(DEPTH):
        op = flow.module.ops[value.at] if value is not None else None
        if value is None or op is None or op.name != "stablehlo.broadcast_in_dim":
            return False
        if types.tensor(op.inputs[0]).elements == n:
            return True
        value = flow.operand(value, 0)
    return False
