"""Find the constants of a program: arrays that the traced function closed over.

JAX writes such an array as a constant at the beginning of the function. Its location is that of the call that
was lowered, so the line of its first use is reported instead. A text may omit the values of a constant and
have only its type. The name of the variable comes from the recorded trace (``schema.keys.Captured``): the
array there with the same shape and dtype.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jaxscope.analysis.stablehlo import types
from jaxscope.analysis.stablehlo.module import CONSTANTS, Module, Op
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Captured, Frame

SMALL = 16  # constants with so few elements are left out: JAX itself creates some (shapes, key schedules)


class Constant(msgspec.Struct, frozen=True):
    """A constant array of a program.

    Attributes:
      type: the MLIR type as text: ``tensor<4xf32>``.
      shape, dtype, bytes: those of the array; None: unknown.
      line: the line of the program's text, counted from 1.
      source: the line of the user's code that first uses the constant; None: unknown.
      name: the user's variable, if only one has this shape and dtype, or the name of the program's argument;
        None: unknown.
      names: all variables with this shape and dtype whose arrays the traced function closed over; empty if
        one of these arrays has no name.
      splat: whether all elements are equal, so that XLA stores only one.
      argument: the position of the argument by which the program gets the array; None if the array is a
        constant in the text.
    """

    type: str
    shape: tuple[int | None, ...] | None
    dtype: str | None
    bytes: int | None
    line: int
    source: Frame | None = None
    name: str | None = None
    names: tuple[str, ...] = ()
    splat: bool = False
    argument: int | None = None


def find(module: Module, sources: Sources, captured: Sequence[Captured] = ()) -> list[Constant]:
    """Return the constants of a program, the largest first: those in the text with more than ``SMALL`` (16)
    elements, and all that are arguments of the program. ``captured`` are the arrays that the traced function
    closed over, which give the constants their names."""
    found: list[tuple[int | None, Constant]] = []
    wanted = {
        index
        for index, op in enumerate(module.ops)
        if op.name in CONSTANTS and op.outputs and _large(op.outputs[0])
    }
    users = first_uses(module, wanted)
    for index in sorted(wanted):
        op = module.ops[index]
        user = users.get(index)
        constant = _constant(op.outputs[0], op.line, splat=is_splat(op))
        found.append((user if user is not None else index, constant))
    main = module.main()
    if main is not None:
        arguments = {k for k, a in enumerate(main.arguments) if "jax.const" in a.attributes}
        uses = first_uses(module, {-1 - k for k in arguments}, main.first, main.end)
        for k in sorted(arguments):
            argument = main.arguments[k]
            constant = _constant(argument.type, main.line, name=argument.name, argument=k)
            found.append((uses.get(-1 - k), constant))
    named = _names([c for _, c in found], captured)
    result = []
    for (user, constant), names in zip(found, named, strict=True):
        frame = None if user is None else sources.frame(user)
        result.append(
            msgspec.structs.replace(
                constant,
                source=frame,
                names=names,
                name=constant.name or (names[0] if len(names) == 1 else None),
            )
        )
    return sorted(result, key=lambda c: (-(c.bytes or 0), c.line))


def first_uses(module: Module, values: set[int], first: int = 0, end: int | None = None) -> dict[int, int]:
    """Return the first operation that uses each of ``values``: value -> index of the operation in
    ``module.ops``. Values that are not used are left out.

    Args:
      values: the values, each as a number: the index of the operation that computes the value, or -1 - k for
        argument k.
      first, end: only ``module.ops[first:end]`` is searched; all from ``first`` on if ``end`` is None.
    """
    found: dict[int, int] = {}
    if not values:
        return found
    for index in range(first, len(module.ops) if end is None else end):
        for value in module.ops[index].operands:
            if value in values and value not in found:
                found[value] = index
    return found


def is_splat(op: Op) -> bool:
    """Return whether a constant operation has one value for all elements, as in ``dense<0.0>``."""
    text = op.detail.strip()
    return text.startswith("dense<") and not text.startswith(("dense<[", 'dense<"', "dense<>"))


def _large(text: str) -> bool:
    """Return whether an array of the MLIR type ``text`` has more than SMALL (16) elements; False if it is
    unknown."""
    tensor = types.tensor(text)
    return tensor.elements is not None and tensor.elements > SMALL


def _constant(
    text: str, line: int, *, splat: bool = False, name: str | None = None, argument: int | None = None
) -> Constant:
    """Return a ``Constant`` of the MLIR type ``text``. The other arguments are its fields."""
    t = types.tensor(text)
    return Constant(text, t.shape, t.dtype, t.bytes, line, splat=splat, name=name, argument=argument)


def _names(constants: list[Constant], captured: Sequence[Captured]) -> list[tuple[str, ...]]:
    """Return the possible names of each constant, in the order of ``constants``: the variables in
    ``captured`` with the constant's shape and dtype. If any array in ``captured`` with this shape and dtype
    has no name, the constant has no names."""
    by_kind: dict[tuple[object, object], list[str | None]] = {}
    for c in captured:
        by_kind.setdefault((c.shape, c.dtype), []).append(c.name)
    found: list[tuple[str, ...]] = []
    for constant in constants:
        names = by_kind.get((constant.shape, constant.dtype), [])
        found.append(() if None in names else tuple(dict.fromkeys(n for n in names if n)))
    return found
