"""Find several draws of random numbers from one key of ``jax.random`` in the text of a Python file.

Such draws return the same numbers, or numbers that depend on each other. Only draws that certainly use the
same key are found: they are in one function, not in different branches of a condition, and their key is a
variable (or ``keys[0]``) that is not assigned between the draws. The module also finds loops that draw from
the same key in each iteration.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from jaxscope.analysis import line_names, loop_calls
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.loop_calls import names_in, root
from jaxscope.analysis.syntax import (
    COMPREHENSIONS,
    FUNCTION,
    Definition,
    Syntax,
    assigned,
    bind,
    function_around,
    is_name,
    last_name,
    syntax,
)

NO_DRAW = frozenset({"PRNGKey", "clone", "fold_in", "key", "key_data", "key_impl", "split", "wrap_key_data"})
_MAKES_KEYS = frozenset({"PRNGKey", "fold_in", "key", "split"})
# Draws that are repeated on purpose, to select the same elements of several arrays.
_SELECTS = frozenset({"choice", "permutation", "shuffle"})
# Loops of JAX, and the position of the argument that is the loop's body
_BODIES = {"fori_loop": 2, "scan": 0, "while_loop": 1}
_CHOOSE = frozenset({"cond", "eval_shape", "select", "switch", "where"})
# Keys with which a program draws the same numbers each time on purpose
_ON_PURPOSE = re.compile(r"(?:^|_)(?:const|constant|eval|fixed|plot|same|test|val|valid)(?:_|$|\[)")
# Functions that make the same each time on purpose
_SET_UP = re.compile(
    r"(?:^|_)(?:build|create|data|eval|evaluate|fixed|generate|get|init|initialize|load|make|model|params|setup|test)(?:_|$)"
)
_MUTATE = frozenset({"append", "insert", "pop", "setdefault", "update"})
_TRANSPARENT = frozenset({"checkpoint", "jit", "named_call", "named_scope", "remat"})  # decorators
_SCOPES = (*FUNCTION, ast.Lambda, ast.ClassDef, *COMPREHENSIONS)
_STATEMENTS = (ast.stmt, ast.IfExp, ast.ExceptHandler, ast.match_case)
_EXITS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_Above: TypeAlias = tuple[tuple[ast.AST, str], ...]


class Reused(NamedTuple):
    """Two or more calls in one function that draw random numbers from the same key.

    Attributes:
      function: the function that contains the calls, ``<module>`` for code outside functions.
      key: the key as the source writes it: ``key``, ``keys[0]``.
      calls: the called function of each call, as the source writes it: ``jax.random.normal``.
      lines: the line of each call, in the order of the source.
      equal: whether all calls are the same expression, so that their results are equal.
      split: the key that was split several times, if the draws are from the same part of these splits:
        ``key`` for ``split(key)[1]`` and ``split(key, 3)[1]``, which are equal. Else None.
    """

    function: str
    key: str
    calls: tuple[str, ...]
    lines: tuple[int, ...]
    equal: bool
    split: str | None = None


def find(source: str | None, defining: Callable[[str, str], str | None] | None = None) -> list[Reused]:
    """Return the keys from which one function of ``source`` draws random numbers more than once, with the
    draws: one ``Reused`` for each key of a function. Code outside functions counts as a function.

    Two equal calls of a function that is not in ``jax.random`` count as draws if a variable with a key is an
    argument: ``net(key, x)``. So does, beside a draw of ``jax.random``, the call of a function that certainly
    draws from its argument, if the file defines or imports the function. Several selections (``permutation``,
    ``choice``, ...) from one key do not count.

    Args:
      source: the text of the file; None: unknown.
      defining: takes the module and the name of a function in a ``from`` import (``models.layers``,
        ``init``); returns the text of the file that defines the function, or None. If ``defining`` is None,
        imported functions are unknown.
    """
    found = syntax(source)
    if "random" not in (source or ""):
        return []
    draws = Draws(found.imports)
    known = {name: (same[0], draws) for name, same in _functions(found).items() if len(same) == 1}
    imports = [n for n in found.imports if isinstance(n, ast.ImportFrom)] if defining is not None else []
    for module, a in ((n.module or "", a) for n in imports for a in n.names):
        other = syntax(defining(module, a.name) if defining is not None else None)
        same = _functions(other).get(a.name, [])
        if len(same) == 1:
            known.setdefault(a.asname or a.name, (same[0], Draws(other.imports)))
    return [one for scope in (found.tree, *found.functions()) for one in _in_scope(scope, draws, known)]


class Repeated(NamedTuple):
    """A draw in the body of a loop, from a key that is the same in all iterations.

    Attributes:
      function: the function that contains the loop, ``<module>`` for code outside functions.
      key: the key as the source writes it: ``key``, ``keys[0]``.
      call: the called function as the source writes it: ``jax.random.normal``, or a function of the file that
        draws.
      line: the line of the call.
      loop: the function that loops: ``jax.lax.fori_loop``; None: a Python loop.
      loop_line: the line of the loop, or of the call of the function that loops.
      makes_key: whether the called function, one of the file, makes the key itself.
    """

    function: str
    key: str
    call: str
    line: int
    loop: str | None
    loop_line: int
    makes_key: bool = False


def in_loops(source: str | None) -> list[Repeated]:
    """Return the draws in the bodies of ``fori_loop``, ``scan`` and ``while_loop`` whose key is the same in
    each iteration. Such a key comes from outside the body, is a part of the carry that the body returns
    unchanged, or is split from such a part.

    A call of a function of the file that draws from an unchanged part of the carry counts as a draw. Ignored
    are selections such as ``permutation``, and draws of which an iteration may use nothing, or only a part:
    ``jnp.where(done, draw(key), x)``, ``draw(key)[i]``.
    """
    found = syntax(source)
    if "random" not in (source or ""):
        return []
    draws, defined = Draws(found.imports), _functions(found)
    repeated = []
    for call in found.all_calls():
        position = _BODIES.get(last_name(call.func) or "")
        if position is None or len(call.args) <= position:
            continue
        passed = call.args[position]
        named = defined.get(passed.id, []) if isinstance(passed, ast.Name) else []
        body: ast.AST = named[0] if len(named) == 1 else passed
        if not isinstance(body, (ast.Lambda, ast.FunctionDef)) or _is_changed(body):
            continue
        scope = name_around(found, call.lineno)
        own = {a.arg for a in ast.walk(body) if isinstance(a, ast.arg)}  # also those of functions within it
        own |= names_in([body], ast.Store)
        carried = _unchanged(body, position, draws) if isinstance(body, ast.FunctionDef) else set()
        chosen = _chosen(body)
        for node in ast.walk(body):
            if not isinstance(node, ast.Call) or node in chosen:
                continue
            drawn = draws.name(node)
            key = key_of(node) if drawn not in (None, *NO_DRAW, *_SELECTS) else None
            if drawn is None and carried:
                key = next((k for k in _drawn_from(node, defined, draws) if k in carried), None)
            if key is not None and not (names_in([ast.parse(key)]) - carried) & own:
                name, loop = ast.unparse(node.func), ast.unparse(call.func)
                repeated.append(Repeated(scope, key, name, node.lineno, loop, call.lineno))
    return repeated


def in_python_loops(source: str | None) -> list[Repeated]:
    """Return the draws that a ``for`` or ``while`` loop repeats with the same key: no statement of the loop
    sets the key, or it is made from the same number each time (``jax.random.key(0)``), also in a function of
    the file that the loop calls.

    Only loops in which an iteration uses a result of the iteration before are searched (``x = x + noise``).
    Ignored are draws that may be repeated on purpose: inside an ``if``, with the variable of the ``for`` in
    an argument, in a loop over a list that is written out, or from a key whose name has a word such as
    ``eval`` or ``fixed``.
    """
    found = syntax(source)
    if "random" not in (source or ""):
        return []
    draws = Draws(found.imports)
    elsewhere = {  # variables that any function of the file may set
        name
        for node in ast.walk(found.tree)
        if isinstance(node, (ast.Global, ast.Nonlocal))
        for name in node.names
    }
    repeated, defined = [], _functions(found)
    for call in found.all_calls():
        key, fixed = None, None
        if draws.name(call) not in (None, *NO_DRAW):
            key, fixed = key_of(call), _fixed(call.args[0] if call.args else None, draws)
        elif draws.name(call) == "split":
            key = key_of(call)
        elif isinstance(call.func, ast.Name) and len(same := defined.get(call.func.id, [])) == 1:
            fixed = _drawn_with(same[0], draws) if not _SET_UP.search(call.func.id) else None
        key = key or fixed
        if key is None or _ON_PURPOSE.search(key) or names_in([ast.parse(key)]) & elsewhere:
            continue
        inside = loop_calls.find(source, call.lineno, call.col_offset, last_name(call.func) or "")
        if inside is None or not inside.always or not isinstance(inside.loop, (ast.For, ast.While)):
            continue
        loop = inside.loop
        if isinstance(loop, ast.For) and isinstance(loop.iter, (ast.List, ast.Tuple)):
            continue  # several settings
        counters = _counters(loop)
        if not loop_calls.carries(loop):
            continue
        if draws.name(call) == "split" and not _splits_again(loop, call, counters, draws):
            continue
        if names_in([ast.parse(key)]) & loop_calls.names_set(inside.repeats):
            key = fixed = _made_again(loop, key, draws)
            if key is None:
                continue
        if fixed is not None and not loop_calls.reaches_next(loop, call):
            continue  # for example samples from the same noise in each epoch, to compare them
        if not counters & loop_calls.names_read([*call.args, *call.keywords]):
            scope = name_around(found, call.lineno)
            name, makes_key = ast.unparse(call.func), draws.name(call) is None
            repeated.append(Repeated(scope, key, name, call.lineno, None, loop.lineno, makes_key))
    return repeated


def _splits_again(loop: ast.For | ast.While, split: ast.Call, counters: set[str], draws: Draws) -> bool:
    """Return whether each iteration of ``loop`` gets the same keys from the call ``split``: no statement of
    the loop sets the key that is split, and the loop passes the new keys on, not together with one of
    ``counters``, the variables that count the iterations."""
    nodes = [n for statement in loop.body for n in ast.walk(statement)]
    targets = [
        t for n in nodes if isinstance(n, ast.Assign) and split in ast.walk(n.value) for t in n.targets
    ]
    kept, old = names_in(targets, ast.Store), names_in([split])
    if not kept or old & {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}:
        return False
    uses = [
        c for c in nodes if isinstance(c, ast.Call) and loop_calls.names_read([*c.args, *c.keywords]) & kept
    ]
    return bool(uses) and not any(
        draws.name(c) == "fold_in" or counters & loop_calls.names_read([*c.args, *c.keywords]) for c in uses
    )


def _fixed(node: ast.expr | None, draws: Draws) -> str | None:
    """Return ``node`` as source if it makes a key from a number that is written out: ``jax.random.key(0)``.
    None otherwise."""
    if draws.name(node) not in ("PRNGKey", "key") or not isinstance(node, ast.Call):
        return None
    return ast.unparse(node) if node.args and isinstance(node.args[0], ast.Constant) else None


def _made_again(scope: ast.AST, key: str, draws: Draws) -> str | None:
    """Return the expression that makes ``key`` from a number that is written out, if all assignments to it in
    ``scope`` do so. None otherwise."""
    targets = (t for n in ast.walk(scope) if isinstance(n, ast.Assign) for t in n.targets)
    stored = sum(isinstance(n, ast.Name) for t in targets for n in ast.walk(t) if getattr(n, "id", "") == key)
    made = [_fixed(value, draws) for value in assigned(scope, key)]
    return made[0] if made and len(made) == stored else None


def _drawn_with(function: ast.FunctionDef, draws: Draws) -> str | None:
    """Return the key, as source, from which ``function`` draws in each call, if it makes the key from a
    number that is written out. None if there is none, or if the function has an ``if``."""
    if any(isinstance(n, (ast.If, ast.IfExp, ast.Match)) for n in ast.walk(function)):
        return None
    calls = (n for n in ast.walk(function) if isinstance(n, ast.Call))
    for call in (c for c in calls if draws.name(c) not in (None, *NO_DRAW, *_SELECTS)):
        key = key_of(call)
        found = _fixed(call.args[0] if call.args else None, draws)
        found = found or (_made_again(function, key, draws) if key is not None else None)
        if found is not None:
            return found
    return None


def _counters(loop: ast.For | ast.While) -> set[str]:
    """Return the variable of the ``for`` statement ``loop``, or the variables that the test of the ``while``
    statement ``loop`` compares and its body sets. Variables that the body computes from them are included. A
    shape that depends on one of these variables differs from iteration to iteration."""
    found = loop_calls.names_set([loop.target]) if isinstance(loop, ast.For) else set()
    if isinstance(loop, ast.While):
        compared = [n for n in ast.walk(loop.test) if isinstance(n, ast.Compare)]
        sides = [side for n in compared for side in (n.left, *n.comparators) if isinstance(side, ast.Name)]
        found |= loop_calls.names_read(sides) & loop_calls.names_set(loop.body)
    for statement in loop.body:
        if isinstance(statement, ast.Assign) and loop_calls.names_read([statement.value]) & found:
            found |= loop_calls.names_set([statement])
    return found


def name_around(file_syntax: Syntax, line: int) -> str:
    """Return the name of the innermost function that contains ``line``; ``<module>`` for code outside
    functions."""
    around = function_around(file_syntax, line)
    return around.name if around is not None else "<module>"


def _functions(file_syntax: Syntax) -> dict[str, list[ast.FunctionDef]]:
    """Return name -> the functions of a file with this name. Methods are ignored, and names that are also an
    import, a variable or a parameter."""
    methods = {n for c in ast.walk(file_syntax.tree) if isinstance(c, ast.ClassDef) for n in c.body}
    others = {a.asname or a.name for n in file_syntax.imports for a in n.names}
    others |= {a.arg for a in ast.walk(file_syntax.tree) if isinstance(a, ast.arg)} | _stored(
        file_syntax.tree
    ).keys()
    defined = (n for n in file_syntax.blocks if isinstance(n, ast.FunctionDef) and n not in methods)
    return grouped((n.name, n) for n in defined if n.name not in others)


def _is_changed(body: ast.Lambda | ast.FunctionDef) -> bool:
    """Return whether a decorator of the function ``body`` may call the function with other arguments.
    Decorators such as ``jax.jit`` and ``jax.checkpoint`` do not; all unknown decorators may."""
    decorators = body.decorator_list if isinstance(body, ast.FunctionDef) else []
    return not {last_name(d.func if isinstance(d, ast.Call) else d) for d in decorators} <= _TRANSPARENT


def _stored(node: ast.AST) -> Counter[str]:
    """Return how often ``node`` sets each variable."""
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    captured = [
        n.name for n in ast.walk(node) if isinstance(n, (ast.MatchAs, ast.MatchStar)) and n.name is not None
    ]
    return Counter([*names, *captured])


def _chosen(body: ast.AST) -> set[ast.AST]:
    """Return the syntax nodes in the function ``body`` whose values may remain unused, or be used only in
    part: the arguments of calls such as ``cond`` and ``where``, and ``draw(key)`` in ``draw(key)[i]``."""
    found = set[ast.AST]()
    for n in ast.walk(body):
        if isinstance(n, ast.Call) and last_name(n.func) in _CHOOSE:
            found |= {inside for part in n.args for inside in ast.walk(part)}
        elif isinstance(n, ast.Subscript) and not isinstance(n.slice, ast.Constant):
            found |= set(ast.walk(n.value))
    return found


def _unchanged(body: ast.FunctionDef, argument: int, draws: Draws) -> set[str]:
    """Return the variables in the body of a loop that are the same in each iteration: parts of the carry that
    the body returns unchanged, and keys split from such parts. ``argument`` is the position of the body in
    the loop's call: 2 for ``fori_loop``, 0 for ``scan``, 1 for ``while_loop``."""
    position = 1 if argument == _BODIES["fori_loop"] else 0
    returned, changes = _returned_carry(body, argument), _changes(body)
    carry = body.args.args[position].arg if len(body.args.args) > position else None
    if returned is None or carry is None or changes[carry]:
        return set()
    set_once = {name for name, times in changes.items() if times == 1}
    found = {carry} if isinstance(returned, ast.Name) and returned.id == carry else set()
    assigned = [n for n in ast.walk(body) if isinstance(n, ast.Assign) and len(n.targets) == 1]
    for n in assigned:
        match n.targets[0], n.value, returned:
            case ast.Tuple(elts=parts), ast.Name(id=name), ast.Tuple(elts=results) if name == carry:
                pairs = zip(parts, results, strict=True) if len(parts) == len(results) else ()
                same = (a.id for a, b in pairs if isinstance(a, ast.Name) and is_name(b, a.id))
                found |= set_once.intersection(same)
    for n in assigned:
        split = n.value
        if isinstance(split, ast.Subscript) and isinstance(split.slice, ast.Constant):
            split = split.value  # split(key)[0]
        if isinstance(split, ast.Call) and draws.name(split) == "split" and key_of(split) in found:
            found |= names_in(n.targets) & set_once
    return found


