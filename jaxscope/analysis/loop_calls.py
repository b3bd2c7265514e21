"""Analyze a call in a loop of the user's source: what the call gets as arguments, and which variables each
iteration sets.

The functions examine the text of a Python file. If the text does not decide the question, they return None,
False or an empty result. Lines are counted from 1; a ``source`` of None means that the source is unknown.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeGuard

from jaxscope.analysis import line_names
from jaxscope.analysis.source_lines import depends_on_a_condition, innermost_loop, loop_around
from jaxscope.analysis.syntax import (
    COMPREHENSIONS,
    FUNCTION,
    SCOPES,
    Syntax,
    assigned_calls,
    bind,
    calls_from,
    is_name,
    last_name,
    spans,
    syntax,
)

# Methods of arrays that programs apply to what a call returns.
_OF_ARRAYS = frozenset(
    {"all", "any", "argmax", "astype", "block_until_ready", "copy", "item", "max", "mean", "min", "ravel"}
    | {"reshape", "round", "squeeze", "std", "sum", "tolist"}
)
# Functions and methods that read an array on the host
CONVERSIONS = frozenset(
    {"array", "asarray", "bool", "complex", "device_get", "float", "int", "item", "tolist"}
)
LONGEST = 40  # characters of an expression that a message repeats
# The parts of a signature: quoted texts, brackets, commas, and all between them.
_PARTS = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|->|[()\[\]{}<>,]|[^'"()\[\]{}<>,-]+|.""", re.DOTALL
)
_PARAMETER = re.compile(r"\s*(\*{0,2}\w+|\*|/)")
_OPENING, _CLOSING = frozenset("([{<"), frozenset(")]}>")
_LENGTHEN = frozenset({"append", "appendleft", "extend", "insert"})  # methods of lists and deques
_INTO_A_QUEUE = frozenset({"append", "put", "put_nowait"})
_OUT_OF_A_QUEUE = frozenset({"get", "get_nowait", "popleft"})
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
Loop = ast.For | ast.While | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class LoopCall(NamedTuple):
    """A call that is repeated by a loop of the Python function that contains the call.

    Attributes:
      call: the call.
      loop: the innermost loop or comprehension with the call in its body.
      statement: the index of the statement in the loop's body that contains the call; None: the loop is a
        comprehension.
      always: whether this statement is an assignment or an expression, not a block such as an ``if`` that may
        skip the call; True for a comprehension.
      outer: the next loop of the same function that repeats this loop; None: there is none.
    """

    call: ast.Call
    loop: Loop
    statement: int | None
    always: bool
    outer: Loop | None = None

    @property
    def body(self) -> Sequence[ast.AST]:
        """Return what the loop repeats: the statements of its body, the element of a comprehension, or the
        key and the value of a dict comprehension."""
        if isinstance(self.loop, (ast.For, ast.While)):
            return self.loop.body
        return [self.loop.key, self.loop.value] if isinstance(self.loop, ast.DictComp) else [self.loop.elt]

    @property
    def repeats(self) -> Sequence[ast.AST]:
        """Return the loop's body and the syntax nodes that control it: ``key`` of the statement
        ``for key in keys``, the test of a ``while``, or the whole ``for key in keys`` of a comprehension."""
        if isinstance(self.loop, ast.For):
            return [self.loop.target, *self.body]
        if isinstance(self.loop, ast.While):
            return [self.loop.test, *self.body]
        return [*self.loop.generators, *self.body]

    def takes_rows_again(self) -> list[str]:
        """Return the names of the arrays whose rows the call gets again, in another order, in each iteration
        of the outer loop: ``x`` for ``embed(params, x[rows])``, if ``rows`` is a part of a permutation that
        the outer loop draws. Return an empty list if this is not certain."""
        others = [s for k, s in enumerate(self.body) if k != self.statement]
        if self.outer is None or self.feeds_itself or not self.targets & names_read(others):
            return []
        passed = [*self.call.args, *(k.value for k in self.call.keywords)]
        rows = [a for a in passed if isinstance(a, ast.Subscript) and isinstance(a.value, ast.Name)]
        names = [a for a in passed if isinstance(a, (ast.Name, ast.Constant))]
        same = {*names_read(names), *(root(a) or "" for a in rows)}
        if len(rows) + len(names) < len(passed) or same & names_set([self.outer]):
            return []
        orders = {name for s in ast.walk(self.outer) if _is_drawn_order(s) for name in names_set([s])}
        parts = {name for s in others if names_read([s]) & orders for name in names_set([s])} | orders
        if not all(names_read([a.slice]) & parts for a in rows) or same & _used_elsewhere(
            self.outer, self.call
        ):
            return []
        return [root(a) or "" for a in rows]

    @property
    def targets(self) -> set[str]:
        """Return the names that the statement with the call sets: ``state`` and ``loss`` for
        ``state, loss = step(state)``. Empty for a comprehension."""
        return names_set([self.body[self.statement]]) if self.statement is not None else set()

    @property
    def feeds_itself(self) -> bool:
        """Return whether the statement with the call sets a name that the call reads, as ``state =
        step(state)`` does, so that the next iteration passes a result of the call."""
        return bool(self.targets & names_read([self.call]))


def find(source: str | None, line: int, column: int | None, name: str) -> LoopCall | None:
    """Return the call that ``call_at`` finds if a loop repeats it; else None. Only loops in the innermost
    function around the line count.

    Args:
      source: the text of the file; None: unknown.
      line: the line on which the call begins.
      column: where the call begins on the line, in bytes; None: unknown.
      name: the name of the called function. If ``column`` is given, a call by another name (``f = step``) at
        this column is found, too.
    """
    call = call_at(source, line, column, name)
    if call is None:
        return None
    around = [n for n in syntax(source).blocks if spans(n, line) and contains(n, call)]
    inner: LoopCall | None = None
    for block in sorted(around, key=lambda n: (n.lineno, n.col_offset), reverse=True):
        if isinstance(block, SCOPES):
            break
        if isinstance(block, (ast.For, ast.While, *COMPREHENSIONS)):
            this = _repeated(block, call)
            if inner is not None and this is not None:
                return inner._replace(outer=block)
            inner = inner or this
    return inner


