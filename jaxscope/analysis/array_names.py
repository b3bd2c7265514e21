"""What the source shows about a variable: whether it holds an array, or a list or tuple."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from jaxscope.analysis.line_names import full_name, imported
from jaxscope.analysis.syntax import (
    FUNCTION,
    SCOPES,
    Definition,
    Syntax,
    bind,
    is_name,
    last_name,
    own_nodes,
    spans,
    syntax,
)

DEEPEST = 4  # how many variables and calls are followed, one after the other
# Attributes that arrays have, and that lists and tuples do not have
OF_ARRAYS = frozenset({"shape", "ndim", "dtype", "T", "at", "astype", "reshape", "sum", "mean", "swapaxes"})
MODULES = ("jax.numpy.", "numpy.", "jax.random.", "jax.nn.", "jax.device_put")
# Functions of these modules that may return a list or tuple, or pass through what they get
OTHERS = frozenset({"array_split", "hsplit", "vsplit", "meshgrid", "nonzero", "where", "unique", "shape"})
# Functions whose result is called with the arguments of the function that they get
TRANSFORMS = frozenset({"jit", "grad", "value_and_grad", "checkpoint", "remat", "filter_jit", "filter_grad"})


def holds_array(source: str | None, line: int, name: str) -> bool | None:
    """Return whether the variable ``name``, as the code at ``line`` reads it, holds an array.

    Return False if it holds a list or tuple, and None if the source does not tell. A variable holds an array
    if the function reads ``x.shape`` or ``x[:, 0]``, if it is assigned a call of ``jax.numpy`` or NumPy or
    arithmetic with an array, or if it is a parameter and all calls in the same file pass an array.
    """
    return _holds(syntax(source), line, name, DEEPEST)


def is_array(source: str | None, node: ast.expr) -> bool | None:
    """Return whether the value of the expression ``node`` of the file is an array; False if it is a list or
    tuple, and None if the source does not tell."""
    return _is_array(syntax(source), node, DEEPEST)


def _holds(file_syntax: Syntax, line: int, name: str, depth: int) -> bool | None:
    """Return what ``holds_array`` returns. At most ``depth`` variables and calls are followed."""
    around = [n for n in file_syntax.blocks if isinstance(n, SCOPES) and spans(n, line)]
    innermost_first = sorted(around, key=lambda n: (n.lineno, n.col_offset), reverse=True)
    for scope in (*innermost_first, file_syntax.tree) if depth else ():
        nodes = list(own_nodes(scope))
        if any(_shows_array(n, name) for n in nodes):
            return True
        stored = [n for n in nodes if is_name(n, name) and not isinstance(n.ctx, ast.Load)]
        assignments = (n for n in nodes if isinstance(n, ast.Assign))
        values = [n.value for n in assignments if any(is_name(t, name) for t in n.targets)]
        if len(stored) > len(values):
            return None  # also set in another way, such as by ``x, y = ...``
        if values:
            return _same(_is_array(file_syntax, v, depth) for v in values)
        if isinstance(scope, FUNCTION) and any(isinstance(n, ast.arg) and n.arg == name for n in nodes):
            return _same(_is_array(file_syntax, v, depth) for v in _passed(file_syntax, scope, name))
    return None


def _shows_array(node: ast.AST, name: str) -> bool:
    """Return whether ``node`` is ``x.shape`` or ``x[:, 0]``, which lists do not have; ``name`` is ``x``."""
    if isinstance(node, ast.Subscript):
        return is_name(node.value, name) and isinstance(node.slice, ast.Tuple)
    return isinstance(node, ast.Attribute) and node.attr in OF_ARRAYS and is_name(node.value, name)


def _passed(file_syntax: Syntax, function: Definition, name: str) -> list[ast.expr]:
    """Return the arguments that calls of ``function``, or of the jitted function or gradient that the file
    makes of it, pass as the parameter ``name``."""
    made = {
        t.id
        for n in ast.walk(file_syntax.tree)
        if isinstance(n, ast.Assign) and _transformed(n.value, function.name)
        for t in n.targets
        if isinstance(t, ast.Name)
    }
    calls = (
        c
        for c in file_syntax.all_calls()
        if last_name(c.func) in {function.name, *made} or _transformed(c.func, function.name)
    )
    return [value for c in calls for parameter, value in bind(c, function) if parameter == name]


def _transformed(node: ast.expr, name: str) -> bool:
    """Return whether ``node`` is ``jax.jit(f)`` or ``jax.grad(f)``, where ``name`` is ``f``."""
    if not isinstance(node, ast.Call) or not node.args or last_name(node.func) not in TRANSFORMS:
        return False
    return is_name(node.args[0], name) or _transformed(node.args[0], name)


def _is_array(file_syntax: Syntax, node: ast.expr, depth: int) -> bool | None:
    """Return what ``is_array`` returns. At most ``depth`` variables and calls are followed."""
    if isinstance(node, (ast.List, ast.ListComp, ast.Tuple)):
        return False
    if isinstance(node, ast.Name):
        return _holds(file_syntax, node.lineno, node.id, depth - 1)
    if isinstance(node, ast.BinOp):
        sides = [_is_array(file_syntax, side, depth) for side in (node.left, node.right)]
        return True if True in sides else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return _is_array(file_syntax, node.value, depth)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        called = full_name(node.func, imported(file_syntax))
        if called.startswith(MODULES):
            return True if node.func.attr not in OTHERS else None
        if node.func.attr in OF_ARRAYS:
            return True
    return None


def _same(values: Iterable[bool | None]) -> bool | None:
    """Return the value that all of ``values`` have; None if there is none, or if they differ."""
    different = set(values)
    return different.pop() if len(different) == 1 else None
