"""Suggest how to put jit around a call in the user's source: ``jax.jit(f.init, static_argnums=2)(...)``.

The functions read source as text. An argument that is written out as a bool, an integer, a string or a tuple
of these is suggested as a static argument. The value of a variable is unknown.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import sys
from collections.abc import Sequence, Set

import msgspec

from jaxscope.analysis import line_names
from jaxscope.analysis.array_names import is_array
from jaxscope.analysis.syntax import (
    FUNCTION,
    Syntax,
    assigned_calls,
    bind,
    calls_from,
    function_around,
    last_name,
    scope_around,
    syntax,
)
from jaxscope.schema.libraries import JAX_ROOTS

JITS = frozenset({"jit", "pmap", "filter_jit", "filter_pmap"})
# Methods of models. If a line has several calls, the call of such a method is the one to jit.
FIRST = frozenset({"init", "init_with_output", "apply", "tabulate"})
# Usual names, and their last words, of what libraries for models and optimizers get: keys, pytrees of arrays
TREES = frozenset({"params", "variables", "state", "grads", "grad", "updates", "key", "rng", "subkey"})
# Libraries whose modules are pytrees with other leaves than arrays, and the jit that accepts them.
MODULES = {
    "equinox": "eqx.filter_jit",
    "flax": "nnx.jit",
}
# Methods of arrays that are one operation
OF_ONE_ARRAY = frozenset(
    {"all", "any", "argmax", "argmin", "astype", "max", "mean", "min", "prod", "reshape", "std", "sum", "var"}
)
ARRAYS = JAX_ROOTS | {"numpy"}  # packages whose functions are not jitted one by one
BUILTINS = frozenset(dir(builtins))  # in print(fit(x)), fit is the function to jit
# Methods of dicts, lists and strings: in zip(keys, shapes.items()), no function is to be jitted.
OF_CONTAINERS = frozenset(
    {"items", "keys", "values", "append", "extend", "insert", "setdefault", "pop"}
    | {"join", "startswith", "endswith", "strip", "lower", "upper", "format", "write"}
)
FEW = 2  # arguments of a differentiated function that are usually arrays: the parameters and a batch
DEEPEST = 3  # how many functions that call each other are followed
MOST = 60  # the longest name of a function that is shown, in characters


class Jitted(msgspec.Struct, frozen=True):
    """A call from the user's source, rewritten as text so that the called function is under jit.

    Attributes:
      call: the text: ``jax.jit(f.init, static_argnums=2)(...)``.
      statics_unknown: whether arguments that ``call`` does not make static may have to be static.
      checked: whether ``call`` is a call of ``check_grads``, with jit around the function that
        ``check_grads`` gets as an argument.
    """

    call: str
    statics_unknown: bool = False
    checked: bool = False

    @property
    def function(self) -> str:
        """Return the function under jit as text, without the call: ``jax.jit(f.init, static_argnums=2)``. The
        result means nothing if ``checked`` is True."""
        return self.call.rpartition("(")[0]

    def jits(self, expression: str) -> bool:
        """Return whether the function that ``expression`` calls is the one under jit in ``call``: True for
        ``f.init(key, x)`` and the call ``jax.jit(f.init)(...)``. ``expression`` is the text of a call in the
        user's source."""
        name, opened, _ = expression.partition("(")
        return bool(opened and name) and (f"({name})" in self.call or f"({name}," in self.call)