def _returned_carry(body: ast.FunctionDef, argument: int) -> ast.expr | None:
    """Return the carry for the next iteration that ``body`` returns; the arguments are those of
    ``_unchanged``. None if it is unclear."""
    returned = [n.value for n in ast.walk(body) if isinstance(n, ast.Return) and n.value is not None]
    if len(returned) != 1:
        return None
    if argument != _BODIES["scan"]:
        return returned[0]
    elements = returned[0].elts if isinstance(returned[0], ast.Tuple) else []
    return elements[0] if len(elements) == 2 else None


def _changes(body: ast.FunctionDef) -> Counter[str]:
    """Return how often ``body`` sets or changes each variable: the variable itself, its items and attributes,
    and calls of its methods such as ``append``. A parameter of a function inside ``body`` counts, too."""
    inner = [n for n in ast.walk(body) if isinstance(n, (*FUNCTION, ast.Lambda)) and n is not body]
    found = _stored(body) + Counter(a.arg for n in inner for a in ast.walk(n.args) if isinstance(a, ast.arg))
    for n in ast.walk(body):
        if isinstance(n, (ast.Subscript, ast.Attribute)):
            mutates = isinstance(n, ast.Attribute) and n.attr in _MUTATE
            found[root(n) or ""] += mutates or isinstance(n.ctx, ast.Store)
    return found