def call_at(source: str | None, line: int, column: int | None, name: str) -> ast.Call | None:
    """Return the call of the function ``name`` that begins on ``line``. Return None if there is no such call,
    or if there are several.

    Args:
      source: the text of the file; None: unknown.
      line: the line on which the call begins.
      column: where the call begins on the line, in bytes; None: unknown.
      name: the name of the called function. If ``column`` is given, a call by another name (``f = step``) at
        this column is found, too.
    """
    here = [c for c in calls_from(source, line) if column is None or c.col_offset == column]
    if column is not None:  # f(x).sum(): both calls begin at one column
        here = [
            c for c in here if not (last_name(c.func) in _OF_ARRAYS and isinstance(c.func, ast.Attribute))
        ]
    named = [c for c in here if last_name(c.func) == name]
    if len(named) != 1 and (column is None or len(here) != 1):
        return None
    return named[0] if len(named) == 1 else here[0]


def maps_over_leaves(source: str | None, line: int, column: int | None, function: str | None = None) -> bool:
    """Return whether the call at ``line`` and ``column`` maps a function over the leaves of a pytree
    (``jax.tree.map``), or is in a lambda that is mapped in this way. Return False if ``source`` is None or is
    not Python.

    Args:
      source: the text of the file; None: unknown.
      line: the line on which the call begins.
      column: where the call begins on the line, in bytes; None: unknown; then only calls in a mapped lambda
        are recognized.
      function: the name of a function. If it is given, the result is whether a call around ``line`` maps this
        function; None: any function.
    """
    for call in _maps_over_leaves(source) if source is not None else ():
        if (call.lineno, call.col_offset) > (line, sys.maxsize if column is None else column):
            continue
        mapped = call.args[0]
        if function is not None:
            if spans(call, line) and last_name(mapped) == function:
                return True
        elif (call.lineno, call.col_offset) == (line, column) or (
            isinstance(mapped, ast.Lambda) and spans(mapped, line)
        ):
            return True
    return False


def iterated(source: str | None, line: int, column: int | None) -> str | None:
    """Return the expression over which the code at ``line`` and ``column`` (in bytes) iterates, as text. It
    is ``rows`` for a call such as ``map(f, rows)`` or ``list(rows)``, for ``rows`` in ``for row in rows``,
    and for a comprehension over ``rows`` or its element. Return None if there is no such expression
    (``load()``), if there are several (``zip(xs, ys)``), if it is longer than ``LONGEST`` (40) characters, or
    if ``column`` is None."""
    found = syntax(source)
    here: list[ast.expr] = [call for call in found.calls.get(line, []) if call.col_offset == column]
    for n in found.blocks:
        if isinstance(n, ast.For) and (n.iter.lineno, n.iter.col_offset) == (line, column):
            here = [n.iter]
        elif isinstance(n, COMPREHENSIONS):
            element = n.key if isinstance(n, ast.DictComp) else n.elt
            if (line, column) in {(m.lineno, m.col_offset) for m in (n, element)}:
                here = [n]
    here = list(itertools.chain.from_iterable(map(_iterables, here[:1])))
    texts = {ast.unparse(n) for n in here}
    text = texts.pop() if len(texts) == 1 else ""
    return text if 0 < len(text) <= LONGEST else None


def functions_called(source: str | None, first: int, last: int) -> list[tuple[int, int]]:
    """Return (first line, last line) of each function of the file that the lines ``first`` to ``last`` call
    by name, directly or through other such functions. For a generator function, the lines are those of its
    loop with ``yield``. ``next(g)`` counts as a call of the function that made the generator ``g``.

    Ignored are functions with a decorator, functions that contain the lines or begin among the lines that
    call them, and calls that depend on an ``if`` in a loop.
    """
    found = syntax(source)
    functions = {
        n.name: n
        for n in found.blocks
        if isinstance(n, ast.FunctionDef)
        and not n.decorator_list
        # A call by the name of a function around the lines is more likely one of another object's method.
        and not n.lineno <= first <= last <= (n.end_lineno or n.lineno)
    }
    makers = {name: last_name(call.func) for name, call in assigned_calls(ast.walk(found.tree))}
    met: dict[str, tuple[int, int]] = {}
    waiting = [(first, last)]
    while waiting:
        a, b = waiting.pop()
        each = (line for line in range(a, b + 1) if line in found.calls)
        every = [line for line in each if not depends_on_a_condition(source, line)]
        for call in (c for line in every for c in found.calls[line]):
            name = last_name(call.func)
            if name == "next" and call.args:
                name = makers.get(last_name(call.args[0]) or "")
            if name in functions and name not in met and not a <= functions[name].lineno <= b:
                called = _yielding(functions[name])
                met[name] = called.lineno, called.end_lineno or called.lineno
                waiting.append(met[name])
    return list(met.values())


def _yielding(function: ast.FunctionDef) -> ast.stmt:
    """Return the first loop of ``function`` that contains a ``yield``; ``function`` itself if it has no such
    loop."""
    loops = (n for n in ast.walk(function) if isinstance(n, (ast.For, ast.While)))
    return next((n for n in loops if any(isinstance(m, ast.Yield) for m in ast.walk(n))), function)


