"""Parse three kinds of JAX's errors about the devices and shardings of arrays.

A dimension is not divisible, arguments are on different devices, or an argument has another sharding than
jit's in_shardings. The messages are those of JAX 0.10.2 and 0.12.0.1 (``IndivisibleError``, shard_map's
specs, "Received incompatible devices for jitted computation", "Sharding passed to jit does not match").
"""

from __future__ import annotations

import re

import msgspec

from jaxscope.analysis import sharding as sh

MAX_MESSAGE = 4000


class Indivisible(msgspec.Struct, frozen=True):
    """The error that a dimension of an argument or a result cannot be split into equal parts.

    Attributes:
      dimension: the index of the dimension.
      parts: the number of parts into which the sharding splits the dimension.
      size: the size of the dimension.
      path: the path of the argument or result; None: it is not in the message.
    """

    dimension: int
    parts: int
    size: int
    path: str | None


class Apart(msgspec.Struct, frozen=True):
    """The error that arguments (or sharding constraints) of one call are on different devices. ``places`` has
    (name, device ids as text) of each argument or constraint."""

    places: tuple[tuple[str, str], ...]


class Mismatch(msgspec.Struct, frozen=True):
    """The error that an argument has another sharding than jit's in_shardings demand.

    Attributes:
      wanted: the sharding of in_shardings: its PartitionSpec, the id of its only device or the name of its
        class.
      got: the sharding of the argument, in the same form.
      aval: the type of the argument as JAX prints it: ``float32[8,4]``.
    """

    wanted: str | int
    got: str | int
    aval: str


Refusal = Indivisible | Apart | Mismatch

_AXIS = re.compile(
    r"array axis (\d{1,3}) is partitioned (\d{1,9}) times, but the dimension size is (\d{1,15})"
)
_SPECS = re.compile(
    r"the passed ([^\s]{1,200}) of shape .{0,400}maps array axis (\d{1,3}) \(of size (\d{1,15})\) to"
    r" mesh ax[ei]s .{0,200}?"
    r"\(of (?:total )?size (\d{1,9})\)",
    re.DOTALL,
)
_PATH = re.compile(r"with pytree key path (\S{1,200})")
_APART = "Received incompatible devices for jitted computation. Got "
_PLACE = re.compile(
    r"(?:argument (\S{1,200}) of |([\w ]{1,60}?) with device ids (?=\[)).{0,400}?\[([\d, ]{1,2000})\]$"
)
_MISMATCH = re.compile(
    r"Sharding passed to jit does not match the sharding on the respective arg\. Got jit sharding:"
    r" (.{1,600}?),\s"
    r"arg sharding: (.{1,600}?) for arg type: (\S{1,100})",
    re.DOTALL,
)
_SPEC = re.compile(r"spec=((?:P|PartitionSpec)\(.{0,300}?\))(?:, memory_kind=|\)$)", re.DOTALL)
_KIND = re.compile(r"\w{1,60}")


def read(message: str) -> Refusal | None:
    """Parse the message of an exception that JAX raised about the devices or shardings of arrays. Return None
    if it is none of the three kinds of errors."""
    text = message[:MAX_MESSAGE]
    if (found := _AXIS.search(text)) is not None:
        path = _PATH.search(text)
        return _indivisible(found[1], found[2], found[3], path[1] if path else None)
    if (found := _SPECS.search(text)) is not None:
        return _indivisible(found[2], found[4], found[3], found[1])
    if (at := text.find(_APART)) >= 0:
        pieces = re.split(r" on platform \w{1,40}", text[at + len(_APART) :])
        matches = [_PLACE.match(piece.removeprefix(" and ")) for piece in pieces]
        places = tuple((m[1] or m[2], m[3]) for m in matches if m is not None)
        return Apart(places) if len(places) > 1 else None
    if (found := _MISMATCH.search(text)) is not None:
        return Mismatch(_sharding(found[1]), _sharding(found[2]), found[3])
    return None


def _indivisible(dimension: str, parts: str, size: str, path: str | None) -> Indivisible | None:
    """Return the error with numbers instead of texts; None if ``parts`` divides ``size``, so that the message
    was misread."""
    n, whole = int(parts), int(size)
    return Indivisible(int(dimension), n, whole, path) if n > 1 and whole % n else None


def _sharding(sharding: str) -> str | int:
    """Return the PartitionSpec in the text of a sharding; if the text has none, the id of the only device
    (``3`` for ``SingleDeviceSharding(device=CpuDevice(id=3))``) or else the name of the class."""
    found = _SPEC.search(sharding)
    if found is not None:
        known = sh.parse(found[1])
        return sh.written(known) if known is not None else found[1]
    kind = _KIND.match(sharding)
    device = re.search(r"id=(\d{1,9})", sharding)
    if device is not None:
        return int(device[1])
    return kind[0] if kind else sharding[:60]