def _drawn_from(call: ast.Call, defined: dict[str, list[ast.FunctionDef]], draws: Draws) -> Iterator[str]:
    """Yield the variables that ``call`` passes as keys to a function of the file that certainly draws from
    them. ``defined`` has the functions of the file, by name."""
    functions = defined.get(call.func.id, []) if isinstance(call.func, ast.Name) else []
    if len(functions) == 1:
        yield from dict.fromkeys(name for name, _ in _drawn_by(call, functions[0], draws))


def _drawn_by(call: ast.Call, function: ast.FunctionDef, draws: Draws) -> Iterator[tuple[str, int | None]]:
    """Yield (variable, number) for the keys from which the call ``call`` of ``function`` certainly draws: the
    call passes the variable, and the function draws from the parameter that gets it (None), or from the part
    of its ``split`` with this number. A function with an ``if`` yields nothing. ``draws`` recognizes the
    calls of ``jax.random`` in the file of the function."""
    if any(isinstance(n, (ast.If, ast.IfExp, ast.Match)) for n in ast.walk(function)) or _is_changed(
        function
    ):
        return  # it may not draw in this call
    chosen = _chosen(function)
    inside = [n for n in ast.walk(function) if isinstance(n, ast.Call) and n not in chosen]
    drawing = [n for n in inside if draws.name(n) not in (None, *NO_DRAW, *_SELECTS)]
    keys, parts = {key_of(n) for n in drawing}, _Parts(function, draws)
    split = {part for n in drawing if (part := parts.of(n)) is not None and part.set_at == _BEGIN}
    within = [n for n in ast.walk(function) if isinstance(n, (*FUNCTION, ast.Lambda)) and n is not function]
    set_inside = {a.arg for n in within for a in ast.walk(n.args) if isinstance(a, ast.arg)}
    set_inside |= _stored(function).keys()
    if any(isinstance(a, ast.Starred) for a in call.args):
        return
    for name, value in bind(call, function):
        if not isinstance(value, ast.Name):
            continue
        if name in keys and name not in set_inside:
            yield value.id, None
        yield from ((value.id, part.number) for part in split if part.key == name)


