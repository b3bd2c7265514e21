"""What was asked of one argument or result, what the program makes of it, and what the array is: whether
they agree, and why not.

Two shardings are compared by which device holds which part, so that ``P('data')`` and ``P('data', None)``
are one; where that cannot be told, by the number of parts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import msgspec

from jaxscope.analysis import sharding as sh
from jaxscope.analysis.stablehlo import values
from jaxscope.analysis.stablehlo.shardings import Spec
from jaxscope.schema.keys import Frame, Sharding

ARGUMENT, RESULT = "argument", "result"
IN_SHARDINGS, OUT_SHARDINGS, CONSTRAINT, TYPE = "in_shardings", "out_shardings", "constraint", "type"
# Where arrays lie when nobody says otherwise: naming it changes nothing.
DEFAULT_MEMORY = frozenset({None, "device", "unpinned_host"})


class Intent(msgspec.Struct, frozen=True):
    """One array argument or result of one compiled program.

    Attributes:
      path: by the user's names; of a result its place in what is returned.
      of: argument or result.
      bytes: of the whole array; None: not known.
      asked: None: nothing was, or it is not known.
      by: what asked: in_shardings, out_shardings, constraint (with_sharding_constraint on this very value)
        or type (explicit sharding).
      asked_at: the line of a constraint.
      compiled: what the program takes or gives it as.
      actual: how the caller's argument lies; None of a result: it is what is compiled.
      committed: of the caller's argument.
      dropped: the program does not take the argument at all.
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
    """Two of the three differ.

    Attributes:
      kind: ``not_as_asked`` (the program does something else than was asked) or ``moved`` (the argument lies
        elsewhere than the program takes it: it is copied in every call that passes it so).
      wanted, got: the two shardings; of ``moved``, what the program takes and where it lies.
      reason: one clause, None: not known.
      times: each device holds that many times the bytes that were asked for; None: not known, 1: the same.
    """

    kind: str
    wanted: Sharding
    got: Sharding
    reason: str | None
    times: int | None


NOT_AS_ASKED, MOVED = "not_as_asked", "moved"


def of_spec(spec: Spec, devices: str | None, memory_kind: str | None = None) -> Sharding:
    """What a program's text states, as a Sharding; ``devices``: of the program, in order of its assignment."""
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
    axes: list[tuple[str, int, str | None]] = [(name, size, None) for name, size in spec.mesh]
    text = f"{spec.text} on {','.join(f'{n}={s}' for n, s in spec.mesh)}"
    return Sharding("NamedSharding", text, order, axes, spec.text, memory_kind)


def left_open(spec: Spec, compiled: Sharding | None, rank: int) -> bool:
    """Does a constraint that leaves dimensions to the partitioner (``P.UNCONSTRAINED``) say nothing against
    ``compiled``: is every dimension cut at least as it asks, or is that not known?"""
    if not spec.open:
        return False
    asked, made = values.parts(spec, rank), None if compiled is None else parts(compiled, rank)
    return asked is None or made is None or all(m % a == 0 for a, m in zip(asked, made, strict=True))


def parts(s: Sharding, rank: int) -> tuple[int, ...] | None:
    """Into how many each dimension is cut; also where the devices are not known."""
    found = sh.layout(s, rank)
    if found is not None:
        return found.parts
    named = sh.spec_axes(s.spec)
    if named is None or s.mesh is None or len(named[0]) > rank:
        return None
    sizes = {name: size for name, size, _ in s.mesh}
    if not all(a in sizes for names in named[0] for a in names):
        return None
    cut = [math.prod(sizes[a] for a in names) for names in named[0]]
    return (*cut, *[1] * (rank - len(cut)))


def same(a: Sharding, b: Sharding, rank: int) -> bool | None:
    """Does each device hold the same part? None: cannot be told."""
    if _memory(a) != _memory(b):
        return False
    first, second = sh.layout(a, rank), sh.layout(b, rank)
    if first is not None and second is not None:
        return _held(first) == _held(second) and first.unreduced == second.unreduced
    one, other = parts(a, rank), parts(b, rank)
    if one is not None and other is not None and one != other:
        return False
    return True if a == b else None


def agrees(a: Sharding | None, b: Sharding | None, shape: Sequence[int] | None) -> bool:
    """Are both known, and the same?"""
    return a is not None and b is not None and shape is not None and same(a, b, len(shape)) is True


def _memory(s: Sharding) -> str | None:
    return None if s.memory_kind in DEFAULT_MEMORY else s.memory_kind


def _held(layout: sh.Layout) -> tuple[object, ...]:
    return layout.parts, tuple(frozenset(layout.devices[p] for p in who) for who in layout.order)


def disagreement(i: Intent) -> Disagreement | None:
    """The first of: the program does not do what was asked; the argument does not lie where it is taken."""
    if i.shape is None or i.dropped:
        return None
    rank = len(i.shape)
    if i.asked is not None and i.compiled is not None and same(i.asked, i.compiled, rank) is False:
        times = _times(i.asked, i.compiled, rank)
        # An argument that is gathered or turned around inside is a use of it; one that would be split is not split.
        if i.of == RESULT or i.by != CONSTRAINT or (times is not None and times > 1):
            return Disagreement(NOT_AS_ASKED, i.asked, i.compiled, _why(i.asked, i.compiled, i.shape), times)
    if i.of == RESULT or i.actual is None or i.compiled is None:
        return None
    if same(i.compiled, i.actual, rank) is False:
        return Disagreement(MOVED, i.compiled, i.actual, None, None)
    return None


def _why(asked: Sharding, got: Sharding, shape: Sequence[int]) -> str | None:
    wanted, there = parts(asked, len(shape)), parts(got, len(shape))
    if wanted is None:
        return None
    for k, (size, n) in enumerate(zip(shape, wanted, strict=True)):
        if size % n and (there is None or there[k] != n):
            return f"{size:,} is not divisible by {n:,}"
    if _memory(asked) != _memory(got):
        return f"its memory kind is {got.memory_kind or 'the default'}"
    return None


def _times(asked: Sharding, got: Sharding, rank: int) -> int | None:
    wanted, there = parts(asked, rank), parts(got, rank)
    if wanted is None or there is None or math.prod(there) < 1:
        return None
    return max(1, math.prod(wanted) // math.prod(there))


def spelled(s: Sharding, rank: int | None = None) -> str:
    """In a sentence: ``P('data')``, ``replicated`` (over several devices), ``on cpu:0``."""
    if s.kind == "SingleDeviceSharding":
        where = f"on {s.text}"
        return where if _memory(s) is None else f"{where} in {s.memory_kind}"
    text = re.sub(r"(?:,|(?:, None)+)\)$", ")", s.spec) if s.spec is not None else s.text
    if rank is not None:
        found = parts(s, rank)
        ids = sh.device_ids(s.devices)
        if found is not None and math.prod(found) == 1 and (ids is None or len(ids) > 1):
            text = "replicated"
    return text if _memory(s) is None else f"{text} in {s.memory_kind}"
