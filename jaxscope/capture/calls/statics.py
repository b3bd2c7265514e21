"""Describe static arguments, which JAX compares by their own ``==`` and ``hash``, in texts of limited length.

This calls ``__hash__``, as JAX does (if it raises an exception, the recorded hash is None), and ``__eq__``
only if a value has another hash than before. No ``__repr__`` of the program is called.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import hashlib
import itertools
import sys
from collections.abc import Iterable, Iterator
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from jaxscope import jax_internals
from jaxscope.capture import paths
from jaxscope.capture.attributes import dictionary
from jaxscope.capture.calls import nnx_graphdef
from jaxscope.capture.calls.functions import Serials
from jaxscope.jax_internals.devices import device_ranges
from jaxscope.schema.keys import Frame, Static

MAX_TEXT = 4000
MAX_REPR = 2000
MAX_NAME = 300  # characters of a string inside a value
MAX_BOUND = 50  # values bound by one partial
MAX_COMPARED = 300  # parts of one value that are examined for objects compared by identity
MAX_ITEMS = 100  # items of a container that are shown: it may have a million
LEVELS = 6  # how deep nested values are shown
ADDRESS = jax_internals.ADDRESS
# Modules whose __repr__ functions are safe to call. Those that dataclasses and reprlib generate are not:
# they call the __repr__ of each field.
KNOWN = (sys.stdlib_module_names | {"numpy", "jax", "jaxlib", "ml_dtypes"}) - {"dataclasses", "reprlib"}
BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    collections.deque: ("deque([", "])"),
}


def limited(text: str) -> str:
    """Return ``text``. If it has more than MAX_TEXT characters, return its beginning and a hash of the whole
    text, so that different texts stay different."""
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}… sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"


def _is_array(value: Any) -> bool:
    """Return whether ``value`` is a NumPy or JAX array."""
    return issubclass(type(value), np.ndarray) or paths.is_jax_array(value)


def shown(value: Any) -> str:
    """Return ``value`` as text of at most MAX_REPR characters without memory addresses. No ``__repr__`` of
    the program is called."""
    # A ``__repr__`` of the program may call JAX. JAX's caches would then contain programs that the program
    # itself has not compiled yet.
    try:
        text = ADDRESS.sub("", _shown(value, LEVELS))
    except Exception as e:  # a hostile metaclass, or a repr of a library
        text = f"<{type(value).__qualname__}; its repr raised {type(e).__name__}>"
    return text if len(text) <= MAX_REPR else text[: MAX_REPR - 1] + "…"


def _shown(value: Any, level: int) -> str:
    """Return ``value`` as text. Containers inside more than ``level`` other containers become ``...``."""
    kind = type(value)
    if kind is FunctionType:
        code = value.__code__
        return f"<function {value.__qualname__} at {code.co_filename}:{code.co_firstlineno}>"
    if kind in (MethodType, BuiltinFunctionType):
        return f"<{kind.__name__} {getattr(value, '__qualname__', '?')}>"
    if issubclass(kind, type):
        return f"<class {value.__module__}.{value.__qualname__}>"
    if _is_array(value):
        return f"<{kind.__name__} {value.dtype}{list(value.shape)}>"
    for scalar in (bool, int, float, complex):
        if issubclass(kind, scalar) and not _known(kind):
            return scalar.__repr__(value)
    if issubclass(kind, (str, bytes)):
        return _string(value, MAX_REPR - 50 if level == LEVELS else MAX_NAME)
    if kind.__name__ in ("Mesh", "AbstractMesh") and kind.__module__.partition(".")[0] == "jax":
        return _mesh(value)
    if level <= 0 and issubclass(kind, (list, tuple, dict, set, frozenset, collections.deque)):
        return "..."
    if issubclass(kind, dict):
        items = [f"{_shown(k, level - 1)}: {_shown(v, level - 1)}" for k, v in _first(value.items())]
        return _named(kind, dict, "{" + _joined(items, len(value)) + "}")
    names: Any = getattr(kind, "_fields", None)
    if issubclass(kind, tuple) and isinstance(names, tuple):
        return f"{kind.__qualname__}({_fields(zip(names, value, strict=False), level)})"
    for plain in BRACKETS:
        if issubclass(kind, plain):
            return _sequence(value, plain, level)
    if issubclass(kind, functools.partial):
        return _partial(value, level)
    return _object(value, level)


def _object(value: Any, level: int) -> str:
    """Return ``value``, an object that is no container, as text: its own repr, only if this calls no code of
    the program, else its class with its attributes: ``Config(lr=0.1)``, or ``<train.Model n=3>`` if the class
    has no repr. Containers nested deeper than ``level`` become ``...``."""
    kind = type(value)
    if kind.__module__.partition(".")[0] == "jax" and "__call__" in kind.__dict__:  # a custom_jvp
        named = (dictionary(value) or {}).get("__qualname__")
        return f"<{kind.__qualname__} {named}>" if isinstance(named, str) else f"<{kind.__qualname__}>"
    if getattr(kind, "__repr__", None) is object.__repr__:
        return f"<{kind.__module__}.{kind.__qualname__}{_plain_fields(value)}>"
    inside = paths.children(value) or []
    # A __repr__ in C may call those of the attributes (SimpleNamespace). An object of JAX may contain arrays.
    simple = not inside or isinstance(kind.__repr__, FunctionType)
    if _known(kind) and simple and not paths.walk([("", value)], _is_array, leaves=False, nodes=500).arrays:
        return repr(value)
    if not inside or not level:
        return f"<{kind.__module__}.{kind.__qualname__}>"
    named = [(n.removeprefix("."), v) for n, v in inside]
    if dataclasses.is_dataclass(kind):  # attributes that are no fields are not part of its value
        fields = {f.name for f in dataclasses.fields(kind) if f.repr}
        named = [(n, v) for n, v in named if n in fields]
    return f"{kind.__qualname__}({_fields(named, level)})"


def _sequence(value: Any, plain: type, level: int) -> str:
    """Return ``value``, a list, tuple, set or deque, as text. Containers nested deeper than ``level`` become
    ``...``.

    ``plain`` is the class in BRACKETS of which ``value`` is an instance: a list is shown as ``[1, 2]``, an
    instance of a derived class ``Row`` as ``Row([1, 2])``.
    """
    kind, (opening, closing) = type(value), BRACKETS[plain]
    if not value and plain not in (list, tuple):
        return f"{kind.__qualname__}()"
    order = sorted if issubclass(kind, (set, frozenset)) else list
    items = order(_shown(v, level - 1) for v in _first(value))
    comma = "," if len(value) == 1 and plain is tuple else ""
    return _named(kind, plain, opening + _joined(items, len(value)) + comma + closing)


def _partial(value: Any, level: int) -> str:
    """Return ``value``, a ``functools.partial``, as text. Containers nested deeper than ``level`` become
    ``...``."""
    inner = [_shown(v, level - 1) for v in (value.func, *_first(value.args))] if level else ["..."]
    keywords = [f"{k}={_shown(v, level - 1)}" for k, v in _first(value.keywords.items())] if level else []
    return f"functools.partial({', '.join(inner + keywords)})"


def _string(value: str | bytes, limit: int) -> str:
    """Return the repr of ``value``. If ``value`` has more than ``limit`` characters, return its beginning,
    its end and its length: ``'aaa'…'bbb' (5,000 in all)``."""
    if len(value) <= limit:
        return repr(value)
    half = limit // 2
    return f"{value[:half]!r}…{value[-half:]!r} ({len(value):,} in all)"


def _mesh(value: Any) -> str:
    """Return ``value``, a mesh, as text: axes with their sizes, axis types, ids of the devices in order:
    ``Mesh('d': 8, Explicit, devices 0-7)``."""
    axes = ", ".join(f"{n!r}: {s}" for n, s in zip(value.axis_names, value.axis_sizes, strict=True))
    kinds = ", ".join(str(getattr(t, "name", t)) for t in value.axis_types)
    devices = None
    with contextlib.suppress(Exception):  # an abstract mesh raises ValueError
        devices = value.devices  # which the mesh's own repr does not show
    placed = f", devices {device_ranges([d.id for d in devices.flat])}" if devices is not None else ""
    return f"{type(value).__name__}({axes}, {kinds}{placed})"


def _known(kind: type) -> bool:
    """Return whether the ``__repr__`` of the class ``kind`` is written in C, or in Python by JAX, NumPy or
    Python itself, and not by the program. False for one that ``dataclasses`` generated: it calls the
    ``__repr__`` of each field."""
    written = getattr(kind, "__repr__", None)
    if isinstance(written, FunctionType):
        module = written.__globals__.get("__name__")
        return isinstance(module, str) and module.partition(".")[0] in KNOWN
    return isinstance(written, (WrapperDescriptorType, MethodDescriptorType, BuiltinFunctionType))


def _first(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the first MAX_ITEMS of ``values``."""
    return itertools.islice(values, MAX_ITEMS)