def advice(
    source: str | None,
    line: int,
    library: str | None,
    *,
    of_equinox: bool = False,
    column: int | None = None,
) -> Jitted | None:
    """Return the call on ``line`` of the user's source, rewritten with jit around the called function:
    ``jax.jit(f.init, static_argnums=2)(...)`` for ``f.init(key, x, 2)``.

    Return None if the source is unknown, if it is unclear which call to jit or how, or if the line only calls
    functions of JAX or NumPy other than ``check_grads``. Also return None if ``library`` is None or JAX and
    the file defines the called function without decorators: its operations are on other lines.

    Args:
      source: the text of the file; None: unknown.
      line: the line on which the call begins.
      library: the library that the line calls, such as ``flax``; None: no library.
      of_equinox: whether the objects of ``library`` are Equinox modules.
      column: the position in bytes where the call to jit begins; None: unknown. If the line has several
        statements, only calls of the statement at this position count.
    """
    found = syntax(source)
    modules = names_of(found.imports, sys.stdlib_module_names - {"functools"})
    calls = [c for c in found.calls.get(line, []) if not _of_python(c.func) and _root(c.func) not in modules]
    calls = _of_statement(found, calls, line, column)
    arrays = names_of(found.imports, ARRAYS)
    checked = [c for c in calls if last_name(c.func) == "check_grads" and c.args]
    if checked and all(_root(c.func) in arrays for c in calls):
        return Jitted(f"check_grads(jax.jit({ast.unparse(checked[0].args[0])}), ...)", checked=True)
    call = _call_to_jit(found, calls, arrays, library)
    if call is None or not _may_be_jitted(found, call, arrays, library):
        return None
    # filter_jit accepts Equinox modules, whose leaves are not only arrays.
    imported = bool(names_of(found.imports, {"equinox"}))
    filtered = library not in MODULES and (of_equinox or imported)
    if isinstance(call.func, ast.Call):
        if line_names.full_name(call.func.func, line_names.imported(found)).startswith("jax.scipy."):
            return _jitted_with_object(call, call.func)
        return _jitted_transform(call, call.func, "equinox" if filtered else library or "")
    name, last = ast.unparse(call.func), last_name(call.func) or ""
    if not _is_plain(call):
        return None
    if last[:1].isupper():
        # For Equinox, a lambda would be a new function in each call, and compiled each time.
        made = f"({name})(...)" if library == "equinox" else f"(lambda: {name}(...))()"
        return Jitted(MODULES[library] + made) if library in MODULES else None
    if library in MODULES and last not in FIRST:
        return None  # an object of the library is called, and its attributes are not only arrays
    if filtered:
        return Jitted(f"{MODULES['equinox'] if imported else 'equinox.filter_jit'}({name})(...)")
    options, passed = _statics(call), [*call.args, *(k.value for k in call.keywords)]
    if options:
        unknown = any(_is_object(found, value, arrays) for value in passed)
    else:
        unknown = not all(
            is_array(source, value) or (library is not None and _is_tree(value)) for value in passed
        )
    return Jitted(f"jax.jit({name}{options})(...)", statics_unknown=unknown)


def _is_tree(value: ast.expr) -> bool:
    """Return whether the name of the argument ``value`` is usual for a key or a pytree of arrays:
    ``opt_state``, ``self.params``."""
    name = last_name(value) or ""
    return name.rpartition("_")[2] in TREES


def _may_be_jitted(file_syntax: Syntax, call: ast.Call, arrays: set[str], library: str | None) -> bool:
    """Return whether jit around the function of ``call`` may help; the other arguments are those of
    ``_call_to_jit``."""
    if _root(call.func) in arrays:
        return False  # one operation of JAX or NumPy
    if (library is None or library in JAX_ROOTS) and _is_defined(file_syntax, call.func):
        return False  # its operations are on its own lines: those of this line are in its arguments
    if isinstance(call.func, ast.Attribute) and call.func.attr in OF_ONE_ARRAY:
        return False  # a method of an array, such as Q[s].max()
    # A static argument would compile again for each of these functions.
    return _new_function_in(file_syntax, call) is None


def _is_plain(call: ast.Call) -> bool:
    """Return whether ``call`` calls a short name, such as ``f.init``, without ``*args``. False for a method
    of what another expression returns: ``jnp.stack(xs).mean(0)``, ``(x - y).mean(0)``."""
    short = len(ast.unparse(call.func)) <= MOST and not any(isinstance(a, ast.Starred) for a in call.args)
    computes = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare)
    return short and not any(isinstance(node, computes) for node in ast.walk(call.func))


def _jitted_transform(call: ast.Call, transform: ast.Call, owner: str) -> Jitted:
    """Return ``call``, which calls the result of ``transform``, with jit: ``jax.jit(jax.grad(loss))(...)``
    for ``jax.grad(loss)(w, x)``. ``owner`` is the library that decides which jit."""
    name = ast.unparse(transform)
    name = name if len(name) <= MOST else f"{ast.unparse(transform.func)[:MOST]}(...)"
    if owner in MODULES and last_name(transform.func) not in FIRST:
        return Jitted(f"{MODULES[owner]}({name})(...)")
    options = _statics(call)
    unknown = not options and len(call.args) + len(call.keywords) > FEW
    return Jitted(f"jax.jit({name}{options})(...)", statics_unknown=unknown)


