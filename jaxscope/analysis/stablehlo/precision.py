"""Find conversions to wider floating-point types (bf16 to f32), and the use of 64-bit floating point.

A product of bf16 operands with an f32 result is not included, because nothing is converted.
"""

from __future__ import annotations

import msgspec

from jaxscope.analysis.stablehlo import flow, types
from jaxscope.analysis.stablehlo.module import CONSTANTS, NOT_OPERATIONS, PRODUCTS, Module
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Frame

# dtype -> its number of bits; for a complex dtype, those of its real part
FLOAT_BITS = types.BITS | {"complex64": 32, "complex128": 64}
MAX_LISTED = 500
# Operations that keep their operands, or pass them to code that is not followed
_KEEP = frozenset(
    {"stablehlo.return", "stablehlo.while", "stablehlo.case", "stablehlo.if", "stablehlo.custom_call"}
    | {"stablehlo.composite"}
)


class Upcast(msgspec.Struct, frozen=True):
    """The conversions from one dtype to a wider one that come from one line of the user's code.

    Attributes:
      before, after: the two dtypes: ``bfloat16``, ``float32``.
      count: number of conversions, with called functions inlined and loop bodies counted once.
      bytes: bytes of the results of all these conversions; None: unknown.
      source: the line; None: unknown.
      backward: whether differentiation created the conversions; None: unknown.
      name: JAX's name of the first conversion: ``jit(f)/convert_element_type``; None: unknown.
      wide_from: the position in the program of the first of these conversions whose wider values may reach
        a matrix product, a loop, a call or a result of the program. None: there is none, because only
        elementwise operations, reductions and conversions back read the wider values.
    """

    before: str
    after: str
    count: int
    bytes: int | None
    source: Frame | None
    backward: bool | None
    name: str | None
    wide_from: int | None = 0


class Origin(msgspec.Struct, frozen=True):
    """The operations of one line of the user's code that produce 64-bit floats from other types.

    Attributes:
      kind: ``constant``, ``convert`` or ``other``.
      operation: the name of the operations with its dialect: ``stablehlo.convert``.
      count: number of operations, with called functions inlined and loop bodies counted once.
      source: the line; None: unknown.
    """

    kind: str
    operation: str
    count: int
    source: Frame | None


class Doubles(msgspec.Struct, frozen=True):
    """The 64-bit floating point in a program.

    Attributes:
      operations: number of operations with a 64-bit result, with called functions inlined.
      arguments: names of the program's 64-bit arguments; None for an argument without a name.
      origins: the operations that produce 64-bit floats from other types.
    """

    operations: int
    arguments: tuple[str | None, ...]
    origins: tuple[Origin, ...]


def upcasts(module: Module, sources: Sources) -> list[Upcast]:
    """Return the conversions of arrays to a float or complex dtype of higher precision, those with the most
    bytes first, at most MAX_LISTED (500) items. A conversion from float32 to complex64 is none: each part of
    a complex64 is a float32. Conversions of scalars are left out, because they cost nothing."""
    found: dict[tuple[str, str, Frame | None, bool | None], tuple[int, int | None, str | None]] = {}
    stays: dict[tuple[str, str, Frame | None, bool | None], int] = {}
    users = flow.users(module)
    for index, op in enumerate(module.ops):
        if not op.name.endswith(".convert") or not op.inputs or not op.outputs:
            continue
        before, after = types.tensor(op.inputs[0]), types.tensor(op.outputs[0])
        if before.dtype is None or after.dtype is None or after.shape == ():
            continue
        if not _bits(after.dtype) > _bits(before.dtype) > 0:
            continue
        times = sources.times[op.function]
        if not times:
            continue
        name = sources.place(index).name
        backward = sources.backward(index)
        key = (before.dtype, after.dtype, sources.frame(index), backward)
        count, size, first = found.get(key, (0, 0, name))
        more = None if after.bytes is None else after.bytes * times
        found[key] = (count + times, None if size is None or more is None else size + more, first)
        if key not in stays and _stays_wide(module, users, index):
            stays[key] = index
    listed = [
        Upcast(*key[:2], count, size, *key[2:], name, stays.get(key))
        for key, (count, size, name) in found.items()
    ]
    return sorted(listed, key=lambda u: -(u.bytes or 0))[:MAX_LISTED]


def _stays_wide(module: Module, users: dict[int, list[int]], converted: int) -> bool:
    """Return whether the results of the conversion ``module.ops[converted]`` may reach a matrix product, a
    loop, a conditional, a call or a return, directly or through other operations. Operations whose results
    have another dtype, or less than half as many elements (reductions), are not followed."""
    wide = types.tensor(module.ops[converted].outputs[0])
    waiting, seen = [converted], {converted}
    while waiting:
        for index in users.get(waiting.pop(), ()):
            op = module.ops[index]
            if op.name in PRODUCTS or not op.name.startswith(("stablehlo.", "chlo.")) or op.name in _KEEP:
                return True
            outputs = [types.tensor(text) for text in op.outputs]
            same = any(
                o.dtype == wide.dtype and 2 * (o.elements or 0) >= (wide.elements or 0) for o in outputs
            )
            if same and index not in seen:
                seen.add(index)
                waiting.append(index)
    return False


def _bits(dtype: str) -> int:
    """Return the number of bits of a float dtype by JAX's name, or of the real part of a complex dtype: 8 for
    ``float8_e4m3fn``, 32 for ``complex64``; 0 for other dtypes."""
    if dtype in FLOAT_BITS:
        return FLOAT_BITS[dtype]
    return int(dtype[5]) if dtype.startswith("float") and dtype[5:6].isascii() and dtype[5:6].isdigit() else 0


def doubles(module: Module, sources: Sources) -> Doubles | None:
    """Return where a program uses 64-bit floating point, or None if it does not."""
    operations = 0
    origins: dict[tuple[str, str, Frame | None], int] = {}
    for index, op in enumerate(module.ops):
        if op.name in NOT_OPERATIONS or not any(types.is_float64(t) for t in op.outputs):
            continue
        times = sources.times[op.function]
        operations += times
        if not times or any(types.is_float64(t) for t in op.inputs):
            continue
        kind = "constant" if op.name in CONSTANTS else "convert" if op.name.endswith(".convert") else "other"
        key = (kind, op.name, sources.frame(index))
        origins[key] = origins.get(key, 0) + times
    main = module.main()
    arguments = () if main is None else main.arguments
    wide = tuple(a.name for a in arguments if types.is_float64(a.type))
    if not operations and not wide:
        return None
    listed = [Origin(k, o, n, f) for (k, o, f), n in origins.items()]
    return Doubles(operations, wide, tuple(sorted(listed, key=lambda o: -o.count)[:MAX_LISTED]))