def split_before(source: str | None, key: str, line: int) -> tuple[str, str] | None:
    """Return (the key that was split, the number of keys), as text, if the last assignment to ``key`` above
    ``line`` is a ``split`` with two positional arguments: ``("rng", "len(x)")`` for ``keys =
    jax.random.split(rng, len(x))``. Return None if the file has no assignment above the line, or the last one
    is another."""
    made = [
        n
        for n in ast.walk(syntax(source).tree)
        if isinstance(n, ast.Assign) and n.lineno < line and [ast.unparse(t) for t in n.targets] == [key]
    ]
    value = max(made, key=lambda n: n.lineno).value if made else None
    if isinstance(value, ast.Call) and last_name(value.func) == "split" and len(value.args) == 2:
        return ast.unparse(value.args[0]), ast.unparse(value.args[1])
    return None


def called_in(source: str | None, names: set[str], *, surely: bool = False) -> set[str]:
    """Return the names of all functions and classes that may run when the functions ``names`` are called. The
    result has ``names`` and the functions and classes of ``source`` that their bodies mention, directly or
    through other functions.

    If ``surely`` is True, mentions in code that may not run, such as branches of ``if``, do not count.
    """
    bodies = _mentioned(source, surely=surely)
    reached, left = set[str](), list(names)
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += bodies.get(name, set()) & bodies.keys()
    return reached


