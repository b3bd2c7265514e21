"""Find out from the user's source whether a variable that a call gets as an argument is read after the call.

Such a variable must not be donated: the call would delete its arrays. For each call, only the Python
function that contains it is examined. If another variable has the same arrays, reads of that variable are not
noticed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from jaxscope.analysis import loop_calls
from jaxscope.analysis.loop_calls import contains, names_set, root
from jaxscope.analysis.syntax import COMPREHENSIONS, FUNCTION, SCOPES, Syntax, syntax

READ, REPLACED, LEFT, BROKEN = "read", "replaced", "left", "broken"  # what a statement does with a variable
_BLOCKS = (ast.If, ast.While, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.Try)
_CHAIN = (ast.Name, ast.Attribute, ast.Subscript)
# Attributes that a deleted array still has.
_METADATA = frozenset(
    {"shape", "dtype", "ndim", "size", "nbytes", "itemsize", "sharding", "aval", "weak_type"}
)
_Path = list[tuple[ast.AST, Sequence[ast.stmt], int]]


def read_after(
    source: str | None, line: int, column: int | None, name: str, signature: str | None, parameter: str
) -> bool:
    """Return whether the source reads a variable after a call that gets this variable as an argument: True
    for ``out = f(w)`` with a second ``f(w)`` on a later line. All calls of the same function in the file are
    examined; one such read after any of them is enough. Return False if the source shows no read or is
    unknown.

    Args:
      source: the text of the file; None: unknown.
      line: the line on which the call begins.
      column: the position in bytes where the call begins on the line; None: unknown.
      name: the name of the called function.
      signature: the signature of the called function, as text; None: unknown.
      parameter: the parameter of the called function that gets the variable.
    """
    found = syntax(source)
    call = loop_calls.call_at(source, line, column, name)
    if call is None:
        return False
    scope, called = _scope(found, call), ast.unparse(call.func)
    for other in (c for c in found.all_calls() if ast.unparse(c.func) == called):
        inside = _scope(found, other)
        if inside is not scope and (root(call.func) or "") in _own_names(scope) | _own_names(inside):
            continue  # another function of that name
        if _read_after(inside, other, loop_calls.argument(other, signature, parameter)):
            return True
    return False


def _read_after(scope: ast.AST, call: ast.Call, passed: ast.expr | None) -> bool:
    """Return whether a variable is read after ``call``, which gets the variable as an argument. Return False
    if the statement of the call replaces the variable (``w = f(w)``) or is a ``return``.

    Args:
      scope: the function or module that contains the call.
      passed: the argument. If it is None or no variable, attribute or item of one, the result is False.
    """
    if not isinstance(passed, _CHAIN) or root(passed) is None or isinstance(scope, ast.Lambda):
        return False
    path = _path(scope, call)
    _, body, at = path[-1]
    if any(isinstance(n, COMPREHENSIONS) and contains(n, call) for n in ast.walk(body[at])):
        return False
    variable = _steps(passed)
    if _replaces(body[at], variable) or isinstance(body[at], (ast.Return, ast.Raise)):
        return False
    if any(_reads_freely(n, variable) for n in _own_nodes(scope) if isinstance(n, SCOPES)):
        return True
    if (became := _inside(body[at], variable)) in (READ, REPLACED):
        return became == READ
    if isinstance(body[at], ast.While):
        return True  # the call is in the test of the loop, which is evaluated again
    for owner, body, at in reversed(path):
        became = _after(body[at + 1 :], variable)
        if became == LEFT and isinstance(owner, ast.Try):
            became = _after(
                [*(s for s in owner.orelse if body[0] is owner.body[0]), *owner.finalbody], variable
            )
        if (
            became == LEFT
            and isinstance(owner, (ast.For, ast.AsyncFor, ast.While))
            and body[0] is owner.body[0]
        ):
            # The next iteration comes to the call again, which reads the variable.
            if not _replaces(owner, variable) and _after(owner.body[:at], variable) in (LEFT, READ):
                return True
            became = LEFT
        if became in (READ, REPLACED):
            return became == READ
    return False


def _scope(file_syntax: Syntax, call: ast.Call) -> ast.AST:
    """Return the innermost function with ``call`` in its body; the module if there is none."""
    around = [
        n for n in file_syntax.blocks if isinstance(n, SCOPES) and any(contains(s, call) for s in _body(n))
    ]
    return max(around, key=lambda n: (n.lineno, n.col_offset), default=file_syntax.tree)


def _body(node: ast.AST) -> Sequence[ast.AST]:
    """Return the statements of a function, class or module, or the expression of a lambda in a list."""
    body = getattr(node, "body", [])
    return body if isinstance(body, list) else [body]


def _own_names(scope: ast.AST) -> set[str]:
    """Return the parameters of a function and the names that its body sets, including those of functions in
    it. Return an empty set for a module."""
    if isinstance(scope, ast.Module):
        return set()
    return names_set(_body(scope)) | {a.arg for a in ast.walk(scope) if isinstance(a, ast.arg)}


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the syntax nodes in the body of a function or module. Functions and classes in it are yielded,
    the nodes inside them are not."""
    waiting = list(_body(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*SCOPES, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))


