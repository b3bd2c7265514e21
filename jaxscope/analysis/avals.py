"""Write one argument leaf for people: ``f32[32,512]``, ``i32[] weak``, ``float f32[] weak``.

Pure text from a schema Leaf; knows nothing of keys or of what changed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

# What the leaf's Python type is called in a sentence; anything else goes by its own name.
TYPE_NAMES = {
    "ArrayImpl": "jax.Array",
    "Array": "jax.Array",
    "jax.MetaTy": "jax.Array",  # of a log from before capture knew what it stands for
    "ndarray": "numpy array",
    "numpy": "numpy array",
    "numpy.ndarray": "numpy array",
}

_SHORT = (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c"))


def short_dtype(dtype: str | None) -> str:
    """Shorten a dtype: ``bf16`` for ``bfloat16``, ``u8`` for ``uint8``; extended types (``key<fry>``) stay.

    JAX uses the same short names when it prints a jaxpr, so that you can search for them in a jaxpr.
    """
    if dtype is None:
        return "?"
    if "<" in dtype:
        return dtype
    for long, short in _SHORT:
        dtype = dtype.replace(long, short)
    return dtype


def short_shape(shape: Sequence[int | str] | None) -> str:
    """Write a shape: ``[32,512]``; ``[?]`` where it is unknown."""
    return "[?]" if shape is None else "[" + ",".join(map(str, shape)) + "]"


def short_aval(
    shape: Sequence[int | str] | None,
    dtype: str | None,
    weak_type: bool | None = None,
    type_name: str | None = None,
) -> str:
    """Write an abstract value: ``f32[32,512]``, with `` weak`` and the Python type where they are given."""
    if shape is None and dtype is None:
        return type_text(type_name) if type_name else "?"
    text = short_dtype(dtype) + short_shape(shape)
    if weak_type:
        text += " weak"
    return f"{type_text(type_name)} {text}" if type_name else text


def type_text(name: str | None) -> str:
    return "?" if name is None else TYPE_NAMES.get(name, name)


def aval_bytes(shape: Sequence[int | str] | None, dtype: str | None) -> int | None:
    """Bytes of a whole array by its dtype's name: ``float32`` has four a number, a bool one, ``int4`` a
    half.
    """
    known = [d for d in shape or () if isinstance(d, int) and d >= 0]
    if shape is None or dtype is None or len(known) != len(shape):
        return None
    bits = 8 if dtype == "bool" else None
    if found := re.fullmatch(r"(?:bfloat|float|uint|int|complex)(\d{1,3})(?:_e\w+)?", dtype):
        bits = int(found[1])
    return None if bits is None else (math.prod(known) * bits + 7) // 8
