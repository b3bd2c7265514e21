"""Find conditionals that ``vmap`` turned into selections, so that every branch runs for every element, and
count the operations of the functions that may be their branches.

If the predicate of a ``cond`` or ``switch`` differs between elements, JAX computes all branches and selects
the results with a ``select_n``, whose line is that of the conditional. Its name is ``.../vmap(...)/select_n``
or, if ``vmap`` is around a jitted function, ``.../jit(...)/select_n``. The compiled text does not contain the
names of the branches. So the operations are counted for each function of the user's code. The user's source,
which this module does not read, shows which functions are branches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import msgspec

from jaxscope.analysis.hlo import cost, shapes
from jaxscope.analysis.hlo.attribution import Attribution, frame_id, op_name
from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.frames import Frames, in_library
from jaxscope.analysis.hlo.module import Computation, Instruction, Module
from jaxscope.analysis.stablehlo.work import COMPARED
from jaxscope.schema.keys import Frame

MAX_FUNCTIONS = 300
MAX_CALLS = 20  # calls within each other
# Opcodes that compute nothing. The operations of a fusion, a loop, a call or a conditional are those inside.
_NOTHING = frozenset(
    {
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "copy", "copy-start"),
        *("copy-done", "broadcast", "iota", "reshape", "transpose", "fusion", "while", "conditional", "call"),
        *("async-start", "async-update", "async-done", "after-all", "partition-id", "replica-id"),
        *("opt-barrier",),
    }
)
_UPDATES = "dynamic-update-slice"
# Elementwise operations -> about how many additions take as long on a CPU
_AS_ADDITIONS = {
    **dict.fromkeys(
        ("exponential", "log", "tanh", "sqrt", "rsqrt", "exponential-minus-one", "log-plus-one"), 3
    ),
    **dict.fromkeys(("sine", "cosine", "tan", "logistic", "erf", "cbrt"), 10),
    **dict.fromkeys(("power", "remainder", "atan2"), 30),
}
_REDUCES = frozenset({"reduce", "reduce-window", "sort", "map"})


class FunctionWork(msgspec.Struct, frozen=True):
    """The operations that come from one function of the user's code, and from the functions that it calls, in
    one call of the program on one device.

    Attributes:
      file: the file of the function.
      function: the function's qualified name: ``step.<locals>.<lambda>``.
      line: for a lambda, the line in it, because one scope can have several lambdas; None for a function with
        a name.
      operations: for a matrix product its flops, for a reduction the elements that it reads, for an update of
        a slice those that it writes, for a sort of n numbers about 20 n log2(n), for any other operation the
        elements of its result, times 3 to 30 for functions such as log and power. All branches of a
        conditional count. A loop with an unknown trip count is counted for one iteration.
      unknown: how many of the counted instructions are in loops with an unknown trip count.
    """

    file: str
    function: str
    line: int | None
    operations: int
    unknown: int


class BatchedBranches(msgspec.Struct, frozen=True):
    """The selections of one program that may be conditionals under ``vmap``.

    Attributes:
      lines: the lines of the user's code that have such a selection and no conditional.
      operations: the operations of the whole program, counted as in ``FunctionWork``.
      unknown: how many of the program's counted instructions are in loops with an unknown trip count.
      functions: the functions of the user's code with the most operations, the most first, at most 300.
    """

    lines: list[Frame]
    operations: int
    unknown: int
    functions: list[FunctionWork]


def find(
    module: Module, graph: CallGraph, attribution: Attribution, executions: Mapping[str, int | None]
) -> BatchedBranches | None:
    """Return the selections of a program that may be conditionals under ``vmap``, with the operations of the
    functions in it. Return None if no line has such a selection, or each such line also has a conditional.

    Args:
      module: the compiled program.
      graph: the calls of the module.
      attribution: the lines of the module's instructions.
      executions: name of a computation -> how often it runs in one call; None: unknown.
    """
    selected = dict.fromkeys(
        frame
        for c in module.computations.values()
        for i in c.instructions
        if i.opcode == "select" and "select_n" in i.tail
        if _is_selection(op_name(i))
        and (frame := attribution.own(i)) is not None
        and not in_library(frame.file)
    )
    if not selected:
        return None
    kept = {
        (frame.file, frame.line)
        for _, i in graph.all("conditional")
        if (frame := attribution.own(i)) is not None
    }
    lines = [frame for frame in selected if (frame.file, frame.line) not in kept]
    if not lines:
        return None
    return _count(module, graph, executions, lines)


def _is_selection(name: str | None) -> bool:
    """Return whether the operation ``name`` is a ``select_n`` that may come from a conditional, and not from
    ``jnp.where``: ``jit(f)/vmap(g)/select_n``."""
    outer, _, last = (name or "").rpartition("/")
    return last == "select_n" and not outer.endswith("jit(_where)")


def _count(
    module: Module, graph: CallGraph, executions: Mapping[str, int | None], lines: list[Frame]
) -> BatchedBranches:
    """Count the operations of the program and of the user's functions in it.

    Args:
      executions: name of a computation -> how often it runs in one call; None: unknown.
      lines: the lines of the selections, which are passed on to the result.
    """
    by_stack: dict[
        int | None, list[int]
    ] = {}  # stack_frame_id -> [operations, instructions in unknown loops]
    for computation in module.computations.values():
        if computation.name not in executions:
            continue
        times = executions[computation.name]
        for instruction in computation.instructions:
            n = _operations(graph, computation, instruction)
            if n:
                stack = frame_id(instruction)
                # XLA drops the ids of some products that it rewrites.
                stack = _stack_around(graph, computation) if stack is None else stack
                row = by_stack.setdefault(stack, [0, 0])
                row[0] += n * (1 if times is None else times)
                row[1] += times is None
    functions: dict[tuple[str, str, int | None], list[int]] = {}
    for stack, (operations, unknown) in by_stack.items():
        for key in _functions(module.frames, stack):
            row = functions.setdefault(key, [0, 0])
            row[0] += operations
            row[1] += unknown
    most = sorted(functions.items(), key=lambda item: -item[1][0])[:MAX_FUNCTIONS]
    return BatchedBranches(
        lines,
        sum(row[0] for row in by_stack.values()),
        sum(row[1] for row in by_stack.values()),
        [FunctionWork(*key, *row) for key, row in most],
    )


def _stack_around(graph: CallGraph, computation: Computation) -> int | None:
    """Return the ``stack_frame_id`` of the innermost loop, fusion or other call around ``computation`` that
    has an id. Return None if no call has one, or if several instructions call a computation on the way."""
    for _ in range(MAX_CALLS):
        callers = graph.callers.get(computation.name, [])
        if len({call.instruction.name for call in callers}) != 1:
            return None
        stack = frame_id(callers[0].instruction)
        if stack is not None:
            return stack
        computation = callers[0].caller
    return None


def _functions(frames: Frames, stack: int | None) -> Iterator[tuple[str, str, int | None]]:
    """Yield (file, function, line) once for each function of the user's code in the Python stack with this
    ``stack_frame_id``. The line is None unless the function is a lambda. Nothing is yielded if ``stack`` is
    None."""
    found = frames.stack(stack) if stack is not None else []
    yield from dict.fromkeys(
        (f.file, f.function, f.line if f.function.endswith("<lambda>") else None)
        for f in found
        if not in_library(f.file)
    )


def _operations(graph: CallGraph, computation: Computation, instruction: Instruction) -> int:
    """Return the operations of one execution of an instruction. Return 0 if it computes nothing, or if its
    shape cannot be read."""
    if instruction.opcode in _NOTHING:
        return 0
    if instruction.opcode in cost.WORK:
        return cost.flops(graph, computation, instruction) or 0
    shape = instruction.shape
    # A reduction reads its first operand; an update writes its second one into the array.
    number = 0 if instruction.opcode in _REDUCES else 1 if instruction.opcode == _UPDATES else None
    operand = computation.operand(instruction, number) if number is not None else None
    shape = operand.shape if operand is not None else shape
    parsed = shapes.parse(shape)
    if isinstance(parsed, tuple):
        parsed = parsed[0] if parsed else None
    elements = (parsed.elements or 0) if isinstance(parsed, shapes.Array) else 0
    if instruction.opcode == "sort" and isinstance(parsed, shapes.Array):
        return int(COMPARED * elements * math.log2(max(2, *(n or 0 for n in parsed.dims))))
    return elements * _AS_ADDITIONS.get(instruction.opcode, 1)
