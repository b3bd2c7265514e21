"""Find calls of NumPy and SciPy that fail in a jitted function, because they get an array that JAX traces.

The functions read source as text. An array counts as traced if it is a parameter, or is computed from one or
by a function of JAX.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from jaxscope.analysis.line_names import full_name, function, imported
from jaxscope.analysis.syntax import function_around, single_targets, syntax
from jaxscope.schema.libraries import JAX_ROOTS

# Functions of NumPy that get sizes, dtypes or Python numbers
_WITHOUT_ARRAYS = frozenset(
    {"arange", "dtype", "empty", "eye", "finfo", "full", "identity", "iinfo", "isscalar", "issubdtype"}
    | {"linspace", "ndim", "ones", "prod", "result_type", "shape", "size", "zeros"}
)
_CONVERSIONS = frozenset({"array", "asarray"})
_ATTRIBUTES = frozenset({"dtype", "ndim", "shape", "size"})  # known while JAX traces
_OF_PYTHON = frozenset({"hasattr", "id", "isinstance", "len", "print", "range", "type"})


class HostCall(NamedTuple):
    """A call that fails in a jitted function.

    Attributes:
      line: its line.
      called: the function as the source names it: ``np.log``.
      instead: the full name of the function of JAX: ``jax.numpy.log``. For SciPy it may not exist.
    """

    line: int
    called: str
    instead: str


def find(source: str | None, name: str) -> list[HostCall]:
    """Return the calls of NumPy and SciPy in the function with the qualified name ``name`` that get traced
    arrays, in the order of their lines, each function once. ``source`` is the text of the file; None:
    unknown, and the result is empty."""
    defined = function(source, name)
    return _found(source, defined) if defined is not None else []


def on_lines(source: str | None, first: int, last: int) -> list[HostCall]:
    """Return what ``find`` returns, for the lines ``first`` to ``last`` of a function or of the module.
    Conversions (``np.asarray``) are left out, because they may be meant for Python."""
    found = syntax(source)
    calls = _found(source, function_around(found, first, inside=True) or found.tree)
    return [c for c in calls if first <= c.line <= last and c.called.rpartition(".")[2] not in _CONVERSIONS]


def _found(source: str | None, scope: ast.AST) -> list[HostCall]:
    """Return the calls in ``scope``, a function or the module, that get traced arrays."""
    names, found = imported(syntax(source)), dict[str, HostCall]()
    traced = _traced_names(scope, names)
    for call in sorted(_calls(scope), key=lambda n: (n.lineno, n.col_offset)):
        full = full_name(call.func, names)
        package, _, rest = full.partition(".")
        if package not in ("numpy", "scipy") or rest.startswith("random.") or rest in _WITHOUT_ARRAYS:
            continue
        # A matrix may be an attribute of an object, which is no parameter.
        matrices = rest.startswith("linalg.") or package == "scipy"
        if any(_is_traced(n, traced, names) or (matrices and _mentions(n)) for n in call.args):
            called = ast.unparse(call.func)
            found.setdefault(called, HostCall(call.lineno, called, f"jax.{full}"))
    return list(found.values())


def _calls(scope: ast.AST) -> Iterator[ast.Call]:
    return (n for n in ast.walk(scope) if isinstance(n, ast.Call))


def _mentions(node: ast.expr) -> bool:
    """Return whether ``node`` mentions a variable or an attribute."""
    return any(isinstance(n, (ast.Name, ast.Attribute)) for n in ast.walk(node))


def _traced_names(scope: ast.AST, names: dict[str, str]) -> set[str]:
    """Return the variables and attributes (``self.x``) of ``scope`` that are traced arrays. ``names`` maps
    imported names to full names."""
    traced = set[str]()
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        every = [*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs]
        traced = {a.arg for a in every if a.arg not in ("self", "cls") and not _is_plain(a)}
    assigned = [n for n in ast.walk(scope) if isinstance(n, (ast.Assign, ast.AugAssign, ast.For))]
    before = -1
    while len(traced) > before:
        before = len(traced)
        for n in assigned:
            value = n.iter if isinstance(n, ast.For) else n.value
            if _is_traced(value, traced, names):
                targets = n.targets if isinstance(n, ast.Assign) else [n.target]
                traced |= {ast.unparse(part) for target in targets for part in single_targets(target)}
    return traced


def _is_plain(parameter: ast.arg) -> bool:
    """Return whether the annotation of ``parameter`` says that it is no array."""
    return isinstance(parameter.annotation, ast.Name) and parameter.annotation.id in ("bool", "int", "str")


def _is_traced(node: ast.AST, traced: set[str], names: dict[str, str]) -> bool:
    """Return whether the value of the expression ``node`` is, or contains, a traced array."""
    match node:
        case ast.Name(id=name):
            return name in traced
        case ast.Attribute(value=value, attr=attribute):
            if attribute in _ATTRIBUTES:
                return False
            return ast.unparse(node) in traced or _is_traced(value, traced, names)
        case ast.Call(func=ast.Name(id=name)) if name in _OF_PYTHON:
            return False
        case ast.Call(func=called) if full_name(called, names).partition(".")[0] in JAX_ROOTS:
            return True
        case ast.Lambda():
            return False
    return any(_is_traced(child, traced, names) for child in ast.iter_child_nodes(node))
