"""Find a loop that only adds to a list or an array: it appends in some iterations and never removes. Also
find lists whose length a program limits. The functions examine the text of a Python file."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import NamedTuple

from jaxscope.analysis.source_lines import innermost_loop
from jaxscope.analysis.syntax import FUNCTION, Syntax, bind, is_name, last_name, own_nodes, spans, syntax

_ADDS = frozenset({"append", "extend"})


def find(source: str | None, name: str, calls: Collection[int]) -> tuple[int, int] | None:
    """Return (line of the loop, line that appends) of the innermost loop that only adds to the list ``name``
    and contains one of the lines ``calls``. Return None if there is no such loop, or if something may remove
    items.

    The list must begin as ``[]`` outside of all loops. All other uses in the same function or module must be
    reads, ``append`` or ``extend``.
    """
    found = syntax(source)
    for scope in (found.tree, *found.functions()):
        nodes = list(own_nodes(scope))
        methods = [
            n.func
            for n in nodes
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and is_name(n.func.value, name)
        ]
        begins = [n.lineno for n in nodes if isinstance(n, (ast.Assign, ast.AnnAssign)) and _empties(n, name)]
        stores = [n for n in nodes if is_name(n, name) and not isinstance(n.ctx, ast.Load)]
        items = [n for n in nodes if isinstance(n, ast.Subscript) and is_name(n.value, name)]
        loops = [n for n in nodes if isinstance(n, (ast.For, ast.While))]
        if not methods or len(begins) != 1 or len(stores) != 1 or {m.attr for m in methods} - _ADDS:
            continue
        if any(not isinstance(n.ctx, ast.Load) for n in items) or any(spans(n, begins[0]) for n in loops):
            continue
        for method in methods:
            around = [n for n in loops if spans(n, method.lineno) and any(spans(n, line) for line in calls)]
            if around:
                return max(n.lineno for n in around), method.lineno
    return None


def lengthened_by(source: str | None, line: int) -> str | None:
    """Return the variable that the innermost loop around ``line`` makes longer in each iteration: ``x =
    jnp.append(x, value)``, or ``x = step(x)`` where ``step`` returns such an array. None if there is none."""
    loop, found = innermost_loop(source, line), syntax(source)
    for n in ast.walk(loop) if loop is not None else ():
        if not isinstance(n, ast.Assign) or not isinstance(n.value, ast.Call):
            continue
        for name in (target.id for target in n.targets if isinstance(target, ast.Name)):
            called = [f for f in found.functions() if f.name == last_name(n.value.func)]
            returned = [
                r.value
                for f in called
                for parameter, value in bind(n.value, f)
                if is_name(value, name)
                for r in own_nodes(f)
                if isinstance(r, ast.Return) and r.value is not None and _joins(r.value, parameter)
            ]
            if _joins(n.value, name) or (len(called) == 1 and returned):
                return name
    return None


def _joins(value: ast.expr, name: str) -> bool:
    """Return whether ``value`` is a call that joins the variable ``name`` with other arrays:
    ``jnp.concatenate([x, y])``."""
    if not isinstance(value, ast.Call) or last_name(value.func) not in _JOINS or not value.args:
        return False
    first = value.args[0]
    parts = first.elts if isinstance(first, (ast.List, ast.Tuple)) else [first]
    return any(is_name(part, name) for part in parts)


def extends_itself(source: str | None, path: str | None) -> bool:
    """Return whether the source computes a new value of the variable ``path`` from its old one, as in ``x =
    jnp.append(x, value)``. True if the source or ``path`` is unknown."""
    found = syntax(source)
    if not found.tree.body or path is None:
        return True
    assigned = [n for n in ast.walk(found.tree) if isinstance(n, (ast.Assign, ast.AugAssign))]
    return any(
        isinstance(n, ast.AugAssign) or any(ast.unparse(part) == path for part in ast.walk(n.value))
        for n in assigned
        for target in (n.targets if isinstance(n, ast.Assign) else [n.target])
        if ast.unparse(target) == path
    )


def find_attribute(source: str | None, path: str, calls: Collection[int]) -> tuple[int, int] | None:
    """Return (line of the loop, line that appends) of a loop that calls a method which only adds to a list of
    its object: ``averager.add(params)`` for the ``path`` ``averager.snapshots``. The loop contains one of the
    lines ``calls``. Return None if there is no such loop, or if something may remove items.

    Only one class of the file may use the attribute. Its ``__init__`` must set it to ``[]``; all other uses
    in the class must be reads, ``append`` or ``extend``.
    """
    found = syntax(source)
    owner, _, name = path.partition(".")
    used = [n for n in ast.walk(found.tree) if isinstance(n, ast.Attribute) and n.attr == name]
    classes = [
        n for n in found.tree.body if isinstance(n, ast.ClassDef) and any(spans(n, a.lineno) for a in used)
    ]
    if len(classes) != 1 or sum(not isinstance(a.ctx, ast.Load) for a in used) != 1:
        return None
    begins, changes, adds = 0, 0, dict[str, int]()
    for method in (m for m in classes[0].body if isinstance(m, FUNCTION)):
        for n in ast.walk(method):
            if isinstance(n, ast.Assign) and any(t in used for t in n.targets):
                begins += method.name == "__init__" and isinstance(n.value, ast.List) and not n.value.elts
            elif isinstance(n, ast.Subscript) and n.value in used:
                changes += not isinstance(n.ctx, ast.Load)
            elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.value in used:
                changes += n.func.attr not in _ADDS
                adds.setdefault(method.name, n.lineno)
    if begins != 1 or changes:
        return None
    for loop in (n for n in found.blocks if isinstance(n, (ast.For, ast.While))):
        inside = ast.walk(loop) if any(spans(loop, line) for line in calls) else ()
        methods = (n.func for n in inside if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
        called = next((m.attr for m in methods if m.attr in adds and is_name(m.value, owner)), None)
        if called is not None:
            return loop.lineno, adds[called]
    return None


def is_limited(source: str | None, name: str) -> bool:
    """Return whether the file limits the length of ``name``, a variable or an attribute of any object: an
    ``if`` or ``while`` compares the length, and its block changes the items (``if len(buffer) > 1000:
    buffer.pop(0)``)."""
    return any(
        _compares_length(n.test, name) and any(_changes(m, name) for m in ast.walk(n) if m is not n.test)
        for n in ast.walk(syntax(source).tree)
        if isinstance(n, (ast.If, ast.While))
    )


def _compares_length(test: ast.expr, name: str) -> bool:
    """Return whether the condition ``test`` compares ``len(name)`` or ``len(x.name)``."""
    return any(
        isinstance(side, ast.Call) and last_name(side.func) == "len" and last_name(side.args[0]) == name
        for compare in ast.walk(test)
        if isinstance(compare, ast.Compare)
        for side in (compare.left, *compare.comparators)
        if not isinstance(side, ast.Call) or side.args
    )


def _changes(node: ast.AST, name: str) -> bool:
    """Return whether ``node`` calls a method of ``name`` or ``x.name``, sets or deletes an item, or assigns
    to it."""
    if isinstance(node, ast.Call):
        method = node.func
        return isinstance(method, ast.Attribute) and last_name(method.value) == name
    if isinstance(node, ast.Subscript):
        return last_name(node.value) == name and not isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Assign) and any(last_name(target) == name for target in node.targets)


def _empties(statement: ast.Assign | ast.AnnAssign, name: str) -> bool:
    """Return whether an assignment makes ``name`` an empty list: ``a, name = 0, []``."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    pairs: list[tuple[ast.expr, ast.expr | None]] = [(target, statement.value) for target in targets]
    for target, value in list(pairs):
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs += zip(target.elts, value.elts, strict=False)
    return any(
        is_name(target, name) and isinstance(value, ast.List) and not value.elts for target, value in pairs
    )


