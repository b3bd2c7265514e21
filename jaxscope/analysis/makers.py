"""The line that makes a function object anew: ``jax.jit(partial(f, scale))`` inside a loop.

Reads the user's source as text. A recording does not say who called jit, so a line is named only where something that
was recorded leads to it: the line where the function's code begins, or a line on the stack of its call. That some other
line of the file wraps a function of that name says nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

WRAP = frozenset(
    {"jit", "pjit", "filter_jit", "nnx_jit", "pmap", "filter_pmap", "partial", "Partial", "grad", "value_and_grad",
     "filter_grad", "filter_value_and_grad", "vmap", "filter_vmap", "shard_map", "checkpoint", "remat", "transform"}
)  # fmt: skip
MAX_SOURCE = 2_000_000  # characters; a longer file is not parsed

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Maker(NamedTuple):
    """A 1-based line; ``certain``: it was running when the object was called, or the code begins there."""

    line: int
    certain: bool


def where_defined(source: str, name: str, begins: int) -> Maker | None:
    """The definition of ``name`` whose code begins at line ``begins``, where that line wraps it, too.

    A decorated def, or a lambda inside a call of jit or the like: each time the definition runs, both are made.
    """
    tree = _parsed(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name == name and node.decorator_list and node.decorator_list[0].lineno == begins:
                return Maker(begins, True)
        elif name == "<lambda>" and isinstance(node, ast.Call) and _last(node.func) in WRAP:
            inside = [held.lineno for held in _wrapped(node) if isinstance(held, ast.Lambda)]
            if begins in inside:
                return Maker(begins, True)
    return None


def where_called(source: str, name: str, site: int) -> Maker | None:
    """The expression that wraps ``name`` in the function that line ``site``, which made the call, stands in.

    Certain where it is part of the call itself, as in ``jax.jit(partial(name, 2))(x)``; likely where it is the only
    one in that function.
    """
    tree = _parsed(source)
    if tree is None:
        return None
    lines = set[int]()
    for call in _calls_around(tree, site):
        if _last(call.func) in WRAP and any(_last(held) == name for held in _wrapped(call)):
            if call.lineno <= site <= (call.end_lineno or call.lineno):
                return Maker(call.lineno, True)
            lines.add(call.lineno)
    return Maker(lines.pop(), False) if len(lines) == 1 else None


def _parsed(source: str) -> ast.Module | None:
    if len(source) > MAX_SOURCE:
        return None
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _calls_around(tree: ast.Module, site: int) -> Iterator[ast.Call]:
    """The calls in the innermost function that has line ``site``, else in the module; not those in other functions."""
    around: ast.AST = tree
    for node in ast.walk(tree):  # the outer ones come first
        inside = isinstance(node, Function) and node.lineno <= site <= (node.end_lineno or node.lineno)
        if inside and not isinstance(node, ast.Lambda):
            around = node
    left = list(ast.iter_child_nodes(around))
    while left:
        node = left.pop()
        if isinstance(node, ast.Call):
            yield node
        if not isinstance(node, Function):
            left += ast.iter_child_nodes(node)
        else:  # decorators and defaults belong to the function around
            left += getattr(node, "decorator_list", [])


def _wrapped(call: ast.Call) -> Iterator[ast.expr]:
    """What a call of ``jit`` or the like is given: its arguments, and what those wrap in turn."""
    for given in [*call.args, *(k.value for k in call.keywords)]:
        if isinstance(given, ast.Call):
            if _last(given.func) in WRAP:
                yield from _wrapped(given)
        else:
            yield given


def _last(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
