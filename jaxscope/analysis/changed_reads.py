"""Find variables that a jitted function reads from outside and that change in a loop around its call. The
functions read source as text.

JAX compiles the value of a variable from outside into the program. It does not trace again when the variable
changes, because it compares only arguments. Two kinds are found: variables of a function or module around the
jitted function, and attributes of ``self``.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Collection, Iterator
from typing import NamedTuple, TypeAlias

from jaxscope.analysis.loop_calls import names_in
from jaxscope.analysis.mutation import MAKING
from jaxscope.analysis.syntax import (
    FUNCTION,
    Definition,
    definition,
    own_nodes,
    single_targets,
    spans,
    syntax,
)

_Loop: TypeAlias = ast.For | ast.While
_Scope: TypeAlias = ast.ClassDef | Definition


class Changed(NamedTuple):
    """A variable that a function reads from outside and that a loop changes.

    Attributes:
      name: the variable: ``rate``, ``self.rate``.
      read: the line on which the function, or a function that it calls, reads the variable.
      changed: the line that sets the variable.
    """

    name: str
    read: int
    changed: int


def find(source: str | None, name: str, begins: int, calls: Collection[int]) -> list[Changed]:
    """Return the variables that a function reads from outside and that a loop around a call of the function
    changes: the new value depends on the old value or on another variable that the loop sets, or the variable
    is the target of a ``for``.

    Loops that contain the function's definition are ignored.

    Args:
      source: the text of the file; None: unknown.
      name: the name of the function.
      begins: the line of the function's ``def``, or of one of its decorators.
      calls: the lines that call the function, directly or through other functions of the file.
    """
    found = syntax(source)
    function = definition(found, name, begins)
    if source is None or function is None:
        return []
    loops = [
        n
        for n in found.blocks
        if isinstance(n, (ast.For, ast.While))
        and any(spans(n, line) for line in calls)
        and not _has(n, function)
    ]
    if not loops:
        return []
    around = _around(found.tree, function)
    return [*_attributes(function, around, loops), *_variables(found.tree, source, function, around, loops)]


def _around(tree: ast.Module, node: Definition | _Loop) -> list[_Scope]:
    """Return the functions and classes around ``node``, the outermost first."""
    kinds = (ast.ClassDef, *FUNCTION)
    found = (n for n in ast.walk(tree) if isinstance(n, kinds) and n is not node)
    return sorted((n for n in found if _has(n, node) and n.lineno < node.lineno), key=lambda n: n.lineno)


def _has(outer: _Scope | _Loop, node: Definition | _Loop) -> bool:
    """Return whether ``node`` begins on a line of ``outer``."""
    return spans(outer, node.lineno)


# -- attributes of self ----------------------------------------------------------------------------------


def _attributes(function: Definition, around: list[_Scope], loops: list[_Loop]) -> Iterator[Changed]:
    """Yield the attributes of ``self`` that the method ``function`` reads and that one of ``loops`` changes.
    ``around`` has the functions and classes around ``function``, the outermost first."""
    owner = around[-1] if around else None
    if not isinstance(owner, ast.ClassDef) or not function.args.args:
        return
    methods = {m.name: m for m in owner.body if isinstance(m, FUNCTION) and m.args.args}
    traced = _called(function, methods)
    own = function.args.args[0].arg
    set_inside = {a.attr for m in traced.values() for a in _of_self(m, ast.Store)}
    read: dict[str, int] = {}
    for a in (a for m in traced.values() for a in _of_self(m, ast.Load)):
        if a.attr not in methods and a.attr not in set_inside:
            read.setdefault(a.attr, a.lineno)
    others = {name: m for name, m in methods.items() if name not in traced and name not in MAKING}
    for loop in loops:
        named = {own} if _has(owner, loop) else set[str]()
        calls = [n for n in ast.walk(loop) if isinstance(n, ast.Call)]
        objects = {name for c in calls if (name := _owner(c.func)) is not None and _method(c) in methods}
        objects -= {own} - named
        direct = [t for t in _assignments(loop, _names_set(loop)) if _owner(t) in objects]
        for target in (*direct, *_set_by_methods(loop, calls, objects, others)):
            if isinstance(target, ast.Attribute) and target.attr in read:
                yield Changed(f"{own}.{target.attr}", read.pop(target.attr), target.lineno)


def _called(function: Definition, methods: dict[str, Definition]) -> dict[str, Definition]:
    """Return the methods that may run when the method ``function`` runs: name -> method. These are
    ``function`` and all methods that it mentions as ``self.name``, directly or through other methods."""
    found, waiting = {function.name: function}, [function]
    while waiting:
        for a in _of_self(waiting.pop(), ast.Load):
            if a.attr in methods and a.attr not in found:
                found[a.attr] = methods[a.attr]
                waiting.append(methods[a.attr])
    return found


def _set_by_methods(
    loop: _Loop, calls: list[ast.Call], objects: set[str], methods: dict[str, Definition]
) -> Iterator[ast.expr]:
    """Yield the attributes that a loop changes by calling methods: for ``model.decay()``, the ``self.rate``
    that the method ``decay`` sets.

    Args:
      calls: the calls in ``loop``.
      objects: the variables whose methods are examined: ``model``.
      methods: name -> method of the class; calls of other methods are ignored.
    """
    sets = _names_set(loop)
    for c in calls:
        called = methods.get(_method(c) or "")
        if called is None or _owner(c.func) not in objects:
            continue
        varies = names_in([*c.args, *(k.value for k in c.keywords)]) & sets
        parameters = {a.arg for a in called.args.args[1:]} if varies else set[str]()
        depends: set[str] = parameters
        while new := {ast.unparse(t) for t in _assignments(called, depends)} - depends:
            depends = depends | new  # self.target = self.params, where the method also updates self.params
        yield from (t for t in _assignments(called, depends) if _owner(t) == called.args.args[0].arg)


def _owner(target: ast.expr) -> str | None:
    """Return ``x`` for the target ``x.rate``. Return None for other targets."""
    held = target.value if isinstance(target, ast.Attribute) else None
    return held.id if isinstance(held, ast.Name) else None


def _method(call: ast.Call) -> str | None:
    """Return ``decay`` for ``model.decay()``; None for a call without a dot."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else None