def _joined(items: list[str], total: int) -> str:
    """Join ``items``, the shown items of a container, by commas. If the container has more (``total``),
    append this number: ``1, 2, ... (500 in all)``."""
    return ", ".join(items + [f"... ({total:,} in all)"] * (total > len(items)))


def _fields(named: Iterable[tuple[str, Any]], level: int) -> str:
    """Return named values as text: ``a=1, b='x'``. Containers nested deeper than ``level`` become ``...``."""
    return ", ".join(f"{n}={_shown(v, level - 1) if level else '...'}" for n, v in _first(named))


def _named(kind: type, plain: type, text: str) -> str:
    """Return ``text``, which shows a container of class ``kind``, inside the name of the class:
    ``Config({...})``. If ``kind`` is the builtin type ``plain`` itself, return ``text`` unchanged."""
    return text if kind is plain else f"{kind.__qualname__}({text})"


def _plain_fields(value: Any) -> str:
    """Return up to six attributes of ``value`` that are numbers, strings or None, as text that begins with a
    space: `` n=3 name='a'``; empty if there are none."""
    fields = [
        f"{step[1:]}={held!r}"[:60]
        for step, held in paths.children(value) or ()
        if step.startswith(".") and type(held) in paths.PLAIN
    ]
    return "".join(f" {f}" for f in fields[:6]) + (" …" if len(fields) > 6 else "")


