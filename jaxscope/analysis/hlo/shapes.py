"""Parse shapes as HLO prints them: ``bf16[8,128]{1,0:T(8,128)(2,1)S(1)}`` and tuples of them.

A shape has an element type, dimensions (``<=8`` is a dynamic one with a bound), the layout (minor to major),
tiles ``T(8,128)``, the element size in bits ``E(4)`` and the memory space ``S(1)``, as in XLA's ShapeUtil and
LayoutUtil.
"""

from __future__ import annotations

import functools
import math
import re

import msgspec

from jaxscope.analysis.hlo.lexing import COMMENT, split
from jaxscope.analysis.sums import known_sum

_ARRAY = re.compile(r"([a-z][a-z0-9]*+)\[([^\]]*+)\](?:\{([^}]*+)\})?+$")
_PLAIN = re.compile(r"(token|opaque)(?:\[\])?(?:\{[^}]*+\})?+$")
_BITS = re.compile(r"[a-z]+?(\d+)")
_SPACE = re.compile(r"S\((\d{1,9})\)")
_ELEMENT = re.compile(r"E\((\d{1,4})\)")
_TILES = re.compile(r"T((?:\([0-9*,]*+\))+)")
_TILE = re.compile(r"\(([0-9*,]*+)\)")
MAX_DEPTH = 64
MAX_DIGITS = 18
HOST = 5  # the memory space of a TPU's host
BUFFER = 512  # the size of a TPU's buffer is a multiple of it, in bytes
ADDRESS = 8  # bytes of one address in the buffer of a tuple
TPU_ADDRESS = 4  # the same on a TPU
MAX_TILES = 8


