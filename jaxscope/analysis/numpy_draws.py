"""Find where NumPy or Python draws random numbers in the body of a jitted function.

Such a number is drawn once, while the function is traced, and is a constant afterwards. The functions read
source as text. Draws from a random generator that the function itself creates from a seed are ignored,
because their numbers are meant to be constant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Set
from typing import NamedTuple

from jaxscope.analysis.line_names import full_name, full_names
from jaxscope.analysis.syntax import FUNCTION, Definition, begins_at, last_name, syntax

_NO_DRAW = frozenset(
    {"seed", "default_rng", "RandomState", "Generator", "Random", "SeedSequence", "get_state"}
)
_MAKERS = frozenset({"default_rng", "RandomState"})
_MODULES = frozenset({"numpy.random", "random"})
MOST = 30  # functions that are looked at


class Draws(NamedTuple):
    """The draws of random numbers with NumPy or Python in a jitted function.

    Attributes:
      line: the line of the first draw. Draws in the jitted function come before those in functions that it
        uses.
      call: the function that draws on this line: ``np.random.normal``.
      function: the Python function with this line: the jitted function, or one that it uses.
      others: the other lines that draw, in order.
    """

    line: int
    call: str
    function: str
    others: tuple[int, ...] = ()


def find(source: str | None, name: str, line: int) -> Draws | None:
    """Return where the function ``name``, and the functions of the same module that it uses, draw random
    numbers with NumPy or Python.

    Return None if they draw none, if the file has no such function, or if these functions use a callback into
    Python.

    Args:
      source: the text of the file; None: unknown.
      name: the name of the jitted function.
      line: the first line of the function, with its decorators.
    """
    found = syntax(source)
    body = [n for n in found.functions() if n.name == name and begins_at(n) == line]
    if len(body) != 1:
        return None
    bodies = _with_called(found.tree, body[0])
    names = full_names(found.imports)
    makers = _makers(found.tree.body) | {m for m in _makers(ast.walk(found.tree)) if "." in m}
    nodes = [(f, n) for f in bodies for statement in f.body for n in ast.walk(statement)]
    calls = [(f, n) for f, n in nodes if isinstance(n, ast.Call)]
    if any("callback" in (last_name(c.func) or "") for _, c in calls):
        return None  # a callback runs in each call, and the draw may be in it
    drawn = [
        (bodies.index(function), c.lineno, c.col_offset, ast.unparse(c.func))
        for function, c in calls
        if _draws(c, names, makers)
    ]
    at, line, _, text = min(drawn, default=(0, 0, 0, ""))
    others = sorted({number for _, number, *_ in drawn} - {line})
    return Draws(line, text, bodies[at].name, tuple(others)) if drawn else None


def on_lines(source: str | None, first: int, last: int) -> tuple[int, str] | None:
    """Return the first call between the lines ``first`` and ``last`` that draws random numbers with NumPy or
    Python, as (line, called function). None if there is none. A generator made on these lines does not
    count."""
    found = syntax(source)
    outside = (n for n in ast.walk(found.tree) if not first <= getattr(n, "lineno", 0) <= last)
    names, makers = full_names(found.imports), _makers(outside)
    inside = (c for c in found.all_calls() if first <= c.lineno <= last and _draws(c, names, makers))
    return min(((c.lineno, ast.unparse(c.func)) for c in inside), default=None)


def _makers(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the variables and attributes (``self.rng``) to which ``nodes`` assign a random generator of
    NumPy."""
    return {
        ast.unparse(target)
        for n in nodes
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)
        for target in n.targets
        if last_name(n.value.func) in _MAKERS
    }


def _draws(call: ast.Call, names: dict[str, str], makers: Set[str]) -> bool:
    """Return whether ``call`` draws random numbers with NumPy or Python.

    Args:
      names: what the imports of the file call each name, as from ``full_names``.
      makers: the variables and attributes with a random generator.
    """
    called = call.func
    if not isinstance(called, ast.Attribute) or called.attr in _NO_DRAW:
        return False
    return full_name(called.value, names) in _MODULES or ast.unparse(called.value) in makers


def _with_called(tree: ast.Module, function: Definition) -> list[Definition]:
    """Return ``function`` and the functions of the module that may run while JAX traces it: those that it
    names in its body, directly or through other functions. The search stops when it has found ``MOST``
    (30)."""
    known = {n.name: n for n in tree.body if isinstance(n, FUNCTION)}
    bodies, left = [function], [function]
    while left and len(bodies) < MOST:
        for node in (n for statement in left.pop().body for n in ast.walk(statement)):
            named = known.get(node.id) if isinstance(node, ast.Name) else None
            if named is not None and named not in bodies:
                bodies.append(named)
                left.append(named)
    return bodies
