"""Compare three shardings of an argument or result of a program: the requested sharding (by ``in_shardings``,
for example), the one in the compiled program, and the actual one of the array that the caller passes.

Two shardings are equal if each device has the same part, in the same kind of memory: ``P('data')`` equals
``P('data', None)``. If the devices are unknown, shardings with other numbers of parts per dimension differ.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import msgspec

from jaxscope.analysis import sharding as sh
from jaxscope.analysis.stablehlo import values
from jaxscope.analysis.stablehlo.shardings import Spec
from jaxscope.schema.keys import Frame, Partition, Sharding
from jaxscope.schema.messages import Message, Words, message

ARGUMENT, RESULT = "argument", "result"
IN_SHARDINGS, OUT_SHARDINGS, CONSTRAINT, TYPE = "in_shardings", "out_shardings", "constraint", "type"
# The memory kinds of an array for which none was chosen: naming one of them changes nothing.
DEFAULT_MEMORY = frozenset({None, "device", "unpinned_host"})


class Intent(msgspec.Struct, frozen=True):
    """The requested, the compiled and the actual sharding of one array argument or result of a compiled
    program.

    Attributes:
      path: the argument's path in the user's names, or the result's path in the returned value.
      of: ``argument`` or ``result``.
      shape, dtype: shape and dtype of the global array; None: unknown.
      bytes: bytes of the global array; None: unknown.
      asked: the requested sharding; None: no request, or unknown.
      by: the source of the request: in_shardings, out_shardings, constraint (with_sharding_constraint on this
        value) or type (explicit sharding); None: no request.
      asked_at: the line of the user's code with the constraint; None: no constraint, or unknown.
      compiled: the sharding in the compiled program; None: unknown.
      actual: the sharding of the caller's argument; None: unknown, no jax.Array, or a result.
      committed: whether the caller's argument is committed; None: unknown, no jax.Array, or a result.
      dropped: whether the compiled program does not take the argument.
    """

    path: str
    of: str
    shape: tuple[int, ...] | None
    dtype: str | None
    bytes: int | None = None
    asked: Sharding | None = None
    by: str | None = None
    asked_at: Frame | None = None
    compiled: Sharding | None = None
    actual: Sharding | None = None
    committed: bool | None = None
    dropped: bool = False


class Disagreement(msgspec.Struct, frozen=True):
    """A difference between the requested, the compiled and the actual sharding of an argument or result.

    Attributes:
      kind: ``not_as_asked`` (the compiled sharding differs from the requested one) or ``moved`` (the sharding
        of the caller's argument differs from the compiled one, so that each call copies the argument).
      wanted, got: the requested and the compiled sharding; for ``moved`` the compiled and the actual
        sharding.
      reason: why the two shardings differ, as one clause; None: unknown.
      times: the bytes of the array on one device with the compiled sharding, divided by those with the
        requested sharding: 4 if the array was to be split in 4 and is replicated. Rounded down, at least 1.
        None: unknown, or ``moved``.
    """

    kind: str
    wanted: Sharding
    got: Sharding
    reason: Message | None
    times: int | None


NOT_AS_ASKED, MOVED = "not_as_asked", "moved"


def of_spec(spec: Spec, devices: str | None, memory_kind: str | None = None) -> Sharding:
    """Convert a sharding that was parsed from a program's text to a ``schema.keys.Sharding``, which can be
    compared with those of arrays.

    Args:
      spec: the sharding in the text.
      devices: the program's device ids, in the order in which the program numbers its devices, as text
        (``0-3,8``); None: unknown.
      memory_kind: the memory of the value (``pinned_host``); None: not chosen.
    """
    if spec.dimensions is None or spec.mesh is None:
        inside = re.search(r"\{.*\}", spec.text)
        return Sharding("GSPMDSharding", inside[0] if inside else spec.text, devices, None, None, memory_kind)
    ids = sh.device_ids(devices)
    total = math.prod(size for _, size in spec.mesh)
    order: str | None = None
    if ids is not None and len(ids) == total:
        if spec.order is None:
            order = devices
        elif all(0 <= i < total for i in spec.order):
            order = ",".join(str(ids[i]) for i in spec.order)
    axes = tuple((name, size, None) for name, size in spec.mesh)
    text = f"{spec.text} on {','.join(f'{n}={s}' for n, s in spec.mesh)}"
    known = Partition(spec.dimensions, tuple(sorted(dict(spec.groups).get("unreduced", ()))))
    return Sharding("NamedSharding", text, order, axes, spec.text, memory_kind, known)


def left_open(spec: Spec, compiled: Sharding | None, rank: int) -> bool:
    """Return whether a sharding constraint with open dimensions (``P.UNCONSTRAINED``) permits the sharding
    ``compiled``. It does so if ``compiled`` splits every dimension into a multiple of the requested number of
    parts. Return True also if a number of parts is unknown.

    Args:
      spec: the constraint. If it has no open dimension, the result is False.
      compiled: the sharding in the compiled program; None: unknown.
      rank: the number of dimensions of the array.
    """
    if not spec.open:
        return False
    requested, actual = values.parts(spec, rank), None if compiled is None else parts(compiled, rank)
    if requested is None or actual is None:
        return True
    return all(a % r == 0 for r, a in zip(requested, actual, strict=True))


def parts(s: Sharding, rank: int) -> tuple[int, ...] | None:
    """Return into how many parts a sharding splits each dimension of an array with ``rank`` dimensions.
    Return None if that is unknown. The result may be known even if the devices are not."""
    layout = sh.layout(s, rank)
    if layout is not None:
        return layout.parts
    named = sh.split_axes(s)
    if named is None or s.mesh is None or len(named[0]) > rank:
        return None
    sizes = {name: size for name, size, _ in s.mesh}
    if not all(a in sizes for names in named[0] for a in names):
        return None
    cut = [math.prod(sizes[a] for a in names) for names in named[0]]
    return (*cut, *[1] * (rank - len(cut)))


def same(a: Sharding, b: Sharding, rank: int) -> bool | None:
    """Return whether two shardings give each device the same part of an array with ``rank`` dimensions, in
    the same kind of memory. Return None if that is unknown."""
    if _memory(a) != _memory(b):
        return False
    first, second = sh.layout(a, rank), sh.layout(b, rank)
    if first is not None and second is not None:
        return _devices_by_part(first) == _devices_by_part(second) and first.unreduced == second.unreduced
    one, other = parts(a, rank), parts(b, rank)
    if one is not None and other is not None and one != other:
        return False
    return True if a == b else None


def agrees(a: Sharding | None, b: Sharding | None, shape: Sequence[int] | None) -> bool:
    """Return whether both shardings are known and are equal for an array of this shape."""
    return a is not None and b is not None and shape is not None and same(a, b, len(shape)) is True


def _memory(s: Sharding) -> str | None:
    """Return the memory kind of a sharding; None for the default kinds."""
    return None if s.memory_kind in DEFAULT_MEMORY else s.memory_kind


def _devices_by_part(layout: sh.Layout) -> tuple[object, ...]:
    """Return a tuple that is equal for two layouts if the same devices have the same parts."""
    return layout.parts, tuple(frozenset(layout.devices[p] for p in who) for who in layout.order)


def disagreement(i: Intent) -> Disagreement | None:
    """Return how the requested, the compiled and the actual sharding of an argument or result differ. Return
    None if they agree or are unknown, or if the program does not take the argument.

    ``not_as_asked`` is returned rather than ``moved`` if both are true. An argument with a sharding
    constraint is ``not_as_asked`` only if the program splits it into at most half as many parts as the
    constraint does.
    """
    if i.shape is None or i.dropped:
        return None
    rank = len(i.shape)
    if i.asked is not None and i.compiled is not None and same(i.asked, i.compiled, rank) is False:
        times = _times(i.asked, i.compiled, rank)
        # A constraint that gathers or reshards an argument is one use of it; one that splits it was not
        # honored.
        if i.of == RESULT or i.by != CONSTRAINT or (times is not None and times > 1):
            return Disagreement(
                NOT_AS_ASKED, i.asked, i.compiled, _reason(i.asked, i.compiled, i.shape), times
            )
    if i.of == RESULT or i.actual is None or i.compiled is None:
        return None
    if same(i.compiled, i.actual, rank) is False:
        return Disagreement(MOVED, i.compiled, i.actual, None, None)
    return None


def _reason(expected: Sharding, got: Sharding, shape: Sequence[int]) -> Message | None:
    """Return why the compiled sharding ``got`` is not the requested one, ``expected``; None: unknown.
    ``shape`` is the shape of the array."""
    expected_parts, got_parts = parts(expected, len(shape)), parts(got, len(shape))
    if expected_parts is None:
        return None
    for k, (size, n) in enumerate(zip(shape, expected_parts, strict=True)):
        if size % n and (got_parts is None or got_parts[k] != n):
            return message("size-not-divisible", size=size, parts=n)
    if _memory(expected) != _memory(got):
        return message("other-memory-kind", kind=got.memory_kind or message("default-memory-kind"))
    return None


def _times(expected: Sharding, got: Sharding, rank: int) -> int | None:
    """Return ``Disagreement.times`` for the requested and the compiled sharding; None: unknown."""
    expected_parts, got_parts = parts(expected, rank), parts(got, rank)
    if expected_parts is None or got_parts is None or math.prod(got_parts) < 1:
        return None
    return max(1, math.prod(expected_parts) // math.prod(got_parts))


def spelled(s: Sharding, rank: int | None = None) -> Words:
    """Return a sharding for a message: ``P('data')``, ``replicated``, ``on cpu:0``.

    Args:
      s: the sharding.
      rank: the number of dimensions of the array; None: unknown. If it is given, a sharding that splits
        no dimension is written ``replicated``, unless it is for one device or each device has a part of a
        sum.
    """
    if on_one_device(s):
        return message("on-named-device", device=device(s))
    p = sh.partition(s)
    if rank is not None:
        counts = parts(s, rank)
        ids = sh.device_ids(s.devices)
        sums = p is not None and p.unreduced
        if counts is not None and math.prod(counts) == 1 and not sums and (ids is None or len(ids) > 1):
            return _in_memory(s, message("replicated"))
    return _in_memory(s, sh.written(p) if p is not None else s.spec or s.text)


def on_one_device(s: Sharding) -> bool:
    """Return whether the sharding puts the whole array on one device."""
    return s.kind == "SingleDeviceSharding"


def device(s: Sharding) -> Words:
    """Return the device of a sharding for one device, for a message: ``cpu:0``, ``cpu:0 in pinned_host``."""
    return _in_memory(s, s.text)


def _in_memory(s: Sharding, words: Words) -> Words:
    """Return ``words`` with the memory kind of the sharding, if it is not the default."""
    kind = _memory(s)
    return words if kind is None else message("in-memory-kind", sharding=words, kind=kind)