def entries(path: str, value: Any, serials: Serials) -> list[Static]:
    """Return the log's entries for the static ``value`` at ``path``: one for the value, then one for each of
    its parts, with a path of its own. A partial has the values that it binds as parts (``f.keywords['n']``;
    of a bound dict, each item), a graph definition of flax its attributes. Other values have no parts.

    ``serials`` gives numbers to objects that JAX compares by identity.
    """
    inside = nnx_graphdef.attributes(value) if nnx_graphdef.is_definition(value) else []
    if inside:
        return [opaque(path, value), *(static(path + step, v, serials) for step, v in inside)]
    found = [static(path, value, serials)]
    if type(value) is functools.partial:
        bound = [(f"{path}.args[{i}]", v) for i, v in enumerate(value.args[:MAX_BOUND])]
        bound += [(f"{path}.keywords[{k!r}]", v) for k, v in list(value.keywords.items())[:MAX_BOUND]]
        found += [static(*part, serials) for where, v in bound for part in _items(where, v)]
    return found


def _items(path: str, value: Any) -> list[tuple[str, Any]]:
    """Split a dict into its items: return (``path['n']``, item) for each key ``n`` that is an integer or a
    string. If there is no such key, or if ``value`` is no dict or has more than MAX_BOUND items, return only
    (``path``, ``value``)."""
    if type(value) is not dict or not 0 < len(value) <= MAX_BOUND:
        return [(path, value)]
    return [(f"{path}[{k!r}]", v) for k, v in value.items() if type(k) in (int, str)] or [(path, value)]


