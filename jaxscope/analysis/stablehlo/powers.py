"""Find powers with a constant exponent that products and square roots compute faster: ``x ** 4.0``,
``x ** -1.5``.

On a CPU, XLA computes a power with a logarithm and an exponential function, unless the exponent is -1, 0,
0.5, 1, 2 or 3 (measured with JAX 0.10 and 0.12: ``x ** 1.5`` of 4,000,000 numbers takes 15 to 21 ms, and
``x * jnp.sqrt(x)`` takes 1 to 3 ms). JAX itself turns integer exponents into products: ``x ** 4`` instead of
``x ** 4.0``.
"""

from __future__ import annotations

import re

from jaxscope.analysis.stablehlo import types
from jaxscope.analysis.stablehlo.flow import SAME_NUMBERS, Flow, ReachedValue
from jaxscope.analysis.stablehlo.module import CONSTANTS

POWER = "stablehlo.power"
COSTLY = "costly-power"
ELEMENT = 30  # a power takes about as long as this many operations
INSTEAD = 2  # operations for each element of the other form
LARGEST = 16  # larger exponents need more products
QUICK = frozenset({-1.0, 0.0, 0.5, 1.0, 2.0, 3.0})  # exponents for which XLA itself uses products or roots
_NUMBER = re.compile(r"dense<(-?[\d.]+(?:[eE][+-]?\d+)?)>")
DEPTH = 8  # how many operations between a constant and the power are followed


def find(flow: Flow, index: int) -> list[tuple[str, int, int]]:
    """Return [(COSTLY, operations, operations of the other form)] if the operation at ``index`` is a power of
    floating-point numbers (not of converted integers) that XLA computes slowly, with an exponent that is a
    multiple of 0.5, from -16 to 16. Return an empty list for other operations."""
    op = flow.module.ops[index]
    result = types.tensor(op.outputs[0])
    number = exponent(flow, index) if op.name == POWER and "float" in (result.dtype or "") else None
    if number is None or number in QUICK or abs(number) > LARGEST or (2 * number) % 1:
        return []
    base = flow.operand(ReachedValue(index), 0)
    before = flow.module.ops[base.at] if base is not None else None
    converted = before is not None and before.name == "stablehlo.convert"
    if before is not None and converted and "float" not in (types.tensor(before.inputs[0]).dtype or ""):
        return []  # integers: their products may overflow, and they have no rsqrt
    elements = result.elements or 0
    return [(COSTLY, ELEMENT * elements, INSTEAD * elements)]


def exponent(flow: Flow, index: int) -> float | None:
    """Return the exponent of the power at ``index`` if it is one constant number for all elements. Return
    None if it is not, or if the operation is no power."""
    op = flow.module.ops[index]
    return _constant(flow, flow.operand(ReachedValue(index), 1), DEPTH) if op.name == POWER else None


def _constant(flow: Flow, value: ReachedValue | None, depth: int) -> float | None:
    """Return the number that all elements of ``value`` equal; None if they are not known to be one constant.
    The difference of two constants is a constant, too: JAX writes the exponent in a gradient this way."""
    if value is None or depth == 0:
        return None
    op = flow.module.ops[value.at]
    if op.name in CONSTANTS:
        found = _NUMBER.search(op.detail)
        return float(found[1]) if found is not None else None
    if op.name == "stablehlo.subtract":
        first, second = (_constant(flow, flow.operand(value, k), depth - 1) for k in (0, 1))
        return first - second if first is not None and second is not None else None
    return _constant(flow, flow.operand(value, 0), depth - 1) if op.name in SAME_NUMBERS else None