@functools.lru_cache(16)  # called for each line of a file that makes JAX compile
def _mentioned(source: str | None, *, surely: bool) -> dict[str, set[str]]:
    """Return {name: the names that it mentions} for the functions and classes of ``source``. A class mentions
    its special methods, because an object of it can be called. ``surely`` is that of ``called_in``."""
    found = syntax(source)
    walk = _without_branches if surely else ast.walk
    bodies: dict[str, set[str]] = {}
    for n in found.functions():
        inside = {last_name(part) or "" for part in walk(n) if isinstance(part, (ast.Name, ast.Attribute))}
        bodies.setdefault(n.name, set()).update(inside)
    for c in ast.walk(found.tree):
        if isinstance(c, ast.ClassDef):
            special = {m.name for m in c.body if isinstance(m, FUNCTION) and m.name[:2] == "__"}
            bodies.setdefault(c.name, set()).update(special)
    return bodies


def _without_branches(node: ast.AST) -> Iterator[ast.AST]:
    """Yield ``node`` and all nodes in it, except code that may not run: branches of ``if``, whole ``match``
    statements, ``except`` blocks and dictionaries, and the statements of a block after ``return`` or
    ``raise``. The bodies of loops and functions are yielded."""
    if isinstance(node, (ast.ExceptHandler, ast.Dict, ast.Match)):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if isinstance(node, (ast.If, ast.IfExp)) and name != "test":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _without_branches(child)
            if isinstance(child, (ast.Return, ast.Raise)):
                break


