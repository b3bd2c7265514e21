"""Find results of a shard_map that differ between devices although ``out_specs`` declares them equal, because
a ``psum`` or ``pmean`` is missing. Only shard_maps with ``check_vma=False`` are examined: for others, JAX
itself raises an error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jaxscope.capture.closures.captured_constants import CALLING, COLLECTED, bodies

_AXES = ("axes", "axis_name")  # parameters of collectives with the names of their mesh axes
# Collectives whose result differs between devices or, in rare cases that are not examined, is equal
_OTHER = frozenset(
    ("ppermute", "pshuffle", "all_to_all", "ragged_all_to_all", "reduce_scatter", "psum_scatter")
)
# The primitives of random numbers. From a key that depends on the device's number, each device draws others.
_RANDOM = ("random_", "threefry", "rng_")
# Prefix of a mesh axis: the value depends on the device's number along this axis (``axis_index``). This may
# be intended, as in ``where(index == 0, x, 0)``. Such a value is only reported if random numbers
# are drawn from the device's number.
_INDEX = "index of "
# Primitives whose inner jaxpr only combines two elements
_COMBINING = ("scatter", "reduce", "sort", "cumulative")
MOST = 20

# The mesh axes along which a value differs; None: unknown
_Differs = frozenset[str] | None
_SAME: _Differs = frozenset()


class Differing(NamedTuple):
    """A result of a shard_map that differs between devices along some mesh axes, although ``out_specs``
    declares it equal.

    Attributes:
      result: the position of this result among the results of the jitted function; None: the function does
        not return it unchanged.
      aval: dtype and shape of the whole result, over all devices, as text: ``float32[3]``.
      axes: the names of the mesh axes along which it differs.
    """

    result: int | None
    aval: str
    axes: list[str]


def find(jaxpr: Any) -> list[Differing]:
    """Return the results of shard_maps in ``jaxpr``, the trace of a jitted function, that differ between
    devices although ``out_specs`` declares them equal; at most MOST."""
    body = getattr(jaxpr, "jaxpr", jaxpr)
    return list(_in(body, {id(v): n for n, v in enumerate(body.outvars)}))[:MOST]


def _in(body: Any, results: dict[int, int]) -> Iterator[Differing]:
    """Yield the results of shard_maps in ``body``, a jaxpr, that differ between devices although
    ``out_specs`` declares them equal. The inner jaxprs of the primitives in CALLING are searched, too.
    ``results``: ``id()`` of a variable of ``body`` that is a result of the jitted function -> its position
    among the results."""
    for equation in body.eqns:
        name, params = equation.primitive.name, equation.params
        if name == "shard_map" and params.get("check_vma") is False:
            operands = [_axes_of(spec) for spec in params["in_specs"]]
            differs = _results(params["jaxpr"], operands)
            for var, differing, spec in zip(equation.outvars, differs, params["out_specs"], strict=True):
                sizes = dict(params["mesh"].shape)
                wrong = [
                    a for a in sorted(differing or ()) if a not in _axes_of(spec) and sizes.get(a, 1) > 1
                ]
                if wrong and not any(a.startswith(_INDEX) for a in differing or ()):
                    yield Differing(results.get(id(var)), var.aval.str_short(), wrong)
        elif name in CALLING:
            for inner in bodies(equation):
                passed = {}
                if len(inner.outvars) == len(equation.outvars):
                    pairs = zip(inner.outvars, equation.outvars, strict=True)
                    passed = {id(v): results[id(outer)] for v, outer in pairs if id(outer) in results}
                yield from _in(inner, passed)


def _axes_of(spec: Any) -> frozenset[str]:
    """Return the names of the mesh axes over which the PartitionSpec ``spec`` splits an array."""
    found: set[str] = set()
    for part in spec:
        found.update(part if isinstance(part, tuple) else (part,))
    return frozenset(name for name in found if isinstance(name, str))


def _results(body: Any, operands: Sequence[_Differs]) -> list[_Differs]:
    """Return, for each result of ``body``, the mesh axes along which it differs between devices; None:
    unknown. ``body`` is the jaxpr of a shard_map or a jaxpr inside it. ``operands`` has the axes along which
    each argument of ``body`` differs."""
    known: dict[int, _Differs] = dict(zip(map(id, body.invars), operands, strict=True))
    for equation in body.eqns:
        values = [known.get(id(v), _SAME) for v in equation.invars]
        made = _of_equation(equation, values)
        known.update(zip(map(id, equation.outvars), made, strict=True))
    return [known.get(id(v), _SAME) for v in body.outvars]


def _of_equation(equation: Any, values: list[_Differs]) -> list[_Differs]:
    """Return, for each result of ``equation``, the mesh axes along which it differs between devices; None:
    unknown. ``values`` has the axes along which each operand differs."""
    name, params, n = equation.primitive.name, equation.params, len(equation.outvars)
    if name in _OTHER:
        return [None] * n
    if name == "axis_index":
        return [frozenset(_INDEX + axis for axis in _names(params))]
    if name.startswith(_RANDOM):
        drawn = _joined(values)
        return [None if drawn is None else frozenset(a.removeprefix(_INDEX) for a in drawn)] * n
    if name in COLLECTED:
        axes = _names(params) | {_INDEX + axis for axis in _names(params)}
        grouped = params.get("axis_index_groups") is not None
        return [None if v is None or grouped else v - axes for v in _each(values, n)]
    inner = list(bodies(equation))
    if not inner or name.startswith(_COMBINING):
        return [_joined(values)] * n
    if name == "scan":
        # Outside the body, sliced operands and stacked results have one dimension more. The dimensions are
        # compared, because the parameters with these numbers have other names in other versions of JAX.
        whole = [len(v.aval.shape) for v in equation.invars]
        sliced = sum(a != len(v.aval.shape) for a, v in zip(whole, inner[0].invars, strict=True))
        pairs = zip(equation.outvars, inner[0].outvars, strict=True)
        carried = sum(len(v.aval.shape) == len(of.aval.shape) for v, of in pairs)
        return _repeated(inner[0], values, len(whole) - sliced - carried, carried)
    if name == "while":
        first, second = params["cond_nconsts"], params["body_nconsts"]
        made = _repeated(params["body_jaxpr"].jaxpr, values[first:], second, n)
        condition = _results(params["cond_jaxpr"].jaxpr, [*values[:first], *made])
        return [_joined([v, *condition]) for v in made]
    if name == "cond":
        branches = [_results(branch, values[1:]) for branch in inner]
        return [_joined([values[0], *each]) for each in zip(*branches, strict=True)]
    if name in CALLING and len(inner) == 1 and len(inner[0].outvars) == n:
        body = inner[0]
        return _results(body, values[len(values) - len(body.invars) :])
    return [None] * n


def _repeated(body: Any, values: list[_Differs], constants: int, carried: int) -> list[_Differs]:
    """Return, for each result of a loop, the mesh axes along which it differs between devices; None: unknown.
    An iteration can only add axes, so iterations are repeated until none is added.

    Args:
      body: the jaxpr of one iteration.
      values: the axes along which each argument of ``body`` differs: first the constants, then the carried
        values, then slices.
      constants: the number of arguments that are the same in all iterations.
      carried: the number of arguments that come from the iteration before.
    """
    values = list(values)
    while True:
        made = _results(body, values)
        now = [
            _joined([a, b])
            for a, b in zip(values[constants : constants + carried], made[:carried], strict=True)
        ]
        if now == values[constants : constants + carried]:
            return made
        values[constants : constants + carried] = now


def _joined(values: Sequence[_Differs]) -> _Differs:
    """Return the mesh axes along which a value differs between devices if it is computed from several values.
    ``values`` has the axes along which each of them differs. If one is None (unknown), the result is None,
    too."""
    found: frozenset[str] = frozenset()
    for v in values:
        if v is None:
            return None
        found |= v
    return found


def _each(values: list[_Differs], n: int) -> list[_Differs]:
    """Return, for each of the ``n`` results of a collective operation, the mesh axes along which the operand
    for this result differs between devices. ``values`` has these axes for each operand. If there are more or
    fewer operands than results, each result gets the axes of all operands."""
    return values if len(values) == n else [_joined(values)] * n


def _names(params: dict[str, Any]) -> frozenset[str]:
    """Return the names of the mesh axes in ``params``, the parameters of a collective operation."""
    found: set[Any] = set()
    for key in _AXES:
        names = params.get(key, ())
        found.update(names if isinstance(names, (tuple, list)) else (names,))
    return frozenset(name for name in found if isinstance(name, str))