def _jitted_with_object(call: ast.Call, made: ast.Call) -> Jitted | None:
    """Return ``call``, which calls an object that is ``made`` on the line, in a jitted function that makes
    the object: ``jax.jit(lambda x: gaussian_kde(x)(x))(...)``. jit does not accept the object itself."""
    inside = (n for part in (*made.args, *call.args) for n in ast.walk(part))
    arguments = ", ".join(dict.fromkeys(n.id for n in inside if isinstance(n, ast.Name)))
    text = ast.unparse(call)
    return Jitted(f"jax.jit(lambda {arguments}: {text})(...)") if len(text) <= MOST else None


def _is_object(file_syntax: Syntax, value: ast.expr, arrays: set[str]) -> bool:
    """Return whether the argument ``value`` seems to be an object: the result of a call of another library
    than JAX and NumPy, or a variable to which the file assigns an object."""
    if isinstance(value, ast.Call):
        return _root(value.func) not in arrays
    return isinstance(value, ast.Name) and value.id in file_syntax.objects


def function_made_for(source: str | None, name: str, caller: str | None, line: int) -> str | None:
    """Return the parameter of the function ``name`` for which the call on ``line`` passes a function that is
    made for this call: a lambda, the result of another call, or a function that the calling function defines.
    Only parameters that ``name`` calls count. Return None if there is none.

    Args:
      source: the text of the file with the function.
      caller: the text of the file with ``line``.
    """
    found, defined = syntax(caller), line_names.function(source, name)
    if defined is None:
        return None
    called = {last_name(n.func) for n in ast.walk(defined) if isinstance(n, ast.Call)}
    around = function_around(found, line)
    made = defined_inside(around) if around is not None else set()
    made |= {variable for variable, _ in assigned_calls(ast.walk(around or found.tree))}
    calls = (c for c in calls_from(caller, line) if last_name(c.func) == defined.name)
    for parameter, value in (pair for c in calls for pair in bind(c, defined)):
        new = isinstance(value, (ast.Lambda, ast.Call)) or getattr(value, "id", None) in made
        if parameter in called and new:
            return parameter
    return None


def new_function_passed(source: str | None, line: int) -> tuple[str, str] | None:
    """Return (name, outer) if a call on ``line`` passes a function that is new in each call of the function
    ``outer``, which defines it under ``name`` and passes it on. Return None if there is none."""
    found = syntax(source)
    arrays = names_of(found.imports, ARRAYS)
    calls = [
        c for c in calls_from(source, line) if isinstance(c.func, ast.Call) or _root(c.func) not in arrays
    ]
    return next((new for c in calls if (new := _new_function_in(found, c)) is not None), None)


def _new_function_in(file_syntax: Syntax, call: ast.Call) -> tuple[str, str] | None:
    """Return (name, outer) as ``new_function_passed`` does, for ``call``: the function around it defines what
    it passes, or gets it from a caller that defines it."""
    around = function_around(file_syntax, call.lineno)
    names = [a.id for a in (*call.args, *(k.value for k in call.keywords)) if isinstance(a, ast.Name)]
    if around is None or not names:
        return None
    own = next((name for name in names if name in defined_inside(around)), None)
    if own is not None:
        return own, around.name
    for outer in file_syntax.all_calls():
        caller = function_around(file_syntax, outer.lineno)
        if last_name(outer.func) != around.name or caller is None:
            continue
        new = defined_inside(caller)
        for value in (value for parameter, value in bind(outer, around) if parameter in names):
            if isinstance(value, ast.Lambda):
                return "the lambda", caller.name
            if isinstance(value, ast.Name) and value.id in new:
                return value.id, caller.name
    return None


def defined_inside(function: ast.AST) -> set[str]:
    """Return the names of the functions and lambdas that ``function`` defines in each of its calls."""
    inside = [n for n in ast.walk(function) if n is not function]
    names = {n.name for n in inside if isinstance(n, FUNCTION)}
    assigned = (n for n in inside if isinstance(n, ast.Assign) and isinstance(n.value, ast.Lambda))
    return names | {t.id for n in assigned for t in n.targets if isinstance(t, ast.Name)}


