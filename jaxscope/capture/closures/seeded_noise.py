"""Find out whether a traced function adds the same noise in each call, because its random numbers come from a
seed that is written in its code: ``jax.random.key(42)`` or ``nnx.Rngs(0)`` in the body of a jitted function.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxscope.capture.closures.captured_constants import CALLING, DRAWING, ELEMENTWISE, inner_bodies


class _Value(NamedTuple):
    """What is known about a value in a traced function.

    Attributes:
      varies: whether it may differ between two calls: it depends on an argument, or on a captured array.
      draws: the draws of random numbers on which it depends, each as (number of the draw, size).
    """

    varies: bool = False
    draws: frozenset[tuple[int, int]] = frozenset()


_SEEDING = frozenset({"random_seed"})  # the primitive that makes a key from a seed
_VARIES, _FIXED = _Value(varies=True), _Value()


def adds_noise(jaxpr: Any) -> bool:
    """Return whether the traced function ``jaxpr`` draws random numbers that are the same in each call, and
    combines them, element by element, with values that depend on its arguments, as dropout and noise do.

    False if the random numbers are fewer than the values (a random projection may be fixed on purpose), or if
    the values depend on the same random numbers (initial parameters, which the function then changes). Random
    keys that the function captures do not count.
    """
    body = getattr(jaxpr, "jaxpr", jaxpr)
    search = _Search()
    if search.contains(body, _SEEDING):
        search.run(body, [_VARIES] * len(body.invars))
    return search.found


class _Search:
    """The search for noise that is the same in each call, in one traced function and the functions that it
    calls.

    Attributes:
      found: whether such noise was found.
    """

    def __init__(self) -> None:
        self.found = False
        self._drawn = 0  # the number of draws so far
        self._known: dict[tuple[int, frozenset[str]], bool] = {}  # the results of ``contains``, by id()

    def contains(self, body: Any, names: frozenset[str]) -> bool:
        """Return whether the jaxpr ``body``, or a jaxpr inside it, has a primitive with one of ``names``."""
        known = self._known.get((id(body), names))
        if known is None:
            known = self._known[id(body), names] = any(
                e.primitive.name in names
                or (e.primitive.name in CALLING and any(self.contains(o, names) for o in inner_bodies(e)))
                for e in body.eqns
            )
        return known

    def run(self, body: Any, operands: list[_Value]) -> list[_Value]:
        """Examine the jaxpr ``body``, whose arguments are ``operands``, and set ``found`` if noise is found;
        the search then ends. Return what is known about the results of ``body``."""
        known = dict.fromkeys(map(id, body.constvars), _VARIES)
        known.update(zip(map(id, body.invars), operands, strict=False))
        for equation in body.eqns:
            if self.found:
                break
            name, values = equation.primitive.name, [known.get(id(v), _FIXED) for v in equation.invars]
            result = _VARIES if any(v.varies for v in values) else _FIXED
            if draws := {v.draws for v in values if v.draws}:
                result = _Value(result.varies, draws.pop().union(*draws))
            if name in DRAWING and not values[0].varies:
                self._drawn += 1
                result = _Value(draws=frozenset({(self._drawn, equation.outvars[0].aval.size)}))
            elif name in ELEMENTWISE and result.varies:
                self._combined(equation.invars, values)
            results = [result] * len(equation.outvars)
            for inner in inner_bodies(equation) if name in CALLING else ():
                if (result.varies and result.draws) or self.contains(inner, DRAWING):
                    made = self.run(inner, values[len(values) - len(inner.invars) :])
                    results = made if len(made) == len(results) else results
            known.update(zip(map(id, equation.outvars), results, strict=True))
        return [known.get(id(v), _FIXED) for v in body.outvars]

    def _combined(self, operands: list[Any], values: list[_Value]) -> None:
        """Examine an operation that combines ``operands`` element by element; ``values`` is what is known
        about each operand. Set ``found`` if an operand is the same in each call, depends on a draw of
        at least as many random numbers as the largest operand that differs between calls has elements, and
        shares no draw with such an operand. At least one operand must differ between calls."""
        pairs = list(zip(operands, values, strict=True))
        size = max(v.aval.size for v, value in pairs if value.varies)
        dependent = {draw for _, value in pairs if value.varies for draw in value.draws}
        for value in values:
            enough = any(n >= size for _, n in value.draws)
            if not value.varies and enough and not value.draws & dependent:
                self.found = True
