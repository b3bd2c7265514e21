"""Find indexing with masks (``x[x > 0]``, ``x.at[mask].set(0)``) in the user's source, and write the same
computation with ``jnp.where``. How many elements a mask selects is not known while a function is traced.
Outside jit, JAX compiles the operations that follow again for each number of elements."""

from __future__ import annotations

import ast
import copy
from typing import NamedTuple

from jaxscope.analysis.jit_decorators import names_of
from jaxscope.analysis.loop_calls import names_in, root
from jaxscope.analysis.syntax import Syntax, assigned, calls_at, last_name, syntax

# Functions whose result is a mask
_MASKS = frozenset(
    {"logical_and", "logical_or", "logical_not", "logical_xor", "isnan", "isinf", "isfinite", "isclose"}
)
_REDUCES = frozenset({"sum", "mean", "prod", "any", "all", "std", "var"})  # they take ``where=``
# Functions that compute each element by itself, so that they may run before the selection
_ELEMENTWISE = frozenset(
    {"abs", "sin", "cos", "tan", "tanh", "exp", "log", "log1p", "expm1", "sqrt", "square", "sign", "floor"}
    | {"ceil", "round", "maximum", "minimum", "clip", "where", "power", "float32", "float64", "int32"}
)
# Methods of ``x.at[mask]`` -> the new value, from the old one ``{x}`` and the argument ``{v}``
_UPDATES = {
    "set": "{v}",
    "add": "{x} + {v}",
    "subtract": "{x} - {v}",
    "multiply": "{x} * {v}",
    "mul": "{x} * {v}",
    "divide": "{x} / {v}",
    "max": "{jnp}.maximum({x}, {v})",
    "min": "{jnp}.minimum({x}, {v})",
}


class Replacement(NamedTuple):
    """Code that can replace a selection of elements with a mask, and computes with all elements.

    Attributes:
      text: the expression, as source: ``jnp.where(mask, -x, x)``.
      mask: the mask, as source.
      array: the array that is updated, as source; None: nothing is updated.
      new: whether ``text`` has the placeholder ``new`` for values that the source does not show for all
        elements; they must have the shape of ``array``.
    """

    text: str
    mask: str
    array: str | None = None
    new: bool = False


def index_with_mask(source: str | None, function: str) -> tuple[int, str] | None:
    """Return a place in the function ``function`` that indexes an array with a condition, as (line, source of
    the index): ``x > 0`` in ``x.at[x > 0].set(0)``. Return None if there is none, or the source is unknown.
    Conditions on variables that NumPy made are left out. ``function`` is a qualified name; only its last part
    is compared."""
    found = syntax(source)
    name = function.rpartition(".")[2]
    for block in found.functions():
        if block.name == name:
            for n in ast.walk(block):
                if isinstance(n, ast.Subscript) and _is_condition(n.slice) and not _of_numpy(found, n.slice):
                    return n.lineno, ast.unparse(n.slice)
    return None


def without_selection(source: str | None, line: int) -> Replacement | None:
    """Return what to write instead of a call on ``line`` that selects elements with a mask: an update
    (``x.at[mask].set(v)``), or a sum, a mean or the like (``jnp.mean(x[mask])``). Return None if ``line`` has
    no such call, or the source is unknown."""
    found = syntax(source)
    jnp = _name_of_jax_numpy(found)
    for call in calls_at(source, line):
        whole = _update(found, call, jnp) or _reduction(found, call)
        if whole is not None:
            return whole
    return None


def _update(file_syntax: Syntax, call: ast.Call, jnp: str) -> Replacement | None:
    """Return what to write instead of ``call``, if it is ``x.at[mask].set(v)`` or another update."""
    match call:
        case ast.Call(
            func=ast.Attribute(
                value=ast.Subscript(value=ast.Attribute(value=array, attr="at"), slice=mask), attr=method
            ),
            args=[value],
        ) if method in _UPDATES and _is_mask(file_syntax, mask):
            pass
        case _:
            return None
    x, condition = ast.unparse(array), ast.unparse(mask)
    all_values = _of_all_elements(file_syntax, value, condition)
    new = _UPDATES[method].format(x=x, v=_operand(all_values, method) if all_values else "new", jnp=jnp)
    return Replacement(f"{jnp}.where({condition}, {new}, {x})", condition, x, all_values is None)


def _operand(value: ast.expr, method: str) -> str:
    """Return ``value`` as source, in parentheses if the update ``method`` needs them: ``x + (a + b)``."""
    text = ast.unparse(value)
    in_parentheses = method not in ("set", "max", "min") and isinstance(value, (ast.BinOp, ast.IfExp))
    return f"({text})" if in_parentheses else text


