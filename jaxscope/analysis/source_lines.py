"""Answer questions about a line of the user's source: whether it runs once, in a loop or only in some
iterations, and what happens to its value.

Lines are counted from 1. A ``source`` of None means that the source is unknown; the result is then False,
None or empty.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from jaxscope.analysis.syntax import (
    COMPREHENSIONS,
    FUNCTION,
    LOOPS,
    Definition,
    Syntax,
    assigned,
    blocks_around,
    calls_at,
    calls_from,
    definition,
    function_around,
    last_name,
    own_nodes,
    scope_around,
    spans,
    syntax,
)

NESTED = 16  # the most nested calls that are examined for one line
_OF_LISTS = frozenset({"append", "insert", "extend", "pop", "block_until_ready"})


def runs_once(source: str | None, line: int, *, in_loop: bool = False) -> bool:
    """Return whether the source shows that ``line`` runs only once. If ``in_loop`` is True, return whether
    the only loop around the line in its function runs once.

    The line (or this loop) must be outside loops and comprehensions, and at module level or in a function
    whose only call is on a line that runs once.
    """
    found = syntax(source)
    if not any(spans(n, line) for n in found.tree.body):
        return False
    return _runs_once(found, line, NESTED, in_loop=in_loop)


def _runs_once(file_syntax: Syntax, line: int, deepest: int, *, in_loop: bool = False) -> bool:
    """Return whether ``line`` runs only once, as ``runs_once`` does. At most ``deepest`` calling functions
    are followed. If ``in_loop`` is True, the innermost block around the line, a loop, does not count."""
    around = [n for n in file_syntax.blocks if spans(n, line)]
    if in_loop and around:
        around.remove(max(around, key=lambda n: (n.lineno, n.col_offset)))
    if not around:
        return True
    if not deepest or not all(isinstance(n, FUNCTION) for n in around):
        return False
    innermost = max(around, key=lambda n: n.lineno)
    if innermost.lineno == line:
        return False  # a decorator or a default on this line belongs to the outer function
    called = _called_at(file_syntax, getattr(innermost, "name", ""))
    return (
        called is not None and not spans(innermost, called) and _runs_once(file_syntax, called, deepest - 1)
    )


def _called_at(file_syntax: Syntax, name: str) -> int | None:
    """Return the line of the only call of the function ``name``, directly or as in ``app.run(name)``. Return
    None if the file does not call the function, or mentions its name more than once."""
    mentions = [
        n
        for n in ast.walk(file_syntax.tree)
        if isinstance(n, (ast.Name, ast.Attribute)) and last_name(n) == name
    ]
    if len(mentions) != 1:
        return None
    for call in file_syntax.all_calls():
        if call.func is mentions[0] or (last_name(call.func) in _RUN and mentions[0] in call.args):
            return call.lineno
    return None


_RUN = frozenset({"run", "Fire"})  # app.run(main), asyncio.run, fire.Fire call their argument once


def in_a_loop(source: str | None, line: int) -> bool:
    """Return whether ``line`` is in a loop or a comprehension of the innermost Python function around the
    line. Loops around this function do not count."""
    scope = scope_around(syntax(source), line)
    begins = scope.lineno if scope is not None else 0
    return any(isinstance(n, LOOPS) and n.lineno >= begins for n in blocks_around(source, line))


def passes_function(source: str | None, line: int, name: str) -> bool:
    """Return whether the code at ``line`` passes the function ``name`` to another function (``map(name,
    xs)``), which may call ``name`` any number of times, and does not also call ``name`` itself."""
    calls = calls_at(source, line)
    passed = (part for c in calls for part in (*c.args, *(k.value for k in c.keywords)))
    return any(last_name(part) == name for part in passed) and not _calls(calls, name)


def runs_as_task(source: str | None, line: int, name: str, caller: str | None, called_at: int) -> bool:
    """Return whether an event loop seems to run the coroutine ``name`` as a task: ``line`` of ``source`` is
    in the coroutine, and the next outer frame does not call ``name``. ``caller`` is the text of this frame's
    file, ``called_at`` its line."""
    around = blocks_around(source, line)
    coroutine = any(isinstance(n, ast.AsyncFunctionDef) and n.name == name for n in around)
    return coroutine and not _calls(calls_at(caller, called_at), name)


def _calls(calls: Iterable[ast.Call], name: str) -> bool:
    """Return whether one of ``calls`` calls ``name``."""
    return any(last_name(c.func) == name for c in calls)


def only_loop(source: str | None, name: str, begins: int) -> int | None:
    """Return the line of the only ``for`` or ``while`` in a function, not counting loops inside this loop.
    Return None if the function has no loop, or several, or is not found.

    Args:
      source: the text of the file; None: unknown.
      name: the name of the function.
      begins: the line of the function's ``def``, or of one of its decorators.
    """
    function = definition(syntax(source), name, begins)
    if function is None:
        return None
    loops = [n for n in ast.walk(function) if isinstance(n, (ast.For, ast.While))]
    outer = [n for n in loops if not any(spans(m, n.lineno) for m in loops if m is not n)]
    return outer[0].lineno if len(outer) == 1 else None


def loop_around(source: str | None, line: int, *, comprehensions: bool = False) -> tuple[int, int] | None:
    """Return (first line, last line) of the innermost ``for`` or ``while`` around ``line`` in the same
    function. Return None if there is none. If ``comprehensions`` is True, comprehensions count as loops."""
    return next(reversed(loops_around(source, line, comprehensions=comprehensions)), None)


def loops_around(source: str | None, line: int, *, comprehensions: bool = False) -> list[tuple[int, int]]:
    """Return (first line, last line) of each ``for`` and ``while`` around ``line`` in the same function,
    outermost first. If ``comprehensions`` is True, comprehensions count as loops."""
    kinds = (ast.For, ast.While, *COMPREHENSIONS) if comprehensions else (ast.For, ast.While)
    return [(n.lineno, n.end_lineno or line) for n in _loops_in_scope(source, line) if isinstance(n, kinds)]


def innermost_loop(source: str | None, line: int) -> ast.For | ast.While | None:
    """Return the innermost ``for`` or ``while`` around ``line`` in the same function, or None."""
    loops = _loops_in_scope(source, line)
    return next((n for n in reversed(loops) if isinstance(n, (ast.For, ast.While))), None)


def _loops_in_scope(source: str | None, line: int) -> list[ast.stmt | ast.expr]:
    """Return the loops and comprehensions around ``line`` in the same function, outermost first."""
    around = blocks_around(source, line)
    # A line at which a lambda begins may be in the lambda or outside of it: ``jax.vmap(lambda x: ...)(xs)``.
    scopes = [n for n in around if isinstance(n, FUNCTION) or (isinstance(n, ast.Lambda) and n.lineno < line)]
    begins = max((n.lineno for n in scopes), default=0)
    loops = [n for n in around if isinstance(n, LOOPS) and n.lineno >= begins]
    return sorted(loops, key=lambda n: n.lineno)


def waits_before(source: str | None, line: int) -> bool:
    """Return whether the innermost loop around ``line`` calls ``block_until_ready`` on an earlier line."""
    loop = innermost_loop(source, line)
    calls = [n for n in ast.walk(loop) if isinstance(n, ast.Call)] if loop is not None else []
    return any(c.lineno < line and last_name(c.func) == "block_until_ready" for c in calls)


def changed_through_methods(source: str | None, line: int) -> tuple[str, ...]:
    """Return the variables whose objects the innermost loop around ``line`` seems to change: it sets their
    attributes, or calls their methods without using the result (``filtered.step(x)``). Methods of lists and
    variables that the loop itself sets are left out."""
    loop = innermost_loop(source, line)
    if loop is None:
        return ()
    inside = [n for statement in loop.body for n in ast.walk(statement)]
    own = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    called = [n.value.func for n in inside if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)]
    methods = [f for f in called if isinstance(f, ast.Attribute) and f.attr not in _OF_LISTS]
    written = [n for n in inside if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
    owners = [n.value for n in (*methods, *written) if isinstance(n.value, ast.Name)]
    return tuple(dict.fromkeys(n.id for n in owners if n.id not in own))


def counts_only(source: str | None, line: int) -> bool:
    """Return whether the innermost loop around ``line`` in the same function is a ``for`` over a ``range``
    whose variable the loop does not read, or only in conditions (``tests_of_target``)."""
    loop = innermost_loop(source, line)
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return False
    inside = [n for s in loop.body for n in ast.walk(s)]
    tests = {id(m) for n in inside if isinstance(n, (ast.If, ast.IfExp)) for m in ast.walk(n.test)}
    read = {n.id for n in inside if isinstance(n, ast.Name) and id(n) not in tests}
    over = loop.iter
    return isinstance(over, ast.Call) and last_name(over.func) == "range" and loop.target.id not in read


class TargetTest(NamedTuple):
    """An ``if`` in a loop whose condition reads the loop's variable. Conditional expressions count, too.

    Attributes:
      line: the line of the condition.
      text: the condition: ``i < n - 1``.
      first: whether it tells the first iteration from the others (``i > 0``); False: the last one
        (``i < n - 1``); None: other iterations, or unknown.
    """

    line: int
    text: str
    first: bool | None


def tests_of_target(source: str | None, line: int) -> list[TargetTest]:
    """Return the conditions in the innermost ``for`` loop around ``line`` that read the loop's variable."""
    loop = innermost_loop(source, line)
    if not isinstance(loop, ast.For):
        return []
    names = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    inside = (n for statement in loop.body for n in ast.walk(statement))
    tests = [n.test for n in inside if isinstance(n, (ast.If, ast.IfExp))]
    read = (t for t in tests if any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(t)))
    return [TargetTest(t.lineno, ast.unparse(t), _tells_first(t)) for t in read]


