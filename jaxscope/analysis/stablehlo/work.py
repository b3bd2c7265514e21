"""Estimate how many operations an operation of a lowered program computes, from the shapes in the text."""

from __future__ import annotations

import math
import re

from jaxscope.analysis.stablehlo import types
from jaxscope.analysis.stablehlo.module import CALLS, CONSTANTS, NOT_OPERATIONS, PRODUCTS, Module, Op
from jaxscope.analysis.stablehlo.sources import Sources

# Operations that compute nothing. For those with regions, the operations inside are counted instead.
_MOVES = frozenset(
    f"stablehlo.{name}"
    for name in ("broadcast_in_dim", "reshape", "transpose", "iota", "slice", "concatenate", "convert")
) | {"stablehlo.while", "stablehlo.case", "stablehlo.if", "stablehlo.get_tuple_element"}
_CONTRACTED = re.compile(r"contracting_dims = \[([\d, ]*)\]")
_LABELS = re.compile(r"dim_numbers = \[([^\]]*)\]x\[([^\]]*)\]")
LENGTHS = re.compile(r"length = \[([\d, ]*)\]")
# LAPACK's, cuSOLVER's and XLA's names of matrix decompositions, and of solvers with two operands
_DECOMPOSES = re.compile(
    r"cholesky|potrf|getrf|geqrf|orgqr|syevd|heevd|geev|gesdd|gesvd|eigh|lu_decomp|\bqr", re.I
)
_SOLVES = re.compile(r"trsm|triangular_solve|getrs|potrs", re.I)
CUSTOM = "stablehlo.custom_call"  # such as matrix decompositions
# Operations that take much longer for an element than an addition
SLOW = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("sort", "power", "exponential", "exponential_minus_one", "log", "log_plus_one", "tanh", "sine"),
        *("cosine", "tan", "cbrt", "atan2", "logistic", "fft", "erf", "gather", "scatter"),
    )
) | {"chlo.erf", "chlo.erf_inv", "chlo.lgamma", "chlo.digamma"}
ROUNDS = 5  # of Threefry
COMPARED = 20  # A comparison of a sort takes as long as about so many flops (a CPU core, JAX 0.10.2).


def operations(op: Op) -> int:
    """Return how many arithmetic operations one execution of ``op`` needs; 0 if it computes nothing, or if a
    shape is unknown. The number is

    - for a matrix product or convolution, its flops,
    - for a Fourier transform of n numbers, 5 n log2(n),
    - for a sort of n numbers, about 20 n log2(n),
    - for the decomposition of a matrix with n rows and columns, n^3,
    - for each right side of a solver with such a matrix, n^2,
    - for a reduction, the elements of the operand,
    - for an update of a slice, the elements written,
    - for all others, such as elementwise ones, the elements of the result.
    """
    if op.name in CONSTANTS or op.name in CALLS or op.name in NOT_OPERATIONS or op.name in _MOVES:
        return 0
    inputs = [types.tensor(text) for text in op.inputs]
    elements = max((types.tensor(text).elements or 0 for text in op.outputs), default=0)
    name = op.callee or op.name
    if op.name in PRODUCTS and inputs:
        return 2 * elements * _contracted(op)
    if op.name == "stablehlo.fft":
        return int(5 * elements * math.log2(max(2, math.prod(sizes(LENGTHS, op.detail)))))
    shape = inputs[0].shape if inputs else None
    if op.name == "stablehlo.sort" and shape:
        return int(COMPARED * elements * math.log2(max(2, *(n or 0 for n in shape))))
    if shape and len(shape) >= 2 and None not in shape and _DECOMPOSES.search(name):
        return math.prod(n or 0 for n in shape) * min(n or 0 for n in shape[-2:])
    if len(inputs) > 1 and _SOLVES.search(name):
        columns = (inputs[1].shape or (1,))[-1] if len(inputs[1].shape or ()) > 1 else 1
        return (inputs[0].elements or 0) * (columns or 0)
    if op.name == "stablehlo.reduce" and inputs:
        return inputs[0].elements or 0
    if op.name == "stablehlo.dynamic_update_slice" and len(inputs) > 1:
        return inputs[1].elements or 0  # XLA writes into the array itself
    return elements


def decomposes(op: Op) -> bool:
    """Return whether ``op`` calls a library's decomposition of a matrix, such as LAPACK's for ``eigh``."""
    return op.name == CUSTOM and _DECOMPOSES.search(op.callee or "") is not None


