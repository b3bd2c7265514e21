"""Name the arrays inside a value by their paths: ``state.params['dense']['kernel']``.

The search recognizes objects by identity and calls no code of the program: no property, no ``__getattr__``,
no ``__repr__``. When the search is finished, only its result refers to objects of the program.
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
    """Return what identifies the array ``value``: its ``id()``, or (address, size in bytes) of the memory of
    a NumPy array. JAX makes views of a NumPy array, which are other objects with the same memory."""
    if issubclass(type(value), np.ndarray):
        return value.__array_interface__["data"][0], value.nbytes
    return id(value)


class Found:
    """The result of ``walk``: what was found in a value, by path.

    Attributes:
      arrays: ``identity`` of an array -> its paths. There are several paths if an array is found twice. The
        identities are valid while the searched value lives.
      others: (path, object) of the leaves that are no arrays, in the order in which they were found.
      containers: path of a container -> the name of its class.
      cut: whether objects were left out because there were too many, or they were nested too deeply.
    """

    def __init__(self) -> None:
        self.arrays: dict[Identity, list[str]] = {}
        self.others: list[tuple[str, Any]] = []
        self.containers: dict[str, str] = {}
        self.cut = False

    def add_leaf(self, path: str, value: Any) -> None:
        """Add ``value`` at ``path``, which is neither an array nor a container with something in it. None
        counts as a container, as in JAX."""
        self.others.append((path, value))
        if value is None:
            self.containers.setdefault(path, "None")


def children(value: Any) -> list[tuple[str, Any]] | None:
    """Return (step, child) for each item or attribute of a container or object; None for a leaf. A step is
    what is appended to the path of ``value`` to get the path of the child: ``.name``, ``[0]``,
    ``['key']``."""
    kind = type(value)  # isinstance would read value.__class__, by which a lazy object loads itself
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
        return None  # a jitted function or a custom_jvp: its attributes are internal to JAX
    fields = getattr(kind, "_fields", None)
    if issubclass(kind, tuple) and isinstance(fields, tuple):
        return [(f".{n}", v) for n, v in zip(fields, value, strict=False)]
    if issubclass(kind, (list, tuple, collections.deque)):
        return [(f"[{i}]", v) for i, v in enumerate(value)]
    if issubclass(kind, (*PLAIN, *CODE, np.generic)):
        return None
    raw = slot(value, "_raw_value")  # flax nnx.Variable: the value goes by the variable's own name
    if raw is not None:
        return [("", raw)]
    attributes = slot(value, "__dict__")
    if not isinstance(attributes, dict):
        names = getattr(kind, "__dataclass_fields__", None) or _slots(kind)
        if not names:
            return None
        attributes = {n: slot(value, n) for n in names}
    # Flax's lists have the attributes "0", "1", ... for their items, and "_length".
    counts = ("_length",) if kind.__module__.partition(".")[0] == "flax" else ()
    steps = ((_attribute(n, kind), v) for n, v in list(attributes.items()) if n not in counts)
    return [(step, v) for step, v in steps if step is not None]


def _attribute(name: Any, kind: type) -> str | None:
    """Return the step of a path to the attribute ``name`` of an object of the class ``kind``: ``.x``. The
    attribute ``_Kind__x``, which Python makes of ``self.__x``, gets the step ``.__x``. Return None for
    attributes that the user has not written, such as flax's own ``_pytree__...``."""
    if not isinstance(name, str) or not name.startswith("_") or "__" not in name:
        return f"[{name}]" if str(name).isdecimal() else f".{name}"
    owner, _, private = name[1:].partition("__")
    classes = [c.__name__.lstrip("_") for c in kind.__mro__ if c is not object]
    return f".__{private}" if private and owner and owner in classes else None


def kind_name(kind: type) -> str:
    """Return the full name of the class ``kind`` as it is written to the log: ``dict``, ``None`` for
    NoneType, ``optax._src.base.EmptyState``."""
    if kind is type(None):
        return "None"
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _slots(kind: type) -> list[str]:
    """Return the names of all attributes that the class ``kind`` and its bases declare in ``__slots__``, if
    these classes are written in Python."""
    found: list[str] = []
    for owner in reversed(kind.__mro__):
        slots = owner.__dict__.get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else tuple(slots)
        found += [
            n for n in names if isinstance(n, str) and isinstance(owner.__dict__.get(n), MemberDescriptorType)
        ]
    return found


def slot(value: Any, name: str) -> Any:
    """Return the attribute ``name`` of ``value`` without calling a ``__getattr__`` of its class; None if
    there is none."""
    try:
        return object.__getattribute__(value, name)
    except Exception:
        return None


_Chain = tuple[int, Any] | None  # ids of the containers around an object, innermost first
_Visit = tuple[str, Any, int, _Chain, bool]  # (path, object, depth, containers around, found before?)


def walk(
    roots: list[tuple[str, Any]],
    is_array: Any,
    *,
    leaves: bool = True,
    nodes: int = MAX_NODES,
    whole: Callable[[Any], bool] | None = None,
) -> Found:
    """Find every array that is reachable from ``roots``, and all its paths, the shortest first.

    Args:
      roots: (name, value) pairs. Each path begins with one of these names.
      is_array: a function that returns whether an object is an array. It is called with every object that is
        found.
      leaves: also collect objects that are neither arrays nor containers, and the classes of the containers.
      nodes: the largest number of objects to examine; if there are more, ``Found.cut`` is set.
      whole: a function that returns whether an object is treated as a leaf, so that its contents are not
        searched. None: no object is.
    """
    found = Found()
    queue = collections.deque[_Visit]((n, v, 0, None, False) for n, v in roots)
    seen: set[int] = set()
    first = again = 0
    while queue:
        path, value, depth, around, met = queue.popleft()
        # An object that is found twice has two names. Objects that refer to each other in many ways may have
        # millions of names. So at most as many repeated visits are made as first ones.
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
        except Exception:  # a dead proxy, a hostile metaclass: leave out this object only
            continue
        if inner is None:
            if leaves:
                found.add_leaf(path, value)
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
    """Return whether the object with the ``id()`` ``number`` is one of the containers around the present
    object, so that a container inside itself is not searched forever. ``around`` is (``id()`` of the
    innermost container, the same kind of pair for the next one); None: no container."""
    while around is not None:
        if around[0] == number:
            return True
        around = around[1]
    return False