def _tells_first(test: ast.expr) -> bool | None:
    """Return ``TargetTest.first`` of the condition ``test``."""
    match test:
        case ast.Name() | ast.UnaryOp(op=ast.Not(), operand=ast.Name()):
            return True
        case ast.Compare(
            left=ast.Name(), ops=[ast.Gt() | ast.Eq() | ast.NotEq()], comparators=[ast.Constant(value=0)]
        ):
            return True
        case ast.Compare(
            left=ast.Name(),
            ops=[ast.Lt() | ast.Eq() | ast.NotEq()],
            comparators=[ast.BinOp(op=ast.Sub(), right=ast.Constant(value=1))],
        ):
            return False
    return None


def appended(source: str | None, line: int) -> list[str]:
    """Return the lists, as text, to which the innermost loop around ``line`` in the same function appends, or
    into which it inserts."""
    loop = innermost_loop(source, line)
    calls = [n for n in ast.walk(loop) if isinstance(n, ast.Call)] if loop is not None else []
    added = [
        c.func for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr in ("append", "insert")
    ]
    return list(dict.fromkeys(ast.unparse(n.value) for n in added))


def begin_empty(source: str | None, line: int) -> bool:
    """Return whether the lists to which the innermost loop around ``line`` appends are empty when the loop
    begins: the function around it assigns only ``[]`` to each, and appends to it nowhere else."""
    file_syntax = syntax(source)
    loop, scope = innermost_loop(source, line), scope_around(file_syntax, line) or file_syntax.tree
    for name in appended(source, line):
        values = assigned(scope, name)
        added = [n for n in ast.walk(scope) if isinstance(n, ast.Attribute) and ast.unparse(n.value) == name]
        empty = all(isinstance(v, ast.List) and not v.elts for v in values)
        if loop is None or not values or not empty or not all(spans(loop, n.lineno) for n in added):
            return False
    return True