class Draws:
    """Recognizes the calls of ``jax.random`` in a file whose import statements are ``imports``."""

    def __init__(self, imports: list[ast.Import | ast.ImportFrom]) -> None:
        self._names = line_names.full_names(imports)

    def name(self, call: ast.expr | None) -> str | None:
        """Return the name of the function of ``jax.random`` that the expression ``call`` calls, such as
        ``normal``. Return None if ``call`` calls another function, or is no call."""
        called = line_names.full_name(call.func, self._names) if isinstance(call, ast.Call) else ""
        module, _, name = called.rpartition(".")
        return name if module == "jax.random" else None


class _Call(NamedTuple):
    """A call in a function.

    Attributes:
      node: the call.
      above: the statements around the call, the outermost first, each with the name of its field that
        contains the call: ``(if, "orelse")``.
    """

    node: ast.Call
    above: _Above

    @property
    def place(self) -> tuple[int, int]:
        return self.node.lineno, self.node.col_offset

    @property
    def function(self) -> str:
        return ast.unparse(self.node.func)


# Name -> (function, what recognizes the calls of ``jax.random`` in its file)
_Known: TypeAlias = "dict[str, tuple[ast.FunctionDef, Draws]]"
_EQUAL_CALL, _INSIDE = "equal call", "function that draws"  # how a call uses a key, beside draws


class _Use(NamedTuple):
    """How a call uses a key.

    Attributes:
      by: the function of ``jax.random`` that draws from the key; _EQUAL_CALL: another function, which may
        draw from the key; _INSIDE: a function of the file, or one that it imports, that certainly draws from
        the key.
      text: the key as the source writes it.
      same: equal for two calls that use the same key: the text of the key, the part of a split, or for
        _EQUAL_CALL the text of the call.
      names: the variables that must not change between two uses.
    """

    by: str
    text: str
    same: str | _Part
    names: set[str]


def _uses(c: _Call, keys: set[str], parts: _Parts, draws: Draws, known: _Known) -> Iterator[_Use]:
    """Yield how the call ``c`` uses a key; nothing if it uses none.

    Args:
      keys: the variables to which the function around the call assigns keys.
      parts: which variables of this function are parts of split keys.
      draws: recognizes the calls of ``jax.random`` in the file.
      known: the functions that the file defines or imports.
    """
    drawn, key, part = draws.name(c.node), key_of(c.node), parts.of(c.node)
    if drawn is not None and drawn not in NO_DRAW and (key is not None or part is not None):
        text = key or str(part)
        yield _Use(drawn, text, part or text, names_in([ast.parse(text)]))
    if drawn is None:
        passed = {a.id for a in c.node.args if isinstance(a, ast.Name)}
        if same := sorted(keys & passed):
            yield _Use(_EQUAL_CALL, same[0], ast.unparse(c.node), names_in([c.node]))
        called = known.get(c.node.func.id) if isinstance(c.node.func, ast.Name) else None
        for name, number in _drawn_by(c.node, *called) if called is not None else ():
            part = parts.of_variable(name, number, c.place) if number is not None else None
            yield _Use(_INSIDE, name if part is None else str(part), part or name, {name})


