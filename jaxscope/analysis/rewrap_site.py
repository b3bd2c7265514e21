"""The line that makes a function object anew: ``jax.jit(partial(f, scale))`` inside a loop.

Reads the user's source as text. A recording does not say who called jit, so a line is named only where
something that was recorded leads to it: the line where the function's code begins, or a line on the stack of
its call. That some other line of the file wraps a function of that name says nothing.
"""

from __future__ import annotations

import ast
import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

WRAP = frozenset(
    {"jit", "pjit", "filter_jit", "nnx_jit", "pmap", "filter_pmap", "partial", "Partial", "grad", "value_and_grad",
     "filter_grad", "filter_value_and_grad", "vmap", "filter_vmap", "shard_map", "checkpoint", "remat", "transform"}
)  # fmt: skip
MAX_SOURCE = 2_000_000  # characters; a longer file is not parsed

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
MODULE = -1  # instead of the number of a def: outside of all of them
NESTED = 16  # calls inside one another that are looked at for one line


class Maker(NamedTuple):
    """A 1-based line; ``certain``: it was running when the object was called, or the code begins there."""

    line: int
    certain: bool


class Makers:
    """The places in one source that make function objects, found in one walk.

    Attributes of a source that is not Python, or too long, are empty.
    """

    def __init__(self, source: str) -> None:
        self._defined = set[tuple[str, int]]()
        self._functions: list[
            tuple[int, int]
        ] = []  # first and last line of each def; the outer ones come first
        self._calls: dict[tuple[int, str], list[tuple[int, int]]] = {}  # by def and name: first and last line
        tree = parsed(source)
        if tree is not None:
            self._walk(tree)
            for lines in self._calls.values():
                lines.sort()

    def _walk(self, tree: ast.Module) -> None:
        left: deque[tuple[ast.AST, int | None]] = deque(
            [(tree, MODULE)]
        )  # with the def around; None: a lambda
        while left:
            node, around = left.popleft()
            if isinstance(node, ast.Call) and _last(node.func) in WRAP:
                self._add(node, around)
            if isinstance(node, FUNCTION):
                if node.decorator_list:
                    self._defined.add((node.name, node.decorator_list[0].lineno))
                self._functions.append((node.lineno, node.end_lineno or node.lineno))
                left += [(d, around) for d in node.decorator_list]  # they belong to the function around
                around = len(self._functions) - 1
                left += [(child, around) for child in [node.args, *node.body]]
                continue
            if isinstance(node, ast.Lambda):
                around = None
            left += [(child, around) for child in ast.iter_child_nodes(node)]

    def _add(self, call: ast.Call, around: int | None) -> None:
        for held in _wrapped(call):
            if isinstance(held, ast.Lambda):
                self._defined.add(("<lambda>", held.lineno))
            name = _last(held)
            if name is not None and around is not None:
                span = (call.lineno, call.end_lineno or call.lineno)
                self._calls.setdefault((around, name), []).append(span)

    def where_defined(self, name: str, begins: int) -> Maker | None:
        """The definition of ``name`` whose code begins at line ``begins``, where that line wraps it, too.

        A decorated def, or a lambda inside a call of jit or the like: each time the definition runs, both are
        made.
        """
        return Maker(begins, True) if (name, begins) in self._defined else None

    def where_called(self, name: str, site: int) -> Maker | None:
        """The expression that wraps ``name`` in the function that line ``site``, which made the call, belongs
        to.

        Certain where it is part of the call itself, as in ``jax.jit(partial(name, 2))(x)``; likely where it
        is the only one in that function.
        """
        inside = [n for n, (first, last) in enumerate(self._functions) if first <= site <= last]
        calls = self._calls.get((inside[-1] if inside else MODULE, name), [])
        at = bisect_right(calls, (site, sys.maxsize))
        for first, last in reversed(calls[max(0, at - NESTED) : at]):
            if site <= last:
                return Maker(first, True)
        return Maker(calls[0][0], False) if calls and calls[0][0] == calls[-1][0] else None


def parsed(source: str) -> ast.Module | None:
    """``source`` as a tree; None where it is no Python, or too much of it."""
    if len(source) > MAX_SOURCE:
        return None
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


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