def _iterables(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the expressions over whose elements ``node`` iterates, also through calls such as ``list`` or
    ``map``: ``rows`` for ``list(map(f, rows))``."""
    if isinstance(node, COMPREHENSIONS):
        for generator in node.generators:
            yield from _iterables(generator.iter)
    elif isinstance(node, ast.Call):
        for argument in node.args[last_name(node.func) in ("map", "filter") :]:
            yield from _iterables(argument)
    elif isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        yield node


@functools.lru_cache(8)  # called for each compilation of a run
def _maps_over_leaves(source: str) -> list[ast.Call]:
    """Return all calls in ``source`` that map a function over the leaves of a pytree."""
    return [call for call in syntax(source).all_calls() if call.args and _over_leaves(call)]


def _over_leaves(call: ast.Call) -> bool:
    """Return whether ``call`` calls ``jax.tree.map``, ``tree_map`` or a similar function."""
    match call.func:
        case ast.Attribute(value=owner, attr="map" | "map_with_path"):
            return last_name(owner) in ("tree", "tree_util")
    return last_name(call.func) in ("tree_map", "tree_multimap", "tree_map_with_path")


def _is_drawn_order(node: ast.AST) -> bool:
    """Return whether ``node`` assigns the result of a function with "permut" in its name:
    ``order = rng.permutation(n)``."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and "permut" in (last_name(node.value.func) or "")
    )


def _used_elsewhere(loop: ast.AST, call: ast.Call) -> set[str]:
    """Return the names that the code of ``loop`` mentions outside of ``call``, other than in ``len(x)`` and
    ``x.shape``."""
    inside = {id(n) for n in ast.walk(call)}
    for n in ast.walk(loop):
        if isinstance(n, ast.Call) and last_name(n.func) == "len":
            inside |= {id(m) for m in ast.walk(n)}
        elif isinstance(n, ast.Attribute) and n.attr == "shape":
            inside.add(id(n.value))
    return {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and id(n) not in inside}


def _repeated(loop: Loop, call: ast.Call) -> LoopCall | None:
    """Return ``call`` with its position in the body of ``loop``. Return None if it is not in the body, such
    as ``f()`` in ``for x in f():``."""
    if not isinstance(loop, (ast.For, ast.While)):
        inside = LoopCall(call, loop, None, True)
        return inside if any(contains(n, call) for n in inside.body) else None
    for k, statement in enumerate(loop.body):
        if contains(statement, call):
            return LoopCall(call, loop, k, isinstance(statement, _SIMPLE))
    return None


def contains(node: ast.AST, inner: ast.AST) -> bool:
    """Return whether ``inner`` is ``node`` or a syntax node inside it."""
    return any(n is inner for n in ast.walk(node))


def names_set(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that the syntax nodes set, import, define as functions or classes, or delete. Setting
    an item or an attribute counts: ``state`` for ``state.step = 1``."""
    found = set[str]()
    for node in nodes:
        for n in ast.walk(node):
            if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript)) and not isinstance(n.ctx, ast.Load):
                found |= {root(n) or ""}
            elif isinstance(n, (*FUNCTION, ast.ClassDef)):
                found.add(n.name)
            elif isinstance(n, (ast.Import, ast.ImportFrom)):
                found |= {(a.asname or a.name).partition(".")[0] for a in n.names}
    return found - {""}


def names_read(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the variables that the syntax nodes read: ``f`` and ``x`` for ``f(x.shape)``."""
    return names_in(nodes, ast.Load)


def names_in(nodes: Iterable[ast.AST], context: type[ast.expr_context] = ast.expr_context) -> set[str]:
    """Return the variables that the syntax nodes read, set or delete. If ``context`` is ``ast.Load`` or
    ``ast.Store``, return only those that they read, or set."""
    names = (n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, context)}