def _in_scope(
    scope: ast.Module | Definition,
    draws: Draws,
    known: _Known,
) -> Iterator[Reused]:
    """Yield one ``Reused`` for each key from which several calls in ``scope`` draw. ``draws`` recognizes the
    calls of ``jax.random`` in the file, and ``known`` has the functions that the file defines or imports."""
    calls, assigned, keys = list[_Call](), list[tuple[str, tuple[int, int]]](), set[str]()
    parts = _Parts(scope, draws)
    for node, above in _own(scope, ()):
        if isinstance(node, ast.Call):
            calls.append(_Call(node, above))
        elif isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", None), ast.Store):
            assigned += [(name, (node.lineno, node.col_offset)) for name in names_in([node])]
        if isinstance(node, ast.Assign) and draws.name(node.value) in _MAKES_KEYS:
            keys |= names_in(node.targets)
    reused, earlier = dict[str, list[_Call]](), dict[str | _Part, list[tuple[_Call, _Use]]]()
    split = dict[str, str]()
    for c in sorted(calls, key=lambda c: c.place):
        for use in _uses(c, keys, parts, draws, known):
            for first, before in earlier.setdefault(use.same, []):
                if not _both(first, c) or (use.by == _EQUAL_CALL and first.above != c.above):
                    continue
                if use.by == before.by == _INSIDE or {use.by, before.by} <= _SELECTS:
                    continue
                changed = use.names if not isinstance(use.same, _Part) else set()
                if any(name in changed and first.place < at < c.place for name, at in assigned):
                    continue
                text = use.text
                if isinstance(use.same, _Part) and (before.text != text or text == str(use.same)):
                    text = str(use.same)
                    split[text] = use.same.key
                members = reused.setdefault(text, [first])
                if first in members:  # a call that is in another branch than the others is left out
                    members.append(c)
                    break
            earlier[use.same].append((c, use))
    for text, members in reused.items():
        yield Reused(
            function=getattr(scope, "name", "<module>"),
            key=text,
            calls=tuple(c.function for c in members),
            lines=tuple(c.node.lineno for c in members),
            equal=len({ast.unparse(c.node) for c in members}) == 1,
            split=split.get(text),
        )


_Place: TypeAlias = tuple[int, int]  # (line, column)
_BEGIN: _Place = (0, 0)


class _Part(NamedTuple):
    """What a variable or expression has of the result of a ``split``: one key, or the array of all keys.

    Attributes:
      key: the key that was split, as the source writes it.
      set_at: the place of the last assignment to ``key`` before the split; _BEGIN: none. Two splits of
        ``key`` give the same keys if this is equal.
      number: the position of the one key; None: the array of all keys.
    """

    key: str
    set_at: _Place
    number: int | None

    def __str__(self) -> str:
        return f"split({self.key})[{self.number}]"