def _of_self(method: Definition, context: type[ast.expr_context]) -> Iterator[ast.Attribute]:
    """Yield the attributes of the first parameter (``self.rate``) that ``method`` reads (``context`` is
    ``ast.Load``) or sets (``ast.Store``)."""
    own = method.args.args[0].arg
    for n in ast.walk(method):
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, context) and _owner(n) == own:
            yield n


# -- variables -------------------------------------------------------------------------------------------


def _variables(
    tree: ast.Module, source: str, function: Definition, around: list[_Scope], loops: list[_Loop]
) -> Iterator[Changed]:
    """Yield the variables of functions around ``function`` and of the module that ``function`` reads and that
    one of ``loops`` changes. ``around`` has the functions and classes around ``function``."""
    free, of_module = _outside(source, function)
    read: dict[str, int] = {}
    for n in ast.walk(function):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in free | of_module:
            read.setdefault(n.id, n.lineno)
    for loop in loops:
        scopes = [n for n in _around(tree, loop) if isinstance(n, FUNCTION)]
        scope = scopes[-1] if scopes else None
        declared = {name for n in ast.walk(scope or loop) if isinstance(n, ast.Global) for name in n.names}
        own = free if scope in around else set[str]()
        visible = own | (of_module if scope is None else of_module & declared)
        for target in _assignments(loop, _names_set(loop)):
            if isinstance(target, ast.Name) and target.id in visible and target.id in read:
                yield Changed(target.id, read.pop(target.id), target.lineno)


def _outside(source: str, function: Definition) -> tuple[set[str], set[str]]:
    """Return the variables that ``function`` reads from outside: (variables of functions around ``function``,
    global names and builtins)."""
    free, of_module = set[str](), set[str]()
    waiting = [(symtable.symtable(source, "source", "exec"), False)]
    while waiting:
        table, inside = waiting.pop()
        here = inside or (table.get_name() == function.name and table.get_lineno() == function.lineno)
        if here:
            of_module |= {s.get_name() for s in table.get_symbols() if s.is_global() and s.is_referenced()}
        if here and not inside:
            free = {s.get_name() for s in table.get_symbols() if s.is_free()}
        waiting += [(child, here) for child in table.get_children()]
    return free, of_module


# -- assignments -----------------------------------------------------------------------------------------


def _assignments(block: ast.AST, varying: set[str]) -> Iterator[ast.expr]:
    """Yield the targets of the ``for`` loops in ``block``, and of the assignments whose new value depends on
    a variable in ``varying`` or on the old value. Functions that the block defines are ignored."""
    if isinstance(block, ast.For):
        yield from single_targets(block.target)
    for n in own_nodes(block):
        if isinstance(n, (ast.AugAssign, ast.For)):
            yield from single_targets(n.target)
        elif isinstance(n, ast.Assign):
            for target in (t for each in n.targets for t in single_targets(each)):
                read = {ast.unparse(m) for m in ast.walk(n.value) if isinstance(m, (ast.Name, ast.Attribute))}
                if ast.unparse(target) in read or read & varying:
                    yield target


def _names_set(loop: _Loop) -> set[str]:
    """Return the variables that ``loop`` sets, except in functions that it defines."""
    stored = (n for n in own_nodes(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return {n.id for n in stored}
