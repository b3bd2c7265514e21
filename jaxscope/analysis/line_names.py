"""Find which functions of JAX a line of the user's source calls, which variables a function captures, and
whether a line is in ``with mesh:``.

The functions read source as text. A name stands for what the file imports under that name. A name that the
file also defines as a function is ignored.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterable

from jaxscope.analysis.source_lines import loop_around
from jaxscope.analysis.syntax import (
    FUNCTION,
    SCOPES,
    Definition,
    Syntax,
    begins_at,
    calls_at,
    last_name,
    own_nodes,
    spans,
    syntax,
)
from jaxscope.schema.libraries import JAX_ROOTS, TRACED_WHOLE

GRADIENTS = frozenset({"grad", "value_and_grad", "filter_grad", "filter_value_and_grad"})
REVERSE = GRADIENTS | {"vjp", "filter_vjp", "jacrev", "hessian"}  # compute gradients in reverse
_TRANSFORMS = REVERSE | {"jacfwd", "jacobian", "vmap", "filter_vmap"}
OF_ARRAYS = frozenset(  # attributes of arrays and of dicts
    {"T", "at", "dtype", "imag", "mT", "ndim", "real", "shape", "size", "get", "items", "keys", "values"}
    | {"all", "any", "argmax", "argmin", "argsort", "astype", "clip", "conj", "copy", "cumsum", "dot"}
    | {"flatten", "max", "mean", "min", "prod", "ravel", "reshape", "sort", "squeeze", "std", "sum"}
    | {"trace", "transpose", "var"}
)
_MODULES = ("equinox", "flax.nnx", "flax.linen", "haiku")  # libraries whose classes are modules
_OUTPUT = frozenset({"print", "open", "input"})
_CHANGES = frozenset({"append", "extend", "insert", "pop", "setdefault"})
LONGEST = 40  # characters of a call that is quoted in a message
UPDATES = frozenset(  # methods of x.at[i]
    {"add", "apply", "divide", "max", "min", "mul", "multiply", "power", "set", "subtract"}
)
_MESH_MAKERS = frozenset({"Mesh", "make_mesh"})


def called_with(source: str | None, line: int, argument: str) -> list[str]:
    """Return the full names of JAX's functions to which a call on ``line`` passes the keyword ``argument``:
    ``jax.numpy.clip`` for ``jnp.clip(x, a_min=0)``.

    A call with ``**options`` counts, too. Names of JAX among the positional arguments of the call are
    included: ``jax.jit`` for ``partial(jax.jit, in_shardings=s)``.
    """
    found = syntax(source)
    names = imported(found)
    calls = [c for c in calls_at(source, line) if any(k.arg in (argument, None) for k in c.keywords)]
    full = [full_name(n, names) for c in calls for n in (c.func, *c.args)]
    return [name for name in full if name.partition(".")[0] in JAX_ROOTS]


def gradients(source: str | None) -> set[str]:
    """Return the full names of the functions with which a file computes gradients: ``jax.value_and_grad``,
    ``flax.nnx.grad``, ``equinox.filter_grad``."""
    found = syntax(source)
    names = imported(found)
    called = {full_name(c.func, names) for c in found.all_calls()}
    return {name for name in called if name.rpartition(".")[2] in GRADIENTS}


def captured(source: str | None, line: int) -> list[str]:
    """Return the variables that a function or lambda reads from outside and that may have another value each
    time the function is defined: parameters of functions around it, and variables that functions or loops
    around it set. The variables are in the order in which they are first read. ``self`` is ignored.

    Args:
      source: the text of the file; None: unknown.
      line: the line on which the function or lambda begins. The result is empty if none or several begin
        there.
    """
    around = [n for n in syntax(source).blocks if begins_at(n) <= line <= (n.end_lineno or 0)]
    begins = [n for n in around if isinstance(n, SCOPES) and begins_at(n) == line]
    if len(begins) != 1:
        return []
    function = begins[0]
    names = [n for n in ast.walk(function) if isinstance(n, ast.Name)]
    inside = sorted(names, key=lambda n: (n.lineno, n.col_offset))
    own = {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
    own |= {n.id for n in inside if isinstance(n.ctx, ast.Store)}
    read = dict.fromkeys(n.id for n in inside if n.id not in own)
    outside = [n for outer in around if outer is not function for n in ast.walk(outer)]
    set_anew = {n.id for n in outside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    set_anew |= {n.arg for n in outside if isinstance(n, ast.arg)}
    return [name for name in read if name in set_anew and name != "self"]


def defined_in_loop(source: str | None, line: int) -> tuple[str, tuple[str, ...]] | None:
    """Return (name of a function, variables that it captures) if ``line`` mentions a function that the
    innermost loop around the line defines again in each iteration; else None. The variables are those of
    ``captured``. A lambda on the line counts if it captures variables; its name is ``the lambda``."""
    found, loop = syntax(source), loop_around(source, line)
    if loop is None:
        return None
    here = {n.id for n in ast.walk(found.tree) if isinstance(n, ast.Name) and n.lineno == line}
    for n in found.blocks:
        if isinstance(n, FUNCTION) and n.name in here and loop[0] < n.lineno <= loop[1]:
            return n.name, tuple(captured(source, begins_at(n)))
    lambdas = [n for n in found.blocks if isinstance(n, ast.Lambda) and n.lineno == line]
    names = tuple(captured(source, line)) if len(lambdas) == 1 else ()
    return ("the lambda", names) if names else None


def defined_beside(source: str | None, line: int) -> tuple[str, str, tuple[str, ...]] | None:
    """Return (name of a function, name of the function that defines it, variables that it captures) if
    ``line`` mentions a function that is defined in the innermost function around the line, outside of blocks
    such as ``if``. Return None if the line mentions no such function."""
    defined = syntax(source).functions()
    around = [n for n in defined if n.lineno < line <= (n.end_lineno or 0)]
    if not around:
        return None
    outer = max(around, key=lambda n: n.lineno)
    here = {n.id for n in ast.walk(outer) if isinstance(n, ast.Name) and n.lineno == line}
    for n in defined:
        if n.name in here and n in outer.body:
            return n.name, outer.name, tuple(captured(source, begins_at(n)))
    return None


def calls_method(source: str | None, line: int, method: str) -> bool:
    """Return whether ``line`` calls a method with the name ``method`` of an object, as in ``x.item()``. A
    function of an imported module (``jnp.sum()``) does not count."""
    found = syntax(source)
    names = imported(found)
    methods = [f for c in calls_at(source, line) if isinstance(f := c.func, ast.Attribute)]
    return any(f.attr == method and not full_name(f, names) for f in methods)


def numpy_call(source: str | None, line: int) -> str | None:
    """Return the text of a call of a function of NumPy on ``line``: ``np.sqrt(64)``. Of several calls, one is
    chosen. Return None if there is none, or if the text is longer than ``LONGEST`` (40) characters."""
    found = syntax(source)
    names = imported(found)
    calls = (c for c in calls_at(source, line) if full_name(c.func, names).partition(".")[0] == "numpy")
    text = next((ast.unparse(c) for c in calls), None)
    return text if text is not None and len(text) <= LONGEST else None


def function(source: str | None, name: str) -> Definition | None:
    """Return the definition of the function with the qualified name ``name``. Its last part is compared
    (``step`` for ``Model.step``), and the class before it if several functions of the file have this last
    part. Return None if no function or several functions match."""
    found = syntax(source)
    *_, owner, last = ("", *name.split("."))
    named = [n for n in found.functions() if n.name == last]
    if len(named) > 1:  # methods of several classes
        bodies = [n.body for n in ast.walk(found.tree) if isinstance(n, ast.ClassDef) and n.name == owner]
        named = [n for body in bodies for n in body if isinstance(n, FUNCTION) and n.name == last]
    return named[0] if len(named) == 1 else None


def module_library(source: str | None, name: str) -> str | None:
    """Return the library whose module class the class of the method ``name`` extends: ``equinox`` for
    ``Block.__call__`` with ``class Block(eqx.Module)``, or ``flax.nnx``, ``flax.linen``, ``haiku``. Base
    classes of the same file are followed. Return None for other classes, and for functions."""
    found = syntax(source)
    if "." not in name:
        return None
    classes = {n.name: n for n in ast.walk(found.tree) if isinstance(n, ast.ClassDef)}
    names, waiting, seen = imported(found), [name.split(".")[-2]], set[str]()
    while waiting:
        defined = classes.get(waiting.pop())
        if defined is None or defined.name in seen:
            continue
        seen.add(defined.name)
        for base in defined.bases:
            full = full_name(base, names)
            library = next((m for m in _MODULES if full.startswith(f"{m}.")), None)
            if library is not None:
                return library
            waiting.append(last_name(base) or "")
    return None


def defines_if_unset(method: Definition, line: int) -> bool:
    """Return whether ``method`` reaches ``line``, which defines a function, only under a condition on
    ``self``: the line is in an ``if self.step is None:``, or after an ``if self...`` that may return."""
    conditions = [
        n
        for n in own_nodes(method)
        if isinstance(n, ast.If)
        and (
            n.lineno < line <= (n.end_lineno or n.lineno)
            or ((n.end_lineno or n.lineno) < line and any(isinstance(x, ast.Return) for x in own_nodes(n)))
        )
    ]
    parameters = [*method.args.posonlyargs, *method.args.args]
    return any(
        isinstance(x, ast.Name) and parameters and x.id == parameters[0].arg == "self"
        for n in conditions
        for x in ast.walk(n.test)
    )


def attributes_set(source: str | None, name: str) -> tuple[str, ...]:
    """Return the attributes that the function with the qualified name ``name`` assigns, as text:
    ``self.params``. Return an empty tuple if ``function`` does not find it."""
    found = function(source, name)
    targets = [n for n in ast.walk(found) if isinstance(n, ast.Attribute)] if found is not None else []
    return tuple(dict.fromkeys(ast.unparse(n) for n in targets if isinstance(n.ctx, ast.Store)))


def attributes_on(source: str | None, lines: Collection[int]) -> set[str]:
    """Return the attributes (``self.params``) that ``lines`` read or assign, as text."""
    nodes = (n for n in ast.walk(syntax(source).tree) if isinstance(n, ast.Attribute))
    return {ast.unparse(n) for n in nodes if n.lineno in lines}


def containers_changed(source: str | None, name: str) -> tuple[str, ...]:
    """Return the containers, as text, that the function with the qualified name ``name`` changes by a method
    (``self.history.append(x)``), and that it did not make. Return an empty tuple if ``function`` does not
    find it."""
    found = function(source, name)
    inside = list(ast.walk(found)) if found is not None else []
    own = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own |= full_names(syntax(source).imports).keys()  # jnp.append changes nothing
    methods = (n.func for n in inside if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    owners = (n.value for n in methods if n.attr in _CHANGES)
    outer = (n for n in owners if isinstance(n, (ast.Name, ast.Attribute)))
    return tuple(
        dict.fromkeys(ast.unparse(n) for n in outer if not (isinstance(n, ast.Name) and n.id in own))
    )


def only_transformed(source: str | None, name: str) -> tuple[int, str, str] | None:
    """Return (line, variable, expression) if the file uses the function ``name`` only to make a gradient or
    a similar function of it: ``(9, "slope", "jax.grad(loss)")`` for ``slope = jax.grad(loss)``. None
    otherwise."""
    tree, last = syntax(source).tree, name.rpartition(".")[2]
    used = [n for n in ast.walk(tree) if isinstance(n, (ast.Name, ast.Attribute)) and last_name(n) == last]
    for n in ast.walk(tree) if len(used) == 1 else ():
        if isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Name):
            call = n.value
            if (
                isinstance(call, ast.Call)
                and last_name(call.func) in _TRANSFORMS
                and used[0] in call.args[:1]
            ):
                return n.lineno, n.targets[0].id, ast.unparse(call)
    return None


def reads_old_values(source: str | None, name: str) -> bool:
    """Return whether the function with the qualified name ``name`` reads an attribute before the first line
    on which it assigns this attribute: ``self.age += 1``. Return False if ``function`` does not find it."""
    found = function(source, name)
    if found is None:
        return False
    inside = list(ast.walk(found))
    set_at = dict[str, int]()
    for n in inside:
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store):
            text = ast.unparse(n)
            set_at[text] = min(n.lineno, set_at.get(text, n.lineno))
    if any(isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Attribute) for n in inside):
        return True
    reads = (n for n in inside if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load))
    return any(n.lineno <= set_at.get(ast.unparse(n), 0) for n in reads)


def computes_only(source: str | None, name: str, callers: frozenset[str] = frozenset()) -> bool:
    """Return whether jit could probably trace the function with the qualified name ``name`` as a whole. The
    function, and the functions of the file that it calls, call no package that does not compute with JAX
    (``random``, ``matplotlib``), do not print, have no ``yield``, ``async`` or ``global``, and change no list
    or dict that they did not make. Return False if ``function`` does not find it.

    Args:
      callers: functions that are looked at already, and lead to this one.
    """
    found, defined = syntax(source), function(source, name)
    if defined is None or isinstance(defined, ast.AsyncFunctionDef):
        return False
    names, inside = imported(found), list(ast.walk(defined))
    own = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for n in inside:
        if isinstance(n, (ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal)):
            return False
        if not isinstance(n, ast.Call):
            continue
        package = full_name(n.func, names).partition(".")[0]
        if package and package not in TRACED_WHOLE | {"math", "functools"}:
            return False
        if isinstance(n.func, ast.Name) and n.func.id in _OUTPUT:
            return False
        called = n.func.id if isinstance(n.func, ast.Name) else ""
        known = called in callers | {name, ""} or function(source, called) is None
        if not known and not computes_only(source, called, callers | {name}):
            return False
        owner = n.func.value if isinstance(n.func, ast.Attribute) else None
        if (
            owner is not None
            and last_name(n.func) in _CHANGES
            and not (isinstance(owner, ast.Name) and owner.id in own)
        ):
            return False
    return True


def takes_objects(source: str | None, name: str) -> bool:
    """Return whether the function with the qualified name ``name`` seems to get an object that jit does not
    accept as an argument: it reads an attribute of a parameter that arrays and dicts do not have, such as
    ``cfg.depth``. Return False if ``function`` does not find it."""
    defined = function(source, name)
    if defined is None:
        return False
    parameters = {a.arg for a in ast.walk(defined.args) if isinstance(a, ast.arg)}
    read = (n for n in ast.walk(defined) if isinstance(n, ast.Attribute) and n.attr not in OF_ARRAYS)
    return any(isinstance(n.value, ast.Name) and n.value.id in parameters for n in read)


def cache_size(function: Definition) -> float | None:
    """Return the ``maxsize`` of the ``functools.lru_cache`` that decorates ``function``: 128 if none is
    written, infinity for ``maxsize=None`` and for ``functools.cache``. Return None if there is no such
    decorator, or if the size is no number in the source."""
    names = [(last_name(d.func if isinstance(d, ast.Call) else d), d) for d in function.decorator_list]
    caches = [d for name, d in names if name in ("lru_cache", "cache")]
    if not caches:
        return None
    if "cache" in (name for name, _ in names):
        return math.inf
    arguments = [*getattr(caches[0], "args", ())]
    sizes = arguments or [k.value for k in getattr(caches[0], "keywords", ()) if k.arg == "maxsize"]
    if not sizes:
        return 128
    if not isinstance(sizes[0], ast.Constant):
        return None
    size = sizes[0].value
    return math.inf if size is None else size if isinstance(size, int) else None


def lines_calling(source: str | None, names: Collection[str]) -> list[int]:
    """Return the lines that call a function or a method with one of ``names``, in order."""
    return sorted({c.lineno for c in syntax(source).all_calls() if last_name(c.func) in names})


def in_mesh_block(source: str | None, line: int) -> bool:
    """Return whether ``line`` is inside a block ``with mesh:`` or ``with Mesh(...):``. Any variable or
    attribute whose name contains "mesh" counts as ``mesh``. A block ``with jax.set_mesh(mesh):`` does not
    count."""
    blocks = [n for n in ast.walk(syntax(source).tree) if isinstance(n, ast.With) and spans(n, line)]
    return any(_is_mesh(item.context_expr) for block in blocks for item in block.items)


def _is_mesh(node: ast.expr) -> bool:
    """Return whether ``node``, the expression after ``with``, makes a mesh or seems to be one by its name."""
    if isinstance(node, ast.Call):
        return last_name(node.func) in _MESH_MAKERS
    return "mesh" in (last_name(node) or "").lower()


def differentiates(source: str | None) -> bool:
    """Return whether a file calls ``jax.grad`` or another function that computes gradients in reverse."""
    return any(last_name(call.func) in REVERSE for call in syntax(source).all_calls())


def full_names(imports: Iterable[ast.Import | ast.ImportFrom]) -> dict[str, str]:
    """Return imported name -> full name for import statements: ``jnp`` -> ``jax.numpy``."""
    names: dict[str, str] = {}
    for node in imports:
        for a in node.names:
            if isinstance(node, ast.ImportFrom):
                names[a.asname or a.name] = f"{'.' * node.level}{node.module or ''}.{a.name}"
            elif a.asname:
                names[a.asname] = a.name
            else:
                names[a.name.partition(".")[0]] = a.name.partition(".")[0]
    return names


def imported(file_syntax: Syntax) -> dict[str, str]:
    """Return what ``full_names`` returns for the imports of a file, without the names by which the file
    defines functions."""
    defined = {n.name for n in file_syntax.functions()}
    return {name: full for name, full in full_names(file_syntax.imports).items() if name not in defined}


def full_name(node: ast.expr, names: dict[str, str]) -> str:
    """Return the full form of a dotted name: ``jax.numpy.clip`` for ``jnp.clip``. Return an empty string if
    the file does not import the first part of the name. ``names`` maps imported names to full names, as
    ``full_names`` and ``imported`` return them."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    root = names.get(node.id, "") if isinstance(node, ast.Name) else ""
    return ".".join([root, *reversed(parts)]) if root else ""
