"""What JAX says when it refuses to place an array, as data: a dimension that does not divide, arguments on
different devices, an argument with another sharding than was asked for.

The sentences are those of JAX 0.10.2 and 0.12.0.1 (``IndivisibleError``, shard_map's specs, "Received incompatible
devices for jitted computation", "Sharding passed to jit does not match").
"""

from __future__ import annotations

import re

import msgspec

MAX_MESSAGE = 4000


class Indivisible(msgspec.Struct, frozen=True):
    """``size`` of dimension ``dimension`` is to be split into ``parts``. ``path``: where the message names it."""

    dimension: int
    parts: int
    size: int
    path: str | None


class Apart(msgspec.Struct, frozen=True):
    """Arguments (or constraints) of one call that lie on different devices: (what, device ids as text)."""

    places: tuple[tuple[str, str], ...]


class Mismatch(msgspec.Struct, frozen=True):
    """in_shardings asks for ``wanted``, the argument lies as ``got``: PartitionSpecs, or a class's name."""

    wanted: str
    got: str
    aval: str


Refusal = Indivisible | Apart | Mismatch

_AXIS = re.compile(
    r"array axis (\d{1,3}) is partitioned (\d{1,9}) times, but the dimension size is (\d{1,15})"
)
_SPECS = re.compile(
    r"the passed ([^\s]{1,200}) of shape .{0,400}maps array axis (\d{1,3}) \(of size (\d{1,15})\) to mesh ax[ei]s .{0,200}?"
    r"\(of (?:total )?size (\d{1,9})\)",
    re.DOTALL,
)
_PATH = re.compile(r"with pytree key path (\S{1,200})")
_APART = "Received incompatible devices for jitted computation. Got "
_PLACE = re.compile(
    r"(?:argument (\S{1,200}) of |([\w ]{1,60}?) with device ids (?=\[)).{0,400}?\[([\d, ]{1,2000})\]$"
)
_MISMATCH = re.compile(
    r"Sharding passed to jit does not match the sharding on the respective arg\. Got jit sharding: (.{1,600}?),\s"
    r"arg sharding: (.{1,600}?) for arg type: (\S{1,100})",
    re.DOTALL,
)
_SPEC = re.compile(r"spec=((?:P|PartitionSpec)\(.{0,300}?\))(?:, memory_kind=|\)$)", re.DOTALL)
_KIND = re.compile(r"\w{1,60}")


def read(message: str) -> Refusal | None:
    """What the message of an exception refuses; None: something else."""
    text = message[:MAX_MESSAGE]
    if (found := _AXIS.search(text)) is not None:
        path = _PATH.search(text)
        return _indivisible(found[1], found[2], found[3], path[1] if path else None)
    if (found := _SPECS.search(text)) is not None:
        return _indivisible(found[2], found[4], found[3], found[1])
    if (at := text.find(_APART)) >= 0:
        said = re.split(r" on platform \w{1,40}", text[at + len(_APART) :])
        found_places = [_PLACE.match(piece.removeprefix(" and ")) for piece in said]
        places = tuple((m[1] or m[2], m[3]) for m in found_places if m is not None)
        return Apart(places) if len(places) > 1 else None
    if (found := _MISMATCH.search(text)) is not None:
        return Mismatch(_spelled(found[1]), _spelled(found[2]), found[3])
    return None


def _indivisible(dimension: str, parts: str, size: str, path: str | None) -> Indivisible | None:
    n, whole = int(parts), int(size)
    return Indivisible(int(dimension), n, whole, path) if n > 1 and whole % n else None


def _spelled(sharding: str) -> str:
    found = _SPEC.search(sharding)
    if found is not None:
        return re.sub(r"(?:,|(?:, None)+)\)$", ")", found[1].replace("PartitionSpec", "P"))
    kind = _KIND.match(sharding)
    where = re.search(r"id=(\d{1,9})", sharding)
    if where is not None:
        return f"on device {where[1]}"
    return kind[0] if kind else sharding[:60]