def ends_the_loop(source: str | None, line: int) -> bool:
    """Return whether ``line`` is in the condition of a ``while``, or of an ``if`` in a loop whose block has
    ``break`` or ``return`` as one of its statements."""
    around = (n for n in ast.walk(syntax(source).tree) if isinstance(n, (ast.If, ast.While)))
    tests = [n for n in around if spans(n.test, line)]
    return any(
        isinstance(n, ast.While)
        or (in_a_loop(source, line) and any(isinstance(s, (ast.Break, ast.Return)) for s in n.body))
        for n in tests
    )


def only_raises(source: str | None, line: int) -> bool:
    """Return whether ``line`` is in the condition of an ``if`` whose block raises an exception."""
    tests = (n for n in ast.walk(syntax(source).tree) if isinstance(n, ast.If))
    return any(spans(n.test, line) and any(isinstance(s, ast.Raise) for s in n.body) for n in tests)


def creates_for_each_call(source: str | None, created: int, called: int) -> bool:
    """Return whether the line ``created`` creates a new function object for each call on the line ``called``,
    so that each object is called only once. Return False if that is unknown.

    This is so if both lines are in the same Python function, and every loop around ``called`` is also around
    ``created``. A line that calls the function around ``created`` (``make_step()``) counts like ``created``.
    """
    found = syntax(source)
    if not found.tree.body:
        return False
    creator, _ = _scope(found, created)
    name = getattr(creator, "name", None)
    calls = (n for n, on_line in found.calls.items() if any(last_name(c.func) == name for c in on_line))
    scope, loops = _scope(found, called)
    return any(
        scope is other and loops <= others
        for other, others in (_scope(found, line) for line in (created, *(calls if name else ())))
    )


