"""Find the names of the variables that refer to the arrays which a trace captured as constants.

JAX keeps the user's own object among the constants of the trace. So a name is found by looking for the same
object in the closure cells, in the globals that the code reads, and inside their values.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from jaxscope import jax_internals
from jaxscope.capture import frames, paths, shield
from jaxscope.capture.calls import functions
from jaxscope.schema.keys import Captured

MAX_REPORTED = 200
_NO_CODE = (lambda: None).__code__
MAX_INNER = 4  # levels of jitted functions that call each other
MAX_NODES = 5000  # objects searched for names: a global may contain a million
DRAWING = frozenset({"random_bits", "random_gamma"})  # primitives that draw; their first operand is the key
# Primitives with an inner program (jaxpr) whose last arguments are the primitive's last operands, in order.
CALLING = frozenset(
    (
        "jit", "pjit", "closed_call", "checkpoint", "remat2", "custom_jvp_call", "custom_vjp_call", "scan",
        "cond",
    )
)  # fmt: skip


def named_roots(function: Any) -> list[tuple[str, str, Any]]:
    """Return (name, where, value) of the values that ``function`` can reach without its arguments: closure
    cells, globals that the code names, default values, and the values bound by a method or a partial.

    ``where`` is ``closure``, ``global``, ``default``, ``attribute`` or ``partial``. If a variable or a
    default value is a function, a method, a partial or a jitted function, the values that it can reach are
    added, too.
    """
    found: list[tuple[str, str, Any]] = []
    queue: list[Any] = [function]
    seen: set[int] = set()
    while queue and len(seen) < 200:
        current = queue.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, functools.partial):
            found += [(f"partial.args[{i}]", "partial", v) for i, v in enumerate(current.args)]
            found += [(f"partial.{k}", "partial", v) for k, v in current.keywords.items()]
            queue.append(current.func)
        elif isinstance(current, MethodType):
            found.append(("self", "attribute", current.__self__))
            found += _attributes(
                "self",
                "attribute",
                type(current.__self__),
                _global_names(getattr(current.__func__, "__code__", _NO_CODE)),
            )
            queue.append(current.__func__)
        elif isinstance(current, FunctionType):
            values = _reached(current)
            found += values
            queue += [v for _, _, v in values if _may_capture(v)]
            inner = getattr(current, "__wrapped__", None)
            if inner is not None:
                queue.append(inner)
        else:
            inner = getattr(current, "__wrapped__", None) or jax_internals.given_to_jit(current)
            if inner is not None and inner is not current:
                queue.append(inner)
    return found


def _may_capture(value: Any) -> bool:
    """Return whether ``value`` is a function, a method, a partial, or a callable object of a library, such as
    a jitted function."""
    if isinstance(value, (FunctionType, MethodType, functools.partial)):
        return True
    kind = type(value)
    return callable(value) and not isinstance(value, type) and frames.is_library(kind.__module__)


def _reached(function: FunctionType) -> list[tuple[str, str, Any]]:
    """Return (variable, where, value) of the closure cells, globals and default values of ``function``; no
    globals for a library's function. ``where`` is ``closure``, ``global`` or ``default``. For a module or
    class in a cell or global, the attributes that the code may read are added."""
    code, space = function.__code__, function.__globals__
    captured = functions.captures(function)
    values: list[tuple[str, str, Any]] = [(name, "closure", value) for name, value in captured.items()]
    if not frames.is_library(space.get("__name__")):
        values += [(n, "global", space[n]) for n in sorted(_global_names(code)) if n in space]
    for name, where, value in list(values):
        if isinstance(value, (ModuleType, type)):
            values += _attributes(name, where, value, _global_names(code))
    defaults = function.__defaults__ or ()
    named = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    values += [(n, "default", v) for n, v in zip(named, defaults, strict=False)]
    values += [(n, "default", v) for n, v in (function.__kwdefaults__ or {}).items()]
    return values


def _attributes(name: str, where: str, owner: Any, attribute_names: set[str]) -> list[tuple[str, str, Any]]:
    """Return (name, ``where``, value) of the attributes of ``owner``, a module or class, that some code may
    read: ``("config.lr", "global", 0.1)``.

    Args:
      name: the name of ``owner`` in the code.
      where: the kind of the variable that refers to ``owner``: closure, global or attribute.
      attribute_names: the attribute names that occur in the code.
    """
    found: dict[str, Any] = {}
    for holder in getattr(owner, "__mro__", (owner,)):
        space = vars(holder)
        for attribute in attribute_names & space.keys():
            found.setdefault(attribute, space[attribute])
    return [(f"{name}.{a}", where, v) for a, v in sorted(found.items())]


def _global_names(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in ``code`` and in the code of the functions defined in
    it."""
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            names |= _global_names(const)
    return names