def _of_statement(
    file_syntax: Syntax, calls: list[ast.Call], line: int, column: int | None
) -> list[ast.Call]:
    """Return the calls among ``calls`` that are in the statement at ``column``, and in the lambda there if
    there is one; all begin on ``line``. Return all ``calls`` if ``column`` is None."""
    if column is None:
        return calls
    lambdas = [
        n
        for n in file_syntax.blocks
        if isinstance(n, ast.Lambda)
        and n.lineno <= line
        and (line, column) < (n.end_lineno, n.end_col_offset)
        if (n.lineno, n.col_offset) <= (line, column)
    ]
    inside = max(lambdas, key=lambda n: (n.lineno, n.col_offset), default=None)
    if inside is not None:  # the code around the lambda only passes it on
        within = set(ast.walk(inside))
        calls = [c for c in calls if c in within]
    begin = sorted(
        n.col_offset for n in ast.walk(file_syntax.tree) if isinstance(n, ast.stmt) and n.lineno == line
    )
    if len(begin) < 2:
        return calls
    first = max((c for c in begin if c <= column), default=0)
    after = min((c for c in begin if c > column), default=sys.maxsize)
    return [c for c in calls if first <= c.col_offset < after]


def _call_to_jit(
    file_syntax: Syntax, calls: list[ast.Call], arrays: set[str], library: str | None
) -> ast.Call | None:
    """Return the call among ``calls``, all on one line, whose function is to be jitted: the only call of a
    function such as ``init`` or ``apply``, else the only call of ``library``, else the only outermost call
    that is not one of JAX or NumPy. Return None if it is unclear which call to jit, as for a call whose
    arguments apply a transform.

    Args:
      arrays: the names by which the file imports ``jax.numpy`` and other modules for arrays.
      library: the library that the line calls; None: no library.
    """
    own = [c for c in calls if _root(c.func) not in arrays]  # in jnp.abs(net(x)), net is the function to jit
    applied_to = {id(c.func): c for c in calls}  # nn.apply(f, model)(variables): jit what nn.apply returns
    named = [applied_to.get(id(c), c) for c in calls if last_name(c.func) in FIRST]
    inner = {id(n) for c in own for n in ast.walk(c) if n is not c}
    # In state.replace(params=optax.incremental_update(...)), the library's function does the computation.
    known = names_of(file_syntax.imports, {library or ""} - {*MODULES})
    theirs = [c for c in own if _root(c.func) in known]
    chosen = named or (theirs if len(theirs) == 1 else [c for c in own if id(c) not in inner])
    if len(chosen) != 1:
        return None
    # In opt_update(i, jax.grad(loss)(params), state), the arguments compute, too.
    passed = (n for a in (*chosen[0].args, *(k.value for k in chosen[0].keywords)) for n in ast.walk(a))
    computes = any(isinstance(n, ast.Call) and isinstance(n.func, ast.Call) for n in passed)
    return chosen[0] if not computes else None


def _statics(call: ast.Call) -> str:
    """Return the options with which jit makes arguments of ``call`` static, as text: ``, static_argnums=2``.
    They make static the arguments for which ``_for_python`` is True, and the keyword ``method``, which Flax's
    ``apply`` takes. Arguments after ``*args`` are left out, because their positions are unknown. Return an
    empty text if no argument is static."""
    known = itertools.takewhile(lambda a: not isinstance(a, ast.Starred), call.args)
    numbers = [i for i, a in enumerate(known) if _for_python(a)]
    names = [
        k.arg for k in call.keywords if k.arg is not None and (k.arg == "method" or _for_python(k.value))
    ]
    options = f", static_argnums={numbers[0] if len(numbers) == 1 else tuple(numbers)}" if numbers else ""
    return options + (
        f", static_argnames={(names[0] if len(names) == 1 else tuple(names))!r}" if names else ""
    )


