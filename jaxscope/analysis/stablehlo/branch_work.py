"""Find work that a program does before a conditional, although only one of the branches uses the result.

The program does this work in every call, also if the other branch is taken: XLA does not move it into the
branch (measured on a CPU with JAX 0.10 and 0.12: dropout of 2,000,000 numbers that ``jax.lax.cond`` switches
off takes 33 and 49 ms, and 6 ms if the random numbers are drawn in the branch).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from jaxscope.analysis.stablehlo import flow, work
from jaxscope.analysis.stablehlo.module import CONSTANTS, Module
from jaxscope.analysis.stablehlo.sources import BRANCHES, Sources
from jaxscope.schema.keys import Frame

LEAST = 100_000  # operations before a conditional that are listed
SHARE = 0.1  # of the program's operations


class BranchWork(msgspec.Struct, frozen=True):
    """Operations that run before a conditional, although only one of its branches uses their results.

    Attributes:
      operations: the number of arithmetic operations.
      share: their share of all operations of the program, from 0 to 1. If the user's code has loops, the
        share of the operations in loops.
      source: the line of the user's code with the conditional.
      lines: the lines of the user's code with the most of these operations, at most three.
    """

    operations: int
    share: float
    source: Frame
    lines: tuple[Frame, ...]


def find(module: Module, sources: Sources) -> list[BranchWork]:
    """Return the work before conditionals of the user's code that only one branch uses: at least LEAST
    (100,000) operations, and at least SHARE (a tenth) of the program's. The most operations come first. Left
    out are conditionals on a constant, which XLA removes, and work of which differentiation created more than
    half."""
    found = []
    conditionals = [i for i, op in enumerate(module.ops) if op.name in BRANCHES]
    if not conditionals:
        return []
    shares, values = work.Shares(module, sources), flow.Flow(module)
    whole = _totals(module, sources, shares.rounds)
    for index in conditionals:
        line, times = sources.own(index).frame, sources.times[module.ops[index].function]
        constant = values.constant(values.operand(flow.ReachedValue(index), 0))  # XLA takes the branch out
        if line is None or not times or constant is not None or sources.in_library(index):
            continue
        for alone in _only_used_by(module, values.users, index):
            counts: dict[int, int] = {}
            for k in alone:
                callee = module.callee(module.ops[k])
                counts[k] = whole[callee] if callee is not None else work.operations(module.ops[k])
            operations = sum(counts.values())
            if 2 * sum(n for k, n in counts.items() if sources.backward(k)) > operations:
                continue  # inside the branch, a gradient would compute its forward pass once more
            share = shares.of(index, times * operations)
            if operations < LEAST or share is None or share < SHARE:
                continue
            found.append(BranchWork(operations, share, line, sources.costliest_lines(counts)))
    return sorted(found, key=lambda w: -w.operations)


def _only_used_by(module: Module, readers: dict[int, list[int]], index: int) -> Iterator[set[int]]:
    """Yield for each branch of the conditional at ``index`` the operations before it, in the same region,
    whose results only this branch uses, directly or through other such operations. Constants are left out.
    ``readers`` is what ``flow.users`` returns."""
    ops = module.ops
    block, function = ops[index].block, module.functions[ops[index].function]
    branch_of: dict[int, int] = {}  # operation in a branch, also nested ones -> region of the branch
    for k in range(function.first, function.end):
        parent = ops[k].parent
        if parent == index:
            branch_of[k] = ops[k].block
        elif parent is not None and parent in branch_of:
            branch_of[k] = branch_of[parent]
    owner: dict[int, int | None] = {}  # operation before the conditional -> the only branch that uses it
    for k in reversed(range(function.first, index)):
        if ops[k].block != block or ops[k].name in CONSTANTS:
            continue
        used = {branch_of.get(user, owner.get(user)) for user in readers.get(k, ())}
        owner[k] = used.pop() if len(used) == 1 else None
    for branch in sorted({*branch_of.values()}):
        alone = {k for k, each in owner.items() if each == branch}
        if alone:
            yield alone


def _totals(module: Module, sources: Sources, rounds: int) -> list[int]:
    """Return the number of arithmetic operations of one call of each function of the module, with those of
    the functions that it calls. Operations in loops count ``rounds`` times."""
    totals = [0] * len(module.functions)
    for k in reversed(sources.order):  # called functions first
        f = module.functions[k]
        for index in range(f.first, f.end):
            op = module.ops[index]
            callee = module.callee(op)
            own = work.operations(op) * (rounds if sources.in_loop(index) else 1)
            totals[k] += totals[callee] if callee is not None else own
    return totals