def _reduction(file_syntax: Syntax, call: ast.Call) -> Replacement | None:
    """Return what to write instead of ``call``, if it is ``jnp.mean(x[mask])``, ``x[mask].mean(axis=0)`` or
    the like."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Subscript(value=array, slice=mask), attr=name), args=axes):
            before = f"{ast.unparse(array)}.{name}("
        case ast.Call(func=function, args=[ast.Subscript(value=array, slice=mask), *axes]):
            name, before = last_name(function) or "", f"{ast.unparse(function)}({ast.unparse(array)}, "
        case _:
            return None
    options = {k.arg: ast.unparse(k.value) for k in call.keywords}
    axis = ast.unparse(axes[0]) if axes else options.pop("axis", None)
    if name not in _REDUCES or options or len(axes) > 1 or axis not in (None, "0"):
        return None
    if not _is_mask(file_syntax, mask):
        return None
    condition = ast.unparse(mask)
    if axis is None:
        return Replacement(f"{before}where={condition})", condition)
    # Along the first axis alone, the array has more dimensions than the mask.
    selected = f"({condition})[:, None]" if not isinstance(mask, ast.Name) else f"{condition}[:, None]"
    return Replacement(f"{before}axis=0, where={selected})", condition)


def _of_all_elements(file_syntax: Syntax, value: ast.expr, mask: str) -> ast.expr | None:
    """Rewrite ``value``, an expression for the elements that ``mask`` selects, for all elements: ``-x`` for
    ``-x[mask]``. Return None if this cannot be told from the source. ``mask`` is source text."""
    unselected = _Unselected(mask)
    whole: ast.expr = unselected.visit(copy.deepcopy(value))
    for n in ast.walk(whole):
        if isinstance(n, ast.Subscript):
            return None
        if isinstance(n, ast.Call) and last_name(n.func) not in _ELEMENTWISE:
            return None
        if isinstance(n, ast.Name) and n not in unselected.arrays and _is_selected(file_syntax, n.id):
            return None
    return whole


class _Unselected(ast.NodeTransformer):
    """Replaces ``x[mask]`` by ``x`` in a syntax tree, and collects the nodes of ``x`` in ``arrays``."""

    def __init__(self, mask: str) -> None:
        self.mask = mask
        self.arrays: list[ast.expr] = []

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if ast.unparse(node.slice) != self.mask:
            return node
        self.arrays.append(node.value)
        return node.value


def _is_selected(file_syntax: Syntax, name: str) -> bool:
    """Return whether the variable ``name`` may have only the elements that a mask selects: the file assigns
    an expression with an index to ``name``."""
    return any(
        any(isinstance(n, ast.Subscript) for n in ast.walk(v)) for v in assigned(file_syntax.tree, name)
    )


def _is_mask(file_syntax: Syntax, index: ast.expr) -> bool:
    """Return whether ``index`` is a condition, a call such as ``jnp.isnan(x)``, or a variable to which the
    file assigns only such expressions."""
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert):
        return _is_mask(file_syntax, index.operand)
    if not isinstance(index, ast.Name):
        return _makes_mask(index)
    values = assigned(file_syntax.tree, index.id)
    return bool(values) and all(_makes_mask(v) for v in values)


def _makes_mask(node: ast.expr) -> bool:
    """Return whether ``node`` is a condition, or a call of a function such as ``isnan`` that returns a
    mask."""
    return _is_condition(node) or (isinstance(node, ast.Call) and last_name(node.func) in _MASKS)


def _is_condition(node: ast.expr) -> bool:
    """Return whether ``node`` is a comparison, or several of them with ``&``, ``|`` or ``~``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        return _is_condition(node.left) and _is_condition(node.right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return _is_condition(node.operand)
    return isinstance(node, ast.Compare) and all(
        isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)) for op in node.ops
    )


def _of_numpy(file_syntax: Syntax, condition: ast.expr) -> bool:
    """Return whether a variable in ``condition`` gets its value from a call of NumPy in this file."""
    names = names_in([condition])
    modules = names_of(file_syntax.imports, {"numpy"})
    return any(
        isinstance(value, ast.Call) and root(value.func) in modules
        for name in names
        for value in assigned(file_syntax.tree, name)
    )


def _name_of_jax_numpy(file_syntax: Syntax) -> str:
    """Return the name that ``import jax.numpy as ...`` defines in the file; ``jnp`` if there is no such
    import."""
    for n in file_syntax.imports:
        for a in n.names if isinstance(n, ast.Import) else ():
            if a.name == "jax.numpy" and a.asname:
                return a.asname
    return "jnp"