def _scope(file_syntax: Syntax, line: int) -> tuple[ast.AST | None, set[ast.AST]]:
    """Return (innermost def around ``line``, loops and comprehensions around ``line`` in this def). The def
    is None for a line at module level. A def that begins on the line does not count as around it."""
    scope = function_around(file_syntax, line, inside=True)
    begins = scope.lineno if scope is not None else 0
    blocks = (n for n in file_syntax.blocks if isinstance(n, LOOPS) and spans(n, line))
    return scope, {n for n in blocks if n.lineno >= begins}


# Calls whose first argument a compiled program calls back; ``callback`` only as ``jax.debug.callback``.
_CALLBACKS = frozenset({"pure_callback", "io_callback"})


def callback_around(source: str | None, line: int) -> Definition | None:
    """Return the innermost def around ``line`` if the source passes this def to JAX as a callback:
    ``jax.debug.callback(show, x)``, ``io_callback(partial(show, 2), None, x)``; else None."""
    found = syntax(source)
    innermost = function_around(found, line)
    if innermost is None:
        return None
    for call in found.all_calls():
        name = last_name(call.func)
        of_debug = isinstance(call.func, ast.Attribute) and last_name(call.func.value) == "debug"
        if name in _CALLBACKS or (name == "callback" and of_debug):
            passed = [*call.args[:1], *(k.value for k in call.keywords if k.arg in ("callback", "f"))]
            given = (
                n.args[0] if isinstance(n, ast.Call) and last_name(n.func) == "partial" and n.args else n
                for n in passed
            )
            if any(last_name(n) == innermost.name for n in given):
                return innermost
    return None


_CASTS = frozenset({"astype", "convert_element_type", "asarray", "array", "view", "float32", "float64"})
_HALF = re.compile(r"\b(?:b?float16|half)\b")


def widens(source: str | None, line: int) -> bool:
    """Return whether a call on ``line`` converts a dtype, or may do so: ``x.astype(...)``,
    ``jnp.float32(x)``, ``jnp.asarray(x)``, ``dtype=...``. A call with a half-precision type,
    ``x.astype(jnp.bfloat16)``, does not count."""
    return any(
        last_name(c.func) in _CASTS or any(k.arg == "dtype" for k in c.keywords)
        for c in calls_from(source, line)
        if not any(_HALF.search(ast.unparse(a)) for a in (*c.args, *(k.value for k in c.keywords)))
    )


def kept_from_iteration_before(source: str | None, line: int) -> bool:
    """Return whether ``line``, in a loop, reads a variable that still has its value from the previous
    iteration. The loop sets the variable only after ``line``, from another variable (``kept = loss``). For an
    attribute (``self.kept = loss``), a function that a loop calls counts as one iteration."""
    found = syntax(source)
    loops = [
        n for n in blocks_around(source, line) if isinstance(n, (ast.For, ast.While)) and n.lineno < line
    ]
    function = function_around(found, line)
    of_loop = _kept(max(loops, key=lambda n: n.lineno), line) if loops else set()
    of_call = {name for name in _kept(function, line) if "." in name} if function is not None else set()
    return bool(of_loop or of_call)


def _kept(scope: ast.AST, line: int) -> set[str]:
    """Return the variables and attributes that ``line`` reads and that ``scope`` sets only on later lines,
    from another variable or attribute."""
    inside = [n for n in ast.walk(scope) if isinstance(n, (ast.Name, ast.Attribute, ast.Assign))]
    used = [(ast.unparse(n), n) for n in inside if not isinstance(n, ast.Assign)]
    read = {name for name, n in used if n.lineno == line and isinstance(n.ctx, ast.Load)}
    set_before = {name for name, n in used if n.lineno <= line and isinstance(n.ctx, ast.Store)}
    copies = (
        n for n in inside if isinstance(n, ast.Assign) and isinstance(n.value, (ast.Name, ast.Attribute))
    )
    kept = {ast.unparse(target) for n in copies if n.lineno > line for target in n.targets}
    return read & kept - set_before


