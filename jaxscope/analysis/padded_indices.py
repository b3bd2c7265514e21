"""Find indices that are padded with -1 and used where an index out of range is dropped: ``x.at[i].add(y,
mode="drop")``. JAX counts negative indices from the end, so -1 is the last row and is not dropped.

The functions read source as text. A variable, an attribute, a field and a key of a dictionary are one thing
if they have one name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from jaxscope.analysis.line_names import UPDATES
from jaxscope.analysis.loop_calls import names_in
from jaxscope.analysis.syntax import FUNCTION, last_name, own_nodes, syntax

_MODES = frozenset({"drop", "fill", "FILL_OR_DROP"})
_MASK = re.compile(r"count|keep|length|mask|present|valid|weight|where", re.IGNORECASE)
READS = frozenset({"get", "take"})  # methods that read rows
_ROUNDS = 4  # passes over all assignments of a file, to follow padded values
_KEEPS = frozenset({"array", "asarray", "concatenate", "device_put", "int32", "stack"})
_Key: TypeAlias = str | tuple[str, int | None]  # a name, or (function, position of a result; None: the whole)


class Wrapped(NamedTuple):
    """A line that uses a padded index.

    Attributes:
      function: the Python function that contains the line, ``<module>`` for code outside functions.
      line: the line.
      name: the name of the index: ``receivers``.
      padded: the line that pads the index with -1.
      method: what the line does with the rows: ``add``, ``set``, ...; ``get`` or ``take`` if it reads them.
      mode: the mode that the line passes: ``drop`` or ``fill``.
    """

    function: str
    line: int
    name: str
    padded: int
    method: str
    mode: str


def find(source: str | None) -> list[Wrapped]:
    """Return the lines of ``source`` that use an index padded with -1 and pass a mode that should drop the
    padding (``drop``, ``fill``). Lines are left out if the file compares the index with something, if the
    index also gets a value that is not padded, or if the function seems to make the padding harmless in
    another way (``_handled``)."""
    found = syntax(source)
    if source is None or "mode" not in source:
        return []
    scopes = [found.tree, *found.functions()]
    known = _known(scopes)
    compared = {
        name
        for n in ast.walk(found.tree)
        if isinstance(n, ast.Compare)
        for part in (n.left, *n.comparators)
        for name in _identifiers(part)
    }
    every = []
    for scope in scopes if known.padded else ():
        function = scope.name if isinstance(scope, FUNCTION) else "<module>"
        for call in (n for n in own_nodes(scope) if isinstance(n, ast.Call)):
            use = _use(call)
            for index, method, mode in [use] if use is not None else ():
                name = next((n for n in _identifiers(index) if n in known.padded), None)
                if name is None or name in compared or not known.only_padded(scope, index, name):
                    continue
                if not _handled(scope, call, method):
                    line = known.padded[name]
                    every.append(Wrapped(function, call.lineno, name, line, method, mode))
    return every


class _Known(NamedTuple):
    """The values of a file that may be padded.

    Attributes:
      padded: name of a value that is padded with -1 -> the line that pads it.
      pairs: (scope, name, value) of all assignments.
    """

    padded: dict[_Key, int]
    pairs: list[tuple[ast.AST, _Key, ast.expr | _Key]]

    def only_padded(self, scope: ast.AST, index: ast.expr, name: str) -> bool:
        """Return whether every value that is assigned to ``name`` is padded. ``index`` is the expression that
        uses ``name``. If ``name`` is a variable in ``index``, only assignments in ``scope`` count; if it is
        an attribute or a key, all assignments of the file."""
        local = name in names_in([index])
        values = [value for at, key, value in self.pairs if key == name and (at is scope or not local)]
        return all(self.line_of(value) is not None for value in values)

    def line_of(self, value: ast.expr | _Key) -> int | None:
        """Return the line that pads ``value`` with -1; None: not known to be padded."""
        return _line_of(value, self.padded) if isinstance(value, ast.expr) else self.padded.get(value)


def _known(scopes: Sequence[ast.AST]) -> _Known:
    """Return which values in ``scopes``, the functions and the module of a file, may be padded. Values are
    followed through assignments, four times (``_ROUNDS``)."""
    known = _Known({}, [(scope, *pair) for scope in scopes for pair in _pairs(scope)])
    for _ in range(_ROUNDS):
        for _, key, value in known.pairs:
            line = known.line_of(value)
            if line is not None:
                known.padded.setdefault(key, line)
    return known


def _pairs(scope: ast.AST) -> Iterator[tuple[_Key, ast.expr | _Key]]:
    """Yield (name, value) for what the code in ``scope`` assigns to variables and attributes, passes as
    keyword arguments and puts under keys of dictionaries, and ((function, position), value) for what it
    returns."""
    for n in own_nodes(scope):
        if isinstance(n, ast.Assign):
            yield from (pair for target in n.targets for pair in _assigned(target, n.value))
        elif isinstance(n, ast.keyword) and n.arg is not None:
            yield n.arg, n.value
        elif isinstance(n, ast.Dict):
            for key, value in zip(n.keys, n.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value
        elif isinstance(n, ast.Return) and n.value is not None and isinstance(scope, FUNCTION):
            if isinstance(n.value, ast.Tuple):
                yield from (((scope.name, i), part) for i, part in enumerate(n.value.elts))
            yield (scope.name, None), n.value


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[_Key, ast.expr | _Key]]:
    """Yield (name, value) for each name in ``target`` if ``value`` is assigned to it. The values for ``a, b =
    f(x)`` are ``("f", 0)`` and ``("f", 1)``: the results of ``f`` by position."""
    if not isinstance(target, ast.Tuple):
        if not isinstance(target, ast.Subscript):
            yield from ((name, value) for name in _identifiers(target))
        return
    for i, part in enumerate(target.elts):
        if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
            yield from ((name, value.elts[i]) for name in _identifiers(part))
        elif isinstance(value, ast.Call):
            yield from ((name, (last_name(value.func) or "", i)) for name in _identifiers(part))


def _line_of(value: ast.expr, padded: Mapping[_Key, int]) -> int | None:
    """Return the line that pads ``value`` with -1; None: not known to be padded. ``padded`` has the names
    that are known to be padded."""
    if isinstance(value, ast.Call):
        name = last_name(value.func) or ""
        if name == "astype" and isinstance(value.func, ast.Attribute):
            return _line_of(value.func.value, padded)
        if name in _KEEPS and value.args:
            return _line_of(value.args[0], padded)
        return value.lineno if _pads(value, name) else padded.get((name, None))
    if isinstance(value, ast.List):
        return next((line for e in value.elts if (line := _line_of(e, padded)) is not None), None)
    if isinstance(value, (ast.ListComp, ast.Starred)):
        return _line_of(value.elt if isinstance(value, ast.ListComp) else value.value, padded)
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Call):
        return _line_of(value.value, padded)
    names = _identifiers(value) if isinstance(value, (ast.Name, ast.Attribute)) else ()
    return next((padded[name] for name in names if name in padded), None)


def _pads(call: ast.Call, name: str) -> bool:
    """Return whether ``call`` of the function ``name`` makes an array that it fills up with -1: ``jnp.pad(i,
    (0, 2), constant_values=-1)``, ``jnp.full(8, -1)``."""
    given = {k.arg: k.value for k in call.keywords}
    match name:
        case "pad":
            return _is_minus_one(given.get("constant_values"))
        case "full" | "full_like":
            return _is_minus_one(given.get("fill_value", call.args[1] if len(call.args) > 1 else None))
        case "where":
            if len(call.args) == 1:
                return _is_minus_one(given.get("fill_value"))
            return len(call.args) == 3 and any(_is_minus_one(a) for a in call.args[1:])
        case "argwhere" | "flatnonzero" | "nonzero" | "unique":
            return _is_minus_one(given.get("fill_value"))
    return False


def _is_minus_one(node: ast.AST | None) -> bool:
    return (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
        and node.operand.value == 1
    )


def _use(call: ast.Call) -> tuple[ast.expr, str, str] | None:
    """Return (index, method, mode) if ``call`` reads or updates rows with a mode that drops indices out of
    range; else None."""
    given = {k.arg: k.value for k in call.keywords}
    mode = given.get("mode")
    if isinstance(mode, ast.Constant):
        text = str(mode.value)
    else:
        text = last_name(mode) or "" if mode is not None else ""
    if text not in _MODES or "wrap_negative_indices" in given:
        return None
    spelled = "fill" if text == "fill" else "drop"
    of = call.func.value if isinstance(call.func, ast.Attribute) else None
    name = last_name(call.func) or ""
    if isinstance(of, ast.Subscript) and last_name(of.value) == "at" and name in UPDATES | {"get"}:
        return of.slice, name, spelled
    if name == "take" and len(call.args) > 1:
        return call.args[1], name, spelled
    return None


def _identifiers(node: ast.expr) -> list[str]:
    """Return the names of a variable, an attribute, an item or a tuple of these: ``["a", "c", "k", "e"]`` for
    ``a, b.c, d['k'], e[0]``."""
    if isinstance(node, ast.Tuple):
        return [name for e in node.elts for name in _identifiers(e)]
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return [key] if isinstance(key, str) else _identifiers(node.value)
    if isinstance(node, ast.Name):
        return [node.id]
    return [node.attr] if isinstance(node, ast.Attribute) else []


def _handled(scope: ast.AST, call: ast.Call, method: str) -> bool:
    """Return whether the code in ``scope`` seems to make harmless what ``call`` does to the last row. This is
    so if the code has a mask, if it adds a product (which may be 0), if the array seems to have a spare last
    row, or if the code takes a slice of the result. If ``method`` reads rows, only a mask counts."""
    if method in READS:
        return _MASK.search(ast.unparse(scope)) is not None
    item = call.func.value if isinstance(call.func, ast.Attribute) else None
    at = item.value if isinstance(item, ast.Subscript) else None
    changed = at.value if isinstance(at, ast.Attribute) else None
    parts = [*call.args, *(k.value for k in call.keywords if k.arg not in ("mode", "fill_value"))]
    parts += [changed] if changed is not None else []
    names = {name for part in parts for name in _identifiers(part)}
    results = set[str]()
    for n in ast.walk(scope):
        if isinstance(n, ast.Assign):
            targets = {name for t in n.targets for name in _identifiers(t)}
            parts += [n.value] if names & targets else []
            results |= targets if any(part is call for part in ast.walk(n.value)) else set()
    inside = [n for part in parts for n in ast.walk(part)]
    spare = any(isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Add, ast.Mult)) for n in inside)
    cut = any(
        isinstance(n, ast.Subscript)
        and isinstance(n.slice, ast.Slice)
        and (n.value is call or results.intersection(_identifiers(n.value)))
        for n in ast.walk(scope)
    )
    return spare or cut or any(_MASK.search(ast.unparse(part)) for part in parts)
