"""Find code of the user that works outside jit and fails in a jitted function, because JAX must know sizes
while it traces: results whose size depends on values, sizes that are items of an argument, and slices that
begin at the value of an array."""

from __future__ import annotations

import ast

from jaxscope.analysis.line_names import Definition, full_name, function, imported
from jaxscope.analysis.rewrap_site import last_name, syntax

# Functions of jax.numpy whose result has a size that depends on values -> the option that fixes the size
_SIZED = dict.fromkeys(
    ("nonzero", "flatnonzero", "argwhere", "unique", "unique_all", "unique_counts", "unique_inverse")
    + ("unique_values", "union1d", "intersect1d", "setdiff1d", "setxor1d", "extract", "compress", "where"),
    "size",
) | {"bincount": "length"}
# Functions whose first or second argument is a size
_WITH_SIZE = frozenset({"zeros", "ones", "full", "empty", "arange", "eye", "range", "one_hot", "linspace"})


def by_values(source: str | None, first: int, last: int) -> tuple[int, str, str] | None:
    """Return the first call on the lines ``first`` to ``last`` whose result has a size that depends on
    values, as (line, source of the call, option): ``jnp.nonzero(x)`` has the option ``size``, which would fix
    the size. Only functions of ``jax.numpy`` count, and only calls without the option. Return None if there
    is none."""
    found = syntax(source)
    if found is None:
        return None
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


def dynamic_slice(text: str | None) -> str | None:
    """Return what to write in a jitted function instead of ``text``, the source of a slice that begins at the
    value of an array: ``jax.lax.dynamic_slice_in_dim(x, i, 16)`` for ``x[i : i + 16]``. Return None if
    ``text`` is no such slice, or if its length is not part of it."""
    try:
        node = ast.parse(text or "", mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    match node:
        case ast.Subscript(
            value=array,
            slice=ast.Slice(lower=ast.expr() as start, upper=ast.BinOp(left, ast.Add(), right), step=None),
        ) if ast.dump(left) == ast.dump(start):
            arguments = ", ".join(ast.unparse(n) for n in (array, start, right))
            return f"jax.lax.dynamic_slice_in_dim({arguments})"
    return None


def _sizes(source: str | None, call: ast.Call) -> list[ast.expr]:
    """Return the arguments of ``call`` that are sizes: those of ``jnp.zeros(n)`` and ``range(n)``, and those
    that a called function of the same file passes on as sizes."""
    name = last_name(call.func)
    if name in _WITH_SIZE:
        return [*call.args[:2], *(k.value for k in call.keywords)]
    defined = function(source, name) if name is not None else None
    if defined is None:
        return []
    inside = [n for n in ast.walk(defined) if isinstance(n, ast.Call) and last_name(n.func) in _WITH_SIZE]
    used = {a.id for n in inside for a in n.args[:2] if isinstance(a, ast.Name)}
    passed = [*zip(_parameters(defined), call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
    return [value for parameter, value in passed if parameter in used]


def _parameters(defined: Definition) -> list[str]:
    """Return the names of the parameters of ``defined``, without ``self``."""
    names = [a.arg for a in (*defined.args.posonlyargs, *defined.args.args)]
    return names[1:] if names[:1] == ["self"] else names
