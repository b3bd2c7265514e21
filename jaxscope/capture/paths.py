"""Name the arrays inside a value by their paths: ``state.params['dense']['kernel']``.

The search recognizes objects by identity and calls no code of the program: no property, no ``__getattr__``,
no ``__repr__``. After the search, only its result refers to objects of the program.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from jaxscope.capture.attributes import MISSING, attribute, dictionary, slots
from jaxscope.jax_internals.frame_reading import root

MAX_NODES = 50_000
MAX_DEPTH = 24

PLAIN = (str, bytes, int, float, complex, bool, type(None))
# The methods of functools.partial itself: a subclass may define its own
_OF_PARTIAL = tuple(vars(functools.partial)[name] for name in ("func", "args", "keywords"))
CODE = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)


Identity = int | tuple[int, int]


def of_jax(kind: type) -> bool:
    """Return whether the class ``kind`` is defined in JAX."""
    return root(kind.__module__) in ("jax", "jaxlib")


def is_jax_array(value: Any) -> bool:
    """Return whether ``value`` is an array of JAX, also a tracer, a random key or a Ref, so that its dtype
    and shape can be read. An object of the program's classes is none, even if it has the same attributes:
    they may be properties. JAX is not imported."""
    kind = type(value)
    return of_jax(kind) and hasattr(kind, "aval") and hasattr(kind, "dtype")


def identity(value: Any) -> Identity:
    """Return a number or pair that identifies the array ``value``: for a NumPy array, (address, size in
    bytes) of its memory, else its ``id()``."""
    if issubclass(type(value), np.ndarray):  # JAX makes views: other objects with the same memory
        return value.__array_interface__["data"][0], value.nbytes
    return id(value)


class Found:
    """The result of ``walk``: the arrays and other objects that were found, by path.

    Attributes:
      arrays: ``identity`` of an array -> the paths that lead to it. The identities are valid while the
        searched value lives.
      others: (path, object) of each leaf that is no array, in the order in which they were found.
      containers: path of a container -> the name of its class.
      cut: whether the result may be incomplete, because there were too many objects or they were nested too
        deeply.
    """

    def __init__(self) -> None:
        self.arrays: dict[Identity, list[str]] = {}
        self.others: list[tuple[str, Any]] = []
        self.containers: dict[str, str] = {}
        self.cut = False

    def add_leaf(self, path: str, value: Any) -> None:
        """Add ``value``, a leaf at ``path`` that is no array, to ``others``. If ``value`` is None, also add
        it to ``containers``: for JAX, None is an empty container."""
        self.others.append((path, value))
        if value is None:
            self.containers.setdefault(path, "None")


def children(value: Any) -> list[tuple[str, Any]] | None:
    """Return (step, child) for each item or attribute of ``value``; None for a leaf, such as a number, a
    function or a NumPy array.

    No code of the program runs: methods of subclasses of dict, list and the like are not called.

    A step is what is appended to the path of ``value`` to get the path of the child: ``.name``, ``[0]``,
    ``['key']``. It is empty for the value in an ``nnx.Variable``. Internal attributes of flax are left out.
    """
    kind = type(value)  # isinstance would read value.__class__, by which a lazy object loads itself
    if issubclass(kind, dict):
        return [(f"[{_key(k)}]", v) for k, v in list(dict.items(value))]
    if issubclass(kind, functools.partial):
        function, arguments, keywords = (part.__get__(value) for part in _OF_PARTIAL)
        bound: list[tuple[str, Any]] = [(".func", function)]
        bound += [(f".args[{i}]", v) for i, v in enumerate(arguments)]
        return bound + [(f".keywords[{k!r}]", v) for k, v in keywords.items()]
    if of_jax(kind) and "__call__" in kind.__dict__:
        return None  # a jitted function or a custom_jvp: its attributes are internal to JAX
    fields = getattr(kind, "_fields", None)
    if issubclass(kind, tuple) and isinstance(fields, tuple):
        return [(f".{n}", v) for n, v in zip(fields, tuple.__iter__(value), strict=False)]
    for sequence in (list, tuple, collections.deque):
        if issubclass(kind, sequence):
            return [(f"[{i}]", v) for i, v in enumerate(sequence.__iter__(value))]
    if issubclass(kind, (*PLAIN, *CODE, np.generic)):
        return None
    raw = attribute(value, "_raw_value")  # flax nnx.Variable: the value goes by the variable's own name
    if raw is not MISSING and raw is not None:
        return [("", raw)]
    attributes = dictionary(value)
    if attributes is None:
        names = getattr(kind, "__dataclass_fields__", None) or slots(kind)
        if not names:
            return None
        held = {n: attribute(value, n) for n in names}
        attributes = {n: None if v is MISSING else v for n, v in held.items()}
    # Flax's lists have the attributes "0", "1", ... for their items, and "_length".
    counts = ("_length",) if kind.__module__.partition(".")[0] == "flax" else ()
    steps = ((_attribute(n, kind), v) for n, v in list(attributes.items()) if n not in counts)
    return [(step, v) for step, v in steps if step is not None]


def _key(key: Any) -> str:
    """Return the key of a dict as text, without calling code of its class: ``'w'``, ``3``, ``<Point>``."""
    if type(key) in PLAIN:
        return repr(key)
    plain: Any = next((base for base in PLAIN if issubclass(type(key), base)), None)
    return plain.__repr__(key) if plain is not None else f"<{type(key).__name__}>"


def _attribute(name: Any, kind: type) -> str | None:
    """Return the step of a path to the attribute ``name`` of an object of class ``kind``: ``.x``, ``[0]`` for
    the name ``0``, or ``.__x`` for ``_Kind__x`` (Python's name for ``self.__x``). Return None for an internal
    name such as flax's ``_pytree__nodes``."""
    if not isinstance(name, str) or not name.startswith("_") or "__" not in name:
        return f"[{name}]" if str(name).isdecimal() else f".{name}"
    owner, _, private = name[1:].partition("__")
    classes = [c.__name__.lstrip("_") for c in kind.__mro__ if c is not object]
    return f".__{private}" if private and owner and owner in classes else None


def kind_name(kind: type) -> str:
    """Return the full name of the class ``kind`` for the log: ``dict``, ``optax._src.base.EmptyState``, and
    ``None`` for NoneType."""
    if kind is type(None):
        return "None"
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


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
    """Find the arrays that are reachable from ``roots``, each with its paths. The paths with the fewest steps
    come first.

    Args:
      roots: (name, value) pairs. Each path begins with one of these names.
      is_array: returns whether an object is an array.
      leaves: whether to fill ``Found.others`` and ``Found.containers``, too.
      nodes: the largest number of objects to examine. If there are more, ``Found.cut`` is set.
      whole: returns whether an object is a leaf whose contents are not searched. None: no object is.
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
    """Return whether the object with the ``id()`` ``number`` is one of the containers around an object.
    ``around`` is the ``_Chain`` of these containers."""
    while around is not None:
        if around[0] == number:
            return True
        around = around[1]
    return False
