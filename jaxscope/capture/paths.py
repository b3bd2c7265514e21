"""Name the arrays inside a value: ``state.params['dense']['kernel']``.

Walks containers and objects by identity, calling none of the user's code: no property, no
``__getattr__``, no ``__repr__``. Holds nothing after it returns but what it returns.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

MAX_NODES = 50_000
MAX_DEPTH = 24

PLAIN = (str, bytes, int, float, complex, bool, type(None))
CODE = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)


Identity = int | tuple[int, int]


def identity(value: Any) -> Identity:
    """Return the identity of an array: of a NumPy array its memory, since JAX takes views of it."""
    if issubclass(type(value), np.ndarray):
        return value.__array_interface__["data"][0], value.nbytes
    return id(value)


class Found:
    """Array paths by identity (valid while the walked value lives), and the other leaves in order."""

    def __init__(self) -> None:
        self.arrays: dict[Identity, list[str]] = {}  # several where an array is passed twice
        self.others: list[tuple[str, Any]] = []
        self.containers: dict[str, str] = {}  # the kind of the container at a path
        self.cut = False


def children(value: Any) -> list[tuple[str, Any]] | None:
    """Return (path step, child) pairs of a container or object; None for a leaf."""
    kind = type(value)  # isinstance would ask the value for its __class__, which loads a lazy object
    if issubclass(kind, dict):
        return [
            (f"[{k!r}]" if issubclass(type(k), PLAIN) else f"[<{type(k).__name__}>]", v)
            for k, v in list(value.items())
        ]
    if issubclass(kind, functools.partial):
        bound: list[tuple[str, Any]] = [(".func", value.func)]
        bound += [(f".args[{i}]", v) for i, v in enumerate(value.args)]
        return bound + [(f".keywords[{k!r}]", v) for k, v in value.keywords.items()]
    if kind.__module__.partition(".")[0] in ("jax", "jaxlib") and "__call__" in kind.__dict__:
        return None  # a jitted function, a custom_jvp: its attributes are JAX's business
    fields = getattr(kind, "_fields", None)
    if issubclass(kind, tuple) and isinstance(fields, tuple):
        return [(f".{n}", v) for n, v in zip(fields, value, strict=False)]
    if issubclass(kind, (list, tuple, collections.deque)):
        return [(f"[{i}]", v) for i, v in enumerate(value)]
    if issubclass(kind, (*PLAIN, *CODE, np.generic)):
        return None
    raw = _slot(value, "_raw_value")  # flax nnx.Variable: the value goes by the variable's own name
    if raw is not None:
        return [("", raw)]
    attributes = _slot(value, "__dict__")
    if not isinstance(attributes, dict):
        names = getattr(kind, "__dataclass_fields__", None) or _slots(kind)
        if not names:
            return None
        attributes = {n: _slot(value, n) for n in names}
    # Flax's lists keep their items under "0", "1", ... and beside them how many there are.
    counts = ("_length",) if kind.__module__.partition(".")[0] == "flax" else ()
    steps = ((_attribute(n, kind), v) for n, v in list(attributes.items()) if n not in counts)
    return [(step, v) for step, v in steps if step is not None]


def _attribute(name: Any, kind: type) -> str | None:
    """Return the step to an attribute: ``.__x`` for the ``_Kind__x`` that Python makes of ``self.__x``.

    None for what no user would know: Flax keeps bookkeeping under _pytree__... and _object__...
    """
    if not isinstance(name, str) or not name.startswith("_") or "__" not in name:
        return f"[{name}]" if str(name).isdecimal() else f".{name}"
    owner, _, private = name[1:].partition("__")
    classes = [c.__name__.lstrip("_") for c in kind.__mro__ if c is not object]
    return f".__{private}" if private and owner and owner in classes else None


def kind_name(kind: type) -> str:
    """Return the name of a class in a record: ``dict``, ``None``, ``optax._src.base.EmptyState``."""
    if kind is type(None):
        return "None"
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _slots(kind: type) -> list[str]:
    """Return the ``__slots__`` of a class written in Python and of its bases."""
    found: list[str] = []
    for owner in reversed(kind.__mro__):
        slots = owner.__dict__.get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else tuple(slots)
        found += [
            n for n in names if isinstance(n, str) and isinstance(owner.__dict__.get(n), MemberDescriptorType)
        ]
    return found


def _slot(value: Any, name: str) -> Any:
    try:
        return object.__getattribute__(value, name)
    except Exception:
        return None


def walk(
    roots: list[tuple[str, Any]],
    is_array: Any,
    *,
    leaves: bool = True,
    nodes: int = MAX_NODES,
    whole: Callable[[Any], bool] | None = None,
) -> Found:
    """Name every array reachable from ``roots``, shortest path first.

    Args:
      roots: (name, value) pairs.
      is_array: returns whether an object is an array; called with every object that is found.
      leaves: also collect objects that are neither arrays nor containers.
      nodes: the largest number of objects to examine; if there are more, ``cut`` is set.
      whole: returns whether an object is a leaf whose contents are not examined.
    """
    found = Found()
    Chain = tuple[int, Any] | None  # ids of the containers around, innermost first
    queue: collections.deque[tuple[str, Any, int, Chain, bool]] = collections.deque()
    queue.extend((n, v, 0, None, False) for n, v in roots)
    seen: set[int] = set()
    first = again = 0
    while queue:
        path, value, depth, around, met = queue.popleft()
        # What is passed twice has two names. In a web of references that is not to be: no more of them
        # are followed than there is to see.
        first, again = first + (not met), again + met
        if first > nodes or (met and again > first):
            found.cut = True
            if first > nodes:
                break
            continue
        try:
            if is_array(value):
                found.arrays.setdefault(identity(value), []).append(path)
                continue
            inner = None if whole is not None and whole(value) else children(value)
        except Exception:  # a dead proxy, a hostile metaclass: one object, not the walk
            continue
        if inner is None:
            if leaves:
                found.others.append((path, value))
                if value is None:
                    found.containers.setdefault(path, "None")
            continue
        if id(value) in seen:
            if _within(id(value), around):
                continue
            met = True
        seen.add(id(value))
        if leaves:
            found.containers.setdefault(path, kind_name(type(value)))
        if depth >= MAX_DEPTH:
            found.cut = True
            continue
        chain = (id(value), around)
        queue.extend((path + step, child, depth + 1, chain, met) for step, child in inner)
    return found


def _within(number: int, around: Any) -> bool:
    while around is not None:
        if around[0] == number:
            return True
        around = around[1]
    return False