class Drawn(NamedTuple):
    """The random keys from which a traced function draws random numbers. A field is None if it is unknown.

    Attributes:
      constants: positions, among the captured constants, of keys that are not combined with an argument. Each
        call draws the same numbers from them.
      arguments: positions, among the flat arguments, of keys that are not combined with another argument.
      of: the number of flat arguments.
      on_devices: positions, among the flat arguments, of keys from which all devices of a shard_map draw
        equal numbers, although they combine these numbers element by element with an array that is split over
        the devices, as in a dropout mask.
    """

    constants: frozenset[int] | None = None
    arguments: frozenset[int] | None = None
    of: int | None = None
    on_devices: frozenset[int] | None = None


def keys_drawn_from(jaxpr: Any) -> Drawn:
    """Return which captured constants and which arguments of ``jaxpr`` are random keys from which ``jaxpr``
    draws random numbers."""
    body = getattr(jaxpr, "jaxpr", jaxpr)
    first = len(body.constvars)  # the arguments are numbered after the constants
    possible = {
        id(v): frozenset([n]) for n, v in enumerate([*body.constvars, *body.invars]) if _may_be_key(v.aval)
    }
    found: set[frozenset[int]] = set()
    if possible:
        _draws(body, possible, found)
    constants, arguments = set[int](), set[int]()
    for keys in found:
        passed = {n - first for n in keys if n >= first}
        if not passed:
            constants |= keys
        elif len(passed) == 1:
            arguments |= passed
    alike = set[int]()
    _draws_alike(body, {id(v): n for n, v in enumerate(body.invars) if _may_be_key(v.aval)}, alike)
    return Drawn(frozenset(constants), frozenset(arguments), len(body.invars), frozenset(alike))


def _draws_alike(body: Any, keys: dict[int, int], positions: set[int]) -> None:
    """Add to ``positions`` the positions of the arguments that are random keys from which all devices of a
    shard_map draw equal numbers and combine them with an array that is split over the devices.

    Args:
      body: a jaxpr, which may contain a shard_map.
      keys: ``id()`` of a variable of ``body`` -> the position of the argument that it is, for arguments that
        may be keys.
    """
    for equation in body.eqns if keys else ():
        if equation.primitive.name == "shard_map":
            inner, specs = equation.params["jaxpr"], equation.params["in_specs"]
            whole = [not any(spec) for spec in specs]
            passed_in = [_Equal(frozenset([n])) if w else _SPLIT for n, w in enumerate(whole)]
            drawn: set[frozenset[int]] = set()
            if not all(whole) and equation.params["mesh"].size > 1:
                _draws_on_split(inner, passed_in, drawn)
            passed = (keys.get(id(equation.invars[n])) for of in drawn for n in of)
            positions |= {n for n in passed if n is not None}
        for inner in inner_bodies(equation) if equation.primitive.name in CALLING else ():
            pairs = zip(reversed(inner.invars), reversed(equation.invars), strict=False)
            _draws_alike(
                inner, {id(v): keys[id(outer)] for v, outer in pairs if id(outer) in keys}, positions
            )


