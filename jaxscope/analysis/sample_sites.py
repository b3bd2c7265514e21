"""Find loops of a probabilistic model that make a sample site in each iteration:
``numpyro.sample(f"z_{i}", ...)``. The functions examine the text of a Python file."""

from __future__ import annotations

import ast
from typing import NamedTuple

from jaxscope.analysis.jit_decorators import names_of
from jaxscope.analysis.loop_calls import root
from jaxscope.analysis.rewrap_site import begins_at, last_name, spans, syntax

LIBRARIES = frozenset({"numpyro"})


class Sites(NamedTuple):
    """A loop that makes a sample site in each iteration.

    Attributes:
      line: the first line of the loop.
      over: what the loop goes through, as source: ``range(n)``.
      carried: a variable that an iteration reads from the iteration before; None: there is none.
    """

    line: int
    over: str
    carried: str | None


def loop_of_sites(source: str | None, line: int) -> Sites | None:
    """Return the outermost ``for`` loop around ``line`` that makes a sample site in each iteration: the name
    of the site contains a variable of the loop. Return None if there is no such loop."""
    found = syntax(source)
    if found is None:
        return None
    known = names_of(found.imports, LIBRARIES)
    loops = sorted(
        (n for n in found.blocks if isinstance(n, ast.For) and spans(n, line)), key=lambda n: n.lineno
    )
    for loop in loops:
        variables = _names(loop.target, ast.Store)
        calls = (n for n in ast.walk(loop) if isinstance(n, ast.Call) and n.args)
        named = (c.args[0] for c in calls if last_name(c.func) == "sample" and root(c.func) in known)
        if any(variables & _names(name, ast.Load) for name in named):
            return Sites(begins_at(loop), ast.unparse(loop.iter), _carried(loop))
    return None


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


def _carried(loop: ast.For) -> str | None:
    """Return a variable that ``loop`` reads in an iteration before it assigns to it, so that an iteration
    needs the one before; None if there is none."""
    assigned = {name for statement in loop.body for name in _names(statement, ast.Store)}
    stored = _names(loop.target, ast.Store)
    for statement in loop.body:
        early = (_names(statement, ast.Load) & assigned) - stored
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr)) and early:
            return min(early)
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            return statement.target.id
        stored |= _names(statement, ast.Store)
    return None