class Shares:
    """The share of single operations of a program in the program's arithmetic operations.

    Attributes:
      counts: for each operation of the module, how many arithmetic operations it needs, in all copies of the
        function that contains it.
      rounds: how often the operations in loops count: 1 if the user's code has loops, else 5, the rounds of
        JAX's random number generator (Threefry).
    """

    def __init__(self, module: Module, sources: Sources) -> None:
        self.counts = [operations(op) * sources.times[op.function] for op in module.ops]
        self._in_loop = sources.in_loop
        looped = [i for i, n in enumerate(self.counts) if n and sources.in_loop(i)]
        # Loops of JAX's own functions are the rounds of Threefry.
        random = of_threefry(module, sources)
        users = any(sources.own(i).frame is not None and module.ops[i].function not in random for i in looped)
        self._looped = sum(self.counts[i] for i in looped) if users else 0
        self.rounds = 1 if users else ROUNDS
        self._total = sum(self.counts) + (self.rounds - 1) * sum(self.counts[i] for i in looped)

    def kinds(self, module: Module) -> tuple[int, int, int] | None:
        """Return the number of arithmetic operations of one call of the program: of matrix products and
        convolutions, of operations that take long for each element (SLOW, and custom calls), and of all
        others. None if the program has loops of the user's code, whose iterations are not counted, or has no
        operations."""
        if self._looped or not module.ops:
            return None
        sums = [0, 0, 0]
        for k, n in enumerate(self.counts):
            op = module.ops[k]
            kind = 0 if op.name in PRODUCTS else 1 if op.name in SLOW or op.name == CUSTOM else 2
            sums[kind] += n * (self.rounds if n and self._in_loop(k) else 1)
        return sums[0], sums[1], sums[2]

    def of(self, index: int, count: int | None = None) -> float | None:
        """Return the share of the operation ``module.ops[index]`` in all arithmetic operations of the
        program, from 0 to 1. If the user's code has loops, return its share in the operations in loops, or
        None if the operation is in no loop. Return None also if nothing is counted.

        Args:
          count: the number of arithmetic operations whose share is returned; None: those of the operation
            itself, in all copies of its function.
        """
        if self._looped and not self._in_loop(index):
            return None
        total = self._looped or self._total
        return min(1.0, (self.counts[index] if count is None else count) / total) if total else None


def of_threefry(module: Module, sources: Sources) -> set[int]:
    """Return the indices of the module's functions for Threefry, JAX's random number generator, and of the
    functions that only these call."""
    found = set[int]()
    for f in sources.order:
        callers = {module.ops[call].function for call in sources.called[f]}
        if module.functions[f].name.startswith("threefry") or (callers and callers <= found):
            found.add(f)
    return found


def sizes(pattern: re.Pattern[str], detail: str) -> list[int]:
    """Return the numbers that the first group of ``pattern`` matches in the text ``detail`` of an operation:
    ``dims = [0, 2]`` -> ``[0, 2]``. Return an empty list if nothing matches."""
    found = pattern.search(detail)
    return [int(n) for n in found[1].split(",") if n.strip()] if found is not None else []


def _contracted(op: Op) -> int:
    """Return how many products are added up for each element of the result of a matrix product or
    convolution."""
    inputs = [types.tensor(text) for text in op.inputs[:2]]
    if op.name != "stablehlo.convolution":
        shape = inputs[0].shape or ()
        at = sizes(_CONTRACTED, op.detail)
        return math.prod(shape[i] or 0 for i in at if i < len(shape)) if at else 1
    kernel = convolution(op)
    return math.prod(kernel[1].values()) // max(1, kernel[1]["o"]) if kernel is not None else 0


def convolution(op: Op) -> tuple[dict[str, int], dict[str, int]] | None:
    """Return the sizes of the input and of the kernel of a convolution by the names of their dimensions:
    ``b``, ``f``, ``0``, ``1`` and ``o``, ``i``, ``0``, ``1``. Return None if ``op`` is not a convolution, or
    if a size is unknown."""
    found = _LABELS.search(op.detail) if op.name == "stablehlo.convolution" else None
    shapes = [types.tensor(text).shape or () for text in op.inputs]
    if found is None or len(shapes) != 2:
        return None
    named = []
    for labels, shape in zip(found.groups(), shapes, strict=True):
        names = [name.strip() for name in labels.split(",")]
        if len(names) != len(shape) or None in shape:
            return None
        named.append({name: n for name, n in zip(names, shape, strict=True) if n is not None})
    return (named[0], named[1]) if "o" in named[1] and "b" in named[0] else None
