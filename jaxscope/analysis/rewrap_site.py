"""Find the line that creates a function object again: ``jax.jit(partial(f, scale))`` inside a loop.

JAX compiles a function again for each new function object. The recording of a run does not contain the call
of jit. So a line is returned only if a recorded line leads to it: the first line of the function's code, or a
line on the stack of its call. Lines are counted from 1.
"""

from __future__ import annotations

import ast
import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from jaxscope.analysis.source_lines import NESTED
from jaxscope.analysis.syntax import FUNCTION, last_name, parsed

WRAP = frozenset(
    {"jit", "pjit", "filter_jit", "nnx_jit", "pmap", "filter_pmap", "partial", "Partial", "grad",
        "value_and_grad",
     "filter_grad", "filter_value_and_grad", "vmap", "filter_vmap", "shard_map", "checkpoint", "remat",
     "transform"}
)  # fmt: skip
MODULE = -1  # stands for the code outside all defs, where the index of a def is expected


class Maker(NamedTuple):
    """A line of the user's source that creates a function object again, so that JAX compiles the function
    again.

    Attributes:
      line: the number of the line, counted from 1.
      certain: True if the line was running when the function was called, or if it is the first line of the
        function's code. Otherwise the line probably creates the object.
    """

    line: int
    certain: bool


class Makers:
    """The lines of one source file that create function objects, such as ``jax.jit(f)``. No lines are found
    if the source is not Python, or too long."""

    def __init__(self, source: str) -> None:
        self._defined = set[tuple[str, int]]()
        # (first line, last line) of each def, the outer ones first.
        self._functions: list[tuple[int, int]] = []
        # (first line, last line) of each call that wraps a function, by (index of the def, wrapped name).
        self._calls: dict[tuple[int, str], list[tuple[int, int]]] = {}
        tree = parsed(source)
        if tree is not None:
            self._walk(tree)
            for lines in self._calls.values():
                lines.sort()

    def _walk(self, tree: ast.Module) -> None:
        """Fill the tables of this object from the syntax tree of the file."""
        # (node, index of the def around it); None: it is in a lambda.
        left: deque[tuple[ast.AST, int | None]] = deque([(tree, MODULE)])
        while left:
            node, around = left.popleft()
            if isinstance(node, ast.Call) and last_name(node.func) in WRAP:
                self._add(node, around)
            if isinstance(node, FUNCTION):
                if node.decorator_list:
                    self._defined.add((node.name, node.decorator_list[0].lineno))
                self._functions.append((node.lineno, node.end_lineno or node.lineno))
                left += [(d, around) for d in node.decorator_list]  # they run in the outer function
                around = len(self._functions) - 1
                left += [(child, around) for child in [node.args, *node.body]]
                continue
            if isinstance(node, ast.Lambda):
                around = None
            left += [(child, around) for child in ast.iter_child_nodes(node)]

    def _add(self, call: ast.Call, around: int | None) -> None:
        """Add what ``call``, a call of jit or a similar function, wraps. ``around`` is the index of the def
        around the call."""
        for wrapped in _wrapped(call):
            if isinstance(wrapped, ast.Lambda):
                self._defined.add(("<lambda>", wrapped.lineno))
            name = last_name(wrapped)
            if name is not None and around is not None:
                span = (call.lineno, call.end_lineno or call.lineno)
                self._calls.setdefault((around, name), []).append(span)

    def where_defined(self, name: str, begins: int) -> Maker | None:
        """Return the line ``begins`` if it is the first line of a ``def`` with a decorator, or has a lambda
        that is passed to jit or a similar function; else None.

        Args:
          name: the name of the function, ``<lambda>`` for a lambda.
          begins: the first line of the function's code.
        """
        return Maker(begins, True) if (name, begins) in self._defined else None

    def where_called(self, name: str, site: int) -> Maker | None:
        """Return the line that wraps the function ``name`` by jit or a similar function, in the same Python
        function as the line ``site``, which calls the wrapped function.

        The line is certain if the wrapping expression is part of the call, as in
        ``jax.jit(partial(name, 2))(x)``. Otherwise the only line that wraps the function is returned as
        likely; None if there is none, or several.
        """
        inside = [n for n, (first, last) in enumerate(self._functions) if first <= site <= last]
        calls = self._calls.get((inside[-1] if inside else MODULE, name), [])
        at = bisect_right(calls, (site, sys.maxsize))
        for first, last in reversed(calls[max(0, at - NESTED) : at]):
            if site <= last:
                return Maker(first, True)
        return Maker(calls[0][0], False) if calls and calls[0][0] == calls[-1][0] else None


def _wrapped(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the expressions that a call of ``jit`` or a similar function gets as arguments: ``f`` and ``2``
    for ``jit(partial(f, 2))``. A nested call of such a function is replaced by its arguments; all other calls
    are left out."""
    for argument in [*call.args, *(k.value for k in call.keywords)]:
        if isinstance(argument, ast.Call):
            if last_name(argument.func) in WRAP:
                yield from _wrapped(argument)
        else:
            yield argument