class Joined(NamedTuple):
    """A statement in a loop that makes an array longer: ``name = jnp.append(name, value)``.

    Attributes:
      name: the variable.
      value: what the statement adds, as source.
      joined: the expression that joins a list of such values after the loop: ``jnp.hstack(name)``.
    """

    name: str
    value: str
    joined: str


# Functions that make an array longer -> the function that joins a list of the added values
_JOINS = {"append": "concatenate", "concatenate": "concatenate", "vstack": "vstack", "hstack": "hstack"}


def only_joined(source: str | None, line: int) -> Joined | None:
    """Return the statement at ``line`` if it makes an array longer and a list could collect the values
    instead: the array is empty at first, nothing else in the loops around the statement uses the array, and
    no other function does. Return None for any other line."""
    found = syntax(source)
    loops = [n for n in found.blocks if isinstance(n, (ast.For, ast.While)) and spans(n, line)]
    if not loops:
        return None
    loop, outermost = max(loops, key=lambda n: n.lineno), min(loops, key=lambda n: n.lineno)
    for statement in (n for n in own_nodes(loop) if isinstance(n, ast.Assign) and spans(n, line)):
        (target, *others), call = statement.targets, statement.value
        if others or not isinstance(target, ast.Name) or not isinstance(call, ast.Call):
            continue
        join = _JOINS.get(last_name(call.func) or "")
        parts = list(call.args)
        if last_name(call.func) != "append":
            only = parts[0] if len(parts) == 1 else None
            parts = only.elts if isinstance(only, (ast.List, ast.Tuple)) else []
        if join is None or len(parts) != 2 or call.keywords or not is_name(parts[0], target.id):
            continue
        if _uses(outermost, target.id) == 2 and isinstance(call.func, ast.Attribute):
            module, value = ast.unparse(call.func.value), ast.unparse(parts[1])
            joined = f"{module}.{join}({target.id})"
            if last_name(call.func) == "append":  # it joins arrays of any shape as if they were flat
                joined = f"{module}.concatenate([{module}.ravel(v) for v in {target.id}])"
            if _begins_empty(found, target.id):
                return Joined(target.id, value, joined)
    return None


def _uses(node: ast.AST, name: str) -> int:
    """Count how often the variable ``name`` occurs in ``node``."""
    return sum(is_name(n, name) for n in ast.walk(node))


def _begins_empty(file_syntax: Syntax, name: str) -> bool:
    """Return whether the only other assignment to ``name`` makes an empty array (``jnp.array([])``,
    ``jnp.zeros((0, 8))``), in the function that makes it longer, and no other function uses it."""
    scopes = [n for n in file_syntax.functions() if _uses(n, name)]
    scope = scopes[0] if scopes else file_syntax.tree
    if len(scopes) > 1 or _uses(file_syntax.tree, name) > _uses(scope, name):
        return False
    assigned = [n for n in ast.walk(scope) if isinstance(n, ast.Assign)]
    made = [
        n.value for n in assigned if any(is_name(t, name) for t in n.targets) and not _uses(n.value, name)
    ]
    return len(made) == 1 and isinstance(made[0], ast.Call) and _is_empty(made[0])


def _is_empty(call: ast.Call) -> bool:
    """Return whether the first argument of a call is ``[]``, ``0`` or a tuple that begins with one of
    these."""
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Tuple):
        first = first.elts[0] if first.elts else None
    return (isinstance(first, ast.List) and not first.elts) or (
        isinstance(first, ast.Constant) and first.value == 0
    )
