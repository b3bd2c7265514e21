"""Follow values through a StableHLO module: which operation makes an operand, and which operations use a
result.

JAX lowers many of its functions (``jnp.diag``, ``jax.nn.one_hot``) as functions of the module. Values are
followed into these functions and out of them.
"""

from __future__ import annotations

from typing import NamedTuple

from jaxscope.analysis.stablehlo import types, work
from jaxscope.analysis.stablehlo.module import CONSTANTS, DIMS, NOT_OPERATIONS, Module, Op

# Operations whose result has the same numbers as their operand, in other places or repeated
BROADCAST = "stablehlo.broadcast_in_dim"
SAME_NUMBERS = frozenset({"stablehlo.transpose", "stablehlo.convert", "stablehlo.reshape", BROADCAST})
FOLLOWED = 40  # through how many operations a value is followed
DEPTH = 20  # how many calls within each other are followed


class ReachedValue(NamedTuple):
    """The result of an operation, and how it was reached.

    Attributes:
      at: the index of the operation in ``Module.ops``.
      calls: the indices of the calls through which the operation was reached, outermost first.
    """

    at: int
    calls: tuple[int, ...] = ()


class Flow:
    """For the values of a module: the operations that compute them and the operations that read them.

    Attributes:
      users: index of an operation -> the indices of the operations that read its results.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.users = users(module)
        self._called: list[list[int]] = [[] for _ in module.functions]
        for index, op in enumerate(module.ops):
            callee = module.callee(op)
            if callee is not None:
                self._called[callee].append(index)

    def operand(self, value: ReachedValue, k: int) -> ReachedValue | None:
        """Return the operation whose result is operand ``k`` of the operation ``value.at``, also if it is in
        another function. Return None if that operation is unknown, or if the operand is an argument of the
        program or of a loop's body."""
        found = self._origin(value, k)
        return found if isinstance(found, ReachedValue) else None

    def is_argument(self, value: ReachedValue, k: int) -> bool:
        """Return whether operand ``k`` of the operation ``value.at`` is an argument of the program."""
        return self._origin(value, k) is True

    def maker(self, value: ReachedValue, k: int) -> ReachedValue | None:
        """Return the operation whose result is operand ``k`` of the operation ``value.at``. If this is a
        call, return the call, where ``operand`` returns the operation in the called function."""
        found = self._caller(value, k)
        return found if isinstance(found, ReachedValue) else None

    def _origin(self, value: ReachedValue, k: int) -> ReachedValue | bool | None:
        """Return the operation whose result is operand ``k`` of the operation ``value.at``, also if it is in
        a called function; True if the operand is an argument of the program; None if neither is known."""
        found = self._caller(value, k)
        if not isinstance(found, ReachedValue):
            return found
        inputs = self.module.ops[value.at].inputs
        return self._result(found, inputs[k]) if k < len(inputs) else None  # no types in a damaged text

    def _caller(self, value: ReachedValue, k: int) -> ReachedValue | bool | None:
        """Return the operation, maybe a call, whose result is operand ``k`` of the operation ``value.at``;
        True if the operand is an argument of the program; None if neither is known."""
        ops, calls = self.module.ops, value.calls
        operand, function = _operand(ops, value.at, k), ops[value.at].function
        while operand is not None and operand < 0:
            if calls:
                call, calls = calls[-1], calls[:-1]
            elif len(self._called[function]) == 1:
                [call] = self._called[function]
            else:
                return self.module.functions[function] is self.module.main() or None
            function = ops[call].function
            operand = _operand(ops, call, -1 - operand)
        return None if operand is None else ReachedValue(operand, calls)

    def _result(self, value: ReachedValue, result_type: str) -> ReachedValue | None:
        """Return ``value``, or, if it is a call, the operation in the called function that computes the
        result with the type ``result_type``. Return None if this operation is unknown."""
        op = self.module.ops[value.at]
        callee = self.module.callee(op)
        if callee is None:
            return value
        function = self.module.functions[callee]
        if op.outputs.count(result_type) != 1 or len(value.calls) > DEPTH or function.end <= function.first:
            return None
        end = ReachedValue(function.end - 1, (*value.calls, value.at))
        return (
            self.operand(end, op.outputs.index(result_type))
            if self.module.ops[end.at].name in NOT_OPERATIONS
            else None
        )

    def spreads(self, value: ReachedValue, dimension: int) -> bool:
        """Return whether ``value`` has the same numbers at all indices along ``dimension``, because it
        repeats its operand."""
        op = self.module.ops[value.at]
        inner = self.operand(value, 0) if op.name in ("stablehlo.convert", BROADCAST) else None
        if op.name != BROADCAST:
            return inner is not None and self.spreads(inner, dimension)
        at, before = work.sizes(DIMS, op.detail), types.tensor(op.inputs[0]).shape or ()
        after = types.tensor(op.outputs[0]).shape or ()
        if dimension not in at or before[at.index(dimension)] == 1 != after[dimension]:
            return True
        return inner is not None and self.spreads(inner, at.index(dimension))

    def constant(self, value: ReachedValue | None) -> Op | None:
        """Return the constant of the program that has the numbers of ``value``, which may convert or repeat
        them or have them in another order. Return None if ``value`` is something else."""
        for _ in range(FOLLOWED):
            op = self.module.ops[value.at] if value is not None else None
            if value is None or op is None or op.name not in SAME_NUMBERS:
                return op if op is not None and op.name in CONSTANTS else None
            value = self.operand(value, 0)
        return None

    def inside(self, call: int, operand: int) -> list[tuple[int, int]] | None:
        """Return the operations of a called function that read a value which the call passes, each as (index
        of the operation, the value as ``Op.operands`` of this operation has it). Return None if ``call``
        calls no function of the module, or if it is not known which argument the value is.

        Args:
          call: the index of the operation that calls the function.
          operand: the value, as ``Op.operands`` of the call has it.
        """
        op = self.module.ops[call]
        callee = self.module.callee(op)
        if callee is None or (not op.places and len(op.operands) != len(op.inputs)):
            return None
        function = self.module.functions[callee]
        positions = op.places or range(len(op.operands))
        passed = [-1 - k for k, each in zip(positions, op.operands, strict=True) if each == operand]
        inside = range(function.first, function.end)
        return [(i, each) for i in inside for each in passed if each in self.module.ops[i].operands]

    def after(self, index: int) -> list[tuple[int, int]] | None:
        """Return the operations that read results of calls of a function, each as (index of the operation,
        index of the call). The function is the one that ends with the ``return`` at ``index``. Return None if
        this ``return`` ends the program or a region."""
        op = self.module.ops[index]
        calls = self._called[op.function]
        if op.parent is not None or not calls:
            return None
        return [(user, call) for call in calls for user in self.users.get(call, ())]


def users(module: Module) -> dict[int, list[int]]:
    """Return the indices of the operations that read the results of each operation: index -> indices. An
    operation that reads results as two operands is listed twice. If a call passes a result on, only the call
    is included, not the operations in the called function."""
    found: dict[int, list[int]] = {}
    for index, op in enumerate(module.ops):
        for operand in op.operands:
            if operand >= 0:
                found.setdefault(operand, []).append(index)
    return found


def _operand(ops: tuple[Op, ...], index: int, k: int) -> int | None:
    """Return operand ``k`` of an operation as ``Op.operands`` has it: the index of an operation, or -1 - k
    for argument k of the function. Return None if the operand is an argument of a region, or unknown."""
    op = ops[index]
    if op.places:
        return op.operands[op.places.index(k)] if k in op.places else None
    return op.operands[k] if len(op.operands) == len(op.inputs) and k < len(op.operands) else None
