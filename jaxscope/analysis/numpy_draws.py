"""Find random numbers that NumPy or Python draws in the body of a jitted function: once, while it is traced.

Reads source as text. A generator that the function itself makes of a seed is meant to be constant and left
out.
"""

from __future__ import annotations

import ast

from jaxscope.analysis.rewrap_site import FUNCTION, last_name, syntax

_NO_DRAW = frozenset(
    {"seed", "default_rng", "RandomState", "Generator", "Random", "SeedSequence", "get_state"}
)
_MAKERS = frozenset({"default_rng", "RandomState"})


def find(source: str | None, name: str, line: int) -> tuple[int, str] | None:
    """Return the line and the text of the first such draw in the function ``name`` that begins at ``line``.

    None if there is no draw, or if the function calls back into Python: the callback may then draw in each
    call.
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
    """Return the texts that stand for NumPy's and Python's modules of random numbers: ``np.random``."""
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