def root(node: ast.AST) -> str | None:
    """Return the name with which a chain of attributes and items begins: ``state`` for ``state.params['w']``.
    Return None if the chain begins with something else, such as a call."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def parameters(signature: str | None) -> list[str]:
    """Return the names of the parameters that can be passed by position, from a signature as text:
    ``["w", "x"]`` for ``(w, x, *args)``. Return an empty list if the signature is unknown."""
    return [n for n in itertools.takewhile(lambda n: n[0] != "*", _parameters(signature)) if n != "/"]


def collects(signature: str | None) -> str | None:
    """Return the name of the parameter that collects the remaining positional arguments: ``args`` for
    ``(w, *args)``. Return None if the signature has no such parameter, or is unknown."""
    return next((n[1:] for n in _parameters(signature) if n[0] == "*" and n[1:2] not in ("", "*")), None)


def _parameters(signature: str | None) -> list[str]:
    """Return the parameters of a signature as text, without annotations and defaults: ``["w", "/", "*args"]``
    for ``(w: int = 2, /, *args)``. The end of the signature may be missing."""
    texts, depth = [""], 0  # a default may have commas in brackets, and may be <object at 0x7f>
    for part in _PARTS.findall(signature or ""):
        depth -= part in _CLOSING
        if depth == 0 and part in _CLOSING:
            break
        if depth == 1 and part == ",":
            texts.append("")
        elif depth >= 1:
            texts[-1] += part
        depth += part in _OPENING
    names = (_PARAMETER.match(text) for text in texts)
    return [name[1] for name in names if name is not None]


def argument(
    call: ast.Call, signature: str | None, parameter: str, *, of_class: bool = False
) -> ast.expr | None:
    """Return the expression that ``call`` passes for a parameter of the called function. For the parameter
    ``self`` of a method, this is the object: ``model`` in ``model.step(x)``. Return None if the expression is
    unknown, or if the call does not pass the parameter.

    Args:
      signature: the signature of the function as text: ``(w, x, key)``; None: unknown.
      parameter: the name of the parameter. ``args[1]`` is the second of the arguments that ``*args``
        collects.
      of_class: whether the function is defined in a class, so that a call of a method passes the object as
        the first argument.
    """
    for k in call.keywords:
        if k.arg == parameter:
            return k.value
    names = parameters(signature)
    if not names or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    # ``Model.step(model, x)`` passes as many arguments as there are parameters, ``model.step(x)`` one less.
    bound = len(call.args) + len(call.keywords) < len(names)
    method = of_class and isinstance(call.func, ast.Attribute) and bound
    if method or (names[0] == "self" and (bound or collects(signature))):
        if parameter == names[0]:
            return call.func.value if isinstance(call.func, ast.Attribute) else call.func
        del names[0]
    if (more := collects(signature)) and parameter.startswith(f"{more}["):
        index = parameter[len(more) + 1 :].partition("]")[0]
        at = len(names) + int(index) if index.isdecimal() else len(call.args)
    else:
        at = names.index(parameter) if parameter in names else len(call.args)
    return call.args[at] if at < len(call.args) else None


def reaches_next_iteration(
    source: str | None, line: int, jitted: Collection[str] | None = None
) -> str | None:
    """Return the variable that carries a value, read on ``line``, into the next iteration of the loop. Return
    None if no such variable is found.

    For ``action = int(policy(obs)); obs = env.step(action)`` and the line of ``int``, the variable is
    ``obs``. Only plain variables of the innermost loop are examined. If ``jitted`` is given, the value that
    is read must come from a call, in the same iteration, of a function with one of these names.
    """
    around = [n for n in syntax(source).blocks if spans(n, line)]
    inner = max(around, key=lambda n: (n.lineno, n.col_offset), default=None)
    if not isinstance(inner, (ast.For, ast.While)):
        return None
    statements = [
        n
        for part in inner.body
        for n in ast.walk(part)
        if isinstance(n, ast.Assign) and n.lineno > inner.lineno
    ]
    reads = [n for n in statements if spans(n, line)]
    if not reads:
        return None
    read = reads[-1]
    reached = names_in(read.targets, ast.Store)
    needed = names_read([read.value])  # variables from which the value that is read is computed
    used = needed - reached  # without the sum itself in: total = total + float(loss)
    computed = jitted is None
    carried, known = set[str](), set[str]()  # variables that the loop's body reads before it sets them
    for n in statements:
        carried |= names_read([n.value]) - known
        known |= names_in(n.targets, ast.Store)
        for m in statements:
            if m is not read and names_in(m.targets, ast.Store) & needed:
                needed |= names_read([m.value])
                used |= names_read([m.value])
                calls = [c for c in ast.walk(m.value) if isinstance(c, ast.Call)]
                computed = computed or any(last_name(c.func) in (jitted or ()) for c in calls)
    if not computed:
        return None
    for _ in statements:  # the variables reached through the fewest assignments first
        if through := used & carried & reached:
            return min(through)
        reached = reached.union(
            *(names_in(n.targets, ast.Store) for n in statements if names_read([n.value]) & reached)
        )
    return None


def given_to_object(source: str | None, line: int) -> str | None:
    """Return the method of an object, such as ``env.step``, that gets a value read on ``line`` and whose
    result the code uses: ``obs = env.step(int(action))``, or ``action = int(a)`` and then
    ``obs = env.step(action)``. Return None if there is none. Functions of imported modules do not count."""
    found = syntax(source)
    around = [n for n in found.blocks if spans(n, line)]
    inner = max(around, key=lambda n: (n.lineno, n.col_offset), default=None)
    if not isinstance(inner, (ast.For, ast.While, ast.FunctionDef)):
        return None
    modules = set(line_names.imported(found))
    statements = [n for part in inner.body for n in ast.walk(part) if isinstance(n, (ast.Assign, ast.Return))]
    read = {
        name
        for n in statements
        if isinstance(n, ast.Assign) and spans(n, line)
        for name in names_in(n.targets, ast.Store)
    }
    reads = [c for c in found.calls.get(line, ()) if last_name(c.func) in CONVERSIONS]
    read_here = {id(inner) for c in reads for part in (c.func, *c.args) for inner in ast.walk(part)}
    for n in statements:
        for call in ast.walk(n.value) if n.value is not None and n.lineno >= line else ():
            if id(call) in read_here:
                continue  # it computes the value that is read
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                object = call.func.value
                plain = isinstance(object, (ast.Name, ast.Attribute)) and root(object) not in modules
                arguments = [*call.args, *(k.value for k in call.keywords)]
                converted = spans(call, line) and any(isinstance(a, ast.Call) for a in arguments)
                if plain and call.func.attr not in _OF_ARRAYS and (converted or names_read(arguments) & read):
                    return ast.unparse(call.func)
    return None


def is_put_ahead(source: str | None, line: int) -> bool:
    """Return whether ``line``, which puts an array on a device, does so for a later iteration of a loop.

    The line puts the array into a queue from which the source takes elements
    (``queue.append(jax.device_put(batch))``). Or the line calls ``next`` and assigns to a variable that the
    loop reads on an earlier line: ``state = step(state, x); x = jax.device_put(next(batches))``.
    """
    found = syntax(source)
    for call in found.calls.get(line, ()):
        method = call.func if isinstance(call.func, ast.Attribute) else None
        computed = any(isinstance(n, ast.Call) for value in call.args for n in ast.walk(value))
        if (
            method is not None
            and method.attr in _INTO_A_QUEUE
            and computed
            and _takes_out(found, method.value)
        ):
            return True
    around = [n for n in found.blocks if n.lineno < line <= (n.end_lineno or 0)]
    inner = max(around, key=lambda n: (n.lineno, n.col_offset), default=None)
    if not isinstance(inner, (ast.For, ast.While)):
        return False
    for n in inner.body:
        if isinstance(n, ast.Assign) and spans(n, line):
            before = names_read(part for part in inner.body if part.lineno < n.lineno)
            return "next" in names_read([n.value]) and bool(names_in(n.targets, ast.Store) & before)
    return False


def _takes_out(file_syntax: Syntax, queue: ast.expr) -> bool:
    """Return whether the source takes elements from ``queue``, an expression such as ``self.queue``.
    ``pop()`` without an argument, which takes the newest element, does not count."""
    name = ast.dump(queue)
    return any(
        isinstance(call.func, ast.Attribute)
        and ast.dump(call.func.value) == name
        and (call.func.attr in _OUT_OF_A_QUEUE or (call.func.attr == "pop" and call.args))
        for call in file_syntax.all_calls()
    )


def set_in_same_iteration(source: str | None, line: int, calls: Collection[int]) -> bool:
    """Return whether ``line``, in a loop, mentions a variable that an earlier line of the innermost loop
    assigned from a call: ``loss`` after ``loss, state = train_step(state, x)``. Only calls on the lines
    ``calls`` count."""
    around = [n for n in syntax(source).blocks if n.lineno < line <= (n.end_lineno or 0)]
    loops = [n for n in around if isinstance(n, (ast.For, ast.While))]
    if not loops:
        return False
    inside = list(ast.walk(max(loops, key=lambda n: n.lineno)))
    read = {n.id for n in inside if isinstance(n, ast.Name) and n.lineno == line}
    return any(
        n.lineno < line and read & names_in(n.targets, ast.Store) and any(spans(n, at) for at in calls)
        for n in inside
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)
    )


_SEEDS = frozenset({"key", "PRNGKey"})


def stays_the_same(node: ast.expr, repeated: Sequence[ast.AST]) -> bool:
    """Return whether the expression ``node`` has the same value in all iterations of a loop. This is so for a
    constant, for a random key that is created from a constant seed, for a name that the loop does not set,
    and for a name that the loop sets to such a key. ``repeated`` are the syntax nodes that each iteration
    evaluates or sets."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Call) and last_name(node.func) in _SEEDS:
        return bool(node.args) and all(isinstance(a, ast.Constant) for a in node.args)
    if not isinstance(node, ast.Name):
        return False
    if node.id not in names_set(repeated):
        return True
    values = [
        n.value
        for r in repeated
        for n in ast.walk(r)
        if isinstance(n, ast.Assign) and [root(t) for t in n.targets] == [node.id]
    ]
    sets = [
        n
        for r in repeated
        for n in ast.walk(r)
        if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))
        and not isinstance(n.ctx, ast.Load)
        and root(n) == node.id
    ]
    return (
        bool(sets)
        and len(sets) == len(values)
        and all(isinstance(v, ast.Call) and stays_the_same(v, repeated) for v in values)
    )