def static(path: str, value: Any, serials: Serials) -> Static:
    """Describe ``value``, a static argument at ``path`` or a part of one: its text, type and hash, and how
    JAX compares it: by value, by identity, or by parts (a value that contains an object compared by
    identity).

    ``serials`` gives the object its number. A value compared by parts gets the highest number of its parts
    that are compared by identity, so that a new part is noticed.
    """
    hashed = _hash(value)
    kind = type(value)
    by_identity, unstable = [], False
    for where, part in compared_parts(path, value):
        if type(part) is MethodType:  # two bound methods are equal if their objects are identical
            by_identity.append(serials.number(part.__self__))
        elif _by_identity(part):
            by_identity.append(serials.number(part))
        elif not isinstance(part, paths.PLAIN):
            unstable = serials.equal_with_another_hash(where, part, _hash(part)) or unstable
    if by_identity and (type(value) is MethodType or not _by_identity(value)):
        known = [n for n in by_identity if n is not None]
        serial, compares = max(known) if len(known) == len(by_identity) else None, "parts"
        if type(value) is MethodType:
            compares = "identity"
    else:
        compares = "identity" if by_identity else "value"
        serial = serials.number(value) if not isinstance(value, paths.PLAIN) else None
    return Static(
        path=path,
        repr=shown(value),
        type=serials.class_name(kind),
        compares=compares,
        serial=serial,
        hash=hashed,
        unstable_hash=unstable,
        defined=_definition(value),
    )


def _definition(value: Any) -> Frame | None:
    """Return the first line of ``value``, if it is a Python function; else None."""
    if type(value) is not FunctionType:
        return None
    code = value.__code__
    return Frame(code.co_filename, code.co_firstlineno, value.__qualname__)


def _by_identity(value: Any) -> bool:
    """Return whether ``value`` is equal only to itself: it is a function or a class, or its class defines and
    inherits no ``__eq__`` other than that of ``object``."""
    if issubclass(type(value), paths.PLAIN):
        return False
    return getattr(type(value), "__eq__", None) is object.__eq__ or isinstance(value, (FunctionType, type))


def _hash(value: Any) -> int | None:
    """Return ``hash(value)``; None if it raises an exception."""
    try:
        return hash(value)
    except Exception:
        return None


def compared_parts(path: str, value: Any) -> list[tuple[str, Any]]:
    """Return (path, part) of the values that ``value == another`` compares: ``value`` itself at ``path``, and
    the values inside it. For ``(1, [f])`` at ``c``, the paths are ``c``, ``c[0]``, ``c[1]`` and ``c[1][0]``.
    At most MAX_COMPARED values are returned, at most LEVELS deep.

    Tuples, lists, sets, dicts (without their keys) and dataclasses are divided into their parts, other
    objects are not.
    """
    found: list[tuple[str, Any]] = []
    queue = collections.deque([(path, value, 0)])
    while queue and len(found) < MAX_COMPARED:
        where, part, depth = queue.popleft()
        found.append((where, part))
        kind = type(part)
        if depth >= LEVELS:
            continue
        if issubclass(kind, (tuple, list, frozenset, set, dict)):
            items = part.values() if issubclass(kind, dict) else part
            inner = [(f"{where}[{i}]", v) for i, v in enumerate(itertools.islice(items, MAX_COMPARED))]
        elif dataclasses.is_dataclass(kind) and not isinstance(part, type):
            names = {f.name for f in dataclasses.fields(kind) if f.compare}
            steps = paths.children(part) or []
            inner = [(where + step, v) for step, v in steps if step.removeprefix(".") in names]
        else:
            continue
        queue.extend((at, v, depth + 1) for at, v in inner)
    return found


def opaque(path: str, value: Any) -> Static:
    """Describe the static value at ``path`` by its type and hash only, because its parts have entries of
    their own."""
    hashed = _hash(value)
    return Static(
        path=path, repr="(see the fields above)", type=type(value).__qualname__, compares="value", hash=hashed
    )
