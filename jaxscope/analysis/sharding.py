"""Compute how a sharding splits an array, and which part each device has.

Two kinds of shardings are understood. A PartitionSpec names, for each dimension, the mesh axes that split it,
the major axis first; along axes that are not named the devices have copies. An OpSharding is a text of XLA's
``HloSharding::ToString``: ``{replicated}``, ``{maximal device=0}``,
``{devices=[4,1,2]<=[8] last_tile_dim_replicate}``. After ``devices=`` are the numbers of parts, then the
devices in row-major order of the parts: either a list, or ``<=[dims]T(perm)`` for
``arange(prod(dims)).reshape(dims).transpose(perm)``.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import re
from collections.abc import Sequence

import msgspec

from jaxscope.schema.keys import Partition, Sharding

MAX_TEXT = 10_000
MAX_DEVICES = 1 << 17

Slice = tuple[int, int]  # (start, stop) along one dimension


class Layout(msgspec.Struct, frozen=True):
    """How an array is split over devices.

    Attributes:
      parts: number of parts along each dimension.
      order: for each part, in row-major order, the devices that have this part, as positions in ``devices``.
      devices: the device ids, in the order in which the program numbers its devices (JAX's device
        assignment).
      unreduced: number of devices that each have a partial value of the same part, still to be summed; 1: the
        values are complete. Partial values are no copies.
    """

    parts: tuple[int, ...]
    order: tuple[tuple[int, ...], ...]
    devices: tuple[int, ...]
    unreduced: int = 1

    @property
    def replication(self) -> int:
        """Return how many devices have a copy of the same part, at least 1."""
        return len(self.devices) // (math.prod(self.parts) * self.unreduced)


class Cell(msgspec.Struct, frozen=True):
    """The part of an array that one device has.

    Attributes:
      device: the id of the device.
      part: the index of the part along each dimension.
      slices: (start, stop) of the part along each dimension. If start equals stop, this device's part is
        empty.
    """

    device: int
    part: tuple[int, ...]
    slices: tuple[Slice, ...]


class Grid(msgspec.Struct, frozen=True):
    """A mesh of devices: (name, size) of each axis, and the device ids in row-major order."""

    axes: tuple[tuple[str, int], ...]
    devices: tuple[int, ...]


@functools.lru_cache(1_024)
def device_ids(text: str | None) -> tuple[int, ...] | None:
    """Parse device ids: ``"0-3,8"`` -> ``(0, 1, 2, 3, 8)``. Return None if the text is not readable, or has
    more than MAX_DEVICES (131,072) ids."""
    if not text or len(text) > MAX_TEXT * 10:
        return None
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not (_number(first) and _number(last or first)):
            return None
        low, high = int(first), int(last or first)
        if high < low or len(found) + high - low >= MAX_DEVICES:
            return None
        found.extend(range(low, high + 1))
    return tuple(found)


def _number(text: str) -> bool:
    """Return whether ``text`` has one to nine decimal digits and nothing else."""
    return text.isascii() and text.isdecimal() and len(text) < 10


def partition(s: Sharding) -> Partition | None:
    """Return the PartitionSpec of a sharding as data. Return None if the sharding has none, or if its text in
    the log of an older version cannot be read."""
    return parse(s.spec) if s.partition is None else s.partition


@functools.lru_cache(1_024)
def parse(text: str | None) -> Partition | None:
    """Parse the text of a PartitionSpec: ``P(('a', 'b'), None, unreduced={'c'})`` -> ``Partition((('a', 'b'),
    ()), ('c',))``. Return None if the text is no PartitionSpec."""
    if not text or len(text) > MAX_TEXT:
        return None
    try:
        call = ast.parse(text.replace("PartitionSpec", "P"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "P"):
        return None
    dimensions: list[tuple[str, ...] | None] = []
    for argument in call.args:
        names = _names(argument)
        if names is None and not (isinstance(argument, ast.Name) and argument.id == "UNCONSTRAINED"):
            return None
        dimensions.append(names)
    keywords = {k.arg: k.value for k in call.keywords}
    kind = keywords.pop("unreduced_kind", None)
    axes = {word: _names(value) for word, value in keywords.items()}
    if None in axes.values() or not (kind is None or isinstance(kind, ast.Name)):
        return None
    unreduced, reduced = (tuple(sorted(axes.get(word) or ())) for word in ("unreduced", "reduced"))
    return Partition(tuple(dimensions), unreduced, reduced, kind.id if kind is not None else None)


def written(p: Partition) -> str:
    """Write a PartitionSpec as Python code, without Nones at the end that have no effect: ``P('a')`` for
    ``P('a', None)``."""
    parts = [_code(names) for names in p.dimensions]
    more = [(n, names) for n, names in (("unreduced", p.unreduced), ("reduced", p.reduced)) if names]
    while parts and parts[-1] == "None" and not more:
        parts.pop()
    parts += [f"{n}={{{', '.join(map(repr, names))}}}" for n, names in more]
    parts += [f"unreduced_kind={p.unreduced_kind}"] if p.unreduced_kind not in (None, "sum") else []
    return f"P({', '.join(parts)})"


def _code(names: tuple[str, ...] | None) -> str:
    """Return one argument of a PartitionSpec as Python code; ``names`` as in ``Partition.dimensions``."""
    if names is None:
        return "UNCONSTRAINED"
    return "None" if not names else repr(names[0] if len(names) == 1 else names)


def split_axes(s: Sharding) -> tuple[list[tuple[str, ...]], frozenset[str]] | None:
    """Return (for each dimension the mesh axes that split it, the set of unreduced axes):
    ``P(('a', 'b'), None, unreduced={'c'})`` -> ``([('a', 'b'), ()], {'c'})``. Return None if the sharding has
    no PartitionSpec, or one that leaves a dimension to the compiler (UNCONSTRAINED)."""
    p = partition(s)
    known = [names for names in p.dimensions if names is not None] if p is not None else []
    return (known, frozenset(p.unreduced)) if p is not None and len(known) == len(p.dimensions) else None


def _names(node: ast.expr) -> tuple[str, ...] | None:
    """Return the axis names in one argument of a PartitionSpec: ``'a'`` -> ``('a',)``, ``('a', 'b')`` ->
    ``('a', 'b')``, ``None`` -> ``()``. Return None if the argument is something else."""
    if isinstance(node, ast.Constant):
        return () if node.value is None else (node.value,) if isinstance(node.value, str) else None
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("frozenset", "set")
    ):
        return _names(node.args[0]) if node.args else ()
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        names = [e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
        return tuple(names) if len(names) == len(node.elts) else None
    return None


def grid(s: Sharding) -> Grid | None:
    """Return the mesh of a NamedSharding. Return None if the sharding has no mesh, or if its devices are
    unknown or not as many as the mesh has positions."""
    devices = device_ids(s.devices)
    if s.mesh is None or devices is None:
        return None
    axes = tuple((name, size) for name, size, _ in s.mesh)
    if len({n for n, _ in axes}) != len(axes) or any(size < 1 for _, size in axes):
        return None
    return Grid(axes, devices) if math.prod(size for _, size in axes) == len(devices) else None


def layout(s: Sharding, rank: int) -> Layout | None:
    """Return how a sharding splits an array with ``rank`` dimensions over its devices. Return None if the
    sharding cannot be read."""
    devices = device_ids(s.devices)
    if devices is None or not 0 <= rank <= 100:
        return None
    if s.kind == "SingleDeviceSharding":
        return _whole(rank, devices) if len(devices) == 1 else None
    if s.mesh is not None and s.spec is not None:
        return _named(s, rank)
    found = re.search(r"\{(.*)\}", s.text[:MAX_TEXT])
    return _tiles(found.group(1), rank, devices) if found else None


def _whole(rank: int, devices: tuple[int, ...]) -> Layout:
    """Return the layout in which each of ``devices`` has the whole array."""
    return Layout((1,) * rank, (tuple(range(len(devices))),), devices)


def _named(s: Sharding, rank: int) -> Layout | None:
    """Return the layout of a NamedSharding; None if it is not consistent."""
    mesh, spec = grid(s), split_axes(s)
    if mesh is None or spec is None:
        return None
    per_dimension, unreduced = spec
    sizes = dict(mesh.axes)
    used = [a for names in per_dimension for a in names]
    if len(per_dimension) > rank or len(set(used)) != len(used) or not {*used, *unreduced} <= set(sizes):
        return None
    per_dimension = per_dimension + [()] * (rank - len(per_dimension))
    parts = tuple(math.prod(sizes[a] for a in names) for names in per_dimension)
    order: list[list[int]] = [[] for _ in range(math.prod(parts))]
    for position, at in enumerate(itertools.product(*(range(size) for _, size in mesh.axes))):
        where = dict(zip(sizes, at, strict=True))
        part = 0
        for names, count in zip(per_dimension, parts, strict=True):
            index = 0
            for a in names:
                index = index * sizes[a] + where[a]
            part = part * count + index
        order[part].append(position)
    unreduced_devices = math.prod(sizes[a] for a in unreduced)
    return Layout(parts, tuple(map(tuple, order)), mesh.devices, unreduced_devices)


_TILES = re.compile(r"devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))")


def _tiles(text: str, rank: int, devices: tuple[int, ...]) -> Layout | None:
    """Parse the text inside the braces of an OpSharding: ``replicated`` or
    ``devices=[4,1,2]<=[8] last_tile_dim_replicate``. Return None if the text cannot be read.

    Args:
      rank: the number of dimensions of the array.
      devices: the device ids, in the order of the device assignment.
    """
    if text.startswith("replicated"):
        return _whole(rank, devices)
    if text.startswith("maximal"):
        return _whole(rank, devices[:1]) if len(devices) == 1 else None
    found = _TILES.match(text)
    if found is None or "last_tile_dims" in text:
        return None
    dims = _integers(found.group(1))
    if found.group(2):
        shape = _integers(found.group(2))
        if math.prod(shape) > MAX_DEVICES:
            return None
        turned = _integers(found.group(3)) if found.group(3) else list(range(len(shape)))
        listed = _iota(shape, turned)
    else:
        listed = _integers(found.group(4))
    copies = dims.pop() if "last_tile_dim_replicate" in text and dims else 1
    tiles = math.prod(dims)
    if (
        len(dims) != rank
        or listed is None
        or tiles * copies != len(listed)
        or sorted(listed) != [*range(len(devices))]
    ):
        return None
    order = tuple(tuple(listed[i * copies : (i + 1) * copies]) for i in range(tiles))
    return Layout(tuple(dims), order, devices)


def _integers(text: str) -> list[int]:
    """Parse integers: ``"4,1,2"`` -> ``[4, 1, 2]``. Only the first nine digits of each are read."""
    return [int(p[:9]) for p in text.split(",") if p]


def _iota(shape: Sequence[int], permutation: Sequence[int]) -> list[int] | None:
    """Compute ``arange(prod(shape)).reshape(shape).transpose(permutation).ravel()``. Return None if
    ``permutation`` is no permutation of the axes."""
    if sorted(permutation) != [*range(len(shape))]:
        return None
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return [
        sum(i * strides[d] for i, d in zip(at, permutation, strict=True))
        for at in itertools.product(*(range(shape[d]) for d in permutation))
    ]


def shard_shape(shape: Sequence[int], parts: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of the part of an array that each device allocates: shape ``(10, 8)`` in parts
    ``(4, 1)`` -> ``(3, 8)``. If a dimension is not divisible, the size is rounded up."""
    return tuple(-(-size // count) for size, count in zip(shape, parts, strict=True))


def cells(s: Sharding, shape: Sequence[int]) -> list[Cell] | None:
    """Return for each device which part of an array of shape ``shape`` it has, in the order of the device
    assignment. Return None if the sharding cannot be read."""
    found = layout(s, len(shape))
    if found is None or any(count < 1 for count in found.parts):
        return None
    shard = shard_shape(shape, found.parts)
    by_position: dict[int, Cell] = {}
    for part, positions in zip(itertools.product(*map(range, found.parts)), found.order, strict=True):
        slices = tuple(
            (min(size, i * step), min(size, (i + 1) * step))
            for i, step, size in zip(part, shard, shape, strict=True)
        )
        for position in positions:
            by_position[position] = Cell(found.devices[position], part, slices)
    return [by_position[p] for p in sorted(by_position)]


def missing_axes(s: Sharding) -> list[tuple[str, int]]:
    """Return (name, size) of the mesh axes along which a NamedSharding has copies of the array, except axes
    of size 1. Return an empty list if the sharding has no mesh or cannot be read."""
    mesh, spec = grid(s), split_axes(s)
    if mesh is None or spec is None:
        return []
    used = {a for names in spec[0] for a in names} | spec[1]
    return [(name, size) for name, size in mesh.axes if name not in used and size > 1]