def loop_from(source: str | None, line: int) -> ast.For | ast.While | None:
    """Return the ``for`` or ``while`` that begins on ``line``; None if there is none."""
    begin = (n for n in syntax(source).blocks if n.lineno == line)
    return next((n for n in begin if isinstance(n, (ast.For, ast.While))), None)


def carries(loop: ast.For | ast.While) -> bool:
    """Return whether an iteration of ``loop`` reads a variable that the iteration before set. ``total`` in
    ``total += x`` does not count as read."""
    return bool(_carried(loop))


def _carried(loop: ast.For | ast.While) -> set[str]:
    """Return the variables that an iteration of ``loop`` reads and that the iteration before set, and the
    lists that it reads and that the iteration before made longer (``states.append(f(states[-1]))``). An array
    of which each iteration uses only its own item (``new[i] = f(x); y = g(new[i])``) does not count."""
    before = names_set([loop.target]) if isinstance(loop, ast.For) else set()
    used = [use for statement in loop.body for use in _uses(statement)]
    later, carried = {name for name, is_set in used if is_set}, set[str]()
    for name, is_set in used:
        if is_set:
            before.add(name)
        elif name in later and name not in before:
            carried.add(name)
    nodes = [n for statement in loop.body for n in ast.walk(statement)]
    methods = (n.func for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    longer = [m.value.id for m in methods if m.attr in _LENGTHEN and isinstance(m.value, ast.Name)]
    read = Counter(n.id for n in nodes if isinstance(n, ast.Name))
    longer_and_read = {name for name in longer if name not in later and read[name] > longer.count(name)}
    return carried - _own_items(loop).keys() | longer_and_read


def reaches_next(loop: ast.For | ast.While, call: ast.Call) -> bool:
    """Return whether the next iteration of ``loop`` depends on the result of ``call``: statements of the loop
    compute from it a variable that the next iteration reads, directly or through other variables."""
    computed, kinds = set[str](), (ast.Assign, ast.AugAssign, ast.AnnAssign)
    for n in ast.walk(loop):
        value = n.value if isinstance(n, kinds) else None
        if value is not None and (contains(value, call) or names_read([value]) & computed):
            computed |= names_set([n])
    return bool(computed & _carried(loop))


def _uses(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield (name, whether it is set) for the variables that ``node`` reads and sets, in this order.

    The variable of ``total += x`` is only set. An item or an attribute that is set (``x[i] = 1``) counts as
    reading and setting ``x``. Variables of comprehensions and of functions inside ``node`` do not count.
    """
    waiting: list[tuple[ast.AST | tuple[str, bool], frozenset[str]]] = [(node, frozenset())]
    while waiting:
        n, own = waiting.pop()
        if isinstance(n, tuple):
            if n[0] not in own:
                yield n
            continue
        parts, after = _in_order(n)
        inside = own
        if isinstance(n, (*SCOPES, *COMPREHENSIONS)):
            inside |= names_in([n], ast.Store) | {m.arg for m in ast.walk(n) if isinstance(m, ast.arg)}
        waiting += ((use, own) for use in after)
        waiting += ((part, inside) for part in reversed(parts))


def _in_order(node: ast.AST) -> tuple[list[ast.AST], list[tuple[str, bool]]]:
    """Return (the parts of ``node`` in the order in which Python executes them, the use of a variable by
    ``node`` itself, which comes after its parts, as in ``_uses``)."""
    match node:
        case ast.Name(id=name, ctx=ctx):
            return [], [(name, not isinstance(ctx, ast.Load))]
        case ast.For() | ast.AsyncFor():
            return [node.iter, node.target, *node.body, *node.orelse], []
        case ast.Assign(targets=targets, value=value):
            return [value, *targets], []
        case ast.AnnAssign(target=target, value=value):
            return [*([value] if value is not None else []), target], []
        case ast.AugAssign(target=ast.Name(id=name), value=value):
            return [value], [(name, True)]
        case ast.AugAssign(target=target, value=value):
            return [value, target], []
        case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
            return list(ast.iter_child_nodes(node)), [(root(node) or "", True)]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return list(ast.iter_child_nodes(node)), [(name, True)]
    return list(ast.iter_child_nodes(node)), []


def items_of_iterations(loop: ast.For | ast.While | None) -> tuple[str, ...]:
    """Return the lists of which each iteration of ``loop`` reads its own item and then replaces it
    (``params[i] = step(params[i])``), if no iteration needs a result of another one. Empty otherwise."""
    if loop is None or _carried(loop):
        return ()
    replaced = dict[str, int]()  # the last line of the first assignment to an item, by the name of the list
    own = _own_items(loop)
    for node in (n for statement in loop.body for n in ast.walk(statement) if isinstance(n, ast.Assign)):
        stored = [n for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Subscript)]
        for name in {root(n) or "" for n in stored} & own.keys():
            end = node.end_lineno or node.lineno
            replaced[name] = min(end, replaced.get(name, end))
    return tuple(sorted(name for name, end in replaced.items() if any(n.lineno <= end for n in own[name])))


def _own_items(loop: ast.For | ast.While) -> dict[str, list[ast.Subscript]]:
    """Return where ``loop`` reads an item of a list or an array, by the name of the list, for the lists that
    it uses only with the loop's index: ``x[i]`` in ``for i in range(n)``, ``for i, y in enumerate(ys)``."""
    if not (isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call)):
        return {}
    if last_name(loop.iter.func) not in ("range", "enumerate"):
        return {}  # the same index may come twice
    target = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) and loop.target.elts else loop.target
    index = target.id if isinstance(target, ast.Name) else None
    used, items = Counter[str](), dict[str, list[ast.Subscript]]()
    for node in (n for statement in loop.body for n in ast.walk(statement)):
        match node:
            case ast.Name(id=name):
                used[name] += 1
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Name(id=at)) if at == index:
                items.setdefault(name, []).append(node)
    only = {name: found for name, found in items.items() if len(found) == used[name]}
    return {name: [n for n in found if isinstance(n.ctx, ast.Load)] for name, found in only.items()}