def depends_on_a_condition(source: str | None, line: int, text: str | None = None) -> bool:
    """Return whether an ``if`` in the innermost loop around ``line`` decides whether an iteration reaches the
    line. The line is in a block of the ``if``, or after an ``if`` that contains ``continue`` or ``return``.

    If the condition and its block are both on the line, the result is about the expression ``text``. None
    (unknown) counts as a part of the condition.
    """
    loop = innermost_loop(source, line)
    inside = [n for n in ast.walk(loop) if isinstance(n, ast.If)] if loop is not None else []
    return any(
        _is_in_block(n, line, text)
        or (n.lineno < line and any(isinstance(s, (ast.Continue, ast.Return)) for s in n.body))
        for n in inside
    )


def _is_in_block(node: ast.If, line: int, text: str | None) -> bool:
    """Return whether ``line`` is in a block of the ``if`` statement ``node``. If the condition is on the same
    line, ``text`` must be given and not be a part of the condition."""
    inside = any(spans(s, line) for s in (*node.body, *node.orelse))
    return inside and (
        not spans(node.test, line) or (text is not None and text not in ast.unparse(node.test))
    )


def prints_its_value(source: str | None, line: int) -> bool:
    """Return whether the statement on ``line`` is a call of ``print``."""
    statement = _statement(source, line)
    called = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(called, ast.Call) and isinstance(called.func, ast.Name) and called.func.id == "print"


def only_passed_to(source: str | None, line: int, calls: Collection[int]) -> str | None:
    """Return the name of the function to which a number that ``line`` reads from the device is only passed:
    ``step`` for ``best = int(x)`` and ``step(best)``. Calls on the lines ``calls`` count. None if the line is
    no such statement, if its variable is used in another way, or if it is also set elsewhere."""
    statement = _statement(source, line)
    around = function_around(syntax(source), line) or syntax(source).tree
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="int" | "float"))):
            nodes = list(own_nodes(around))
            used = [n for n in nodes if isinstance(n, ast.Name) and n.id == name]
            given = [
                (call, a)
                for call in nodes
                if isinstance(call, ast.Call) and call.lineno in calls
                for a in (*call.args, *(k.value for k in call.keywords))
                if isinstance(a, ast.Name) and a.id == name
            ]
            if given and len(used) == 1 + len(given):
                return last_name(given[0][0].func)
    return None


def starred_splits(source: str | None) -> dict[int, tuple[str, str, str, str]]:
    """Return {line: (key, first, others, number)} for statements that take keys out of the array that a split
    returns, as source: ``("key", "key", "keys", "n")`` for ``key, *keys = jax.random.split(key, n + 1)``.
    ``number`` is the number of ``others``."""
    found = {}
    for n in ast.walk(syntax(source).tree):
        match n:
            case ast.Assign(
                targets=[ast.Tuple(elts=[ast.Name(id=first), ast.Starred(value=ast.Name(id=others))])],
                value=ast.Call(func=func, args=[key, number]),
            ) if last_name(func) == "split":
                match number:
                    case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=1)):
                        many = ast.unparse(left)
                    case ast.Constant(value=int(k)):
                        many = str(k - 1)
                    case _:
                        many = f"{ast.unparse(number)} - 1"
                found[n.lineno] = ast.unparse(key), first, others, many
    return found


def returns_its_value(source: str | None, line: int) -> bool:
    """Return whether ``line`` is in a ``return`` statement."""
    return any(isinstance(n, ast.Return) and spans(n, line) for n in ast.walk(syntax(source).tree))


def _statement(source: str | None, line: int) -> ast.Assign | ast.AnnAssign | ast.Expr | None:
    """Return the assignment or the call on ``line``; None if it has neither."""
    kinds = (ast.Assign, ast.AnnAssign, ast.Expr)
    around = (n for n in ast.walk(syntax(source).tree) if isinstance(n, kinds) and spans(n, line))
    return max(around, key=lambda n: n.lineno, default=None)


