"""Parse MLIR types: ``tensor<4xbf16>`` -> shape, dtype (by JAX's name) and bytes."""

from __future__ import annotations

import functools
import re

import msgspec

DIMENSION = re.compile(r"(\d{1,18}|\?)x")
INTEGER = re.compile(r"(ui|si|i)(\d{1,4})")
SMALL_FLOAT = re.compile(r"f(\d)(E\w+)")  # f8E4M3FN is float8_e4m3fn
MAX_RANK = 64
FLOATS = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "tf32": "tfloat32"}
COMPLEX = {"f32": ("complex64", 64), "f64": ("complex128", 128)}
BITS = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 16, "tfloat32": 32}


class Tensor(msgspec.Struct, frozen=True):
    """A parsed type of StableHLO.

    Attributes:
      text: the type as text: ``tensor<4x?xbf16>``.
      shape: the sizes, with None for a dynamic size. None if the type is not a tensor, or is a tensor of
        unknown rank.
      dtype: JAX's name of the element type: ``bfloat16``; None: unknown.
      elements: number of elements; None: unknown.
      bytes: bytes of the whole tensor. A bool is one byte; types narrower than a byte are packed. None:
        unknown.
    """

    text: str
    shape: tuple[int | None, ...] | None = None
    dtype: str | None = None
    elements: int | None = None
    bytes: int | None = None


@functools.lru_cache(maxsize=8192)
def tensor(text: str) -> Tensor:
    """Parse a type: ``tensor<4x?xbf16>`` -> shape (4, None), dtype ``bfloat16``. A type that is not a tensor
    of known rank gives a ``Tensor`` with only its text."""
    if not (text.startswith("tensor<") and text.endswith(">")):
        return Tensor(text)
    body = text[7:-1]
    shape: list[int | None] = []
    at = 0
    while found := DIMENSION.match(body, at):
        shape.append(None if found[1] == "?" else int(found[1]))
        at = found.end()
        if len(shape) > MAX_RANK:
            return Tensor(text)
    element = body[at:].partition(", ")[0]  # an encoding may follow
    if element.startswith("*"):
        return Tensor(text)
    dtype, bits = _element(element)
    elements: int | None = 1
    for size in shape:
        elements = None if elements is None or size is None else elements * size
    count = None if elements is None or bits is None else (elements * bits + 7) // 8
    return Tensor(text, tuple(shape), dtype, elements, count)


def _element(name: str) -> tuple[str | None, int | None]:
    """Return (dtype, bits of one element) of an element type: ``bf16`` -> ``("bfloat16", 16)``. Both are None
    if the type is unknown."""
    if name in FLOATS:
        return FLOATS[name], BITS[FLOATS[name]]
    if name == "i1":
        return "bool", 8
    if found := INTEGER.fullmatch(name):
        return ("uint" if found[1] == "ui" else "int") + found[2], int(found[2])
    if found := SMALL_FLOAT.fullmatch(name):
        return f"float{found[1]}_{found[2].lower()}", int(found[1])
    if name.startswith("complex<") and name[8:-1] in COMPLEX:
        return COMPLEX[name[8:-1]]
    return None, None


def is_float64(text: str) -> bool:
    """Return whether a type, given as text, is a tensor of 64-bit floating point, real or complex:
    ``tensor<4xf64>``."""
    return "f64" in text and tensor(text).dtype in ("float64", "complex128")