class Iterated(NamedTuple):
    """What a ``for`` loop goes through, as the arguments of a scan.

    Attributes:
      arrays: the arrays: ``xs`` for ``for x in xs``, and for ``xs[t]`` and ``xs[t, :]`` in a loop over a
        ``range``, ``jnp.swapaxes(xs, 0, 1)`` for ``xs[:, t]``.
      shifted: an element that is read at another index than the loop's variable: ``xs[t + 1]``. None: there
        is none.
      reverse: whether the loop begins with the last elements.
    """

    arrays: tuple[str, ...]
    shifted: str | None = None
    reverse: bool = False


def arrays_iterated(source: str | None, line: int) -> Iterated | None:
    """Return the arrays that the innermost ``for`` loop around ``line`` goes through.

    Return None if the elements seem to be no arrays (the loop calls or unpacks ``x``, or reads ``x.w`` or
    ``x[0]``), if the loop changes one of the arrays, or if it also reads its counter ``t`` elsewhere than in
    ``results.at[t]``.
    """
    loop = innermost_loop(source, line)
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return None
    element, over = loop.target.id, loop.iter
    body = [n for statement in loop.body for n in ast.walk(statement)]
    if isinstance(over, ast.Name):
        owners = [n.func if isinstance(n, ast.Call) else n.value for n in body if isinstance(n, _OF_OBJECTS)]
        unpacked = (n for n in body if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Tuple))
        objects = [*owners, *(n.value for n in unpacked)]
        return None if any(is_name(n, element) for n in objects) else Iterated((over.id,))
    backwards = isinstance(over, ast.Call) and last_name(over.func) == "reversed" and len(over.args) == 1
    over = over.args[0] if isinstance(over, ast.Call) and backwards else over
    if not (isinstance(over, ast.Call) and last_name(over.func) == "range"):
        return None
    names = [n for n in body if isinstance(n, ast.Name)]
    reads = sum(n.id == element for n in names) - _writes(body, element)
    items = sorted((n for n in body if isinstance(n, ast.Subscript)), key=lambda n: (n.lineno, n.col_offset))
    taken = [(n, found) for n in items if (found := _element_taken(n, element)) is not None]
    changed = {n.id for n in names if isinstance(n.ctx, ast.Store)}
    if not taken or len(taken) != reads or names_in([n for n, _ in taken]) & changed:
        return None
    arrays = tuple(dict.fromkeys(array for _, (array, _) in taken))
    shifted = next((ast.unparse(n) for n, (_, moved) in taken if moved), None)
    down = len(over.args) == 3 and isinstance(over.args[2], ast.UnaryOp)  # range(n - 1, -1, -1)
    return Iterated(arrays, shifted, backwards != down)


def _writes(body: Iterable[ast.AST], index: str) -> int:
    """Return how many of the nodes ``body`` are ``results.at[t]`` or ``results.at[t + 1]``, where ``index``
    is the name ``t``."""
    items = [n for n in body if isinstance(n, ast.Subscript)]
    taken = [n.slice for n in items if isinstance(n.value, ast.Attribute) and n.value.attr == "at"]
    return sum(_counter(n, index) is not None for n in taken)


def _counter(node: ast.expr, index: str) -> bool | None:
    """Return False if ``node`` is the name ``index``, True if it is a number more or less: ``t + 1``; None
    for other nodes."""
    match node:
        case ast.Name(id=name) if name == index:
            return False
        case ast.BinOp(left=ast.Name(id=name), op=ast.Add() | ast.Sub(), right=ast.Constant()) if (
            name == index
        ):
            return True
    return None


def writes_elements(source: str | None, line: int) -> bool:
    """Return whether the innermost ``for`` loop around ``line`` writes one element of an array in each
    iteration, ``results.at[t].set(...)``, where ``t`` is its variable."""
    loop = innermost_loop(source, line)
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return False
    return _writes([n for statement in loop.body for n in ast.walk(statement)], loop.target.id) > 0


