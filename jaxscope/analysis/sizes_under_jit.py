"""Find code of the user that works outside jit and fails in a jitted function, because JAX must know sizes
while it traces: results whose size depends on values, sizes that are items of an argument, and slices that
begin at the value of an array."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterable

from jaxscope.analysis.line_names import full_name, function, imported, takes_objects
from jaxscope.analysis.syntax import (
    Definition,
    assigned_calls,
    bind,
    expression,
    function_around,
    last_name,
    positional,
    syntax,
)

# Functions of jax.numpy whose result has a size that depends on values -> the option that fixes the size
_SIZED = dict.fromkeys(
    ("nonzero", "flatnonzero", "argwhere", "unique", "unique_all", "unique_counts", "unique_inverse")
    + ("unique_values", "union1d", "intersect1d", "setdiff1d", "setxor1d", "extract", "compress", "where"),
    "size",
) | {"bincount": "length"}
# Functions of jax.random that draw from range(n) if they get a number n, or else from an array
# Functions of JAX that get functions, and the positions of these
_OF_FUNCTIONS = dict.fromkeys(
    (
        "checkpoint",
        "grad",
        "hessian",
        "jacfwd",
        "jacobian",
        "jacrev",
        "jit",
        "jvp",
        "linearize",
        "map",
        "scan",
    )
    + ("remat", "value_and_grad", "vjp", "vmap"),
    (0,),
) | {"while_loop": (0, 1), "fori_loop": (2,), "cond": (1, 2)}
_DRAWING_OF = frozenset({"choice", "permutation"})
_NUMBER = re.compile(r"n|num|count|length|size|(?:n|num|max)_\w+|\w+_(?:size|count|length)", re.IGNORECASE)
_BUILTINS = frozenset(dir(builtins))
# Functions with arguments that are sizes -> their positions
_WITH_SIZE = {
    **dict.fromkeys(("zeros", "ones", "full", "empty"), (0,)),
    **dict.fromkeys(("arange", "range"), (0, 1, 2)),
    **dict.fromkeys(("one_hot", "split", "tile", "repeat", "top_k"), (1,)),
    "eye": (0, 1),
    "linspace": (2,),
}
_NAMED_SIZES = frozenset({"num", "num_classes", "length", "total_repeat_length"})  # keywords that are sizes
_KNOWN = frozenset({"shape", "ndim", "size", "dtype"})  # attributes of arrays that jit knows
# Functions that get a shape as one of their first three arguments
_WITH_SHAPE = frozenset(
    {"zeros", "ones", "full", "empty", "reshape", "broadcast_to", "normal", "uniform", "bernoulli", "randint"}
    | {"gumbel", "exponential", "truncated_normal", "rademacher", "laplace", "gamma", "beta"}
)


def by_values(source: str | None, first: int, last: int) -> tuple[int, str, str] | None:
    """Return the first call on the lines ``first`` to ``last`` whose result has a size that depends on
    values, as (line, source of the call, option): ``jnp.nonzero(x)`` has the option ``size``, which would fix
    the size. Only functions of ``jax.numpy`` count, and only calls without the option. Return None if there
    is none."""
    found = syntax(source)
    names = imported(found)
    for line in range(first, last + 1):
        for call in found.calls.get(line, ()):
            package, _, name = full_name(call.func, names).rpartition(".")
            option = _SIZED.get(name) if package == "jax.numpy" else None
            given = {k.arg for k in call.keywords}
            if option is None or option in given or None in given:
                continue
            if name != "where" or len(call.args) == 1:  # with three arguments, it selects elementwise
                return call.lineno, ast.unparse(call), option
    return None


def item_as_size(source: str | None, name: str) -> tuple[int, str] | None:
    """Return the first place in the function ``name`` that uses an item of one of its parameters as a size,
    as (line, source of the item): ``params["vocab"]`` in ``jnp.zeros(params["vocab"])``, or in ``one_hot(i,
    params["vocab"])`` if ``one_hot`` is a function of the same file that uses this argument as a size. jit
    would trace a Python number in a container. Return None if there is none, or the source is unknown."""
    defined = function(source, name)
    if defined is None:
        return None
    parameters = set(_parameters(defined))
    for call in (n for n in ast.walk(defined) if isinstance(n, ast.Call)):
        for argument in _sizes(source, call):
            match argument:
                case ast.Subscript(value=ast.Name(id=container), slice=ast.Constant(value=str())):
                    if container in parameters:
                        return argument.lineno, ast.unparse(argument)
    return None


def python_parameters(source: str | None, name: str, depth: int = 3) -> tuple[str, ...] | None:
    """Return the parameters of the function ``name`` that must stay Python values under jit: sizes, flags,
    texts and functions, also if a function of the same file gets them, through at most ``depth`` calls.
    Return None if the source does not tell: the function is not found, takes objects, or calls functions of
    other files than those of JAX and NumPy."""
    found, defined = syntax(source), function(source, name)
    if defined is None or takes_objects(source, name) or defined.args.vararg is not None:
        return None
    names, parameters = imported(found), _parameters(defined)
    static = {p for p, value in _defaults(defined) if isinstance(value.value, (bool, str))}
    for n in ast.walk(defined):
        if isinstance(n, (ast.If, ast.While, ast.IfExp)):
            static |= {m.id for m in _operands(n.test) if isinstance(m, ast.Name)}
        if isinstance(n, ast.Slice):
            static |= _names(part for part in (n.lower, n.upper, n.step) if part is not None)
        if not isinstance(n, ast.Call):
            continue
        if isinstance(n.func, ast.Name) and n.func.id in parameters:
            static.add(n.func.id)
        called = last_name(n.func)
        if full_name(n.func, names).startswith("jax.") and called in _OF_FUNCTIONS:
            static |= _names([n.args[k] for k in _OF_FUNCTIONS[called] if k < len(n.args)])
        if called in _DRAWING_OF:  # of a number, jit must know the value
            values = [*n.args[1:2], *(k.value for k in n.keywords if k.arg in ("a", "x"))]
            static |= {v.id for v in values if isinstance(v, ast.Name) and _NUMBER.fullmatch(v.id)}
        static |= _names([*_shapes_of(n), *_sizes_of(n)])
        if called == "reshape" and not full_name(n.func, names).startswith(("jax.", "numpy.")):
            static |= _names(n.args)  # x.reshape(n, -1)
        if called in _WITH_SIZE:
            continue
        if called is not None and (own := function(source, called)) is not None and called != name:
            inner = python_parameters(source, called, depth - 1) if depth else None
            if inner is None:
                return None
            static |= {v.id for p, v in bind(n, own) if p in inner and isinstance(v, ast.Name)}
        elif isinstance(n.func, ast.Name) and not {n.func.id} & (_BUILTINS | {*parameters}):
            package = full_name(n.func, names).partition(".")[0]
            if package not in ("jax", "numpy", "math", "functools"):
                return None
    assigned = [n for n in ast.walk(defined) if isinstance(n, ast.Assign)]
    for n in reversed(assigned):  # the names from which sizes are computed
        if _reads_array(n.value, names):
            continue  # size_from_value finds these
        if any(isinstance(target, ast.Name) and target.id in static for target in n.targets):
            static |= _names([n.value])
    return tuple(p for p in parameters if p in static)


def size_from_value(source: str | None, line: int) -> str | None:
    """Return the variable to which ``line`` assigns a number read from an array, if its function uses the
    variable as a size: ``N = int(jnp.round(6 * sigma))``. None otherwise."""
    found = syntax(source)
    scope = function_around(found, line)
    inside = list(ast.walk(scope)) if scope is not None else []
    here = [n for n in inside if isinstance(n, ast.Assign) and n.lineno == line]
    if not here or not isinstance(here[0].targets[0], ast.Name):
        return None
    name = here[0].targets[0].id
    sizes = [part for n in inside if isinstance(n, ast.Call) for part in (*_shapes_of(n), *_sizes_of(n))]
    slices = [n for n in inside if isinstance(n, ast.Slice)]
    sizes += [part for n in slices for part in (n.lower, n.upper, n.step) if part is not None]
    return name if name in _names(sizes) else None


def _reads_array(value: ast.expr, names: dict[str, str]) -> bool:
    """Return whether the expression ``value`` reads a number from a result of JAX: ``int(jnp.max(x))``."""
    calls = [n for n in ast.walk(value) if isinstance(n, ast.Call)]
    reads = [n for n in calls if last_name(n.func) in ("int", "float", "item")]
    return bool(reads) and any(full_name(n.func, names).startswith("jax.") for n in calls)


def _shapes_of(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of ``call`` that are shapes, if it calls a function of jax.numpy or jax.random
    with a shape: tuples, lists, and variables with the name ``shape``."""
    if last_name(call.func) not in _WITH_SHAPE:
        return []
    given = [*call.args[:3], *(k.value for k in call.keywords if k.arg in ("shape", "newshape"))]
    return [a for a in given if isinstance(a, (ast.Tuple, ast.List)) or last_name(a) == "shape"]