class _Equal(NamedTuple):
    """A value in a shard_map that is equal on all devices.

    Attributes:
      sources: positions of the operands of the shard_map from which the value is computed.
      drawn: the size of the largest array of random numbers from which the value is computed; 0: there is
        none.
    """

    sources: frozenset[int] = frozenset()
    drawn: int = 0


_SPLIT = None  # stands for a value that is different on each device, such as a part of a split array
ELEMENTWISE = frozenset(
    ("add", "sub", "mul", "div", "select_n", "max", "min", "and", "or", "xor", "lt", "le", "gt", "ge", "pow")
)
# Collectives whose result is equal on all devices
COLLECTED = frozenset(
    ("psum", "psum2", "psum_invariant", "pmax", "pmin", "all_gather", "all_gather_invariant", "all_reduce")
)


def _draws_on_split(
    body: Any, operands: list[_Equal | None], all_sources: set[frozenset[int]]
) -> list[_Equal | None]:
    """Follow the values in a shard_map, and find random numbers that are equal on all devices but are
    combined element by element with a part of a split array that is not larger. Return for each result of
    ``body`` an _Equal if it is equal on all devices, else _SPLIT.

    Args:
      body: the jaxpr of a shard_map, or a jaxpr inside it.
      operands: for each argument of ``body``, an _Equal or _SPLIT.
      all_sources: for each such array of random numbers, its ``sources`` (operands of the shard_map) are
        added to this set.
    """
    known: dict[int, _Equal | None] = dict(zip(map(id, body.invars), operands, strict=False))
    for equation in body.eqns:
        name, values = equation.primitive.name, [known.get(id(v), _Equal()) for v in equation.invars]
        uniform = [v for v in values if v is not _SPLIT]
        sources = frozenset[int]().union(*(v.sources for v in uniform))
        results: list[_Equal | None] = [_SPLIT] * len(equation.outvars)
        inner = list(inner_bodies(equation)) if name in CALLING else []
        if inner:
            for one in inner:
                made = _draws_on_split(one, values[len(values) - len(one.invars) :], all_sources)
            results = made if len(made) == len(results) else results
        elif name in DRAWING and values[0] is not _SPLIT:
            results = [_Equal(sources, v.aval.size) for v in equation.outvars]
        elif name in COLLECTED or (len(uniform) == len(values) and name != "axis_index"):
            results = [_Equal(sources, max((v.drawn for v in uniform), default=0))] * len(results)
        elif name in ELEMENTWISE:
            # Fewer numbers are meant to be equal on all devices: noise for weights, a random projection.
            split = [v.aval.size for v, value in zip(equation.invars, values, strict=True) if value is _SPLIT]
            all_sources |= {v.sources for v in uniform if v.drawn >= max(split)}
        known.update(zip(map(id, equation.outvars), results, strict=True))
    return [known.get(id(v), _Equal()) for v in body.outvars]


def _may_be_key(aval: Any) -> bool:
    """Return whether an array with the abstract value ``aval`` may be a random key: a typed key, or a raw one
    (uint32[..., 2] or uint32[..., 4])."""
    if not hasattr(aval, "dtype") or not hasattr(aval, "shape"):  # a token, a reference
        return False
    dtype, shape = str(aval.dtype), tuple(aval.shape)
    return dtype.startswith("key<") or (dtype == "uint32" and shape[-1:] in ((2,), (4,)))


def _draws(body: Any, known: dict[int, frozenset[int]], positions: set[frozenset[int]]) -> None:
    """For each operation in ``body`` that draws random numbers, add to ``positions`` the set of the positions
    of the random keys from which the operation's key is made.

    Args:
      body: a jaxpr.
      known: ``id()`` of a variable that is computed only from random keys and literals -> the positions of
        these keys in [*constants, *arguments] of the outermost jaxpr.
    """
    for equation in body.eqns:
        sources = [known.get(id(v)) for v in equation.invars]
        if not any(sources):
            continue
        name = equation.primitive.name
        if name in DRAWING and sources[0]:
            positions.add(sources[0])
        for inner in inner_bodies(equation) if name in CALLING or name == "shard_map" else ():
            # The branches of a conditional do not receive its first operand, the index of the branch.
            passed = zip(reversed(inner.invars), reversed(sources), strict=False)
            _draws(inner, {id(v): keys for v, keys in passed if keys}, positions)
        if all(s or hasattr(v, "val") for s, v in zip(sources, equation.invars, strict=True)):
            of_keys = frozenset[int]().union(*(s for s in sources if s))
            known |= {id(v): of_keys for v in equation.outvars}