def goes_through_layers(source: str | None, line: int) -> bool:
    """Return whether the innermost ``for`` loop around ``line`` goes through a variable whose elements are
    containers or objects, such as the layers of a model: the loop unpacks them (``for w, b in layers``),
    calls them, or reads items by name (``layer["w"]``) or attributes of them."""
    loop = innermost_loop(source, line)
    over = loop.iter if isinstance(loop, ast.For) else None
    if isinstance(over, ast.Call) and last_name(over.func) == "enumerate" and over.args:
        over = over.args[0]
    if isinstance(over, ast.Subscript) and isinstance(over.slice, ast.Slice):  # layers[:-1]
        over = over.value
    if not isinstance(loop, ast.For) or not isinstance(over, (ast.Name, ast.Attribute)):
        return False
    body = [n for statement in loop.body for n in ast.walk(statement)]
    called = {last_name(n.func) for n in body if isinstance(n, ast.Call)}
    if called & _IN_TRAINING:
        return False  # the elements are batches
    if isinstance(loop.target, ast.Tuple):
        return True
    owners = [n.func if isinstance(n, ast.Call) else n.value for n in body if _is_of_object(n)]
    element = loop.target.id if isinstance(loop.target, ast.Name) else None
    return any(isinstance(n, ast.Name) and n.id == element for n in owners)


def goes_through_leaves(source: str | None, line: int) -> bool:
    """Return whether the innermost loop or comprehension around ``line`` goes through the leaves of a pytree
    (``jax.tree.leaves(grads)``), or through the parts of a model or of an optimizer's state side by side:
    ``zip(params, grads)``, ``zip(leaves, moments)``. The names tell it."""
    around = loop_around(source, line, comprehensions=True)
    if around is None:
        return False
    for block in syntax(source).blocks:
        if (block.lineno, block.end_lineno) != around:
            continue
        iterated = [block.iter] if isinstance(block, ast.For) else []
        iterated += [g.iter for g in getattr(block, "generators", ())]
        for over in iterated:
            parts = over.args if isinstance(over, ast.Call) and last_name(over.func) == "zip" else [over]
            if any(isinstance(part, ast.Call) and last_name(part.func) in _FLATTENING for part in parts):
                return True
            if len(parts) > 1 and any(_OF_MODELS.search(root(part) or "") for part in parts):
                return True
    return False


_FLATTENING = frozenset({"leaves", "tree_leaves"})  # of jax.tree and jax.tree_util
_OF_MODELS = re.compile(r"param|grad|weight|leaves|moment|velocit|updates", re.IGNORECASE)
# Functions that loops over batches call
_IN_TRAINING = line_names.GRADIENTS | {"update"}


def _is_of_object(node: ast.AST) -> TypeGuard[ast.Call | ast.Attribute | ast.Subscript]:
    """Return whether ``node`` is a call, an attribute that arrays lack, or an item with a text as key."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
    if isinstance(node, ast.Attribute):
        return node.attr not in line_names.OF_ARRAYS
    return isinstance(node, ast.Call)


def takes_elements(loop: ast.For | ast.While | None) -> bool:
    """Return whether ``loop`` is a ``for`` that indexes arrays with its variable (``points[i]``), and whose
    iterations need no results of each other."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name) or carries(loop):
        return False
    index = loop.target.id
    inside = [n for statement in loop.body for n in ast.walk(statement) if isinstance(n, ast.Subscript)]
    return any(is_name(n.slice, index) for n in inside)


def loop_counted(source: str | None, function: str, parameter: str, depth: int = 3) -> int | None:
    """Return the line of a loop ``for i in range(n)`` where ``n`` is the ``parameter`` of ``function``. The
    loop may also be in a function of the same file to which ``n`` is passed on, through at most ``depth``
    calls. Return None if there is none."""
    defined = line_names.function(source, function)
    for n in ast.walk(defined) if defined is not None else ():
        match n:
            case ast.For(iter=ast.Call(func=counts, args=limits)) if last_name(counts) == "range":
                if any(is_name(a, parameter) for a in limits):
                    return n.lineno
    for call in ast.walk(defined) if defined is not None and depth else ():
        passed = _passed_as(source, call, parameter) if isinstance(call, ast.Call) else None
        line = loop_counted(source, *passed, depth - 1) if passed is not None else None
        if line is not None:
            return line
    return None


def _passed_as(source: str | None, call: ast.Call, variable: str) -> tuple[str, str] | None:
    """Return (function, parameter) if ``call`` calls a function of the same file and passes ``variable`` as
    this parameter; None otherwise."""
    function = call.func
    if isinstance(function, ast.Call) and function.args:  # jax.grad(loss)(params, n)
        function = function.args[0]
    name = last_name(function)
    defined = line_names.function(source, name) if name is not None else None
    if defined is None or name is None:
        return None
    return next(((name, p) for p, value in bind(call, defined) if is_name(value, variable)), None)


_OF_OBJECTS = (ast.Call, ast.Attribute, ast.Subscript)


