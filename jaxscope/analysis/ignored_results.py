"""Find statements that call a function without side effects and do not use what it returns:
``state.replace(step=1)`` on a line of its own changes nothing.

The functions read source as text. A name stands for what the file imports under that name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from jaxscope.analysis.line_names import UPDATES, full_name, imported
from jaxscope.analysis.syntax import FUNCTION, Syntax, last_name, spans, syntax

# Functions that return a changed copy, and the position of the argument that is copied.
_COPIES = {
    "equinox.apply_updates": 0,
    "equinox.tree_at": 1,
    "jax.lax.with_sharding_constraint": 0,
    "jax.numpy.append": 0,
    "jax.numpy.delete": 0,
    "jax.numpy.fill_diagonal": 0,
    "jax.numpy.insert": 0,
    "jax.numpy.place": 0,
    "jax.numpy.put": 0,
    "jax.numpy.put_along_axis": 0,
    "optax.apply_updates": 0,
    "optax.incremental_update": 1,
}
_WRAPS = frozenset({"jax.checkpoint", "jax.jit", "jax.pmap", "jax.remat", "jax.vmap", "equinox.filter_jit"})
_KEYS = frozenset({"jax.random.fold_in", "jax.random.split"})
# Functions whose result has an effect only in a ``with`` statement.
_CONTEXTS = frozenset(
    {
        "jax.debug_infs",
        "jax.debug_nans",
        "jax.default_device",
        "jax.default_matmul_precision",
        "jax.default_prng_impl",
        "jax.disable_jit",
        "jax.enable_x64",
        "jax.experimental.enable_x64",
        "jax.log_compiles",
        "jax.named_scope",
        "jax.numpy_dtype_promotion",
        "jax.profiler.trace",
        "jax.sharding.use_mesh",
        "jax.transfer_guard",
    }
)
_REPLACE = frozenset({"_replace", "apply_gradients", "replace"})  # methods of states that return a new state
_REFS = re.compile(r"\b(?:new_ref|mutable_array|array_ref|freeze|pallas|pallas_call)\b")
_RAISES = frozenset({"assertRaises", "assertRaisesRegex", "raises"})
LONGEST = 40  # characters of an expression that is quoted


class Ignored(NamedTuple):
    """A statement that calls a function and does not use the returned value.

    Attributes:
      function: the Python function that contains the statement, ``<module>`` for code outside functions.
      line: the line of the statement.
      call: the call in short: ``state.replace(...)``.
      kind: what the called function does: ``copy`` (returns a changed copy), ``wrap`` (returns a new
        function), ``key`` (returns new random keys), ``context`` (returns an object for a ``with`` statement)
        or ``statistics`` (returns new batch statistics of a Flax module beside its output).
      target: the expression that should get the result (``state``); None if there is no such expression. For
        ``statistics``, the variable that gets them and that nothing reads.
      certain: whether no type of ``target`` could make the statement useful.
    """

    function: str
    line: int
    call: str
    kind: str
    target: str | None
    certain: bool


def find(source: str | None) -> list[Ignored]:
    """Return the statements of ``source`` that do not use the result of a function without side effects, and
    those that get new batch statistics which nothing reads. The last statement of the file is ignored,
    because a notebook shows its value."""
    found = syntax(source)
    names = imported(found)
    methods = {b.name for b in found.functions()}
    refs = _REFS.search(source or "") is not None
    last = found.tree.body[-1] if found.tree.body else None  # a notebook shows the value of the last one
    return _lost_statistics(found) + [
        one
        for scope, statement in _statements(found)
        if statement is not last and (one := _ignored(scope, statement, names, methods)) is not None
        if not (refs and ".at[" in one.call)  # the statement may write into a Ref
    ]


def _lost_statistics(file_syntax: Syntax) -> list[Ignored]:
    """Return the statements ``y, updates = model.apply(..., mutable=["batch_stats"])`` after which nothing
    reads ``updates``, also if a loss function returns them to the function around it.

    The list is empty if the file reads the ``updates`` of another such call, or never uses batch statistics.
    """
    functions = file_syntax.functions()
    lost: list[Ignored] = []
    for statement in ast.walk(file_syntax.tree):
        name = _statistics(statement) if isinstance(statement, ast.Assign) else None
        if name is None or not isinstance(statement, ast.Assign):
            continue
        around = [f for f in functions if spans(f, statement.lineno)]
        if not around:
            continue
        own, outer = max(around, key=lambda f: f.lineno), min(around, key=lambda f: f.lineno)
        inside = {*ast.walk(own)}
        returned = {n for r in inside if isinstance(r, ast.Return) for n in ast.walk(r)}
        uses = [n for n in ast.walk(outer) if isinstance(n, ast.Name) and n.id == name]
        reads = [n for n in uses if isinstance(n.ctx, ast.Load)]
        passed_on = [n for n in reads if n in returned]
        again = [n for n in uses if n not in inside and isinstance(n.ctx, ast.Store)]
        if len(reads) == len(passed_on) and (not passed_on or (own is not outer and again)):
            call = statement.value.func if isinstance(statement.value, ast.Call) else statement.value
            one = Ignored(own.name, statement.lineno, f"{_short(call)}(...)", "statistics", name, False)
            lost.append(one)
        else:
            return []  # the program keeps the statistics of another call, and may leave these out on purpose
    return lost if _evaluates_with_statistics(file_syntax) else []


def _evaluates_with_statistics(file_syntax: Syntax) -> bool:
    """Return whether the program may use the running averages (the collection ``batch_stats``). It does not
    if each ``use_running_average`` that it passes is False, and there is at least one."""
    given = [k.value for c in file_syntax.all_calls() for k in c.keywords if k.arg == "use_running_average"]
    return not given or any(not isinstance(v, ast.Constant) or v.value is not False for v in given)


def _statistics(statement: ast.Assign) -> str | None:
    """Return the variable that gets the new batch statistics, if ``statement`` assigns the two results of a
    call with ``mutable=["batch_stats"]``. Return None for other statements, and if the name of the variable
    begins with an underscore."""
    target, call = statement.targets[0], statement.value
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not isinstance(call, ast.Call):
        return None
    mutable = [n for k in call.keywords if k.arg == "mutable" for n in ast.walk(k.value)]
    last = target.elts[1]
    kept = any(isinstance(n, ast.Constant) and n.value == "batch_stats" for n in mutable)
    return last.id if kept and isinstance(last, ast.Name) and last.id[:1] != "_" else None


def _statements(file_syntax: Syntax) -> Iterator[tuple[str, ast.Expr]]:
    """Yield (name of the function around, statement) for each statement that is only an expression. A ``try``
    with one statement, a ``with pytest.raises`` and a loop with only such statements (it may measure their
    time) are skipped as a whole."""
    left: list[tuple[str, ast.AST]] = [("<module>", file_syntax.tree)]
    while left:
        scope, node = left.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Expr):
                yield scope, child
            elif isinstance(child, (ast.stmt, ast.match_case, ast.ExceptHandler)) and not _on_purpose(child):
                left.append((child.name if isinstance(child, FUNCTION) else scope, child))


def _on_purpose(block: ast.AST) -> bool:
    """Return whether the statements in ``block`` may ignore results on purpose (see ``_statements``)."""
    if isinstance(block, ast.Try):
        return len(block.body) == 1
    if isinstance(block, (ast.For, ast.While)):
        return all(isinstance(statement, ast.Expr) for statement in block.body)
    if not isinstance(block, ast.With):
        return False
    calls = [i.context_expr for i in block.items if isinstance(i.context_expr, ast.Call)]
    return any(last_name(c.func) in _RAISES for c in calls)


def _ignored(scope: str, statement: ast.Expr, names: dict[str, str], defined: set[str]) -> Ignored | None:
    """Return the call whose result ``statement`` ignores, if the called function is one of those that this
    module knows to have no effect; else None.

    Args:
      scope: the name of the function that contains the statement.
      statement: a statement that is only an expression.
      names: imported name -> full name.
      defined: the names of the functions and methods that the file defines; they may have an effect.
    """
    call = statement.value
    if not isinstance(call, ast.Call):
        return None
    full, line, short = full_name(call.func, names), call.lineno, f"{_short(call.func)}(...)"
    if full in _COPIES:
        position = _COPIES[full]
        target = _variable(call.args[position]) if len(call.args) > position else None
        return Ignored(scope, line, short, "copy", target, True)
    if full in _WRAPS | _KEYS:
        target, kind = _variable(call.args[0]) if call.args else None, "wrap" if full in _WRAPS else "key"
        return Ignored(scope, line, short, kind, target, True) if target is not None else None
    if full in _CONTEXTS:
        return Ignored(scope, line, short, "context", None, True)
    method = call.func
    if not isinstance(method, ast.Attribute):
        return None
    owner = method.value
    if isinstance(owner, ast.Subscript) and method.attr in UPDATES and last_name(owner.value) == "at":
        array = owner.value.value if isinstance(owner.value, ast.Attribute) else None
        target = _variable(array) if array is not None else None
        if target is None:
            return None
        return Ignored(scope, line, f"{target}.at[...].{method.attr}(...)", "copy", target, True)
    target = _variable(owner)
    if method.attr not in _REPLACE or method.attr in defined or target is None or target in names:
        return None
    keywords = [k.arg for k in call.keywords]
    wanted = {"grads"} if method.attr == "apply_gradients" else set()
    if call.args or not keywords or {None, "inplace", "target"} & {*keywords} or not wanted <= {*keywords}:
        return None
    return Ignored(scope, line, short, "copy", target, method.attr == "_replace")


def _variable(node: ast.expr) -> str | None:
    """Return the text of a variable, an attribute or an item (``self.state``, ``params["w"]``) if it is
    short. Return None for a longer text, and for other expressions."""
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        text = ast.unparse(node)
        return text if len(text) <= LONGEST else None
    return None


def _short(function: ast.expr) -> str:
    """Return the text of a called function; only its last name if the text is long."""
    text = ast.unparse(function)
    return text if len(text) <= LONGEST else last_name(function) or text[:LONGEST]
