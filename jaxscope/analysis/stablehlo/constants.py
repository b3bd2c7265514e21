"""Arrays written into a program: what the traced function took from its surroundings.

JAX writes a captured array as one constant at the head of the function, at the location of the call that
was lowered: the line that matters is where it is used. Where its values are elided, what is left is the
type; a name comes from the trace (``schema.keys.Captured``) by shape and dtype.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jaxscope.analysis.stablehlo import types
from jaxscope.analysis.stablehlo.module import Module, Op
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Captured, Frame

CONSTANTS = frozenset({"stablehlo.constant", "mhlo.constant"})
SMALL = 16  # elements: what capture prints in full, and what code writes by itself (shapes, key schedules)


class Constant(msgspec.Struct, frozen=True):
    """``names``: the variables it can be, by shape and dtype; ``name`` where that is one, or where the
    program's own argument says it. ``splat``: every element is the same, so that XLA stores one.
    ``source``: where it is used first. ``argument``: JAX passes it as an argument of the program (its
    position), as newer versions do."""

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
    """Constants of more than SMALL elements, the largest first."""
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


def first_uses(module: Module, wanted: set[int], first: int = 0, end: int | None = None) -> dict[int, int]:
    """Value (an operation, or -1 - k for an argument) -> the first operation that takes it."""
    found: dict[int, int] = {}
    if not wanted:
        return found
    for index in range(first, len(module.ops) if end is None else end):
        for value in module.ops[index].operands:
            if value in wanted and value not in found:
                found[value] = index
    return found


def is_splat(op: Op) -> bool:
    """``dense<0.0>``: no list, and no run of hexadecimal digits."""
    text = op.detail.strip()
    return text.startswith("dense<") and not text.startswith(("dense<[", 'dense<"', "dense<>"))


def _large(text: str) -> bool:
    tensor = types.tensor(text)
    return tensor.elements is not None and tensor.elements > SMALL


def _constant(
    text: str, line: int, *, splat: bool = False, name: str | None = None, argument: int | None = None
) -> Constant:
    t = types.tensor(text)
    return Constant(text, t.shape, t.dtype, t.bytes, line, splat=splat, name=name, argument=argument)


def _names(constants: list[Constant], captured: Sequence[Captured]) -> list[tuple[str, ...]]:
    """What each constant can be called. A name is certain only where shape and dtype leave one choice:
    an unnamed capture of the same kind leaves none."""
    by_kind: dict[tuple[object, object], list[str | None]] = {}
    for c in captured:
        by_kind.setdefault((c.shape, c.dtype), []).append(c.name)
    found: list[tuple[str, ...]] = []
    for constant in constants:
        names = by_kind.get((constant.shape, constant.dtype), [])
        found.append(() if None in names else tuple(dict.fromkeys(n for n in names if n)))
    return found
