"""Write the type of an argument as short text for messages: ``f32[32,512]``, ``i32[] weak``,
``float f32[] weak``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

# What a leaf's Python type is called in a sentence; every other type is called by its own name.
TYPE_NAMES = {
    "ArrayImpl": "jax.Array",
    "Array": "jax.Array",
    "jax.MetaTy": "jax.Array",  # old logs have this name for an array
    "ndarray": "numpy array",
    "numpy": "numpy array",
    "numpy.ndarray": "numpy array",
}

_SHORT = (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c"))


def short_dtype(dtype: str | None) -> str:
    """Shorten a dtype as JAX does when it prints a jaxpr: ``bfloat16`` -> ``bf16``, ``uint8`` -> ``u8``.
    Extended types (``key<fry>``) stay as they are; None, unknown, gives ``?``."""
    if dtype is None:
        return "?"
    if "<" in dtype:
        return dtype
    for long, short in _SHORT:
        dtype = dtype.replace(long, short)
    return dtype


def short_shape(shape: Sequence[int | str] | None) -> str:
    """Write a shape: ``(32, 512)`` -> ``[32,512]``; ``[?]`` if it is None."""
    return "[?]" if shape is None else "[" + ",".join(map(str, shape)) + "]"


def short_aval(
    shape: Sequence[int | str] | None,
    dtype: str | None,
    weak_type: bool | None = None,
    type_name: str | None = None,
) -> str:
    """Write the abstract value of an argument: ``f32[32,512]``, ``i32[] weak``, ``float f32[] weak``. The
    text is only the type name (``?`` if unknown) if both shape and dtype are unknown.

    Args:
      shape, dtype: the shape and the dtype; None: unknown.
      weak_type: whether to add `` weak``.
      type_name: the class of the Python object, which is put first (``ArrayImpl`` as ``jax.Array``); None:
        leave it out.
    """
    if shape is None and dtype is None:
        return type_text(type_name) if type_name else "?"
    text = short_dtype(dtype) + short_shape(shape)
    if weak_type:
        text += " weak"
    return f"{type_text(type_name)} {text}" if type_name else text


def type_text(name: str | None) -> str:
    """Return the name of a Python type for messages: ``ArrayImpl`` -> ``jax.Array``. Other names stay; None
    gives ``?``."""
    return "?" if name is None else TYPE_NAMES.get(name, name)


def aval_bytes(shape: Sequence[int | str] | None, dtype: str | None, *, packed: bool = True) -> int | None:
    """Return the size of an array in bytes, rounded up: 4 per number for ``float32``, 1 for ``bool``, a half
    for ``int4``. Return None if the shape, the size of a dimension or the size of an element is unknown.

    If ``packed`` is False, an element takes at least a byte. Compiled programs pack several elements of
    ``int4`` into a byte, NumPy does not.
    """
    known = [d for d in shape or () if isinstance(d, int) and d >= 0]
    if shape is None or dtype is None or len(known) != len(shape):
        return None
    bits = 8 if dtype == "bool" else None
    if found := re.fullmatch(r"(?:bfloat|float|uint|int|complex)(\d{1,3})(?:_e\w+)?", dtype):
        bits = int(found[1]) if packed else max(8, int(found[1]))
    return None if bits is None else (math.prod(known) * bits + 7) // 8
