"""Compute the floating-point operations (flops) of dots and convolutions from their shapes.

A multiply-add counts as two operations, as in XLA's HloCostAnalysis. A dot has 2 x (elements of the result) x
(contracted elements). A convolution has 2 x batch x output features x input features of a group x the
positions at which the kernel meets an element of the input. Multiplications with padding or with the holes of
a dilation do not count. This matters on TPU, where a batched dot is a convolution with a dilated window. A
custom call for which XLA uses cuBLAS counts as a dot, if its text states the contracted dimensions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from jaxscope.analysis.hlo import branches, shapes
from jaxscope.analysis.hlo.attribution import Attribution
from jaxscope.analysis.hlo.calls import CALLS, CallGraph
from jaxscope.analysis.hlo.lexing import attribute, backend_config, number, unquote
from jaxscope.analysis.hlo.module import Computation, Instruction
from jaxscope.schema.keys import Frame

_PRODUCTS = ("dot", "convolution")
WORK = (*_PRODUCTS, *(f"{opcode}-start" for opcode in _PRODUCTS))
CUSTOM_CALLS = ("custom-call", "custom-call-start")
_LABELS = re.compile(r"([0-9bf?]+)_([0-9io?]+)->([0-9bf?]+)$")
_WINDOW = re.compile(r"(\w+)=([\w\-]+)")
_NUMBER = re.compile(r"-?\d{1,9}")
# The targets of custom calls that multiply nothing begin with these words: they move, mark or select data.
_MOVES = (
    "AsyncCollective", "Sharding", "SPMD", "annotate_device", "Move", "Pin", "AllocateBuffer", "Slice",
    "Gather", "AssumeGather", "ConcatBitcast", "X64", "PadToStatic", "LayoutConstraint", "TopK",
    "PartialReduce",
)  # fmt: skip
# The targets of matrix products in cuBLAS begin with these (xla/service/gpu/cublas_cudnn.cc).
_GEMMS = ("__cublas$gemm", "__cublas$lt$matmul")
MAX_POSITIONS = 100_000
MAX_NAMED = 3  # the most custom kernels that are named in a reason


def flops(graph: CallGraph, computation: Computation, instruction: Instruction) -> int | None:
    """Return the flops of one execution of an instruction in ``computation``. A fusion or a call has the
    flops of all dots and convolutions inside, each counted once; custom calls inside are not counted. Return
    None if the flops are unknown, as for each custom call, loop and conditional. Return 0 for every remaining
    opcode."""
    opcode = instruction.operation
    if opcode in _PRODUCTS:
        return (
            _of_dot(computation, instruction)
            if opcode == "dot"
            else _of_convolution(computation, instruction)
        )
    if opcode not in CALLS:
        return None if opcode in ("custom-call", "while", "conditional") else 0
    total = 0
    waiting, seen = [c.callee for c in graph.of(computation, instruction)], set[str]()
    while waiting:
        body = waiting.pop()
        if body.name in seen:
            continue
        seen.add(body.name)
        for inner in body.instructions:
            if inner.opcode in WORK:
                one = flops(graph, body, inner)
                if one is None:
                    return None
                total += one
        waiting += [c.callee for c in graph.calls.get(body.name, ())]
    return total


class Total(NamedTuple):
    """The flops of one call of a program on one device.

    Attributes:
      least: element type of the operands -> lower bound of the flops. The key is ``bf16 x f32`` if the two
        operands differ in type. ``?`` is an unknown type.
      bounds: lower and upper bound of the sum over all types.
      unknown: one reason why the sum is not exact, as the end of a sentence: ``without 2 custom kernels:
        foo``; None: it is exact.
    """

    least: dict[str, int]
    bounds: branches.Bounds
    unknown: str | None


def total_flops(
    graph: CallGraph, executions: Mapping[str, int | None], paths: Mapping[str, branches.Path]
) -> Total:
    """Return the flops of all dots, convolutions and matrix products of cuBLAS in one call of a program.

    Other custom calls that may compute, loops without a trip count and shapes that cannot be read count as 0
    in the lower bound. With any of them there is no upper bound.

    Args:
      graph: the calls of the module; created with ``also=(*WORK, *CUSTOM_CALLS)``.
      executions: name of a computation -> how often it runs in one call; None: unknown.
      paths: name of a computation -> the branches of conditionals that contain it.
    """
    total: dict[str, list[tuple[branches.Path, int]]] = {}
    unknown: dict[str, None] = {}
    kernels: Counter[str] = Counter()
    for computation, instruction, once, kernel in _work(graph):
        if kernel is not None:
            kernels[kernel] += 1
            continue
        times = executions.get(computation.name)
        if times is None:
            unknown["it is unknown how often a loop with matrix products runs"] = None
            continue
        if once is None:
            unknown["the shapes of a matrix product could not be read"] = None
            continue
        left, right = _array(computation, instruction, 0), _array(computation, instruction, 1)
        types = {"?" if side is None else side.dtype for side in (left, right)}
        kind = " x ".join(sorted(types))
        total.setdefault(kind, []).append((paths.get(computation.name, ()), times * once))
    found = branches.bounds_of(row for rows in total.values() for row in rows)
    if kernels:
        unknown[_kernels_not_counted(kernels)] = None
    if unknown:
        found = branches.Bounds(found.least, None)
    elif found.exact is None:
        unknown["the branches of a conditional have different matrix products"] = None
    least = {kind: branches.smallest(rows) for kind, rows in total.items()}
    return Total(least, found, next(iter(unknown), None))


def _work(graph: CallGraph) -> Iterator[tuple[Computation, Instruction, int | None, str | None]]:
    """Yield (computation, instruction, flops, kernel) of each dot, convolution and custom call that may
    compute. ``flops`` is for one execution; None: unknown. ``kernel`` names a custom kernel with unknown
    flops, else None."""
    for computation, instruction in graph.all(*CUSTOM_CALLS, *WORK):
        if instruction.opcode not in CUSTOM_CALLS:
            yield computation, instruction, flops(graph, computation, instruction), None
            continue
        target = unquote(attribute(instruction.tail, "custom_call_target") or "")
        if target.startswith(_MOVES):
            continue
        once = _of_gemm(computation, instruction) if target.startswith(_GEMMS) else None
        yield computation, instruction, once, (target[:60] or "without a name") if once is None else None


class LineFlops(msgspec.Struct, frozen=True):
    """The flops of the dots, convolutions and custom calls that come from one Python line, in one call of a
    program on one device.

    Attributes:
      source: the line.
      flops: the sum, with only the largest branch of each conditional; None: the flops of one instruction, or
        how often it runs, are unknown.
    """

    source: Frame
    flops: int | None


def by_line(
    graph: CallGraph,
    attribution: Attribution,
    executions: Mapping[str, int | None],
    paths: Mapping[str, branches.Path],
) -> list[LineFlops]:
    """Return the flops of each Python line that has dots, convolutions or custom calls that may compute, in
    the order of the HLO. Instructions without a known line are ignored.

    Args:
      graph: the calls of the module; created with ``also=(*WORK, *CUSTOM_CALLS)``.
      attribution: the lines of the module's instructions.
      executions: name of a computation -> how often it runs in one call; None: unknown.
      paths: name of a computation -> the branches of conditionals that contain it.
    """
    rows: dict[tuple[str, int], list[tuple[branches.Path, int | None]]] = {}
    frames: dict[tuple[str, int], Frame] = {}
    for computation, instruction, once, _ in _work(graph):
        frame = attribution.line(computation, instruction)
        if frame is None:
            continue
        times = executions.get(computation.name)
        count = None if once is None or times is None else once * times
        frames.setdefault((frame.file, frame.line), frame)
        rows.setdefault((frame.file, frame.line), []).append((paths.get(computation.name, ()), count))
    return [LineFlops(frames[place], branches.bounds_of(counted).most) for place, counted in rows.items()]


def _kernels_not_counted(kernels: Counter[str]) -> str:
    """Return the text for custom kernels that are not counted: ``without 3 custom kernels: bar, foo``.
    ``kernels`` is name -> number; at most MAX_NAMED (3) names are in the text."""
    n = kernels.total()
    return f"without {n} custom kernel{'s' if n > 1 else ''}: {', '.join(sorted(kernels)[:MAX_NAMED])}"


def _of_gemm(computation: Computation, instruction: Instruction) -> int | None:
    """Return the flops of a matrix product that XLA executes with cuBLAS; None if unknown. The contracted
    dimensions are in the custom call's configuration."""
    config = backend_config(instruction.tail).get("gemm_backend_config")
    numbers = config.get("dot_dimension_numbers") if isinstance(config, dict) else None
    contracted = numbers.get("lhs_contracting_dimensions") if isinstance(numbers, dict) else None
    if not isinstance(contracted, list) or not contracted:
        return None
    result = shapes.of_result(instruction.opcode, instruction.shape)
    if isinstance(result, tuple) and result:
        result = result[0]  # the product
    return _of_product(
        _array(computation, instruction, 0), result, [number(str(text)) for text in contracted]
    )


