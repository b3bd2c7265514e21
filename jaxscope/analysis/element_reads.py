"""Find the variable whose elements a loop of the user's source reads one at a time: ``grid`` for
``float(grid[i])`` in a loop over ``i``, and for ``if x > 0`` in ``for x in grid``.

The functions read source as text. They return None or False if the text does not decide the question.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from jaxscope.analysis.jit_decorators import names_of
from jaxscope.analysis.loop_calls import names_read, names_set, root
from jaxscope.analysis.source_lines import in_a_loop
from jaxscope.analysis.syntax import (
    COMPREHENSIONS,
    FUNCTION,
    SCOPES,
    Syntax,
    assigned,
    calls_at,
    expression,
    last_name,
    own_nodes,
    scope_around,
    spans,
    syntax,
)
from jaxscope.schema.libraries import JAX_ROOTS

_LOADS = frozenset({"np.load", "numpy.load", "onp.load"})
Call = tuple[str | None, int]  # the source of a call, None if it is not available, and its line
_CONVERSIONS = frozenset({"float", "int", "bool", "complex", "item", "tolist"})
_IN_ORDER = frozenset({"enumerate", "zip", "reversed"})
_LENGTHEN = frozenset({"append", "appendleft", "extend", "insert", "update", "add", "pop"})
_DRAW = re.compile(r"\b(?:int|float|bool)\((?:jax\.)?(?:random|jrandom|jr)\.\w+\(")


def variable(
    source: str | None, line: int, text: str | None, called: Call | None, kind: str | None = None
) -> str | None:
    """Return the variable (``grid``, ``self.grid``) whose elements the expression ``text`` on ``line`` reads
    one at a time in a loop. Return None if the expression reads something else, if an iteration of the loop
    changes the variable, or if the source does not decide.

    Args:
      source: the text of the file; None: unknown.
      text: the expression. Only conversions (``float``) and operators may be around the element.
      called: (source, line) of the only call of the function that contains ``line``; None: unknown. If the
        expression is a parameter of that function, the argument of this call is examined.
      kind: the Python type to which the program converts the element: ``int``, ``float``, ... If it is
        ``int`` and ``text`` is ``rows[i]``, the converted element is the index ``i``, and ``i`` is examined.
    """
    read = expression((text or "").strip())
    if read is None or (operands := _operands(read)) is None:
        return None
    loops, function = _around(syntax(source).blocks, line)
    if kind == "int" and isinstance(read, ast.Subscript):
        operands = _indices(read)
        if len(operands) > 1:
            return None  # one of several indices; which one is unknown
    arguments = ast.walk(function.args) if isinstance(function, SCOPES) else ()
    parameters = {a.arg for a in arguments if isinstance(a, ast.arg)}
    if isinstance(read, ast.JoinedStr):  # which of several values is the array is unknown
        names = {name for node in operands if (name := _element_of(node, loops)) is not None}
        return names.pop() if len(names) == 1 else None
    for node in operands:
        if isinstance(node, ast.Name) and node.id in parameters:
            if called is not None and function is not None:
                return _in_call(function, node.id, *called)
        elif (name := _element_of(node, loops)) is not None:
            return name
    return None


def only_iterates_or_unpacks(source: str | None, line: int) -> bool:
    """Return whether ``line`` only goes through an array: it is the first line of ``for x in xs``, or unpacks
    a variable (``x, y = row``). A loop over a call counts only if ``enumerate``, ``zip`` or ``reversed`` is
    called. Return False if the source is unknown."""
    for n in ast.walk(syntax(source).tree):
        if getattr(n, "lineno", None) != line:
            continue
        match n:
            case ast.For(iter=ast.Call(func=called)):
                return last_name(called) in _IN_ORDER
            case ast.For() | ast.Assign(targets=[ast.Tuple()], value=ast.Name() | ast.Subscript()):
                return True
    return False


def is_no_generator(source: str | None, line: int, name: str) -> bool:
    """Return whether ``source`` shows that the variable ``name``, read on ``line``, is no generator: it has
    an index somewhere, or only results of JAX, of NumPy or of arithmetic, lists and tuples are assigned to
    it."""
    found = syntax(source)
    scope = _scope(found, line, name)
    if any(isinstance(n, ast.Subscript) and ast.unparse(n.value) == name for n in ast.walk(scope)):
        return True
    modules = names_of(found.imports, JAX_ROOTS | {"numpy"})
    values = assigned(scope, name)
    return bool(values) and all(
        isinstance(v, (ast.BinOp, ast.List, ast.Tuple))
        or (isinstance(v, ast.Call) and root(v.func) in modules)
        for v in values
    )


def generator(source: str | None, line: int, name: str) -> str | None:
    """Return the function of the same file that makes the variable ``name``, read on ``line``, and that is a
    generator: ``rows`` for ``xs = rows()`` if ``rows`` has a ``yield``, or for ``xs = make()`` if ``make``
    returns ``rows()``. Return None if there is none."""
    found = syntax(source)
    functions = {f.name: f for f in found.functions()}
    values, seen = assigned(_scope(found, line, name), name), set[str]()
    while values:
        value = values.pop()
        called = last_name(value.func) if isinstance(value, ast.Call) else None
        if called is None or called not in functions or called in seen:
            continue
        seen.add(called)
        inside = list(own_nodes(functions[called]))
        if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in inside):
            return called
        values += [n.value for n in inside if isinstance(n, ast.Return) and n.value is not None]
    return None


def list_converted(source: str | None, line: int) -> str | None:
    """Return the list or tuple that ``line`` passes to ``jnp.array`` or ``jnp.asarray``: a variable that the
    same function assigns a list or appends to, or that goes through ``zip(...)``, whose elements are tuples.
    Return None if there is none."""
    found = syntax(source)
    for call in found.calls.get(line, ()):
        if last_name(call.func) not in ("array", "asarray") or not call.args:
            continue
        name = call.args[0].id if isinstance(call.args[0], ast.Name) else None
        if name is None:
            continue
        scope = _scope(found, line, name)
        appended = any(
            isinstance(n, ast.Attribute) and n.attr == "append" and _name(n.value) == name
            for n in ast.walk(scope)
        )
        if appended or any(_makes_list(v) for v in assigned(scope, name)):
            return name
        loops = [n for n in ast.walk(scope) if isinstance(n, (ast.For, ast.comprehension))]
        through = [loop.iter for loop in loops if _name(loop.target) == name]
        through += [v for over in through if isinstance(over, ast.Name) for v in assigned(scope, over.id)]
        if any(isinstance(n, ast.Call) and last_name(n.func) == "zip" for v in through for n in ast.walk(v)):
            return name
    return None


class ListInCall(NamedTuple):
    """A call of ``jnp.array`` or ``jnp.asarray`` that gets a list.

    Attributes:
      text: the call: ``jnp.asarray(actions)``.
      list: the list: ``actions``.
    """

    text: str
    list: str


def list_in_call(source: str | None, line: int, column: int) -> ListInCall | None:
    """Return the call of ``jnp.array`` or ``jnp.asarray`` at ``column`` (in bytes) of ``line`` if its
    argument may be a list or a tuple. Return None if there is no such call, or if its argument is a nested
    list or another expression than a name, a list or a comprehension."""
    found = syntax(source)
    call = next((c for c in found.calls.get(line, ()) if c.col_offset == column and c.args), None)
    if call is None or last_name(call.func) not in ("array", "asarray"):
        return None
    value = call.args[0]
    if isinstance(value, ast.Name):
        known = last_name(call.func) == "asarray" or list_converted(source, line) == value.id
    else:
        known = isinstance(value, ast.ListComp)
        known = known or (isinstance(value, ast.List) and not any(_makes_list(v) for v in value.elts))
    return ListInCall(ast.unparse(call), ast.unparse(value)) if known else None


def lists_as_index(source: str | None, line: int) -> tuple[tuple[str, ...], bool] | None:
    """Return (names, whether the source shows that they are lists or tuples of numbers) if indices are the
    only things on ``line`` that JAX can convert number by number: ``rows`` and ``columns`` for
    ``x.at[rows, columns].set(0)``. Return None if there are no such indices, if the source shows that they
    are arrays, or if the line is in a loop."""
    found = syntax(source)
    if in_a_loop(source, line):
        return None
    inside = [n for n in ast.walk(found.tree) if isinstance(n, ast.Subscript) and spans(n, line)]
    for item in inside:
        index = item.slice
        names = index.elts if isinstance(index, ast.Tuple) else [index]
        if not names or not all(isinstance(n, (ast.Name, ast.Attribute)) for n in names):
            continue
        written = [v for n in names for v in assigned(_scope(found, line, ast.unparse(n)), ast.unparse(n))]
        indices = tuple(map(ast.unparse, names))
        if any(_makes_list(v) for v in written):
            return indices, True
        arrays = any(isinstance(v, ast.Call) for v in written)
        others = [last_name(c.func) for c in calls_at(source, line) if not _indexed(c)]
        if not arrays and not others:
            return indices, False
    return None


def _indexed(call: ast.Call) -> bool:
    """Return whether ``call`` is a call such as ``x.at[i].add(y)``."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    at = owner.value if isinstance(owner, ast.Subscript) else None
    return isinstance(at, ast.Attribute) and at.attr == "at"


