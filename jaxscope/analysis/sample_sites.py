"""Find loops of a probabilistic model that make a sample site in each iteration:
``numpyro.sample(f"z_{i}", ...)``. The functions examine the text of a Python file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from jaxscope.analysis.jit_decorators import names_of
from jaxscope.analysis.loop_calls import names_in, names_read, root
from jaxscope.analysis.syntax import COMPREHENSIONS, begins_at, last_name, spans, syntax

LIBRARIES = frozenset({"numpyro"})


class Sites(NamedTuple):
    """A loop that makes a sample site in each iteration.

    Attributes:
      line: the first line of the loop or comprehension.
      over: what the loop goes through, as source: ``range(n)``.
      carried: a variable that an iteration reads from the iteration before; None: there is none.
    """

    line: int
    over: str
    carried: str | None


def loop_of_sites(source: str | None, line: int) -> Sites | None:
    """Return the outermost ``for`` loop or comprehension around ``line`` that makes a sample site in each
    iteration: the name of the site contains a variable of the loop, or a text that the loop has made with one
    (``name = f"z_{i}"``). If a function of the file makes a sample site with a name that it gets, an f-string
    that is passed to it counts as such a name. Return None if there is no such loop."""
    found = syntax(source)
    known = names_of(found.imports, LIBRARIES)
    helpers = {f.name for f in found.functions() if _samples(f, known)}
    loops = [n for n in found.blocks if isinstance(n, (ast.For, *COMPREHENSIONS)) and spans(n, line)]
    for loop in sorted(loops, key=lambda n: (n.lineno, n.col_offset)):
        over = loop if isinstance(loop, ast.For) else loop.generators[0]
        variables = names_in([over.target], ast.Store)
        nodes = list(ast.walk(loop))
        variables |= {name for n in nodes for name in _texts(n, variables)}
        calls = (n for n in nodes if isinstance(n, ast.Call))
        named = (name for c in calls for name in _site_names(c, known, helpers))
        if any(variables & names_read([name]) for name in named):
            carried = _carried(loop) if isinstance(loop, ast.For) else None
            return Sites(begins_at(loop), ast.unparse(over.iter), carried)
    return None


def _texts(node: ast.AST, variables: set[str]) -> set[str]:
    """Return the names to which ``node`` assigns a text with one of ``variables``: ``name = f"z_{i}"``."""
    if not isinstance(node, ast.Assign) or not variables & names_read([node.value]):
        return set()
    parts = list(ast.walk(node.value))
    written = any(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in parts)
    return {t.id for t in node.targets if isinstance(t, ast.Name)} if written else set()


def _site_names(call: ast.Call, known: set[str], helpers: set[str]) -> Iterator[ast.expr]:
    """Yield the expressions in ``call`` that become names of sample sites, or parts of them. ``known`` has
    the names that the file imports from the libraries, ``helpers`` the functions of the file that make a site
    and get its name."""
    given = [*call.args, *(k.value for k in call.keywords)]
    named = [k.value for k in call.keywords if k.arg == "name"] or call.args[:1]
    name = last_name(call.func)
    if name in ("sample", "scope") and root(call.func) in known:
        yield from given if name == "scope" else named
    elif name in helpers:
        yield from (part for part in given if isinstance(part, ast.JoinedStr))


def _samples(function: ast.AST, known: set[str]) -> bool:
    """Return whether ``function`` makes a sample site whose name is a variable: ``numpyro.sample(name, d)``.
    ``known`` has the names that the file imports from the libraries."""
    calls = (n for n in ast.walk(function) if isinstance(n, ast.Call) and n.args)
    return any(
        last_name(c.func) == "sample" and root(c.func) in known and isinstance(c.args[0], ast.Name)
        for c in calls
    )


def _carried(loop: ast.For) -> str | None:
    """Return a variable through which an iteration of ``loop`` needs the iteration before: it is read before
    it is assigned, or a list that is extended and read. Return None if there is none. A sum that is only read
    after the loop does not count."""
    nodes = [n for statement in loop.body for n in ast.walk(statement)]
    assigned = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    extended = {name for n in nodes if (name := _extended(n)) is not None}
    sums = {name for n in nodes if (name := _summed(n)) is not None}
    stored = names_in([loop.target], ast.Store)
    for statement in loop.body:
        own = [n for n in ast.walk(statement) if _summed(n) is not None or _extended(n) is not None]
        targets = {id(part) for n in own for part in _changed(n)}  # what these change is not read
        loads = (n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        read = {n.id for n in loads if id(n) not in targets}
        early = read & ((assigned | extended | sums) - stored)
        if early:
            return min(early)
        if not isinstance(statement, (ast.If, ast.For, ast.While, ast.Try)):
            stored |= names_in([statement], ast.Store) - {_summed(statement)}
    return None


def _summed(node: ast.AST) -> str | None:
    """Return ``x`` for the statements ``x += y`` and ``x = x + y``; None for other nodes."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
        target, left = node.targets[0], node.value.left
        if isinstance(target, ast.Name) and isinstance(left, ast.Name) and target.id == left.id:
            return target.id if isinstance(node.value.op, (ast.Add, ast.Sub)) else None
    return None


def _changed(node: ast.AST) -> list[ast.expr]:
    """Return, in a list, the node of the old ``x`` in the node for which ``_summed`` or ``_extended`` returns
    ``x``. The list is empty for ``x += y``."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
        return [node.value.left]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return [node.func.value]
    return [node.value] if isinstance(node, ast.Subscript) else []


def _extended(node: ast.AST) -> str | None:
    """Return ``x`` for ``x.append(y)`` and for the target ``x[i]``; None for other nodes."""
    inner = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
        inner = node.func.value
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        inner = node.value
    return inner.id if isinstance(inner, ast.Name) else None