def jit_for(source: str | None, name: str) -> str:
    """Return the jit for the function ``name``: that of Equinox or of Flax NNX if the function seems to get a
    module of that library as an argument, because the file imports the library, and the function calls one
    of its parameters, or a vmap of it; else ``jit``."""
    found = syntax(source)
    if names_of(found.imports, {"equinox"}):
        jit = MODULES["equinox"]
    elif any(full.startswith("flax.nnx") for full in line_names.imported(found).values()):
        jit = MODULES["flax"]
    else:
        return "jit"
    return jit if _called_parameters(source, name, DEEPEST) else "jit"


def _called_parameters(source: str | None, name: str, depth: int) -> set[str]:
    """Return the parameters of the function ``name`` that it calls, or passes to a function of the same file
    that calls them, through at most ``depth`` functions."""
    defined = line_names.function(source, name)
    if defined is None or depth == 0:
        return set()
    parameters = {a.arg for a in ast.walk(defined.args) if isinstance(a, ast.arg)}
    calls = [n for n in ast.walk(defined) if isinstance(n, ast.Call)]
    mapped = [c.func.args[0] for c in calls if isinstance(c.func, ast.Call) and c.func.args]
    found = {n.id for n in (*(c.func for c in calls), *mapped) if isinstance(n, ast.Name)}
    for call in calls:
        inner = line_names.function(source, last_name(call.func) or "")
        if inner is not None and inner is not defined:
            used = _called_parameters(source, inner.name, depth - 1)
            found |= {v.id for p, v in bind(call, inner) if p in used and isinstance(v, ast.Name)}
    return found & parameters


def joining_call(source: str | None, line: int) -> str | None:
    """Return, rewritten for NumPy, the call on ``line`` that joins a list of arrays:
    ``np.stack(jax.device_get(xs))`` for ``jnp.stack(xs)``. Return None if there is no such
    call, or several."""
    found = [
        c
        for c in calls_from(source, line)
        if last_name(c.func) in ("stack", "concatenate", "array", "vstack", "hstack") and c.args
        if isinstance(c.args[0], (ast.Name, ast.Attribute))
    ]
    if len(found) != 1:
        return None
    [call] = found
    others = "".join(f", {ast.unparse(a)}" for a in (*call.args[1:], *call.keywords))
    return f"np.{last_name(call.func)}(jax.device_get({ast.unparse(call.args[0])}){others})"


def jitted_calls(source: str | None, line: int) -> set[int]:
    """Return the columns (in bytes) of the calls on ``line`` that call the result of jit or pmap directly:
    ``jax.jit(f)(x)``."""
    calls = calls_from(source, line)
    return {c.col_offset for c in calls if isinstance(c.func, ast.Call) and last_name(c.func.func) in JITS}


def calls(source: str | None, line: int, names: frozenset[str]) -> bool:
    """Return whether a call of a function or a method with one of these ``names`` begins on ``line``. Return
    False if the source is unknown."""
    return any(last_name(c.func) in names for c in calls_from(source, line))


def calls_transformed(source: str | None, line: int, names: frozenset[str]) -> bool:
    """Return whether ``line`` calls a function with one of these ``names``, or a variable to which this file
    assigns the result of such a call. For the name ``grad``, the lines ``jax.grad(loss)(w)`` and ``g(w)``,
    after ``g = jax.grad(loss)``, are such lines. Return False if the source is unknown."""
    found = syntax(source)
    if line not in found.calls:
        return False
    made = {name for name, c in assigned_calls(ast.walk(found.tree)) if last_name(c.func) in names}
    return any(last_name(c.func) in names | made for c in found.calls[line])


def further_calls(source: str | None, line: int, names: frozenset[str]) -> tuple[str, ...]:
    """Return the numbers, as texts, of the other lines with calls like the one on ``line``:
    ``critic.init(key, x)`` beside ``actor.init(key, x)``. Such a call is in the same function, calls a
    function or method with one of ``names``, and has as many arguments as the call on ``line``. Return an
    empty tuple if ``line`` has no such call."""
    found = syntax(source)

    def place(n: int) -> tuple[object, set[int]]:
        arguments = {len(c.args) + len(c.keywords) for c in found.calls[n] if last_name(c.func) in names}
        return function_around(found, n), arguments

    if not calls(source, line, names):
        return ()
    scope, arguments = place(line)
    every = [n for n in sorted(found.calls) if n != line and calls(source, n, names)]
    return tuple(str(n) for n in every if place(n)[0] == scope and place(n)[1] & arguments)


