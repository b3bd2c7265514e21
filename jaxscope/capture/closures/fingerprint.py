"""Remember a value, without keeping an array alive, so that a later value can be compared with it.

This uses weak references, plain values, and checksums of small NumPy arrays. It calls no code of the program:
no ``__eq__``, no ``__repr__``, no property.
"""

from __future__ import annotations

import collections
import itertools
import weakref
import zlib
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from jaxscope.capture import paths
from jaxscope.capture.calls import statics

MAX_BYTES = 1 << 20  # the largest NumPy array whose contents are compared
MAX_KEPT = 4096  # characters or bytes of a text that is kept; of a longer one only the checksum is
MAX_KEYS = 200  # keys of a dict or items of a set that are compared
MAX_SHOWN = 6  # items of an array that are shown
SEQUENCES = (list, tuple, collections.deque)
SETS = (set, frozenset)


class Mark:
    """A remembered value, with which a later value can be compared.

    Attributes:
      ref: a function that returns the remembered object while it is alive, later None; always None if
        ``watched`` is False. Values are compared with this object by ``is`` only.
      text: the value as text of limited length.
      code: the code object, if the value is a Python function; else None.
      facts: data that is equal for equal values, such as (type, value) or the keys of a dict; None: the value
        is equal only to itself.
      crc: checksum of the contents of a NumPy array; None: the contents are not compared.
      watched: whether ``ref`` can return the object, so that another object is noticed. False for an object
        that can have no weak reference, such as a list, a dict or a long string.
    """

    __slots__ = ("code", "crc", "facts", "ref", "text", "watched")

    def __init__(self, value: Any) -> None:
        self.text = shown(value)
        self.code: CodeType | None = value.__code__ if type(value) is FunctionType else None
        self.crc = checksum(value)
        self.facts = _facts(value)
        self.watched = True
        self.ref: Callable[[], Any] = lambda: None
        if type(value) in paths.PLAIN and not (type(value) in (str, bytes) and len(value) > MAX_KEPT):
            self.ref = itertools.repeat(value).__next__
        else:
            try:
                self.ref = weakref.ref(value)
            except TypeError:  # a list, a dict: its items are compared instead
                self.watched = False

    def same(self, value: Any) -> bool:
        """Return whether ``value`` is the remembered object or counts as equal to it. A Python function
        counts as equal if it has the same code object and no default values. All other values are compared by
        ``crc`` and ``facts``. If nothing can be compared, return True, so that no false change is
        reported."""
        if self.watched and self.ref() is value:
            return True
        if self.code is not None:
            return (
                type(value) is FunctionType
                and value.__code__ is self.code
                and not value.__defaults__
                and not value.__kwdefaults__
            )
        if self.crc is not None:
            return _facts(value) == self.facts and checksum(value) == self.crc
        if self.facts is not None:
            return bool(_facts(value) == self.facts)
        return not self.watched

    def contents(self, value: Any) -> bool:
        """Return whether the contents of ``value``, the remembered NumPy array, are unchanged. Return True if
        contents are not compared (``crc`` is None), or if ``value`` is not the remembered object."""
        return self.crc is None or self.ref() is not value or checksum(value) == self.crc


def _facts(value: Any) -> Any:
    """Return data of builtin types that is equal for equal values: ``(int, 1)`` for 1, ``(list, 2)`` (the
    length) for a list of two items, the keys for a dict. None if ``value`` counts as equal only to itself,
    such as an object of the program or a NumPy array above MAX_BYTES."""
    kind = type(value)
    if kind in (str, bytes) and len(value) > MAX_KEPT:
        data = value if kind is bytes else value.encode("utf-8", "surrogatepass")
        return kind, len(value), zlib.crc32(data)
    if kind in (float, complex) and value != value:
        return kind, "nan"
    if kind in paths.PLAIN:
        return kind, value
    if issubclass(kind, np.generic):
        return kind, str(value.dtype), value.tobytes()
    if issubclass(kind, np.ndarray):
        return (np.ndarray, value.shape, str(value.dtype)) if value.nbytes <= MAX_BYTES else None
    if kind is np.dtype or isinstance(value, np.dtype):
        return np.dtype, str(value)
    if issubclass(kind, dict):
        keys = list(dict.keys(value)) if dict.__len__(value) <= MAX_KEYS else None
        plain = keys is not None and all(type(k) in paths.PLAIN for k in keys)
        return dict, tuple(keys) if plain and keys is not None else dict.__len__(value)
    if kind in SEQUENCES or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return kind, len(value)
    if kind in SETS:
        plain = len(value) <= MAX_KEYS and all(type(v) in paths.PLAIN for v in value)
        return kind, frozenset(value) if plain else len(value)
    return None


def checksum(value: Any) -> int | None:
    """Return a checksum of the contents of ``value``, a NumPy array. Return None if it is no NumPy array, is
    larger than MAX_BYTES, or contains Python objects."""
    if not issubclass(type(value), np.ndarray) or value.nbytes > MAX_BYTES or value.dtype.hasobject:
        return None
    plain = np.ndarray.view(value, np.ndarray)
    return zlib.crc32(np.ascontiguousarray(plain).view(np.uint8).data if plain.size else b"")


def shown(value: Any) -> str:
    """Return ``value`` as short text. For a small NumPy array of numbers, this includes its first items:
    ``float32[3] [1, 2, 3]``."""
    kind = type(value)
    if paths.is_jax_array(value):
        return f"jax.Array {value.dtype}{list(value.shape)}"
    if not issubclass(kind, np.ndarray) or value.nbytes > MAX_BYTES or value.dtype.kind not in "biufc":
        return statics.shown(value)
    items = np.ndarray.view(value, np.ndarray).ravel()[: MAX_SHOWN + 1].tolist()
    some = ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in items[:MAX_SHOWN])
    rest = ", ..." if len(items) > MAX_SHOWN else ""
    return f"{value.dtype}{list(value.shape)} [{some}{rest}]"