def keeps_its_value(source: str | None, line: int) -> bool:
    """Return whether the statement on ``line`` stores its value in a container: ``history[i] = loss``,
    ``losses.append(float(loss))``."""
    statement = _statement(source, line)
    if isinstance(statement, ast.Expr):
        called = statement.value.func if isinstance(statement.value, ast.Call) else None
        return isinstance(called, ast.Attribute) and called.attr == "append"
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return any(isinstance(target, ast.Subscript) for target in targets)


def reached_now_and_then(source: str | None, line: int, text: str | None = None) -> bool:
    """Return whether the source shows that only some iterations of a loop reach ``line``. Either an ``if``
    decides, whose condition has a remainder (``i % 50``) or a name that its block sets, or whose block ends
    the loop or the program. Or each iteration of the innermost loop around the line also runs another loop.
    ``text`` as in ``depends_on_a_condition``."""
    found = syntax(source)
    around = blocks_around(source, line)
    inside = list(ast.walk(scope_around(found, line) or found.tree))
    for n in inside:
        if isinstance(n, ast.If) and _is_left_at_the_end(n) and any(spans(s, line) for s in n.body):
            return True
        if isinstance(n, ast.If) and n.lineno <= line and _is_periodic(n, line, text):
            leaves = any(isinstance(s, (ast.Continue, ast.Return)) for s in n.body)
            if any(spans(s, line) for s in n.body) or (leaves and n.lineno < line):
                return True
    loops = [n for n in around if isinstance(n, (ast.For, ast.While)) and n in inside]
    if not loops:
        return False
    innermost = max(loops, key=lambda n: n.lineno)
    return any(not spans(n, line) for n in _loops_of_each_iteration(innermost))


def _is_left_at_the_end(node: ast.If) -> bool:
    """Return whether the block of ``node`` ends the loop around it or the program: with ``break``, ``raise``
    or ``sys.exit()``."""
    last = node.body[-1]
    call = last.value if isinstance(last, ast.Expr) else None
    ends = isinstance(call, ast.Call) and last_name(call.func) in ("exit", "quit", "_exit")
    return ends or isinstance(last, (ast.Break, ast.Raise))


def tests_a_remainder_first(source: str | None, line: int) -> bool:
    """Return whether ``line`` has an ``and`` whose first part has a remainder, so that Python evaluates the
    rest only in some iterations: ``i % 50 == 0 and loss < best``."""
    conditions = (n for n in ast.walk(syntax(source).tree) if isinstance(n, ast.BoolOp))
    first = [n.values[0] for n in conditions if isinstance(n.op, ast.And) and spans(n, line)]
    inside = (n for value in first for n in ast.walk(value) if isinstance(n, ast.BinOp))
    return any(isinstance(n.op, ast.Mod) for n in inside)


def whole_condition(source: str | None, line: int, text: str) -> str | None:
    """Return the condition ``a and b`` or ``a or b`` on ``line`` as text, if ``text`` is one of its parts but
    not the last; else None."""
    # Python 3.11 gives the place of an earlier part for the test of a later part.
    conditions = (n for n in ast.walk(syntax(source).tree) if isinstance(n, ast.BoolOp) and spans(n, line))
    for n in conditions:
        if text in [ast.unparse(value) for value in n.values[:-1]]:
            return ast.unparse(n)
    return None


def _is_periodic(node: ast.If, line: int, text: str | None) -> bool:
    """Return whether the condition of the ``if`` statement ``node`` seems to be true only now and then: it
    has a remainder (``i % 50``), or a name that its block sets."""
    test = list(ast.walk(node.test))
    if any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in test):
        return True
    if spans(node.test, line) and not _is_in_block(node, line, text):
        return False  # the line is the test itself, which each iteration evaluates
    read = {n.id for n in test if isinstance(n, ast.Name)}
    stored = (n for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name))
    return any(n.id in read and isinstance(n.ctx, ast.Store) for n in stored)


def _loops_of_each_iteration(loop: ast.AST) -> Iterator[ast.For | ast.While]:
    """Yield the loops in the body of ``loop`` that are not in an ``if``, so that each iteration runs them."""
    for n in ast.iter_child_nodes(loop):
        if isinstance(n, (ast.For, ast.While)):
            yield n
        if not isinstance(n, ast.If):
            yield from _loops_of_each_iteration(n)