def _of_dot(computation: Computation, instruction: Instruction) -> int | None:
    """Return the flops of one execution of a dot; None if unknown."""
    contracted = _NUMBER.findall(attribute(instruction.tail, "lhs_contracting_dims") or "")
    result = shapes.of_result(instruction.opcode, instruction.shape)
    return _of_product(_array(computation, instruction, 0), result, [int(text) for text in contracted])


def _of_product(
    left: shapes.Array | None, result: shapes.Shape | None, contracted: list[int | None]
) -> int | None:
    """Return the flops of a matrix product; None if unknown. ``contracted`` are the numbers of the contracted
    dimensions of the left operand ``left``."""
    if left is None or not isinstance(result, shapes.Array) or result.elements is None:
        return None
    total = 2 * result.elements
    for at in contracted:
        size = left.dims[at] if at is not None and 0 <= at < len(left.dims) else None
        if size is None:
            return None
        total *= size
    return total


def _array(computation: Computation, instruction: Instruction, number: int) -> shapes.Array | None:
    """Return the shape of operand ``number`` of an instruction. Return None if there is no such operand, or
    if it is no array."""
    operand = computation.operand(instruction, number)
    shape = shapes.parse(operand.shape) if operand else None
    return shape if isinstance(shape, shapes.Array) else None


