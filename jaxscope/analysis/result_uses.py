"""Find out from the source of a file which parts of a function's result its calls use: for
``state, record = run(state)`` followed by ``record["loss"]``, the parts ``[0]`` and ``[1]['loss']``."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from jaxscope.analysis.loop_calls import call_at
from jaxscope.analysis.syntax import FUNCTION, SCOPES, last_name, syntax

Path = tuple[str, ...]  # the steps to a part of a pytree: ("[1]", "['loss']", ".mean")
MAX_STEPS = 12
_STEP = re.compile(r"\[(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|-?\d+)\]|\.\w+")
_SLICE = re.compile(r"\[(-?\d{0,18}):(-?\d{0,18}):(-?\d{0,18})\]")
_KIND = re.compile(r"\[(?=\d+\])|\['")  # a step by position that is not negative, or by a key
# Calls that return their argument as it is.
_PASSES = frozenset({"block_until_ready"})
# Calls with which code may read a variable without its name.
_ANY_VARIABLE = frozenset({"locals", "globals", "vars", "eval", "exec"})


class Uses(NamedTuple):
    """What the calls of one function in a file do with its result. A path has the steps to a part of the
    result: ``("[1]", "['x']")``.

    Attributes:
      paths: the parts that are used. A path may continue inside an array: ``("[1]", "['x']", "[-1]")`` for
        the last element of the array ``['x']``, ``("[1]", "['x']", "[::10]")`` for every tenth element.
      names: (path, variable) of the parts that are assigned to a variable.
    """

    paths: frozenset[Path]
    names: tuple[tuple[Path, str], ...]


def steps(path: str) -> Path | None:
    """Return the steps of a path as JAX writes it: ``("[1]", "['x']")`` for ``[1]['x']``. Return None if it
    cannot be split into steps."""
    found = tuple(_STEP.findall(path))
    return found if "".join(found) == path else None


def of_calls(source: str | None, line: int, column: int | None, name: str) -> Uses | None:
    """Return which parts of its result the calls of a function use. All calls in the file by the same name
    are examined. Return None if the source does not show all uses, for example because the function is also
    passed to another function.

    Args:
      source: the text of the file; None: unknown.
      line: the line, counted from 1, on which a call of the function begins.
      column: where this call begins on the line, in bytes; None: unknown.
      name: the name of the function, for a line with several calls.
    """
    found = syntax(source)
    call = call_at(source, line, column, name)
    called = last_name(call.func) if call is not None else None
    if called is None:
        return None
    parents = _parents(found.tree)
    calls: list[ast.Call] = []
    for node in ast.walk(found.tree):
        if isinstance(node, ast.Call) and last_name(node.func) in _ANY_VARIABLE:
            return None
        if isinstance(node, (ast.Name, ast.Attribute)) and last_name(node) == called:
            above = parents.get(node)
            if isinstance(above, ast.Call) and above.func is node:
                calls.append(above)
            elif not isinstance(node.ctx, ast.Store):
                return None
    uses = _Uses(found.tree, parents)
    for one in calls:
        uses.of_value(one, ())
    return Uses(frozenset(uses.paths), tuple(dict.fromkeys(uses.names)))


@functools.lru_cache(maxsize=8)
def _parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """Return node -> the syntax node that directly contains it."""
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


class _Uses:
    """Collects the parts of results that a file uses.

    Attributes:
      paths: the parts that are used.
      names: (path, variable) of the parts that are assigned to a variable.
    """

    def __init__(self, tree: ast.Module, parents: dict[ast.AST, ast.AST]) -> None:
        self._tree = tree
        self._parents = parents
        # Names of parameters, imports and exceptions: they may hide a variable of the module.
        self._other_bindings = {
            name
            for node in ast.walk(tree)
            for name in (
                getattr(node, "arg", None) if isinstance(node, ast.arg) else None,
                (node.asname or node.name) if isinstance(node, ast.alias) else None,
                node.name if isinstance(node, (ast.ExceptHandler, *FUNCTION, ast.ClassDef)) else None,
            )
            if name
        }
        self._bound: set[tuple[int, str, Path]] = set()
        self.paths: set[Path] = set()
        self.names: list[tuple[Path, str]] = []

    def of_value(self, node: ast.expr, path: Path) -> None:
        """Add the uses of the value of the expression ``node``, which is the part ``path`` of the result."""
        above = self._parents.get(node)
        if len(path) > MAX_STEPS:  # x = x[0], in a loop
            above = None
        if isinstance(above, ast.Subscript) and above.value is node and isinstance(above.ctx, ast.Load):
            step = self._index(above.slice)
            if step is not None:
                return self.of_value(above, (*path, step))
        elif isinstance(above, ast.Attribute) and isinstance(above.ctx, ast.Load):
            return self.of_value(above, (*path, f".{above.attr}"))
        elif isinstance(above, ast.Call) and node in above.args and last_name(above.func) in _PASSES:
            return self.of_value(above, path)
        elif isinstance(above, ast.Expr):
            return None  # the value is not used
        elif isinstance(above, ast.Assign) and len(above.targets) == 1:
            return self._assigned(above.targets[0], path)
        self.paths.add(path)
        return None

    def _assigned(self, target: ast.expr, path: Path) -> None:
        """Add the uses of the part ``path`` of the result, which is assigned to ``target``."""
        if isinstance(target, ast.Name) and self._of_class(target):
            self.paths.add(path)  # an attribute of the class
        elif isinstance(target, ast.Name):
            self.names.append((path, target.id))
            self._of_variable(target, path)
        elif isinstance(target, (ast.Tuple, ast.List)) and not any(
            isinstance(e, ast.Starred) for e in target.elts
        ):
            for n, element in enumerate(target.elts):
                self._assigned(element, (*path, f"[{n}]"))
        else:
            self.paths.add(path)

    def _of_variable(self, target: ast.Name, path: Path) -> None:
        """Add the uses of the variable ``target``, to which the part ``path`` of the result is assigned."""
        scope = self._scope(target)
        bound = (id(scope), target.id, path)
        if bound in self._bound:
            return
        self._bound.add(bound)
        for node in ast.walk(scope):
            declared = isinstance(node, (ast.Global, ast.Nonlocal)) and target.id in node.names
            if declared or (isinstance(node, ast.AugAssign) and last_name(node.target) == target.id):
                self.paths.add(path)
            elif isinstance(node, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Load):
                self.of_value(node, path)

    def _index(self, index: ast.expr) -> str | None:
        """Return the step of a constant index: ``['x']``, ``[-1]`` or ``[::10]``; None if the index is not
        constant. Of several indices, as in ``x[-1, 0]``, the first counts."""
        if isinstance(index, ast.Tuple) and index.elts:
            index = index.elts[0]
        if isinstance(index, ast.Slice):
            parts = [self._constant(part) for part in (index.lower, index.upper, index.step)]
            if not all(part is None or type(part) is int for part in parts):
                return None
            return "[" + ":".join("" if part is None else str(part) for part in parts) + "]"
        value = self._constant(index)
        return f"[{value!r}]" if isinstance(value, (str, int)) and not isinstance(value, bool) else None

    def _constant(self, node: ast.expr | None) -> object:
        """Return the value of a constant expression, or of a variable that has the same integer in the whole
        file. Return None for no expression, and ``node`` itself if it is not constant."""
        if isinstance(node, ast.Name):
            if node.id in self._other_bindings:
                return node
            stores = [
                n
                for n in ast.walk(self._tree)
                if isinstance(n, ast.Name) and n.id == node.id and n.ctx != node.ctx
            ]
            above = self._parents.get(stores[0]) if len(stores) == 1 else None
            outside = above is not None and self._parents.get(above) is self._tree
            value = (
                above.value if isinstance(above, ast.Assign) and above.targets == stores and outside else None
            )
            return value.value if isinstance(value, ast.Constant) and type(value.value) is int else node
        try:
            return None if node is None else ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError):
            return node

    def _of_class(self, node: ast.AST) -> bool:
        """Return whether the innermost function or class around ``node`` is a class."""
        above = self._parents.get(node)
        while above is not None and not isinstance(above, (*SCOPES, ast.ClassDef)):
            above = self._parents.get(above)
        return isinstance(above, ast.ClassDef)

    def _scope(self, node: ast.AST) -> ast.AST:
        """Return the innermost function around ``node``; the module if there is none."""
        above = self._parents.get(node)
        while above is not None and not isinstance(above, SCOPES):
            above = self._parents.get(above)
        return above or self._tree


def rows_read(leaf: Path, uses: Collection[Path], rows: int, leaves: Collection[Path] = ()) -> int:
    """Return an upper bound on the number of rows (elements along the first axis) of one array that the paths
    ``uses`` read; 0 if they read nothing of it, ``rows`` if that is unknown.

    Args:
      leaf: the path of the array in the result.
      uses: the paths of the parts of the result that are used.
      rows: the number of rows of the array.
      leaves: the paths of all arrays of the result. An attribute that is not part of any of these paths is
        a method or a property, which may read everything.
    """
    found = 0
    for use in uses:
        steps = [*zip(leaf, use, strict=False)]
        if any(_is_another(a, b, k, leaves) for k, (a, b) in enumerate(steps)):
            continue
        if any(":" in b and a != b and _SLICE.fullmatch(b) for a, b in steps):
            return rows  # a part of a tuple
        beyond = use[len(leaf) :]
        found += _rows(beyond[0], rows) if beyond else rows
    return min(rows, found)


def _is_another(array_step: str, step: str, k: int, leaves: Collection[Path]) -> bool:
    """Return whether a used path certainly leads to another part of the result than an array's path, because
    their steps number ``k``, ``step`` and ``array_step``, differ. ``[0]`` and ``.x`` may be the same part, as
    may ``[1]`` and ``[-1]``. ``leaves`` as in ``rows_read``."""
    if array_step == step:
        return False
    if array_step[0] == step[0] == ".":
        return any(k < len(leaf) and leaf[k] == step for leaf in leaves)
    kinds = [_KIND.match(one) for one in (array_step, step)]
    return None not in kinds and len({kind.group() for kind in kinds if kind is not None}) == 1


def _rows(step: str, rows: int) -> int:
    """Return how many of ``rows`` rows an index such as ``[-1]`` or ``[::10]`` reads. Return ``rows`` for an
    index of another kind."""
    if re.fullmatch(r"\[-?\d{1,18}\]", step):
        return 1
    cut = _SLICE.fullmatch(step)
    parts = [int(part) if part else None for part in cut.groups()] if cut is not None else [0]
    return len(range(rows)[slice(*parts)]) if parts[-1] != 0 else rows


def named(leaf: Path, names: Sequence[tuple[Path, str]]) -> str:
    """Return the path of an array for a message, beginning with the variable that has it: ``record['x']``; if
    no variable is known, with ``result``: ``result[1]['x']``. ``names`` has (path, variable) pairs."""
    best = max(
        (n for n in names if leaf[: len(n[0])] == n[0]), key=lambda n: len(n[0]), default=((), "result")
    )
    return best[1] + "".join(leaf[len(best[0]) :])
