"""Count the arithmetic operations of a lowered program by the arguments on which their results depend."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jaxscope.analysis.paths import root
from jaxscope.analysis.stablehlo import work
from jaxscope.analysis.stablehlo.executions import Executions
from jaxscope.analysis.stablehlo.module import Module
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.analysis.stablehlo.values import Value
from jaxscope.schema.keys import Frame

MOST_ARGUMENTS, MOST_SETS, LINES = 60, 100, 3


class ArgumentWork(msgspec.Struct, frozen=True):
    """The arithmetic operations that depend on the same arguments of a program.

    Attributes:
      arguments: the names of the arguments, each without the path to an array: ``params`` for
        ``params['w']``. Empty if the operations depend on constants alone.
      operations: the number of operations in one call. If the number of a loop's iterations is unknown, its
        body is counted once.
      decompositions: how many of ``operations`` are in matrix decompositions outside loops.
      in_loop: whether some of these operations are in loops.
      lines: lines of the user's code with the most of these operations, at most three.
    """

    arguments: tuple[str, ...]
    operations: int
    in_loop: bool
    lines: tuple[Frame, ...]
    decompositions: int = 0


def find(module: Module, sources: Sources, arguments: Sequence[Value]) -> list[ArgumentWork]:
    """Return the number of arithmetic operations of a program, grouped by the arguments on which they depend,
    the largest group first. The list is empty if the program has no arguments, if an argument has no name, or
    if there are more than 60 names of arguments or more than 100 groups.

    Args:
      arguments: the program's arguments, in order.
    """
    names = [root(a.name) if a.name else None for a in arguments]
    known = list(dict.fromkeys(name for name in names if name is not None))
    main = module.main()
    if main is None or None in names or not 0 < len(known) <= MOST_ARGUMENTS:
        return []
    masks = _masks(module, sources, [1 << known.index(name) for name in names if name is not None])
    executions = Executions(module, sources)
    sums: dict[int, list[int]] = {}
    lines: dict[int, dict[Frame, int]] = {}
    for index, op in enumerate(module.ops):
        times = sources.times[op.function]
        n = times * work.operations(op) if times else 0
        if not n:
            continue
        if sources.in_loop(index) and (executed := executions.of(index)) is not None:
            n = executed * work.operations(op)
        row = sums.setdefault(masks[index], [0, 0, 0])
        row[0] += n
        row[2] += n if work.decomposes(op) and not sources.in_loop(index) else 0
        row[1] |= sources.in_loop(index)
        frame = sources.frame(index)
        if frame is not None:
            counted = lines.setdefault(masks[index], {})
            counted[frame] = counted.get(frame, 0) + n
    if len(sums) > MOST_SETS:
        return []
    found = [
        ArgumentWork(
            tuple(name for i, name in enumerate(known) if mask >> i & 1),
            n,
            bool(looped),
            tuple(sorted(lines.get(mask, {}), key=lambda f: -lines[mask][f])[:LINES]),
            decomposed,
        )
        for mask, (n, looped, decomposed) in sums.items()
    ]
    return sorted(found, key=lambda w: -w.operations)


def _masks(module: Module, sources: Sources, own: Sequence[int]) -> list[int]:
    """Return for each operation a number whose bit i is 1 if the operation's result may depend on an argument
    with the i-th name. ``own`` has these numbers for the program's arguments. The result of a call counts as
    dependent on everything that is passed to the call."""
    masks = [0] * len(module.ops)
    passed: list[list[int]] = [[0] * len(f.arguments) for f in module.functions]
    main = module.main()
    everything = 0
    for mask in own:
        everything |= mask
    for f in sources.order:
        function = module.functions[f]
        if function is main:
            passed[f] = list(own)
        for index in range(function.first, function.end):
            op = module.ops[index]
            each = [_of_operand(masks, passed[f], operand) for operand in op.operands]
            mask = masks[op.parent] if op.parent is not None else 0
            for one in each:
                mask |= one
            masks[index] = mask
            callee = module.callee(op)
            if callee is not None:
                complete = len(each) == len(passed[callee])
                for k in range(len(passed[callee])):
                    passed[callee][k] |= (
                        each[k] | (masks[op.parent] if op.parent is not None else 0) if complete else mask
                    )
    return [mask & everything for mask in masks]


def _of_operand(masks: Sequence[int], arguments: Sequence[int], operand: int) -> int:
    """Return the number of ``_masks`` for an operand as in ``Op.operands``, from the numbers of the
    operations (``masks``) and of the function's ``arguments``."""
    if operand >= 0:
        return masks[operand]
    return arguments[-1 - operand] if -1 - operand < len(arguments) else 0