def _element_taken(node: ast.AST, index: str) -> tuple[str, bool] | None:
    """Return (``xs``, False) if ``node`` is ``xs[t]`` or ``xs[t, :]``, (``jnp.swapaxes(xs, 0, 1)``, False) if
    it is ``xs[:, t]``, where ``index`` is the name ``t``. True stands for ``t + 1`` and the like instead of
    ``t``. Return None for other nodes."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return None
    at = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    whole = [isinstance(n, ast.Slice) and n.lower is n.upper is n.step is None for n in at]
    if len(at) > 1 and whole[0] and (moved := _counter(at[1], index)) is not None and all(whole[2:]):
        return f"jnp.swapaxes({node.value.id}, 0, 1)", moved
    moved = _counter(at[0], index) if at and all(whole[1:]) else None
    return (node.value.id, moved) if moved is not None else None


def takes_chunks(source: str | None, line: int) -> bool:
    """Return whether the innermost loop around ``line`` computes the chunks of an array independently: ``for
    i in range(0, n, size): f(x[i : i + size])``. An iteration must not read a variable that the iteration
    before set, and the loop must not call a function with "grad" in its name, as loops over microbatches
    do."""
    loop = innermost_loop(source, line)
    if not isinstance(loop, ast.For):
        return False
    steps = [c for c in ast.walk(loop.iter) if isinstance(c, ast.Call) and len(c.args) == 3]
    inside = [n for s in loop.body for n in ast.walk(s)]
    rows = [n.slice for n in inside if isinstance(n, ast.Subscript)]
    rows = [n.elts[0] if isinstance(n, ast.Tuple) and n.elts else n for n in rows]
    starts = [n.lower for n in rows if isinstance(n, ast.Slice) and n.lower is not None]
    called = [last_name(n.func) or "" for n in inside if isinstance(n, ast.Call)]
    return (
        any(last_name(c.func) == "range" for c in steps)
        and not any("grad" in name for name in called)
        and not carries(loop)
        and any(isinstance(n, ast.Name) and n.id in names_set([loop.target]) for n in starts)
    )


def makes_no_other_calls(
    loop_call: LoopCall, nodes: Iterable[ast.AST], jitted: Collection[str], modules: Collection[str]
) -> bool:
    """Return whether ``nodes``, syntax nodes in the body of the loop around ``loop_call``, make no other
    calls than ``loop_call``, calls of JAX and of jitted functions, and harmless calls such as ``append``.
    Return False also if they have an ``if`` or leave the loop.

    Args:
      jitted: names of jitted functions.
      modules: the names by which this source refers to JAX and its modules.
    """
    for node in nodes:
        for n in ast.walk(node):
            if isinstance(n, (*_LEAVES, ast.Raise, ast.If)):
                return False
            if isinstance(n, ast.Call) and n is not loop_call.call:
                name = last_name(n.func)
                if not (name in jitted or name in _HARMLESS or (root(n.func) or "") in modules):
                    return False
    return True


_LEAVES = (ast.Break, ast.Return, ast.Yield, ast.YieldFrom, ast.Await)
_HARMLESS = frozenset({"append", "range", "len", "enumerate", "zip", "items", "values"})
_TO_NUMPY = frozenset({"asarray", "array"})


def uses_result(loop_call: LoopCall, without: Collection[str]) -> bool:
    """Return whether the loop assigns the result of the call ``loop_call`` to variables and reads one of them
    in another statement. Return False if the loop calls a function or a method with one of the names
    ``without``, or if another statement passes an argument of ``loop_call`` to a function, which could change
    the argument."""
    if loop_call.statement is None:
        return False
    body = list(loop_call.body)
    others = [s for k, s in enumerate(body) if k != loop_call.statement]
    calls = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Call)]
    elsewhere = [n for s in others for n in ast.walk(s) if isinstance(n, ast.Call)]
    passed = names_read([loop_call.call]) - names_read([loop_call.call.func])
    if any(last_name(c.func) in without for c in calls) or passed & names_read(elsewhere):
        return False
    return bool(loop_call.targets & names_read(others))


def scan_of(loop_call: LoopCall, jitted: Collection[str], modules: Collection[str]) -> tuple[str, ...] | None:
    """Return what remains in Python of the loop around ``loop_call`` if ``jax.lax.scan`` replaces it: the
    conditions, as text, of the ``if`` statements whose blocks have to stay, such as ``i % 100 == 0``. The
    scan can replace the whole loop if there are none. Return None if the loop does not look like one that a
    scan can replace.

    Such a loop goes over ``range(n)`` or random keys, and the call gets its own results as arguments. Other
    statements only make calls that ``makes_no_other_calls`` allows, or convert results to NumPy arrays. An
    ``if`` on ``i % n`` without ``else`` is allowed, if it does not leave the loop and sets no variable that
    the rest of the loop uses.

    Args:
      jitted: names of jitted functions.
      modules: the names by which this source refers to JAX and its modules.
    """
    loop = loop_call.loop
    if not isinstance(loop, ast.For) or loop.orelse or not loop_call.always or not loop_call.feeds_itself:
        return None
    if not _counts(loop.iter):
        return None
    counters = names_set([loop.target])
    conditions = [n for n in loop.body if isinstance(n, ast.If) and _every_nth(n, counters)]
    others = [n for n in loop.body if n not in conditions]
    jitted = {*jitted, *_TO_NUMPY}
    if not makes_no_other_calls(loop_call, others, jitted, modules):
        return None
    if any(isinstance(n, (*_LEAVES, ast.Raise)) for c in conditions for n in ast.walk(c)):
        return None
    if any(names_set(c.body) & (loop_call.targets | names_read(others)) for c in conditions):
        return None
    return tuple(dict.fromkeys(ast.unparse(c.test) for c in conditions))


def _counts(iterated: ast.expr) -> bool:
    """Return whether a loop over the expression ``iterated`` only counts, as with ``range(n)`` and
    ``tqdm(range(n))``, or goes over what ``split`` returns, such as random keys."""
    while isinstance(iterated, ast.Call):
        name = last_name(iterated.func)
        if name in ("range", "trange", "split"):
            return True
        if name not in ("tqdm", "progress_bar", "enumerate") or not iterated.args:
            return False
        iterated = iterated.args[0]
    return False


def _every_nth(statement: ast.If, counters: set[str]) -> bool:
    """Return whether the ``if`` statement has no ``else``, and its condition has no call but a remainder of
    one of ``counters``: ``i % 100 == 0``."""
    parts = list(ast.walk(statement.test))
    remainders = [n.left for n in parts if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod)]
    if statement.orelse or any(isinstance(n, ast.Call) for n in parts):
        return False
    return bool(names_read(remainders) & counters)