def _sizes_of(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of ``call`` that are sizes: ``n`` for ``jnp.zeros(n)``, ``range(n)`` and
    ``jax.random.split(key, n)``."""
    positions = _WITH_SIZE.get(last_name(call.func) or "", ())
    named = [k.value for k in call.keywords if k.arg in _NAMED_SIZES] if positions else []
    return [*(call.args[k] for k in positions if k < len(call.args)), *named]


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the variables that the syntax nodes read, without those of which they only read the shape or the
    length: ``n`` for ``n * len(x) + y.shape[0]``."""
    found, waiting = set[str](), list(nodes)
    while waiting:
        n = waiting.pop()
        if isinstance(n, ast.Name):
            found.add(n.id)
        elif not (isinstance(n, ast.Attribute) and n.attr in _KNOWN) and not (
            isinstance(n, ast.Call) and last_name(n.func) == "len"
        ):
            waiting += ast.iter_child_nodes(n)
    return found


def object_created_for(source: str | None, name: str, parameters: Collection[str]) -> tuple[str, str] | None:
    """Return (parameter, outer): one of ``parameters`` of the function ``name`` for which the function
    ``outer`` of the same file creates a new object in each call: ``model = Model()``, ``predict(model, x)``.
    Return None if there is none."""
    found, defined = syntax(source), function(source, name)
    if defined is None:
        return None
    for call in found.all_calls():
        outer = function_around(found, call.lineno)
        if outer is None or last_name(call.func) != defined.name:
            continue
        calls = assigned_calls(ast.walk(outer))
        created = {name for name, c in calls if (last_name(c.func) or "")[:1].isupper()}
        for parameter, value in bind(call, defined):
            if parameter in parameters and isinstance(value, ast.Name) and value.id in created:
                return parameter, outer.name
    return None


def _operands(test: ast.expr) -> list[ast.expr]:
    """Return the parts of a condition that are variables or comparisons with a text: ``flag`` for ``flag``,
    ``not flag`` and ``flag and other``, ``mode`` for ``mode == "fast"`` and for ``mode is None``."""
    if isinstance(test, ast.BoolOp):
        return [part for value in test.values for part in _operands(value)]
    if isinstance(test, ast.UnaryOp):
        return _operands(test.operand)
    if isinstance(test, ast.Compare):
        constant = all(
            isinstance(c, ast.Constant) and isinstance(c.value, (str, type(None))) for c in test.comparators
        )
        return [test.left] if constant else []
    return [test]


def _defaults(defined: Definition) -> list[tuple[str, ast.Constant]]:
    """Return (parameter, default) for the parameters of ``defined`` whose default is a constant."""
    last = zip(reversed(positional(defined)), reversed(defined.args.defaults), strict=False)
    by_name = zip((a.arg for a in defined.args.kwonlyargs), defined.args.kw_defaults, strict=True)
    return [(name, value) for name, value in (*last, *by_name) if isinstance(value, ast.Constant)]


def dynamic_slice(text: str | None) -> str | None:
    """Return what to write in a jitted function instead of ``text``, the source of a slice that begins at the
    value of an array: ``jax.lax.dynamic_slice_in_dim(x, i, 16)`` for ``x[i : i + 16]``. Return None if
    ``text`` is no such slice, or if its length is not part of it."""
    match expression(text):
        case ast.Subscript(
            value=array,
            slice=ast.Slice(lower=ast.expr() as start, upper=ast.BinOp(left, ast.Add(), right), step=None),
        ) if ast.dump(left) == ast.dump(start):
            arguments = ", ".join(ast.unparse(n) for n in (array, start, right))
            return f"jax.lax.dynamic_slice_in_dim({arguments})"
    return None


def list_indexed(text: str | None) -> str | None:
    """Return the object that ``text``, source that read a value of the device, indexes with this value:
    ``data`` for ``data[i]``. It is a list or another object of Python, because a JAX array reads no index.
    Return None for other source, and for slices."""
    node = expression(text)
    if not isinstance(node, ast.Subscript) or any(isinstance(n, ast.Slice) for n in ast.walk(node.slice)):
        return None
    return ast.unparse(node.value)


def _sizes(source: str | None, call: ast.Call) -> list[ast.expr]:
    """Return the arguments of ``call`` that are sizes: those of ``jnp.zeros(n)`` and ``range(n)``, and those
    that a called function of the same file passes on as sizes."""
    name = last_name(call.func)
    if name in _WITH_SIZE:
        return _sizes_of(call)
    defined = function(source, name) if name is not None else None
    if defined is None:
        return []
    inside = [n for n in ast.walk(defined) if isinstance(n, ast.Call) and last_name(n.func) in _WITH_SIZE]
    used = {a.id for n in inside for a in _sizes_of(n) if isinstance(a, ast.Name)}
    return [value for parameter, value in bind(call, defined) if parameter in used]


def _parameters(defined: Definition) -> list[str]:
    """Return the names of the parameters of ``defined``, without ``self``."""
    return [*positional(defined), *(a.arg for a in defined.args.kwonlyargs)]