def _path(scope: ast.AST, call: ast.Call) -> _Path:
    """Return (owner, statements, index) for each list of statements around ``call``, the outermost first. The
    owner is the statement or function that has the list. The statement at the index contains the call."""
    path: _Path = []
    owner: ast.AST | None = scope
    while owner is not None:
        here: ast.AST = owner
        owner = None
        for _, value in ast.iter_fields(here):
            statements = [s for s in value if isinstance(s, ast.stmt)] if isinstance(value, list) else []
            at = next((k for k, s in enumerate(statements) if contains(s, call)), None)
            if at is not None:
                path.append((here, statements, at))
                owner = statements[at]
        if owner is None and isinstance(here, ast.Try):
            owner = next((h for h in here.handlers if contains(h, call)), None)
    return path


def _after(statements: Sequence[ast.stmt], variable: list[str]) -> str:
    """Return what ``statements`` do first with a variable such as ``["state", ".params"]``: ``READ``,
    ``REPLACED`` (they set it, or leave the function), ``BROKEN`` (``break`` or ``continue`` comes first) or
    ``LEFT`` (nothing)."""
    for statement in statements:
        became = _does(statement, variable)
        if became != LEFT:
            return became
    return LEFT


def _does(s: ast.stmt, variable: list[str]) -> str:
    """Return what the statement ``s`` does first with a variable such as ``["state", ".params"]``: one of the
    words that ``_after`` returns."""
    if isinstance(s, (*FUNCTION, ast.ClassDef)):
        return LEFT  # _read_after examines nested functions
    if isinstance(s, _BLOCKS):
        heads = [n for n in ast.iter_child_nodes(s) if not isinstance(n, (ast.stmt, ast.ExceptHandler))]
        return READ if any(_reads(n, variable) for n in heads) else _inside(s, variable)
    if _reads(s, variable):
        return READ
    if _replaces(s, variable) or isinstance(s, (ast.Return, ast.Raise)):
        return REPLACED
    return BROKEN if isinstance(s, (ast.Break, ast.Continue)) else LEFT


def _inside(s: ast.stmt, variable: list[str]) -> str:
    """Return what the statements inside ``s`` (a loop, an ``if``) do with a variable such as
    ``["state", ".params"]``: ``READ`` (some way through ``s`` reads it), ``REPLACED`` (a ``with``, or both
    branches of an ``if``, replace it, or end the iteration or the function) or ``LEFT`` (all else)."""
    if not isinstance(s, _BLOCKS):
        return LEFT
    parts = [part for field in ("body", "orelse", "finalbody") if (part := getattr(s, field, None))]
    branches = [_after(part, variable) for part in parts]
    handlers = [_after(h.body, variable) for h in getattr(s, "handlers", ())]
    if READ in (*branches, *handlers):
        return READ
    certain = isinstance(s, (ast.With, ast.AsyncWith)) or (isinstance(s, ast.If) and len(branches) == 2)
    return REPLACED if certain and all(b in (REPLACED, BROKEN) for b in branches) else LEFT


def _replaces(s: ast.AST, variable: list[str]) -> bool:
    """Return whether the statement ``s`` sets or deletes a variable such as ``["state", ".params"]``, or an
    object that contains it (``state``). If ``s`` is a loop or an ``if``, what is inside does not count."""
    if isinstance(s, (ast.For, ast.AsyncFor)):
        targets = list(ast.walk(s.target))
    elif isinstance(s, (ast.While, ast.If)):
        return False
    else:
        targets = list(ast.walk(s))
    set_here = (n for n in targets if isinstance(n, _CHAIN) and not isinstance(n.ctx, ast.Load))
    return any(_steps(n) == variable[: len(_steps(n))] for n in set_here if root(n) == variable[0])


def _reads(node: ast.AST, variable: list[str]) -> bool:
    """Return whether ``node`` reads a variable such as ``["state", ".params"]``, a part of it, or an object
    that contains it. Reads in nested functions and of an array's shape or dtype do not count."""
    if isinstance(node, _CHAIN) and isinstance(node.ctx, ast.Load) and root(node) == variable[0]:
        steps = _steps(node)
        beyond = steps[len(variable) :]
        n = min(len(steps), len(variable))
        if steps[:n] == variable[:n] and not any(step.strip(".") in _METADATA for step in beyond):
            return True
        return any(
            _reads(s, variable) for n in _links(node) if isinstance(n, ast.Subscript) for s in [n.slice]
        )
    if isinstance(node, SCOPES):
        return False
    return any(_reads(child, variable) for child in ast.iter_child_nodes(node))


def _reads_freely(function: ast.AST, variable: list[str]) -> bool:
    """Return whether a nested function reads a variable such as ``["state", ".params"]`` that belongs to the
    code around it: the function has no parameter ``state`` and does not set ``state``."""
    return variable[0] not in _own_names(function) and any(_reads(n, variable) for n in _body(function))


def _links(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a chain of attributes and items, and then each shorter chain with which it begins:
    ``state.params['w']``, ``state.params``, ``state``."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        yield node
        node = node.value
    yield node


def _steps(node: ast.AST) -> list[str]:
    """Return the steps of a chain of attributes and items: ``["state", ".params", "['w']"]`` for
    ``state.params['w']``."""
    found = [
        f".{n.attr}"
        if isinstance(n, ast.Attribute)
        else f"[{ast.unparse(n.slice)}]"
        if isinstance(n, ast.Subscript)
        else n.id
        if isinstance(n, ast.Name)
        else "?"
        for n in _links(node)
    ]
    return found[::-1]