def later_method_calls(source: str | None, line: int, names: frozenset[str]) -> tuple[str, ...]:
    """Return the numbers, as texts, of the lines after ``line`` in the same function that call a method with
    one of ``names`` of an object of which ``line`` calls a method, too: ``model.apply(p, x)`` after
    ``model.init(key, x)``. If ``names`` has ``apply_fn``, its calls on any object count. Calls in nested
    functions do not count."""
    found = syntax(source)
    here = (c.func for c in found.calls.get(line, ()) if isinstance(c.func, ast.Attribute))
    objects = {name for func in here if (name := _root(func)) is not None}
    later = [
        n
        for n, every in sorted(found.calls.items())
        if n > line
        for c in every
        if isinstance(c.func, ast.Attribute) and c.func.attr in names
        if c.func.attr == "apply_fn" or _root(c.func) in objects
    ]
    return tuple(str(n) for n in dict.fromkeys(later) if scope_around(found, n) is scope_around(found, line))


def calls_a_function(source: str | None, line: int) -> bool:
    """Return whether ``line`` calls anything that is neither a class nor a builtin function. A name that
    begins with a capital letter counts as a class, and a method such as ``x.sum()`` as the builtin function
    of this name. Return True if the source is unknown."""
    found = syntax(source)
    names = [last_name(c.func) or "" for c in found.calls.get(line, [])] if found.tree.body else [""]
    return any(not name[:1].isupper() and name not in BUILTINS for name in names)


def calls_function_of(source: str | None, line: int, library: str) -> bool:
    """Return whether ``line`` calls exactly one function or class of ``library``, such as
    ``effective_sample_size`` or ``blackjax.ess``, and it is not a class. The file must import the name.
    Return False if the source is unknown."""
    found = syntax(source)
    names = names_of(found.imports, {library})
    called = [c.func for c in found.calls.get(line, []) if _root(c.func) in names]
    return len(called) == 1 and not (last_name(called[0]) or "")[:1].isupper()


def _for_python(node: ast.expr) -> bool:
    """Return whether the argument ``node`` is written out as bools, integers or strings, also in tuples or
    with operators: ``-1``, ``(2, 3)``, ``2 * 8``. Such an argument is made static."""
    if isinstance(node, ast.UnaryOp):
        return _for_python(node.operand)
    if isinstance(node, ast.BinOp):
        return _for_python(node.left) and _for_python(node.right)
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(_for_python(e) for e in node.elts)
    # A float may be traced. None is an empty pytree for jit.
    return isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, str, bytes))


def _is_defined(file_syntax: Syntax, called: ast.expr) -> bool:
    """Return whether ``called`` is the plain name of a function that the file defines without decorators."""
    plain = {n.name for n in file_syntax.functions() if not n.decorator_list}
    return isinstance(called, ast.Name) and called.id in plain


def _of_python(called: ast.expr) -> bool:
    """Return whether jit makes no sense for the function ``called``: a builtin such as ``len``, a method of
    Python's containers and strings such as ``names.append``, or a method of ``x.at[i]``."""
    if isinstance(called, ast.Attribute):
        item = called.value.value if isinstance(called.value, ast.Subscript) else None
        return called.attr in OF_CONTAINERS or (isinstance(item, ast.Attribute) and item.attr == "at")
    return isinstance(called, ast.Name) and called.id in BUILTINS


def _root(node: ast.AST) -> str | None:
    """Return the name with which a dotted name begins: ``jnp`` for ``jnp.linalg.norm``. Return None if
    ``node`` is not a dotted name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def names_of(imports: Sequence[ast.Import | ast.ImportFrom], packages: Set[str]) -> set[str]:
    """Return the names under which a file imports the top-level ``packages`` or anything from them: ``jnp``
    for ``import jax.numpy as jnp`` and the package ``jax``."""
    found: set[str] = set()
    for node in imports:
        if isinstance(node, ast.Import):
            modules = [(a.name, a) for a in node.names]
        else:
            modules = [(node.module or "", a) for a in node.names]
        found |= {a.asname or a.name.partition(".")[0] for m, a in modules if m.partition(".")[0] in packages}
    return found
