"""Parse the user's source, and find functions, calls and blocks in its syntax tree.

Lines are counted from 1. A ``source`` of None means that the source is unknown; its syntax is then that of an
empty file.
"""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, TypeAlias, TypeGuard

MAX_SOURCE = 2_000_000  # characters; a longer file is not parsed
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
CONDITIONALS = frozenset({"cond", "switch"})  # functions of jax.lax


def expression(text: str | None) -> ast.expr | None:
    """Parse ``text`` as an expression. Return None if it is none."""
    try:
        return ast.parse(text or "", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parsed(source: str) -> ast.Module | None:
    """Parse ``source``. Return None if it is not Python, or longer than MAX_SOURCE (2,000,000) characters."""
    if len(source) > MAX_SOURCE:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an invalid escape sequence: the program has printed it
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


LOOPS = (ast.For, ast.AsyncFor, ast.While, *COMPREHENSIONS)
SCOPES = (*FUNCTION, ast.Lambda)


class Syntax(NamedTuple):
    """The syntax of a source file.

    Attributes:
      tree: the whole syntax tree.
      calls: line -> the calls that begin on this line.
      blocks: the loops, comprehensions, functions and lambdas. A loop that surely has one iteration
        (``for seed in range(1)``) is not among them.
      imports: the import statements.
      objects: the variables that are assigned a new object of a class (``grid = Grid(8, 8)``); a name that
        begins with a capital letter counts as a class.
    """

    tree: ast.Module
    calls: dict[int, list[ast.Call]]
    blocks: list[ast.stmt | ast.expr]
    imports: list[ast.Import | ast.ImportFrom]
    objects: set[str]

    def all_calls(self) -> Iterator[ast.Call]:
        """Yield all calls of the file."""
        return (call for on_line in self.calls.values() for call in on_line)

    def functions(self) -> list[Definition]:
        """Return the functions and methods that the file defines."""
        return [n for n in self.blocks if isinstance(n, FUNCTION)]


@functools.lru_cache(8)  # called for hundreds of lines of one file, and a walk of the syntax takes 0.1 s
def syntax(source: str | None) -> Syntax:
    """Return the calls, blocks, imports and objects of ``source``. If it is None or not Python, or longer
    than MAX_SOURCE (2,000,000) characters, return those of an empty file."""
    tree = parsed(source or "") or ast.Module([], [])
    found = Syntax(tree, {}, [], [], set())
    ones = _names_of_one(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and _has_one_item(node.iter, ones):
            continue
        if isinstance(node, ast.Call):
            found.calls.setdefault(node.lineno, []).append(node)
        elif isinstance(node, (*LOOPS, *SCOPES)):
            found.blocks.append(node)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.imports.append(node)
        elif isinstance(node, ast.Assign) and _creates_an_object(node.value):
            found.objects.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return found


def _names_of_one(tree: ast.Module) -> set[str]:
    """Return the names to which the file assigns the number 1, and nothing else anywhere."""
    values: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            values.setdefault(node.id, []).append(None)
        elif isinstance(node, ast.arg):
            values.setdefault(node.arg, []).append(None)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and len(values[target.id]) == 1:
                    values[target.id] = [node.value]
    return {name for name, [value, *more] in values.items() if not more and _is_one(value, ())}


def _is_one(value: ast.expr | None, ones: Collection[str]) -> bool:
    """Return whether ``value`` is the number 1, or one of the names ``ones``."""
    if isinstance(value, ast.Name):
        return value.id in ones
    return isinstance(value, ast.Constant) and type(value.value) is int and value.value == 1


def _has_one_item(items: ast.expr, ones: Collection[str]) -> bool:
    """Return whether ``items``, what a loop runs over, surely has one item: ``range(1)``, ``[x]``, or
    ``range(N)`` where N is one of ``ones``."""
    if isinstance(items, ast.Call) and items.args and last_name(items.func) in _OF_THE_SAME_LENGTH:
        return _has_one_item(items.args[0], ones)
    if isinstance(items, ast.Call) and last_name(items.func) in ("range", "trange"):
        return len(items.args) == 1 and _is_one(items.args[0], ones)
    if isinstance(items, (ast.List, ast.Tuple)):
        return len(items.elts) == 1 and not isinstance(items.elts[0], ast.Starred)
    return False


_OF_THE_SAME_LENGTH = frozenset({"enumerate", "reversed", "tqdm"})


def _creates_an_object(value: ast.expr) -> bool:
    """Return whether ``value`` is a call of a name with a capital letter: ``Grid(8, 8)``."""
    return isinstance(value, ast.Call) and (last_name(value.func) or "")[:1].isupper()


def imports(source: str | None, line: int) -> bool:
    """Return whether an import statement is on ``line``."""
    return any(spans(n, line) for n in syntax(source).imports)


def calls_from(source: str | None, line: int) -> list[ast.Call]:
    """Return the calls that begin on ``line``."""
    return syntax(source).calls.get(line, [])


def calls_at(source: str | None, line: int) -> list[ast.Call]:
    """Return the calls of which ``line`` is one of the lines."""
    return [c for c in syntax(source).all_calls() if spans(c, line)]


def definition(file_syntax: Syntax, name: str, begins: int) -> Definition | None:
    """Return the first function of a file with this ``name`` whose ``def``, or one of whose decorators, is on
    the line ``begins``. Return None if there is no such function."""
    named = (n for n in file_syntax.functions() if n.name == name)
    return next((n for n in named if begins in (n.lineno, *(d.lineno for d in n.decorator_list))), None)


def function_around(file_syntax: Syntax, line: int, *, inside: bool = False) -> Definition | None:
    """Return the innermost function, not counting lambdas, that contains ``line``. Return None for a line
    outside of functions. If ``inside`` is True, a function that begins on the line does not count."""
    around = [n for n in file_syntax.functions() if spans(n, line)]
    return max((n for n in around if not inside or n.lineno < line), key=lambda n: n.lineno, default=None)


def scope_around(file_syntax: Syntax, line: int) -> Definition | ast.Lambda | None:
    """Return the innermost function or lambda that contains ``line``. Return None for a line outside of
    functions and lambdas."""
    around = (n for n in file_syntax.blocks if isinstance(n, SCOPES) and spans(n, line))
    return max(around, key=lambda n: (n.lineno, n.col_offset), default=None)


def blocks_around(source: str | None, line: int) -> list[ast.stmt | ast.expr]:
    """Return the loops, comprehensions, functions and lambdas that contain ``line``."""
    return [n for n in syntax(source).blocks if spans(n, line)]


def spans(node: ast.stmt | ast.expr, line: int) -> bool:
    """Return whether ``line`` is one of the lines of ``node``."""
    return node.lineno <= line <= (node.end_lineno or line)


def begins_at(node: ast.stmt | ast.expr) -> int:
    """Return the first line of ``node``. The decorators of a function belong to it."""
    decorators = node.decorator_list if isinstance(node, FUNCTION) else []
    return min([node.lineno, *(d.lineno for d in decorators)])


def positional(function: Definition) -> list[str]:
    """Return the parameters of ``function`` that a call can pass by position, without ``self``."""
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] == ["self"] else names


def bind(call: ast.Call, function: Definition) -> list[tuple[str, ast.expr]]:
    """Return (parameter, argument) for the arguments that ``call`` passes to ``function``."""
    by_name = ((k.arg, k.value) for k in call.keywords if k.arg is not None)
    return [*zip(positional(function), call.args, strict=False), *by_name]


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the syntax nodes inside a function, loop or module, one statement after the other. Functions and
    classes in it are yielded, the nodes inside them are not."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, (*SCOPES, ast.ClassDef)):
            yield from own_nodes(child)


def single_targets(target: ast.expr) -> Iterator[ast.expr]:
    """Yield the single targets of an assignment: ``a`` and ``b`` for ``a, *b``."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from single_targets(element)
    elif isinstance(target, ast.Starred):
        yield from single_targets(target.value)
    else:
        yield target


def assigned(scope: ast.AST, name: str) -> list[ast.expr]:
    """Return the expressions that ``scope`` assigns to ``name``, a variable or an attribute as text."""
    statements = (n for n in ast.walk(scope) if isinstance(n, ast.Assign))
    return [n.value for n in statements if any(ast.unparse(t) == name for t in n.targets)]


def assigned_calls(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.Call]]:
    """Yield (variable, call) for each of ``nodes`` that assigns what a call returns to a variable."""
    for n in nodes:
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call):
            for target in n.targets:
                if isinstance(target, ast.Name):
                    yield target.id, n.value


def is_name(node: ast.AST, name: str) -> TypeGuard[ast.Name]:
    """Return whether ``node`` is the plain name ``name``, such as a variable."""
    return isinstance(node, ast.Name) and node.id == name


def last_name(node: ast.AST) -> str | None:
    """Return the last part of a dotted name: ``jit`` for ``jax.jit`` and for ``f().jit``. Return None if the
    expression is neither a name nor an attribute."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
