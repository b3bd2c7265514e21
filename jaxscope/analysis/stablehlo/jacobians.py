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
from jaxscope.analysis.stablehlo.module import Module
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Frame

IDENTITY, PART = "/iota", "/split"  # ends of JAX's names of the operations that make and split the matrices
INSIDE = ("vmap(", "jvp(")  # in the name of an operation of a derivative, or of a batch of Jacobians


class Jacobian(msgspec.Struct, frozen=True):
    """A Jacobian.

    Attributes:
      passes: the rows of the identity matrix: how many passes through the derivative it takes.
      others: the size of the Jacobian in its other dimension.
      source: the user's line that calls ``jacrev`` or ``jacfwd``.
    """

    passes: int
    others: int
    source: Frame


def find(module: Module, sources: Sources) -> list[Jacobian]:
    identities: dict[Frame, Counter[int]] = {}
    elements: Counter[Frame] = Counter()
    for index, op in enumerate(module.ops):
        if op.name not in ("stablehlo.iota", "stablehlo.slice") or not sources.times[op.function]:
            continue
        name, source = sources.place(index).name or "", sources.frame(index)
        shape = types.tensor(op.outputs[0]).shape if op.outputs else None
        sizes = [n for n in shape or () if n is not None]
        if source is None or not sizes or any(inner in name for inner in INSIDE):
            continue
        if op.name == "stablehlo.iota" and name.endswith(IDENTITY) and len(sizes) == 2:
            if sizes[0] == sizes[1]:
                identities.setdefault(source, Counter())[sizes[0]] += 1
        elif op.name == "stablehlo.slice" and name.endswith(PART):
            elements[source] += math.prod(sizes)
    found = []
    for source, rows in identities.items():
        [(passes, numbers)] = rows.most_common(1)
        matrices = numbers // 2  # the numbers of the rows and of the columns are compared
        if len(rows) > 1 or not matrices or elements[source] % (matrices * passes):
            continue
        others = elements[source] // (matrices * passes) - passes
        if others > 0:
            found.append(Jacobian(passes, others, source))
    return found
