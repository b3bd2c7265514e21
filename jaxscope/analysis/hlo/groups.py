"""Parse the groups of devices of a collective, written in four formats, to lists of positions.

======================  ====================================================================
explicit                ``{{0,2},{1,3}}``; ``{}`` is one group of all devices
iota                    ``[2,4]<=[4,2]T(1,0)``: number and size of groups, then the positions
                        0..n-1 reshaped to ``[4,2]``, transposed by ``(1,0)`` and flattened
mesh                    ``mesh['a'=4,'b'=2] {'b'}``: one group along b for each position on the
                        other axes. ``{'a':(2)2}`` is a part of axis a: in brackets the product of
                        the sizes before the part, then its size. The partitioner invents names
                        like ``axis_0``. A mesh that does not have its ids in order adds
                        ``, device_ids=([4,16]T(1,0))`` or ``, device_ids=(3,1,0,2)``
source_target_pairs     ``{{0,1},{1,2}}`` of a collective-permute
======================  ====================================================================

Positions are indices in the module's device assignment, which for a JAX mesh is ``mesh.devices.flat``; they
are not device ids. Sources: XLA's replica_group.h and mesh_and_axis.h.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

# The largest slice of a TPU has 9,216 chips. The limit protects from a text with more than memory can hold.
MAX_IDS = 1 << 16
MAX_AXES = 32
_INTEGERS = re.compile(r"\d{1,9}")
_EXPLICIT = re.compile(r"\{(?:\s*+\{[\d,\s]*+\}\s*+,?+)*+\s*+\}$")
_IOTA = re.compile(r"\[([\d,\s]*+)\](?:<=\[([\d,\s]*+)\])?(?:T\(([\d,\s]*+)\))?$")
_MESH = re.compile(
    r"@?mesh[\[<](?P<axes>[^\]>]*+)[\]>](?:,\s*device_ids=\((?P<ids>[^()]*+(?:\([^()]*+\))?+)\))?"
    r"\s*\{(?P<used>.*)\}$"
)
AXIS = re.compile(r"(?:'([^']*+)'|\"([^\"]*+)\"|([^\s,='\"]++))=(\d{1,9})")
USED = re.compile(r"(?:'([^']*+)'|\"([^\"]*+)\"|([^\s,:'\"]++))(?::\((\d{1,9})\)(\d{1,9}))?")
_CROSSED = re.compile(r"\{([\d,]*+)\}x\{(\d{1,6}):(\d{1,6})\}$")
_SLICE = 100_000  # in transfers between slices, device 2 of slice 1 has the number 1 * _SLICE + 2
_GROUP = re.compile(r"\{([\d,\s]*+)\}")
MADE_UP = re.compile(r"axis_\d+$|_axis_\d+$")

Group = tuple[int, ...]


class Groups(NamedTuple):
    """The groups of devices of a collective, as the HLO text of the program states them.

    Attributes:
      members: the groups, each with the numbers of its devices as printed (see ``positions``); empty: one
        group of all devices.
      syntax: the format of the text: explicit, iota, mesh, pairs.
      mesh: the (axis, size) pairs of the mesh in the text; None: the text has no mesh, or a mesh with its own
        ``device_ids`` or with axis names that are not the user's.
    """

    members: list[Group]
    syntax: str
    mesh: list[tuple[str, int]] | None = None


def parse(text: str) -> Groups | None:
    """Parse the value of a collective's ``replica_groups=`` attribute: ``{{0,2},{1,3}}``, ``[2,4]<=[8]`` or
    ``mesh[...] {...}``. Return None if the text cannot be read or is too large.

    ``{}`` means one group of all devices. The result then has no members (see ``positions``).
    """
    text = text.strip()
    if text.startswith("["):
        return _iota_groups(text)
    if text.startswith(("mesh", "@mesh")):
        return _mesh_groups(text)
    if not _EXPLICIT.match(text) or len(text) > MAX_IDS * 10:
        return None
    members = [tuple(map(int, _INTEGERS.findall(g))) for g in _GROUP.findall(text)]
    return Groups([g for g in members if g], "explicit")


def pairs(text: str) -> Groups | None:
    """Parse the value of a permute's ``source_target_pairs=`` attribute: ``{{0,1},{1,2}}`` -> members (0, 1),
    (1, 2), each a (source, target). Return None if the text cannot be read or is too large."""
    text = text.strip()
    if not _EXPLICIT.match(text) or len(text) > MAX_IDS * 10:
        return None
    members = [tuple(map(int, _INTEGERS.findall(g))) for g in _GROUP.findall(text, 1)]
    return Groups(members, "pairs") if all(len(m) == 2 for m in members) else None


def between_slices(text: str, in_slice: int) -> Groups | None:
    """Parse libtpu's attribute ``_xla_megascale_target``, the groups of a transfer between TPU slices. The
    result has positions that are counted from 0 over all slices: ``{1,2}x{0:1}`` -> (0, 2), (1, 3) for two
    devices in a slice. Return None if the text cannot be read.

    Args:
      text: ``{1,2}x{0:1}``: each of the devices 0 to 1 of slice 1 with the same device of slice 2. Or a list
        of groups, or of pairs ``{{100001->200001}}``, where 100001 is device 1 of slice 1. Slices are counted
        from 1.
      in_slice: number of devices of a slice.
    """
    crossed = _CROSSED.match(text)
    if crossed:
        slices, first, last = numbers(crossed[1]) or [], int(crossed[2]), int(crossed[3])
        if len(slices) * (last - first + 1) > MAX_IDS:
            return None
        ids = [tuple(_SLICE * s + d for s in slices) for d in range(first, last + 1)]
    else:
        found = (pairs if "->" in text else parse)(text.replace("->", ","))
        if found is None:
            return None
        ids = found.members
    members = [tuple(in_slice * (i // _SLICE - 1) + i % _SLICE for i in group) for group in ids]
    if any(i < _SLICE or i % _SLICE >= in_slice for group in ids for i in group):
        return None
    return Groups(members, "pairs" if "->" in text else "explicit")


def numbers(text: str | None) -> list[int] | None:
    """Parse ``1, 2, 3`` to ``[1, 2, 3]``. Return None for None, and if a part is no number of at most nine
    digits."""
    if text is None:
        return None
    parts = [p.strip() for p in text.split(",") if p.strip()]
    fine = all(p.isascii() and p.isdigit() and len(p) < 10 for p in parts)
    return [int(p) for p in parts] if fine else None


def iota(dims: list[int], permutation: list[int] | None) -> list[int] | None:
    """Return the numbers 0..n-1 reshaped to ``dims``, transposed by ``permutation`` (not transposed if it is
    None) and flattened, as in XLA's ``<=[4,2]T(1,0)``: 0, 2, 4, 6, 1, 3, 5, 7. Return None if the arguments
    do not fit together or are too large."""
    if len(dims) > MAX_AXES or not 0 < math.prod(dims) <= MAX_IDS:
        return None
    order = list(range(len(dims))) if permutation is None else permutation
    if sorted(order) != list(range(len(dims))):
        return None
    strides = [math.prod(dims[i + 1 :]) for i in range(len(dims))]
    return _combine([(dims[axis], strides[axis]) for axis in order])


def _iota_groups(text: str) -> Groups | None:
    """Parse ``[2,4]<=[4,2]T(1,0)`` to the groups (0, 2, 4, 6), (1, 3, 5, 7). Return None if the text cannot
    be read or is too large."""
    found = _IOTA.match(text)
    if found is None or found[2] is None:
        return None
    shape, dims = numbers(found[1]), numbers(found[2])
    if not shape or not dims or len(shape) != 2 or len(dims) > MAX_AXES:
        return None
    if math.prod(shape) != math.prod(dims):
        return None
    flat = iota(dims, numbers(found[3]))
    if flat is None:
        return None
    size = shape[1]
    return Groups([tuple(flat[i : i + size]) for i in range(0, len(flat), size)], "iota")


def _mesh_groups(text: str) -> Groups | None:
    """Parse ``mesh['a'=2,'b'=2] {'b'}`` to the groups (0, 1), (2, 3). Return None if the text cannot be read
    or is too large."""
    found = _MESH.match(text)
    if found is None:
        return None
    axes = [(a or b or c, int(size)) for a, b, c, size in AXIS.findall(found["axes"])]
    names = [name for name, _ in axes]
    sizes = [size for _, size in axes]
    total = math.prod(sizes)
    if not axes or not 0 < total <= MAX_IDS or len(set(names)) != len(names) or len(axes) > MAX_AXES:
        return None
    order = device_order(found["ids"], total)
    if order is None:
        return None
    # Split every axis, from major to minor, into parts that belong to the group and parts that do not.
    used: dict[str, list[tuple[int, int]]] = {}
    sequence: list[tuple[str, int]] = []
    for a, b, c, before, size in USED.findall(found["used"]):
        name = a or b or c
        if name not in names:
            return None
        whole = sizes[names.index(name)]
        part = (int(before), int(size)) if before else (1, whole)
        if part[0] * part[1] <= 0 or whole % (part[0] * part[1]):
            return None
        used.setdefault(name, []).append(part)
        sequence.append((name, part[0]))
    spans: dict[tuple[str, int], tuple[int, int]] = {}  # (axis, pre-size) -> (size, stride)
    rest: list[tuple[int, int]] = []
    stride = total
    for name, whole in axes:
        stride //= whole
        before = 1
        for pre, size in sorted(used.get(name, ())):
            if pre % before:
                return None  # overlapping sub-axes
            if pre > before:
                rest.append((pre // before, stride * (whole // pre)))
            spans[name, pre] = (size, stride * (whole // (pre * size)))
            before = pre * size
        if before < whole:
            rest.append((whole // before, stride))
    starts = _combine(rest)
    inside = _combine([spans[key] for key in sequence])
    members = [tuple(order[s + i] for i in inside) for s in starts]
    real = not any(MADE_UP.match(name) for name in names) and found["ids"] is None
    return Groups(members, "mesh", axes if real else None)


def _combine(digits: list[tuple[int, int]]) -> list[int]:
    """Return the sums of one multiple of each stride, the last varying fastest. ``digits`` has (number of
    multiples, stride): (2, 4), (2, 1) -> 0, 1, 4, 5."""
    flat = [0]
    for size, stride in digits:
        flat = [base + stride * i for base in flat for i in range(size)]
    return flat


def device_order(text: str | None, total: int) -> list[int] | None:
    """Parse the ``device_ids`` of a mesh of ``total`` devices to a list: ``3,1,0,2``, or ``[2,2]T(1,0)`` ->
    ``[0, 2, 1, 3]``. Return 0, 1, 2, ... if ``text`` is None, and None if the text cannot be read or has
    another number of devices."""
    if text is None:
        return list(range(total))
    text = text.strip()
    found = _IOTA.match(text)
    flat = numbers(text)
    if found:
        flat = iota(numbers(found[2] or found[1]) or [0], numbers(found[3]))
    return flat if flat is not None and len(flat) == total else None


def positions(
    groups: Groups | None,
    *,
    replicas: int,
    partitions: int,
    has_channel: bool,
    global_ids: bool,
    partition_ids: bool,
) -> list[Group] | None:
    """Convert the device groups of a collective, as the text prints them, to groups of positions
    ``replica * partitions + partition``. Return None if the groups are unknown, or have too many positions.

    If ``replicas * partitions`` is 0 or more than MAX_IDS (65,536), the printed groups are returned
    unchanged, or None if they are empty.

    Args:
      groups: the printed groups; None: they could not be read.
      replicas, partitions: the numbers in the module's header.
      has_channel: whether the collective has a ``channel_id``.
      global_ids: whether the collective has ``use_global_device_ids=true``.
      partition_ids: whether the groups of this kind of collective contain partitions: all-to-all,
        collective-permute, collective-broadcast and ragged-all-to-all.

    The printed numbers are, as in XLA's CollectiveOpGroupMode:

    - with ``global_ids``: positions;
    - with a channel and ``partition_ids``: partitions, in each replica;
    - with a channel only: replicas; all partitions of each replica take part;
    - else: replicas; each partition has its own groups.
    """
    everybody = replicas * partitions
    if groups is None or not 0 < everybody <= MAX_IDS:
        return groups.members if groups is not None and groups.members else None
    members = groups.members
    if global_ids:
        return members or [tuple(range(everybody))]
    if has_channel and partition_ids:
        members = members or [tuple(range(partitions))]
        return [tuple(r * partitions + p for p in g) for g in members for r in range(replicas)]
    members = members or [tuple(range(replicas))]
    if len(members) * replicas * partitions > MAX_IDS:
        return None
    if has_channel:
        return [tuple(r * partitions + p for r in g for p in range(partitions)) for g in members]
    return [tuple(r * partitions + p for r in g) for g in members for p in range(partitions)]