class _Parts:
    """The variables of a function that are keys from a ``split``, or the array of all its keys.

    ``split(key)[1]`` and ``split(key, 3)[1]`` are the same key: with JAX's default
    ``jax_threefry_partitionable``, a part does not depend on the number of parts.
    """

    def __init__(self, scope: ast.AST, draws: Draws) -> None:
        self._draws = draws
        self._set: dict[str, list[tuple[_Place, _Part | None]]] = {}  # in the order of the source
        nodes = [node for node, _ in _own(scope, ())]
        assigned = [n for n in nodes if isinstance(n, ast.Assign)]
        inside = {id(n): a for a in assigned for t in a.targets for n in ast.walk(t)}
        stored = [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        for n in sorted(stored, key=lambda n: (n.lineno, n.col_offset)):
            statement = inside.get(id(n))
            place = n.lineno, n.col_offset
            if statement is not None:
                place = statement.end_lineno or n.lineno, statement.end_col_offset or n.col_offset
            part = self._made_by(statement, n) if statement is not None else None
            self._set.setdefault(n.id, []).append((place, part))

    def of(self, call: ast.Call) -> _Part | None:
        """Return the part of a split from which ``call`` draws; None if it draws from another key, or from
        the array of all parts."""
        passed = [k.value for k in call.keywords if k.arg == "key"] or call.args[:1]
        part = self._part(passed[0], (call.lineno, call.col_offset)) if passed else None
        return part if part is not None and part.number is not None else None

    def of_variable(self, name: str, number: int, at: _Place) -> _Part:
        """Return the key with the position ``number`` in a split of the variable ``name`` at ``at``."""
        before = [place for place, _ in self._set.get(name, ()) if place <= at]
        return _Part(name, before[-1] if before else _BEGIN, number)

    def _made_by(self, statement: ast.Assign, name: ast.Name) -> _Part | None:
        """Return which part of a split the assignment ``statement`` gives to the variable ``name``, one of
        its targets; None if it gives none."""
        begins = statement.lineno, statement.col_offset
        target = statement.targets[0]
        part = self._part(statement.value, begins) if len(statement.targets) == 1 else None
        if part is None or target is name:
            return part
        several = isinstance(target, ast.Tuple) and name in target.elts and part.number is None
        if (
            not several
            or not isinstance(target, ast.Tuple)
            or any(isinstance(e, ast.Starred) for e in target.elts)
        ):
            return None
        return part._replace(number=target.elts.index(name))

    def _part(self, node: ast.expr, at: _Place) -> _Part | None:
        """Return which part of a split the expression ``node`` is at the place ``at``; None if it is none."""
        if isinstance(node, ast.Subscript):
            index = node.slice.value if isinstance(node.slice, ast.Constant) else None
            array = self._part(node.value, at)
            if array is None or array.number is not None or not isinstance(index, int) or index < 0:
                return None
            return array._replace(number=index)
        if isinstance(node, ast.Name):
            earlier = [part for place, part in self._set.get(node.id, ()) if place <= at]
            return earlier[-1] if earlier else None
        if self._draws.name(node) != "split" or not isinstance(node, ast.Call):
            return None
        key = node.args[0] if node.args else None
        count = [*node.args[1:], *(k.value for k in node.keywords)]
        if not isinstance(key, ast.Name) or any(isinstance(n, ast.Tuple) for n in count):
            return None  # split(key, (2, 3)) gives rows
        before = [place for place, _ in self._set.get(key.id, ()) if place <= at]
        return _Part(key.id, before[-1] if before else _BEGIN, None)


def key_of(call: ast.Call) -> str | None:
    """Return the key that ``call`` passes to a function of ``jax.random``: ``key``, ``keys[0]``. Return None
    if it is neither a variable nor an item of a variable."""
    passed = [k.value for k in call.keywords if k.arg == "key"] or call.args[:1]
    key = passed[0] if passed else None
    item = isinstance(key, ast.Subscript) and isinstance(key.value, ast.Name)
    return ast.unparse(key) if isinstance(key, ast.Name) or (key is not None and item) else None


def _own(node: ast.AST, above: _Above) -> Iterator[tuple[ast.AST, _Above]]:
    """Yield (inner node, statements around it) for each syntax node inside ``node``. Functions, classes,
    comprehensions and their contents are left out. Each statement comes with the name of its field that
    contains the inner node. ``above`` has the statements around ``node``."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, _SCOPES):
                within = (*above, (node, field)) if isinstance(node, _STATEMENTS) else above
                yield child, within
                yield from _own(child, within)


def _both(first: _Call, second: _Call) -> bool:
    """Return whether both calls can run one after the other: they are not in different branches of a
    condition, and no block that contains only the call ``first`` ends with a ``return`` or another exit."""
    for (a, field), (b, other) in zip(first.above, second.above, strict=False):
        if a is not b:
            if isinstance(a, ast.match_case):
                return False
            break
        if field != other and isinstance(a, (ast.If, ast.IfExp, ast.Try)) and "test" not in (field, other):
            return False
    left = [pair for pair in first.above if pair not in second.above]
    return not any(isinstance(node, _EXITS) or _ends(getattr(node, field)) for node, field in left)


def _ends(block: object) -> bool:
    """Return whether ``block`` is a list of statements that ends with an exit (``return``, ``break``,
    ...)."""
    return isinstance(block, list) and bool(block) and isinstance(block[-1], _EXITS)