def _of_convolution(computation: Computation, instruction: Instruction) -> int | None:
    """Return the flops of one execution of a convolution, without multiplications with padding or holes.
    Return None if they are unknown."""
    left, kernel = _array(computation, instruction, 0), _array(computation, instruction, 1)
    result = shapes.of_result(instruction.opcode, instruction.shape)
    labels = _LABELS.match(attribute(instruction.tail, "dim_labels") or "")
    if left is None or kernel is None or labels is None or not isinstance(result, shapes.Array):
        return None
    sizes: list[dict[str, int]] = []
    for letters, shape in zip(labels.groups(), (left, kernel, result), strict=True):
        if len(letters) != len(shape.dims) or None in shape.dims:
            return None
        sizes.append({letter: size or 0 for letter, size in zip(letters, shape.dims, strict=True)})
    data, weights, out = sizes
    groups = int((_NUMBER.findall(attribute(instruction.tail, "batch_group_count") or "") or ["1"])[0])
    total = 2 * data.get("b", 1) * weights.get("i", 1) * weights.get("o", 1)
    window = {k: v.split("x") for k, v in _WINDOW.findall(attribute(instruction.tail, "window") or "")}
    for place, letter in enumerate(sorted(k for k in weights if k.isascii() and k.isdigit())):
        met = _positions(window, place, data.get(letter, 0), weights[letter], out.get(letter, 0))
        if met is None:
            return None
        total *= met
    return total // groups if groups > 0 else None


def _positions(window: dict[str, list[str]], number: int, data: int, kernel: int, out: int) -> int | None:
    """Return how many pairs (output position, kernel element) of a convolution meet an element of the input,
    not padding, along one spatial dimension. None if the window cannot be read or there are too many pairs.

    Args:
      window: field of the convolution's ``window=`` (``size``, ``stride``, ``pad``, ...) -> a text for each
        spatial dimension.
      number: the spatial dimension.
      data, kernel, out: the sizes of input, kernel and output along the dimension.
    """

    def of(key: str, default: int) -> int | None:
        """Return the number in the field ``key`` of ``window`` for this dimension: ``default`` if there is no
        such field, None if it cannot be read."""
        values = window.get(key)
        if values is None:
            return default
        found = _NUMBER.match(values[number]) if number < len(values) else None
        return int(found[0]) if found else None

    stride, low, spread, holes = of("stride", 1), of("pad", 0), of("lhs_dilate", 1), of("rhs_dilate", 1)
    if stride is None or low is None or not spread or not holes or kernel * out > MAX_POSITIONS:
        return None
    met = 0
    for position in range(out):
        for weight in range(kernel):
            at, rest = divmod(position * stride - low + weight * holes, spread)
            met += not rest and 0 <= at < data
    return met
