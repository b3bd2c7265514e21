"""The line that makes a function object anew: ``jax.jit(partial(f, scale))`` inside a loop.

Reads the user's source as text; the line is likely, not certain: a recording does not say who called jit.
"""

from __future__ import annotations

import ast

WRAP = frozenset(
    {"jit", "pjit", "filter_jit", "nnx_jit", "pmap", "filter_pmap", "partial", "Partial", "grad", "value_and_grad",
     "filter_grad", "filter_value_and_grad", "vmap", "filter_vmap", "shard_map", "checkpoint", "remat", "transform"}
)  # fmt: skip
MAX_SOURCE = 2_000_000  # characters; a longer file is not parsed


def maker_line(source: str, name: str, site: int) -> int | None:
    """The 1-based line of the expression that wraps ``name`` (``jit(name)``, ``partial(name, ...)``).

    Args:
      source: text of the file in which the call stands.
      name: the function's own name.
      site: line of the call. Of several candidates those in the same function come first, then the last
        one before the call.
    """
    if len(source) > MAX_SOURCE:
        return None
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: list[tuple[bool, bool, int, int]] = []
    for owner, call in _wrapping_calls(tree, name):
        start, end = (owner.lineno, owner.end_lineno or owner.lineno) if owner is not None else (0, 0)
        together = start <= site <= end
        found.append(
            (together, call.lineno <= site, call.lineno if call.lineno <= site else -call.lineno, call.lineno)
        )
    return max(found)[3] if found else None


def _wrapping_calls(
    tree: ast.AST, name: str
) -> list[tuple[ast.FunctionDef | ast.AsyncFunctionDef | None, ast.Call]]:
    """(the function around it, the outermost wrapping call) for every call of WRAP that is given ``name``."""
    found: list[tuple[ast.FunctionDef | ast.AsyncFunctionDef | None, ast.Call]] = []
    stack: list[tuple[ast.AST, ast.FunctionDef | ast.AsyncFunctionDef | None]] = [(tree, None)]
    while stack:
        node, owner = stack.pop()
        if isinstance(node, ast.Call) and _last(node.func) in WRAP and _mentions(node, name):
            found.append((owner, node))
            continue
        inner = node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else owner
        stack += [(child, inner) for child in ast.iter_child_nodes(node)]
    return found


def _last(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _mentions(call: ast.Call, name: str) -> bool:
    given = [*call.args, *(k.value for k in call.keywords)]
    return any(_last(node) == name for arg in given for node in ast.walk(arg))