def _makes_list(value: ast.expr) -> bool:
    """Return whether ``value`` is a list, or a call that returns a list or a tuple: ``list(rows)``,
    ``rows.tolist()``."""
    call = last_name(value.func) if isinstance(value, ast.Call) else None
    return isinstance(value, (ast.List, ast.ListComp)) or call in ("list", "tuple", "tolist")


def _scope(file_syntax: Syntax, line: int, name: str) -> ast.AST:
    """Return the innermost function around ``line``, or the whole file if that function does not assign to
    the variable ``name``."""
    function = scope_around(file_syntax, line)
    return function if function is not None and assigned(function, name) else file_syntax.tree


def _operands(node: ast.expr) -> list[ast.expr] | None:
    """Return the variables and items in the expression ``node``: ``x`` and ``grid[i]`` for
    ``float(grid[i]) > x``. Return None if it contains anything but these, constants, operators and
    conversions. Of an f-string, parts with anything else are left out."""
    if isinstance(node, ast.Constant):
        return []
    if isinstance(node, ast.JoinedStr):
        values = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
        return [x for value in values for x in _operands(value) or ()]
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return [node]
    parts: list[ast.expr]
    if isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.BoolOp):
        parts = node.values
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    elif isinstance(node, ast.Call) and last_name(node.func) in _CONVERSIONS and not node.keywords:
        parts = [node.func.value] if isinstance(node.func, ast.Attribute) and not node.args else node.args
    else:
        return None
    several = [_operands(part) for part in parts]
    return [x for some in several for x in some or ()] if None not in several else None


