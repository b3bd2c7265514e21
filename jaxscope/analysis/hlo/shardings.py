"""Convert a sharding as XLA's partitioner prints it to the mesh axes that split each dimension.

======================  ====================================================================
GSPMD                   ``{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}``: number of tiles
                        along each dimension, then the number of devices with the same tile; the
                        positions follow as an iota as in ``groups``, or one by one
                        (``{devices=[2,2]0,2,1,3}``)
mesh                    ``{mesh['a'=2,'b'=4], [{'b', 'a'}, {}]}``, ``'b':(1)2`` for a part of an axis
                        (XLA of 2026, JAX 0.12)
others                  ``{replicated}``, ``{maximal device=0}``, ``{manual}``
======================  ====================================================================

Positions are indices in ``mesh.devices.flat``. Source: XLA's hlo_sharding.cc, and texts in both formats.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

import msgspec

from jaxscope.analysis.hlo import groups
from jaxscope.analysis.hlo.axes import Mesh, prime_factors

_TILED = re.compile(
    r"\{devices=\[([\d,]{1,400})\](?:<=\[([\d,]{1,400})\](?:T\(([\d,]{1,400})\))?|([\d,]*))"
    r"(?P<last> last_tile_dim_replicate| last_tile_dims=\{([\w, ]{0,200})\})?[^\[]*\}$"
)
_MESH = re.compile(r"\{mesh\[([^\]]{1,2000})\](?:, ?device_ids=\(([^()]*(?:\([^()]*\))?)\))?, ?\[(.*)\]")
_DIMENSION = re.compile(r"\{([^{}]*)\}")
MAX_CUTS = 200

Dimensions = tuple[tuple[str, ...], ...]


class ParsedSharding(msgspec.Struct, frozen=True):
    """A parsed sharding.

    Attributes:
      tiles: number of parts along each dimension; empty for ``{replicated}`` and ``{maximal device=0}``; None
        if the sharding has no tiles or cannot be read.
      dimensions: for each dimension the mesh axes that split it, major to minor: ``(("data",), ())``; empty
        for ``{replicated}``. None if the parts are not along axes of the mesh, if the mesh is unknown, or if
        the sharding has no tiles or is ``{maximal device=0}``.
    """

    tiles: tuple[int, ...] | None = None
    dimensions: Dimensions | None = None


def read(text: str, mesh: Mesh | None) -> ParsedSharding:
    """Parse a sharding as XLA prints it, with its braces: ``{devices=[2,1]<=[2]}``. If the text cannot be
    read, all fields of the result are None.

    Args:
      text: the sharding.
      mesh: (axis, size) of each axis of the program's mesh; None: unknown, use the mesh in the text, if any.
    """
    text = text.strip()[:20_000]
    if text == "{replicated}":
        return ParsedSharding((), ())
    if text.startswith("{maximal"):
        return ParsedSharding((), None)
    found = _TILED.match(text)
    if found is not None:
        return _tiled(found, mesh)
    found = _MESH.match(text)
    return _named(found, mesh) if found is not None else ParsedSharding()


def _tiled(match: re.Match[str], mesh: Mesh | None) -> ParsedSharding:
    """Return the sharding for a match of ``_TILED``."""
    dims = groups.numbers(match[1]) or []
    total = math.prod(dims)
    if not dims or not 0 < total <= groups.MAX_IDS:
        return ParsedSharding()
    if match[2] is not None:
        flat = groups.iota(groups.numbers(match[2]) or [0], groups.numbers(match[3]))
    else:
        flat = groups.numbers(match[4])
    extra = 0
    if match["last"] is not None:
        extra = 1 if match[6] is None else match[6].count(",") + 1
    tiles = tuple(dims[: len(dims) - extra])
    if flat is None or sorted(flat) != list(range(total)) or mesh is None:
        return ParsedSharding(tiles)
    return ParsedSharding(tiles, _axes(tiles, _coordinates(flat, dims), mesh))


def _named(match: re.Match[str], mesh: Mesh | None) -> ParsedSharding:
    """Return the sharding for a match of ``_MESH``."""
    own = [(a or b or c, int(size)) for a, b, c, size in groups.AXIS.findall(match[1])]
    sizes = dict(own)
    total = math.prod(sizes.values())
    if not own or len(sizes) != len(own) or not 0 < total <= groups.MAX_IDS:
        return ParsedSharding()
    parts: list[list[tuple[str, int, int]]] = []  # axis, product before it, size
    for inner in _DIMENSION.findall(match[3]):
        parts.append([])
        for a, b, c, before, size in groups.USED.findall(inner):
            name = a or b or c
            if name not in sizes:
                return ParsedSharding()
            parts[-1].append((name, int(before or 1), int(size or sizes[name])))
    tiles = tuple(math.prod(size for _, _, size in dimension) for dimension in parts)
    known = dict(mesh) if mesh else {}
    if not any(groups.MADE_UP.match(name) for name in sizes) and (
        not known or all(known.get(n) == s for n, s in own)
    ):
        spelled = tuple(tuple(_axis(n, b, s, sizes[n]) for n, b, s in dimension) for dimension in parts)
        return ParsedSharding(tiles, spelled)
    order = groups.device_order(match[2], total)
    if mesh is None or order is None:
        return ParsedSharding(tiles)
    # The coordinates of each position on the printed mesh, and from these its tile along each dimension.
    there = _coordinates(order, [size for _, size in own])
    names = [name for name, _ in own]
    at = []
    for dimension in parts:
        along = [0] * total
        for name, before, size in dimension:
            if before * size < 1 or sizes[name] % (before * size):
                return ParsedSharding()
            axis, below = there[names.index(name)], sizes[name] // (before * size)
            along = [t * size + c // below % size for t, c in zip(along, axis, strict=True)]
        at.append(along)
    return ParsedSharding(tiles, _axes(tiles, at, mesh))


def _coordinates(flat: Sequence[int], dims: Sequence[int]) -> list[list[int]]:
    """Return for each dimension a list: position -> coordinate along the dimension. ``flat`` has the
    positions in row-major order of an array of shape ``dims``."""
    found = []
    stride = len(flat)
    for size in dims:
        stride //= size
        along = [0] * len(flat)
        for index, position in enumerate(flat):
            along[position] = index // stride % size
        found.append(along)
    return found


def _axes(tiles: Sequence[int], coordinates: Sequence[list[int]], mesh: Mesh) -> Dimensions | None:
    """Return for each dimension the mesh axes that split it into tiles, major to minor. Return None if the
    tiles are not along mesh axes.

    Args:
      tiles: the number of tiles along each dimension.
      coordinates: for each dimension a list: position of a device -> number of its tile.
      mesh: (axis, size) in mesh order.
    """
    total = math.prod(size for _, size in mesh)
    if any(len(along) != total for along in coordinates[: len(tiles)]):
        return None
    cuts = [list(dict.fromkeys(itertools.permutations(prime_factors(size)[:6]))) for _, size in mesh]
    for cut in itertools.islice(itertools.product(*cuts), MAX_CUTS):
        found = [
            _digits(n, along, cut, mesh) if n > 1 else ()
            for n, along in zip(tiles, coordinates, strict=False)
        ]
        if None not in found:
            return tuple(f for f in found if f is not None)
    return None


def _digits(n: int, along: list[int], cut: Sequence[tuple[int, ...]], mesh: Mesh) -> tuple[str, ...] | None:
    """Return the mesh axes, or parts of axes, that split one dimension into ``n`` tiles, major to minor.
    Return None if no axes give these tiles.

    Args:
      along: a list: position of a device -> number of its tile.
      cut: for each axis of ``mesh`` the factors of its size.
    """
    digits = []  # (weight, axis, product before, size, stride)
    stride = len(along)
    for axis, ((_, size), factors) in enumerate(zip(mesh, cut, strict=True)):
        if math.prod(factors) != size:
            return None
        before = 1
        for factor in factors:
            stride //= factor
            if (weight := along[stride] - along[0]) != 0:
                digits.append((weight, axis, before, factor, stride))
            before *= factor
    digits.sort(reverse=True)
    expected = n
    for weight, _, _, size, _ in digits:
        if expected % size or weight != expected // size:
            return None
        expected = weight
    if expected != 1 or along[0] != 0:
        return None
    for position, tile in enumerate(along):
        if tile != sum(w * (position // stride % size) for w, _, _, size, stride in digits):
            return None
    runs: list[list[int]] = []
    for _, axis, before, size, _ in digits:
        if runs and runs[-1][0] == axis and runs[-1][1] * runs[-1][2] == before:
            runs[-1][2] *= size
        else:
            runs.append([axis, before, size])
    return tuple(_axis(mesh[axis][0], before, size, mesh[axis][1]) for axis, before, size in runs)


def _axis(name: str, before: int, size: int, whole: int) -> str:
    """Return the text of an axis, or of a part of the size ``size``: ``data``, ``data:(2)4``. ``before`` is
    the product of the sizes before the part, ``whole`` the size of the axis."""
    return name if size == whole else f"{name}:({before}){size}"
