"""Find the user's function inside the object that was passed to jit, and describe it (``FunctionSeen``).

The user's function may be wrapped in partials, bound methods, transforms and wrappers of libraries.
``Serials`` gives numbers to objects. ``id()`` does not distinguish them, because a new lambda often gets the
address of a dead one.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import inspect
import itertools
import sys
import weakref
from fnmatch import fnmatchcase
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from jaxscope import jax_internals
from jaxscope.capture import frames
from jaxscope.capture.attributes import attribute, dictionary
from jaxscope.capture.paths import kind_name
from jaxscope.schema import function_ids
from jaxscope.schema.events import FunctionSeen
from jaxscope.schema.libraries import COMPUTING_ROOTS, JAX_ROOTS

MAX_LAYERS = 24
MAX_CAPTURED = 100  # captured values whose code is read
MAX_NAMED = 8
LONGEST_CODE = 1000  # characters of ``FunctionSeen.captured_code`` that are kept
# Attributes in which wrappers keep the function that they wrap; haiku's transforms use ``_original_fn``.
INNER = ("__wrapped__", "fun", "f", "func", "fn", "_fun", "fn_", "_original_fn")


class Layers(NamedTuple):
    """The user's function, and its wrappers: what it was wrapped in before it was passed to jit.

    Attributes:
      function: the innermost function that was found; it may be a library's.
      wrappers: the names of the wrappers, outermost first: ``["jax.vmap", "functools.partial"]``. A name that
        repeats the one before it is left out, and so is JAX's ``api_boundary``.
      form: partial if one of the layers is a partial, else method if one is a bound method. If there is
        neither, the kind of ``function``: lambda, callable (an object with ``__call__``) or def (any other
        function or a class).
      bound: the values that partials and methods bring along. Of a partial: ``{"0": model, "lr": 0.1}``. Of
        a bound method: the attributes of its object that are or contain callables, such as
        ``{"self.loss": squared}``, without the object's own methods. If the class of the object inherits the
        method, ``"self"`` is this class.
    """

    function: Any
    wrappers: list[str]
    form: str
    bound: dict[str, Any]


class Serials:
    """Gives objects numbers, 1, 2, ... in the order in which they are first seen, so that the log can
    distinguish two objects. No number is used for two objects. Objects are remembered by weak references."""

    def __init__(self) -> None:
        self._next = itertools.count(1)
        self._seen: dict[int, tuple[Any, int]] = {}
        self._limit = 4096
        self._classes: dict[str, list[weakref.ref[type]]] = {}
        self._latest: dict[tuple[str, type], tuple[weakref.ref[Any], int]] = {}

    def class_name(self, kind: type) -> str:
        """Return the full name of the class ``kind``: ``carry.State``. If another class with this name was
        seen before it, the result is ``carry.State (class #2)``: a notebook cell may have been run again."""
        name = kind_name(kind)
        known = self._classes.setdefault(name, [])
        for number, ref in enumerate(known, 1):
            if ref() is kind:
                return name if number == 1 else f"{name} (class #{number})"
        known.append(weakref.ref(kind))
        return name if len(known) == 1 else f"{name} (class #{len(known)})"

    def equal_with_another_hash(self, path: str, value: Any, hashed: int | None) -> bool:
        """Return whether ``value`` equals the value of the same class in the last call of this method with
        the same ``path``, but has another hash. JAX's cache then misses although the values are equal.
        ``hashed`` is the hash of ``value``; None: it has none.

        This calls the ``__eq__`` of the class if it is a Python function, else the result is False. It is
        also False if the earlier value is dead.
        """
        kind = type(value)
        if hashed is None or not isinstance(getattr(kind, "__eq__", None), FunctionType):
            return False
        before = self._latest.get((path, kind))
        try:
            self._latest[path, kind] = (weakref.ref(value), hashed)
            earlier = before[0]() if before is not None and before[1] != hashed else None
            return earlier is not None and earlier is not value and (value == earlier) is True
        except Exception:  # no weak references to it, or an __eq__ that raises
            return False

    def number(self, value: Any) -> int | None:
        """Return the number of the object ``value``. An object that was not seen before gets a new number.
        Return None if the object cannot have weak references."""
        known = self._seen.get(id(value))
        if known is not None and known[0]() is value:
            return known[1]
        try:
            ref = weakref.ref(value)
        except TypeError:
            return None
        number = next(self._next)
        self._seen[id(value)] = (ref, number)
        if len(self._seen) > self._limit:
            self._seen = {k: v for k, v in self._seen.items() if v[0]() is not None}
            self._limit = max(4096, 2 * len(self._seen))
        return number


def defined_in(function: Any) -> str:
    """Return the name of the module whose code ``function`` runs; empty if unknown. Unlike ``__module__``,
    this is not changed by ``functools.wraps``."""
    return str(getattr(function, "__globals__", {}).get("__name__", ""))


def _label(layer: Any) -> str:
    """Return the public name of ``layer``, a wrapper around the user's function: ``jax.grad`` for the
    function ``grad_f`` that ``jax.grad`` returns. For a wrapper that the user wrote, the name has no
    package."""
    if defined_in(layer) == jax_internals.TRIMS_TRACEBACKS:
        # This is JAX's api_boundary. The transform, such as grad_f, is in its closure.
        inside = [
            c.cell_contents for c in layer.__closure__ or () if isinstance(c.cell_contents, FunctionType)
        ]
        layer = inside[0] if inside else layer
    code = getattr(layer, "__code__", None)
    if code is not None:
        # functools.wraps copies __module__ and __qualname__ of the wrapped function, but not the code.
        module = defined_in(layer)
        name = code.co_qualname.partition(".<locals>")[0]
        name = _PUBLIC.get(name, name) + _OF_PAIR.get(code.co_name, "")
    else:
        module, name = type(layer).__module__, type(layer).__qualname__
    if frames.is_library(module):
        return f"{frames.root(module)}.{_PUBLIC.get(name, name)}"
    return str(name)


_PUBLIC = {
    **dict.fromkeys(("JitFn", "SimpleJitFn", "JitWrapped", "SimpleJitWrapped"), "nnx.jit"),
    **dict.fromkeys(("SimpleJitPartialFn", "SimpleJitPartialWrapped"), "nnx.jit_partial"),
    "_filter_jit_cache": "filter_jit",
    "_JitWrapper": "filter_jit",
    "_cached_shard_map": "pmap",
    "_shard_map": "shard_map",
    "without_state": "transform",
    "transform_with_state": "transform",
}
# A transform of haiku makes two functions of one, ``init`` and ``apply``. Their names in the log are
# different.
_OF_PAIR = {"init_fn": ".init", "apply_fn": ".apply"}


def _is_users(value: Any) -> bool:
    """Return whether ``value`` is a Python function that is not defined in JAX, in a library around JAX such
    as flax, or in jaxscope."""
    return isinstance(value, FunctionType) and not frames.is_library(defined_in(value))


def _held(layer: Any) -> list[Any]:
    """Return the callables other than classes to which the wrapper ``layer`` refers in its closure or in
    attributes with names in INNER. Of an object without ``__dict__``, only ``f`` and ``fun`` are read."""
    values = []
    for cell in getattr(layer, "__closure__", None) or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # a cell not filled yet
            continue
    attributes = dictionary(layer)
    if attributes is not None:
        values += [attributes[n] for n in INNER if n in attributes]
    elif not isinstance(layer, (FunctionType, BuiltinFunctionType)):
        values += [getattr(layer, n) for n in ("f", "fun") if hasattr(layer, n)]
    return [v for v in values if callable(v) and not isinstance(v, type)]


def _step_in(layer: Any) -> tuple[Any, str] | None:
    """Remove one wrapper: return (the object that ``layer`` wraps, the name of ``layer``). The name is empty
    for a bound method. Return None if ``layer`` wraps nothing, or is a library's object in which no function
    of the user is found."""
    if isinstance(layer, functools.partial):
        return layer.func, "functools.partial"
    if isinstance(layer, MethodType):
        return layer.__func__, ""
    inner = getattr(layer, "__wrapped__", None)
    if callable(inner) and inner is not layer:
        return inner, _label(layer)
    if _is_users(layer):
        return None
    module = defined_in(layer) or type(layer).__module__
    if not frames.is_library(module) or frames.root(module) in COMPUTING_ROOTS:
        return None
    # A library's wrapper without __wrapped__: search what it refers to for a function of the user.
    queue, seen = [(layer, 0)], {id(layer)}
    while queue:
        current, depth = queue.pop(0)
        for held in _held(current):
            if id(held) in seen or len(seen) > 200:
                continue
            seen.add(id(held))
            target = held.__func__ if isinstance(held, MethodType) else held
            if _is_users(target) or (isinstance(held, functools.partial) and _is_users(held.func)):
                return held, _label(layer)
            if depth < 5:
                queue.append((held, depth + 1))
    return None


def unwrap(function: Any) -> Layers:
    """Take the wrappers (partials, bound methods, transforms, wrappers of libraries) off ``function``, an
    object that was passed to jit. Return the innermost function found, and what is known about the wrappers.
    At most MAX_LAYERS are removed."""
    wrappers: list[str] = []
    bound: dict[str, Any] = {}
    form = "def"
    current = function
    for _ in range(MAX_LAYERS):
        if isinstance(current, functools.partial):
            form = "partial"
            bound |= {str(i): v for i, v in enumerate(current.args)} | current.keywords
        elif isinstance(current, MethodType):
            form = "method" if form == "def" else form
            owner = type(current.__self__)
            if not str(getattr(current, "__qualname__", "")).startswith(f"{owner.__qualname__}."):
                bound["self"] = owner
            bound |= _functions_of(current.__self__)
        inner = _step_in(current)
        if inner is None:
            break
        current, outer = inner
        if outer and outer != "jax.api_boundary" and (not wrappers or wrappers[-1] != outer):
            wrappers.append(outer)
    if isinstance(current, FunctionType):
        if current.__name__ == "<lambda>" and form == "def":
            form = "lambda"
    elif not isinstance(current, (BuiltinFunctionType, type)) and form == "def":
        form = "callable"
    return Layers(current, wrappers, form, bound)


def _place(code: Any, line: int | None) -> int | str | None:
    """Return the part of a function's id that distinguishes it from others in its file: its first line
    ``12``. A lambda also has its column (``"12:8"``), and code that is in no file a hash (``"1#353bf4"``).

    Args:
      code: the function's code; None: unknown, the result is ``line``.
      line: the function's first line; None: unknown.
    """
    if code is None:
        return line
    if code.co_name == "<lambda>":
        # RESUME, the first instruction, has columns 0 to 0 wherever the lambda is.
        columns = [p[2] for p in code.co_positions() if p[2] is not None and p[3]]
        return f"{line}:{min(columns)}" if columns else line
    if code.co_filename.startswith("<"):  # in no file: several functions of <string> begin in one line
        return f"{line}#{hashlib.sha256(code.co_code).hexdigest()[:6]}"
    return line


def is_jitted_where_defined(function: Any) -> bool:
    """Return whether the author of ``function``, and not its caller, has jitted it, as by ``@jax.jit``:
    whether its name in its module, class or object refers to a jitted function (or a ufunc of JAX). False for
    a function defined inside another function. For an object that is neither a function nor a method, return
    whether this object is jitted."""
    if isinstance(function, MethodType):
        own = dictionary(function.__self__) or {}
        if not frames.is_library(type(function.__self__).__module__):
            own = {}  # the user has written model.apply = jax.jit(model.apply)
        held = own.get(function.__name__, function)
        return _is_jitted(held) or is_jitted_where_defined(function.__func__)
    module = sys.modules.get(str(getattr(function, "__module__", "")))
    if not isinstance(function, FunctionType):
        return _is_jitted(function)
    value: Any = module
    for name in function.__qualname__.split("."):
        namespace = value.__dict__ if isinstance(value, (ModuleType, type)) else {}
        value = namespace.get(name)
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
    # Of JAX's functions, those whose name refers to a ufunc or the like count, too.
    of_jax = frames.root(defined_in(function)) in JAX_ROOTS
    return _is_jitted(value) or (of_jax and value is not None and not isinstance(value, (FunctionType, type)))


def _is_jitted(value: Any) -> bool:
    """Return whether ``value`` looks like a jitted function: it is no Python function, method or class, and
    its class has a method ``lower``."""
    return (
        value is not None
        and not isinstance(value, (FunctionType, MethodType, type))
        and callable(getattr(type(value), "lower", None))
    )


def is_defined(pattern: str) -> bool:
    """Return whether this process has a Python function with the name ``pattern``: a name, the end of a
    dotted name, or a shell pattern such as ``train_*``. For the id of a function (with ``@``), the result is
    always True. This visits all objects of the process."""
    wanted = pattern.strip()
    if "@" in wanted:
        return True  # the id of a function
    for f in gc.get_objects():
        if type(f) is FunctionType:
            full = f"{f.__module__}.{f.__qualname__}".replace(".<locals>", "")
            if full.endswith(f".{wanted}") or any(
                fnmatchcase(name, wanted) for name in (f.__name__, full, f.__qualname__)
            ):
                return True
    return False


def captures(function: Any) -> dict[str, Any]:
    """Return the closure variables of ``function`` that have a value: name -> value."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    found = {}
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        with contextlib.suppress(ValueError):  # a cell not filled yet
            found[name] = cell.cell_contents
    return found


def _code_of(value: Any, visited: list[Any]) -> str:
    """Return a text that names the functions and other callables that ``value``, a captured value, is or
    contains: ``squared@train.py:5()``, or ``train.Loss`` for an object of a class with ``__call__``. The
    parentheses have the callables that a function captures. The text is empty if there are none. Lists,
    tuples, closures, partials and wrapped functions are searched.

    ``visited`` has the values searched so far. ``value`` is added if it is a list, a tuple or callable. The
    text is empty if ``value`` is in ``visited``, or if ``visited`` has MAX_CAPTURED values.
    """
    # Other data are ignored: a function defined again with another learning rate counts as the same function,
    # but with another loss function as a new one.
    if len(visited) >= MAX_CAPTURED or any(s is value for s in visited):
        return ""
    if isinstance(value, (tuple, list)):
        visited.append(value)
        items = tuple.__iter__(value) if isinstance(value, tuple) else list.__iter__(value)
        return ",".join(filter(None, (_code_of(v, visited) for v in itertools.islice(items, MAX_CAPTURED))))
    if not callable(value):
        return ""
    visited.append(value)
    if isinstance(value, FunctionType):
        code = value.__code__
        captured = _code_of(list(captures(value).values()), visited)
        return f"{code.co_qualname}@{code.co_filename}:{_place(code, code.co_firstlineno)}({captured})"
    if isinstance(value, MethodType):
        return f"{_code_of(value.__func__, visited)}.{_class_of(value.__self__)}"
    if isinstance(value, functools.partial):
        return f"partial({_code_of([value.func, *value.args, *value.keywords.values()], visited)})"
    return _code_of(attribute(value, "__wrapped__", in_c=True), visited) or _class_of(value)


def _functions_of(instance: Any) -> dict[str, Any]:
    """Return the attributes stored in ``instance`` that are or contain functions: ``{"self.loss": squared}``.
    Its own methods (bound or jitted) are left out, because they belong to the class. At most MAX_CAPTURED
    attributes are read."""
    found = {}
    for name, value in itertools.islice(list((dictionary(instance) or {}).items()), MAX_CAPTURED):
        method = value if isinstance(value, MethodType) else attribute(value, "__wrapped__", in_c=True)
        of_class = isinstance(method, MethodType) and method.__self__ is instance
        if not of_class and _code_of(value, []):
            found[f"self.{name}"] = value
    return found


def _class_of(value: Any) -> str:
    # The full name of the class of ``value``, or of ``value`` if it is a class: ``train.Model``.
    kind = value if isinstance(value, type) else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def _name_of(value: Any) -> str:
    """Return the name of ``value`` if it is a function or class, else the name of its class."""
    named = value.__func__ if isinstance(value, MethodType) else value
    named = named if isinstance(named, (FunctionType, type)) else type(named)
    return str(named.__qualname__).replace(".<locals>", "")


class _Default:
    """A default value in the text of a signature. Its repr is that of ``value``, cut to 60 characters, for a
    real number, a string or None, else ``<ClassName>``."""

    def __init__(self, value: Any) -> None:
        plain = isinstance(value, (str, int, float, bool, type(None)))  # another repr might print an array
        self._text = repr(value)[:60] if plain else f"<{type(value).__qualname__}>"

    def __repr__(self) -> str:
        return self._text


def _signature_text(function: Any, inner: Any) -> str | None:
    """Return the signature of a function as text of limited length: ``(params, x, scale=1.0)``. Return None
    if the signature cannot be read.

    Args:
      function: what was passed to jit. If haiku made ``function``, its own signature is returned.
      inner: the user's function inside ``function``, whose signature is returned in all other cases.
    """
    # The functions that a transform of haiku returns have other parameters than the user's function.
    try:
        called = function if "_original_fn" in (dictionary(function) or ()) else inner
        signature = inspect.signature(called)
        parameters = [
            p if p.default is p.empty else p.replace(default=_Default(p.default))
            for p in signature.parameters.values()
        ]
        return str(signature.replace(parameters=parameters))[:500]
    except Exception:  # the user's own __signature__
        return None


def _own_code(function: Any) -> CodeType | None:
    """Return the code object of ``function``; for a callable object, the code object of the ``__call__`` that
    its own class (not a base class) defines. None if there is no Python code."""
    code = getattr(function, "__code__", None)
    if code is None and not isinstance(function, (type, BuiltinFunctionType)):
        code = getattr(type(function).__dict__.get("__call__"), "__code__", None)
    return code


def _users_class(layers: Layers, module: str | None) -> type | None:
    """Return the user's class that inherits the jitted method from a library, as ``Actor`` inherits flax's
    ``apply``. Return None in all other cases.

    Args:
      layers: the user's function and its wrappers.
      module: the module that defines the method; None: unknown.
    """
    owner = layers.bound.get("self") if layers.form == "method" and frames.is_library(module) else None
    return owner if owner is not None and not frames.is_library(owner.__module__) else None


def describe(function: Any, extra_wrappers: list[str] | None = None) -> FunctionSeen:
    """Return the event ``FunctionSeen`` that describes the user's function inside ``function``, an object
    passed to jit: id, name, file, line, wrappers, signature. The event is not logged. For a single operation
    outside jit (``is_eager``), the event has no file, line, wrappers or signature.

    ``extra_wrappers`` are names of further wrappers around ``function``, which the event lists first; None:
    there are none.
    """
    eager = jax_internals.is_eager(function)
    layers = unwrap(function)
    inner = layers.function
    wrappers = [*(extra_wrappers or []), *layers.wrappers]
    code = _own_code(inner)
    owner = inner if hasattr(inner, "__qualname__") else type(inner)
    qualname = str(getattr(owner, "__qualname__", owner))
    name = str(getattr(owner, "__name__", qualname))
    module = defined_in(inner) or getattr(owner, "__module__", None)
    file = code.co_filename if code is not None else None
    line = code.co_firstlineno if code is not None else None
    if eager:
        qualname = name = str(getattr(function, "__name__", name))
        file = line = None
        wrappers = []
    captured = {} if eager else captures(inner) | layers.bound
    users_class = _users_class(layers, module)
    if users_class is not None:
        qualname = f"{users_class.__qualname__}.{name}"
    named = [f"{n}={_name_of(v)}" for n, v in captured.items() if callable(v) and v is not users_class]
    captured_code = _code_of([*captured.values()], [])
    return FunctionSeen(
        function=f"{name} (eager)"
        if eager
        else function_ids.written(qualname, file, _place(code, line), wrappers, captured_code),
        name=name,
        qualname=qualname,
        module=str(module) if module else None,
        file=file,
        line=line,
        form="primitive" if eager else layers.form,
        wrappers=wrappers,
        library=not eager and frames.is_library(module),
        eager=eager,
        signature=_signature_text(function, inner) if code is not None and not eager else None,
        captures=named[:MAX_NAMED],
        captured_code=captured_code[:LONGEST_CODE],
    )


def describe_traced(jaxpr: Any) -> FunctionSeen:
    """Return the event ``FunctionSeen`` that describes the function that was traced to ``jaxpr``: name, file
    and line, which the jaxpr has as text. Wrappers and signature are unknown. The event is not logged."""
    name, file, line = jax_internals.function_source(jaxpr)
    library = frames.library_of(file)
    return FunctionSeen(
        function=function_ids.written(name, file, line),
        name=name.rpartition(".")[2],
        qualname=name,
        module=library,
        file=file,
        line=line,
        library=library is not None or file is None,
    )