def _around(blocks: list[ast.stmt | ast.expr], line: int) -> tuple[list[ast.AST], ast.AST | None]:
    """Return (loops, function): the innermost function around ``line``, and the ``for`` loops and
    comprehensions in it around ``line``, innermost first. The function is None at module level."""
    loops: list[ast.AST] = []
    here = [n for n in blocks if spans(n, line)]
    for n in sorted(here, key=lambda n: (n.lineno, n.col_offset), reverse=True):
        if isinstance(n, SCOPES):
            return loops, n
        if isinstance(n, (ast.For, *COMPREHENSIONS)):
            loops.append(n)
    return loops, None


def _sources(loop: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield (the variables that ``loop`` sets in each iteration, what it iterates over): ``x`` and ``xs`` for
    ``for x in xs``. A comprehension has one pair for each of its ``for``."""
    if isinstance(loop, ast.For):
        yield loop.target, loop.iter
    for g in getattr(loop, "generators", ()):
        yield g.target, g.iter


def _element_of(node: ast.expr, loops: list[ast.AST]) -> str | None:
    """Return the variable of which ``node`` reads one element in each iteration of one of ``loops``: ``grid``
    for ``grid[i]`` in ``for i in range(n)``. Return None if there is no such variable, or if the loop changes
    the variable."""
    for loop in loops:
        node = _unpacked(node, loop)
        for target, over in _sources(loop):
            counted = names_set([target])
            whole = None
            begins = root(node) if isinstance(node, (ast.Name, ast.Subscript)) else None
            if begins is not None and begins in counted:  # x in ``for x in grid``
                whole = _iterated(target, over, begins)
            elif isinstance(node, ast.Subscript) and names_read(_indices(node)) & counted:
                whole = node
            if whole is not None and _unchanged(whole, loop):
                return _name(whole)
    return None


def _unpacked(node: ast.expr, loop: ast.AST) -> ast.expr:
    """Return the expression that ``loop`` unpacks into several variables, of which ``node`` is one: ``row``
    for ``y`` with ``x, y, z = row``. Return ``node`` itself if it is no such variable."""
    if not isinstance(node, ast.Name) or not isinstance(loop, ast.For):
        return node
    for n in ast.walk(loop):
        match n:
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Name() | ast.Subscript() as value):
                if any(isinstance(part, ast.Name) and part.id == node.id for part in parts):
                    return value
    return node


def _indices(node: ast.expr) -> list[ast.expr]:
    """Return the indices of ``node``, the last first: ``0`` and ``i`` for ``grid[i][0]``."""
    found = []
    while isinstance(node, ast.Subscript):
        found.append(node.slice)
        node = node.value
    return found


def _iterated(target: ast.expr, over: ast.expr, name: str) -> ast.expr | None:
    """Return the expression whose elements the loop ``for target in over`` assigns to ``name``: ``ys`` for
    ``y`` in ``for x, y in zip(xs, ys)``. Return None if there is no such expression."""
    if not isinstance(over, ast.Call):
        return over if isinstance(target, ast.Name) else None
    called = last_name(over.func)
    if called not in _IN_ORDER or not over.args:
        return None
    if called == "reversed":
        return _iterated(target, over.args[0], name)
    if not isinstance(target, ast.Tuple):
        return None
    pairs = zip(target.elts, over.args, strict=False)
    if called == "enumerate":
        pairs = zip(target.elts[1:], over.args[:1], strict=False)
    named = [(part, x) for part, x in pairs if name in names_set([part])]
    return _iterated(*named[0], name) if named else None


def _name(node: ast.expr) -> str | None:
    """Return the variable of ``node`` without indices: ``self.grid`` for ``self.grid[i]``. Return None if
    ``node`` does not begin with a variable."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) and root(node) else None


def _unchanged(node: ast.expr, loop: ast.AST) -> bool:
    """Return whether ``node`` begins with a variable that no iteration of ``loop`` sets or changes in length
    (``append``, ``pop``, ...)."""
    body = loop.body if isinstance(loop, ast.For) else []
    lengthened = {
        root(n.func)
        for statement in body
        for n in ast.walk(statement)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in _LENGTHEN
    }
    return root(node) is not None and root(node) not in names_set(body) | lengthened


def _in_call(function: ast.AST, parameter: str, source: str | None, line: int) -> str | None:
    """Return the variable whose element the call of ``function`` on ``line`` of ``source`` passes by position
    as ``parameter``: ``grid`` for ``f(grid[i])``. Return None if there is no such call, or if it passes
    something else."""
    found = syntax(source)
    if not isinstance(function, FUNCTION):
        return None
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    loops, _ = _around(found.blocks, line)
    for call in found.calls.get(line, []):
        if last_name(call.func) == function.name and parameter in names:
            at = names.index(parameter) - (names[:1] == ["self"] and isinstance(call.func, ast.Attribute))
            if 0 <= at < len(call.args):
                return _element_of(call.args[at], loops)
    return None


def reads_archive(source: str | None, line: int) -> str | None:
    """Return the variable with an archive of NumPy (an ``.npz`` file) of which an array is read on ``line``:
    ``self.data`` for ``self.data["x"][rows]``, if the program has ``self.data = np.load(path)``. NumPy reads
    the array from the file at each access. Return None if no archive is read there, or if the source is
    unknown."""
    found = syntax(source)
    opened = {
        ast.unparse(t)
        for n in ast.walk(found.tree)
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call) and ast.unparse(n.value.func) in _LOADS
        for t in n.targets
    }
    reads = [n for n in ast.walk(found.tree) if isinstance(n, ast.Subscript)] if opened else []
    # An archive has names of arrays as keys, an array in a ``.npy`` file has none.
    archives = {
        name
        for n in reads
        if isinstance(n.slice, ast.Constant) and isinstance(n.slice.value, str)
        if (name := ast.unparse(n.value)) in opened
    }
    here = [n for n in reads if spans(n, line)]
    return next((name for n in here if (name := ast.unparse(n.value)) in archives), None)


def draws_one(text: str | None) -> bool:
    """Return whether ``text``, an expression or a line of source, converts a drawn number to a Python number:
    ``int(jax.random.randint(key, (), 0, 4))``. The module may also be called ``random``, ``jrandom`` or
    ``jr``."""
    return text is not None and _DRAW.search(text) is not None
