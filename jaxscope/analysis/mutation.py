"""Find whether a program changes objects of a class after it has created them. Such objects should not be
static arguments of a jitted function: after a change, JAX would still use the program that was compiled for
the old contents. The functions examine the text of a Python file."""

from __future__ import annotations

import ast

from jaxscope.analysis.syntax import parsed

MAKING = frozenset({"__init__", "__new__", "__post_init__", "__setattr__"})


def changed(source: str, name: str) -> bool | None:
    """Return whether the source assigns an attribute of an object of class ``name`` after the object was
    created. Return None if the source has no such class, or is not Python.

    In methods of the class, assignments (also ``setattr`` and ``del``) to any attribute of ``self`` count.
    Everywhere, assignments to an attribute with the name of a field of the class count, whatever the object.
    Methods that create the object (``__init__``, ...) are ignored.
    """
    tree = parsed(source)
    found = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == name] if tree else []
    if tree is None or not found:
        return None
    methods = [m for c in found for m in c.body if isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef))]
    making = {id(n) for m in methods if m.name in MAKING for n in ast.walk(m)}
    fields = {a for m in methods if m.name in MAKING for _, a in _assigned(m)}
    fields |= {
        n.target.id
        for c in found
        for n in c.body
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    for m in methods:
        if m.name not in MAKING and m.args.args:
            own = m.args.args[0].arg
            if any(holder == own for holder, _ in _assigned(m)):
                return True
    others = (n for n in ast.walk(tree) if id(n) not in making)
    return any(attribute in fields for n in others for _, attribute in _assigned_by(n))


def assigns_while_created(source: str, name: str) -> bool:
    """Return whether a method that creates an object of the class ``name`` (``__init__``, ``__new__``,
    ``__post_init__``) or ``__setattr__`` assigns attributes, which a frozen dataclass does not allow. Return
    False if the source is not Python."""
    tree = parsed(source)
    return tree is not None and any(
        isinstance(m, ast.FunctionDef) and m.name in MAKING and _assigned(m)
        for c in ast.walk(tree)
        if isinstance(c, ast.ClassDef) and c.name == name
        for m in c.body
    )


def _assigned(function: ast.AST) -> list[tuple[str | None, str]]:
    """Return (name, attribute) for each ``name.attribute = ...``, ``del name.attribute`` and
    ``setattr(name, "attribute", ...)`` in ``function``."""
    return [pair for node in ast.walk(function) for pair in _assigned_by(node)]


def _assigned_by(node: ast.AST) -> list[tuple[str | None, str]]:
    """Return what ``_assigned`` returns, for the single syntax node ``node``."""
    # The name is None in ``f(x).attribute = ...``. The attribute is empty in ``setattr(x, variable, ...)``.
    targets: list[ast.expr] = []
    if isinstance(node, (ast.Assign, ast.Delete)):
        targets = list(node.targets)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "setattr"
        and node.args
    ):
        name = node.args[1] if len(node.args) > 1 else None
        held = node.args[0]
        text = name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""
        return [(held.id if isinstance(held, ast.Name) else None, text)]
    found: list[tuple[str | None, str]] = []
    for target in targets:
        for part in ast.walk(target):
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, (ast.Store, ast.Del)):
                found.append((part.value.id if isinstance(part.value, ast.Name) else None, part.attr))
    return found
