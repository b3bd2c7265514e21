"""Find where NumPy or Python draws random numbers in the body of a jitted function.

Such a number is drawn once, while the function is traced, and is a constant afterwards. The functions read
source as text. A random generator that the function itself creates from a seed is left out, because its
numbers are meant to be constant.
"""

from __future__ import annotations

import ast

from jaxscope.analysis.rewrap_site import FUNCTION, last_name, syntax

_NO_DRAW = frozenset(
    {"seed", "default_rng", "RandomState", "Generator", "Random", "SeedSequence", "get_state"}
)
_MAKERS = frozenset({"default_rng", "RandomState"})


def find(source: str | None, name: str, line: int) -> tuple[int, str] | None:
    """Return (line, text) of the first place where the function ``name`` draws a random number with NumPy or
    Python: ``(12, "np.random.normal")``.

    None if there is no such place. None also if the function uses a callback into Python: the callback runs
    in each call, and the draw may be in it. ``line`` is the first line of the function, with its decorators.
    """
    found = syntax(source) if source is not None else None
    if found is None:
        return None
    body = [n for n in found.blocks if isinstance(n, FUNCTION) and n.name == name and _begins(n) == line]
    if len(body) != 1:
        return None
    names, makers = _random_modules(found.imports), set[str]()
    for node in found.tree.body:
        value = node.value if isinstance(node, ast.Assign) else None
        if isinstance(node, ast.Assign) and isinstance(value, ast.Call) and last_name(value.func) in _MAKERS:
            makers |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    calls = [n for statement in body[0].body for n in ast.walk(statement) if isinstance(n, ast.Call)]
    if any("callback" in (last_name(c.func) or "") for c in calls):
        return None
    drawn = [
        c
        for c in calls
        if isinstance(c.func, ast.Attribute)
        and c.func.attr not in _NO_DRAW
        and (ast.unparse(c.func.value) in names or ast.unparse(c.func.value) in makers)
    ]
    first = min(drawn, key=lambda c: (c.lineno, c.col_offset), default=None)
    return (first.lineno, ast.unparse(first.func)) if first is not None else None


def _begins(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _random_modules(imports: list[ast.Import | ast.ImportFrom]) -> set[str]:
    """Return the expressions by which a file refers to NumPy's and Python's modules of random numbers:
    ``np.random`` after ``import numpy as np``."""
    found = set[str]()
    for node in imports:
        for a in node.names:
            if isinstance(node, ast.ImportFrom):
                found |= {a.asname or a.name} if (node.module, a.name) == ("numpy", "random") else set()
            elif a.name == "numpy":
                found.add(f"{a.asname or a.name}.random")
            elif a.name == "random" or (a.name == "numpy.random" and a.asname):
                found.add(a.asname or a.name)
            elif a.name == "numpy.random":
                found.add(a.name)
    return found