class Array(msgspec.Struct, frozen=True, gc=False):
    """The shape of one array.

    Attributes:
      dims: the sizes; for a dynamic dimension its upper bound, or None if it has none (``?``).
      layout: dimension numbers from minor to major; None if the text does not print them.
      bits: bits of one element in memory; None: the type is unknown.
      space: the memory space; 0 is the default one (on TPU 1 is VMEM, 5 is the host's memory).
      tiles: the tiles as printed: ``(8,128)(2,1)``.
    """

    dtype: str
    dims: tuple[int | None, ...]
    layout: tuple[int, ...] | None = None
    bits: int | None = None
    space: int = 0
    tiles: str = ""

    @property
    def elements(self) -> int | None:
        """The number of elements; None if a dimension has no known size."""
        known = [size for size in self.dims if size is not None]
        return math.prod(known) if len(known) == len(self.dims) else None

    @property
    def bytes(self) -> int | None:
        """The bytes of all elements, without the padding that a tiled layout adds. None if unknown."""
        elements = self.elements
        if elements is None or self.bits is None:
            return None
        return (elements * self.bits + 7) // 8

    @property
    def allocated_bytes(self) -> int | None:
        """The bytes of the array's buffer. None if they are unknown. On a TPU this includes the padding to
        full tiles, such as 8 x 128, and to a multiple of 512 bytes. Arrays on other machines have no
        tiles."""
        if not self.tiles or self.layout is None or self.bits is None or None in self.dims:
            return self.bytes
        if sorted(self.layout) != list(range(len(self.dims))):
            return None
        elements = _in_whole_tiles([self.dims[i] or 0 for i in reversed(self.layout)], self.tiles)
        return None if elements is None else _buffer((elements * self.bits + 7) // 8)


def _buffer(size: int) -> int:
    """Round ``size`` up to a multiple of 512 bytes."""
    return -(-size // BUFFER) * BUFFER


def _in_whole_tiles(sizes: list[int], tiles: str) -> int | None:
    """Return the number of elements of an array, with the padding to full tiles: sizes 10, 100 in tiles
    ``(8,128)`` -> 16 x 128. Return None if the tiles cannot be read.

    Args:
      sizes: the sizes of the array, from major to minor.
      tiles: ``(8,128)(2,1)``: the last two dimensions are cut into parts of 8 and 128, then these parts into
        parts of 2 and 1. A ``*`` joins a dimension with the next one, and both are cut as one dimension.
    """
    for text in _TILE.findall(tiles)[:MAX_TILES]:
        tile = text.split(",") if text else []
        if any(t != "*" and not (0 < len(t) < 10 and int(t)) for t in tile) or tile[-1:] == ["*"]:
            return None
        sizes = [1] * (len(tile) - len(sizes)) + sizes
        outer, inner = sizes[: len(sizes) - len(tile)], sizes[len(sizes) - len(tile) :]
        joined = 1
        cut: list[tuple[int, int]] = []
        for size, t in zip(inner, tile, strict=True):
            joined *= size
            if t != "*":
                cut.append((joined, int(t)))
                joined = 1
        sizes = [*outer, *(-(-size // t) for size, t in cut), *(t for _, t in cut)]
    return math.prod(sizes)


# The shape of a tuple is a Python tuple of shapes. None stands for a member that cannot be read.
Shape = Array | tuple["Shape | None", ...]


@functools.lru_cache(maxsize=8192)
def parse(text: str) -> Shape | None:
    """Parse a shape, ``f32[8,128]{1,0}``: return an ``Array``, or a Python tuple of shapes for a tuple. A
    ``token`` is an ``Array`` of 0 bits. Return None if the text is not a shape."""
    if len(text) > 200_000:
        return None
    return _parse(COMMENT.sub("", text).strip(), 0)


def _parse(text: str, depth: int) -> Shape | None:
    """Parse a shape without comments. ``depth`` is the number of tuples around it."""
    if text.startswith("("):
        if not text.endswith(")") or depth >= MAX_DEPTH:
            return None
        return tuple(_parse(part, depth + 1) for part in split(text[1:-1]))
    if _PLAIN.match(text):
        return Array(text.partition("[")[0], (), None, 0)
    found = _ARRAY.match(text)
    if found is None:
        return None
    dtype, dims, layout = found.groups()
    sizes: list[int | None] = []
    for size in dims.split(",") if dims else ():
        digits = size.strip().removeprefix("<=")
        if digits != "?" and not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS):
            return None
        sizes.append(None if digits == "?" else int(digits))
    order, space, tiles, bits = _layout(layout)
    return Array(dtype, tuple(sizes), order, bits or _bits(dtype), space, tiles)


def _layout(text: str | None) -> tuple[tuple[int, ...] | None, int, str, int | None]:
    """Return (dimension numbers, memory space, tiles, bits of an element) of a layout: ``1,0:T(8,128)S(1)``
    -> ((1, 0), 1, ``(8,128)``, None)."""
    if text is None:
        return None, 0, "", None
    order, _, rest = text.partition(":")
    digits = [d.strip() for d in order.split(",")] if order else []
    space, element, tiles = _SPACE.search(rest), _ELEMENT.search(rest), _TILES.search(rest)
    return (
        tuple(int(d) for d in digits)
        if all(d.isascii() and d.isdigit() and len(d) < 4 for d in digits)
        else None,
        int(space[1]) if space else 0,
        tiles[1] if tiles else "",
        int(element[1]) if element else None,
    )


def _bits(dtype: str) -> int | None:
    """Return the bits of an element in memory: 16 for ``bf16``, 64 for ``c64``, 8 for ``f8e4m3fn`` and for
    smaller types such as ``s4``. Return None if the type is unknown."""
    if dtype == "pred":
        return 8
    # A smaller type uses a byte, unless the layout has another size: E(4).
    found = _BITS.match(dtype)
    return max(8, int(found[1])) if found and len(found[1]) < 4 else None


def members(text: str) -> list[str]:
    """Return the texts of the members of a tuple shape: ``(f32[2], s32[])`` -> ``["f32[2]", "s32[]"]``. The
    shape of an array gives a list with this one shape."""
    text = COMMENT.sub("", text).strip()
    return split(text[1:-1]) if text.startswith("(") and text.endswith(")") else [text]


def device_bytes(shape: Shape | None) -> int | None:
    """Return the bytes that an array or a tuple occupies in a device's memory; None if unknown. Arrays in the
    memory of a TPU's host count 0. A tuple counts its members and the list of their addresses."""
    if shape is None or isinstance(shape, Array):
        return None if shape is None else 0 if shape.space == HOST else shape.allocated_bytes
    tiled = any(isinstance(member, Array) and member.tiles for member in shape)
    # v2 and v3 round up to 1,024 bytes, v5p, v6e and tpu7x only to 32. The text does not say which it is.
    addresses = _buffer(TPU_ADDRESS * len(shape)) if tiled else ADDRESS * len(shape)
    return known_sum([*(device_bytes(member) for member in shape), addresses])


def total_bytes(shape: Shape | None) -> int | None:
    """Return the bytes of an array, or of all members of a tuple, without padding. Return None if one of the
    sizes is unknown."""
    if shape is None:
        return None
    if isinstance(shape, Array):
        return shape.bytes
    return known_sum(total_bytes(member) for member in shape)


def of_result(opcode: str, text: str) -> Shape | None:
    """Return the shape of an instruction's result: ``f32[4]`` for an ``all-gather-start`` with ``(f32[2],
    f32[4])``. ``text`` is the shape that XLA prints for the instruction; for a ``-start`` opcode, a send or a
    recv, it contains more than the result. Return None if the shape cannot be read."""
    # What XLA prints for an instruction that starts a transfer:
    #     copy-start                (result, operand, context)
    #     all-reduce-start          the result alone; since JAX 0.12 ((operands), result)
    #     send, recv                (payload, u32[], token[])
    #     every other NAME-start    (operand, result, context...); operand and result may be tuples
    shape = parse(text)
    if not isinstance(shape, tuple) or not shape:
        return shape
    if opcode in ("send", "recv", "copy-start"):
        return shape[0]
    alone = opcode == "all-reduce-start" and not isinstance(shape[0], tuple)
    if opcode.endswith("-start") and not alone:
        return shape[1] if len(shape) > 1 else None
    return shape


def result_bytes(opcode: str, text: str) -> int | None:
    """Return the bytes of an instruction's result, without padding; None if unknown. ``text`` is the shape
    that XLA prints for the instruction (see ``of_result``)."""
    return total_bytes(of_result(opcode, text))


@functools.lru_cache(maxsize=8192)
def text_bytes(text: str) -> int | None:
    """Return the bytes of a shape given as text, without padding: ``f32[8,128]`` -> 4096. Return None if they
    are unknown."""
    return total_bytes(parse(text))