def inner_bodies(equation: Any) -> Iterator[Any]:
    """Yield the ``bodies`` of an equation, without those that have more arguments than the equation has
    operands."""
    return (inner for inner in bodies(equation) if len(inner.invars) <= len(equation.invars))


def bodies(equation: Any) -> Iterator[Any]:
    """Yield the inner programs (jaxprs) of an equation, such as the branches of a ``cond``."""
    for value in equation.params.values():
        for one in value if isinstance(value, (tuple, list)) else (value,):
            inner: Any = getattr(one, "jaxpr", one)
            if hasattr(inner, "eqns") and hasattr(inner, "outvars"):
                yield inner


def inner_programs(jaxpr: Any, left: int = MAX_INNER) -> Iterator[Any]:
    """Yield the inner jaxprs of ``jaxpr`` (of a jitted call, a scan or a branch) that have captured arrays of
    their own. Inner jaxprs are searched in the same way, up to ``left`` levels."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns if left else ():
        if equation.primitive.name in CALLING:
            for parameter in equation.params.values():
                for value in parameter if isinstance(parameter, tuple) else (parameter,):
                    if getattr(value, "consts", None):
                        yield value
                    if hasattr(value, "eqns"):
                        yield from inner_programs(value, left - 1)


def of_trace(
    function: Any, constants: list[Any], is_array: Any, jaxpr: Any = None, drawn: frozenset[int] | None = None
) -> list[Captured]:
    """Return, for each array that a trace of ``function`` captured, the name and kind of its variable (None
    if none is found), shape, dtype, bytes, and whether it is a random key in ``drawn``. The largest array
    comes first; at most MAX_REPORTED are returned.

    Args:
      constants: the arrays that ``function`` itself captured.
      is_array: a function that returns whether an object is an array.
      jaxpr: the result of the trace; the arrays that inner jitted functions in it captured are added to the
        result. None: they are left out.
      drawn: positions among ``constants`` of random keys from which the trace draws; None: unknown.
    """
    if jaxpr is not None:
        inner: list[Any] = shield.attempt("captured_constants", list, inner_programs(jaxpr)) or []
        constants = [*constants, *{id(c): c for p in inner for c in p.consts}.values()]
    if not constants:
        return []
    names: dict[paths.Identity, tuple[str, str]] = {}
    wanted = {paths.identity(c) for c in constants}
    roots = named_roots(function)
    for name, where, value in roots:
        if is_array(value):
            names.setdefault(paths.identity(value), (name, where))
    if wanted - names.keys():
        of = {name: where for name, where, _ in reversed(roots)}
        found = paths.walk([(n, v) for n, _, v in roots], is_array, leaves=False, nodes=MAX_NODES)
        for key, under in found.arrays.items():
            root = next((n for n in of if under[0].startswith(n)), None)
            names.setdefault(key, (under[0], of[root] if root is not None else "global"))
    facts = []
    for n, c in enumerate(constants):
        found_as = names.get(paths.identity(c))
        shape = getattr(c, "shape", None)
        size = getattr(c, "nbytes", None)
        facts.append(
            Captured(
                name=found_as[0] if found_as else None,
                where=found_as[1] if found_as else None,
                shape=None if shape is None else tuple(int(d) for d in shape),
                dtype=None if not hasattr(c, "dtype") else str(c.dtype),
                bytes=int(size) if isinstance(size, int) else None,
                draws=None if drawn is None else n in drawn,
            )
        )
    facts.sort(key=lambda f: -(f.bytes or 0))
    return facts[:MAX_REPORTED]
