"""Merge several causes of a cache miss into one, if they are the same change of many leaves:
``148 leaves under state.params changed dtype from f32 to bf16``. A cache miss is a call for which one of
JAX's caches has no entry."""

from __future__ import annotations

import msgspec

from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.paths import FOLD_FROM, common_prefix, root
from jaxscope.schema.causes import ArrayType, AxisSizes, Cause, Commitment, FunctionObject, StaticValue, Value


def folded(causes: list[tuple[str, Cause]]) -> list[Cause]:
    """Merge the causes of a cache miss that are the same change of three or more leaves of one argument, such
    as dtype f32 -> bf16. Fewer equal causes stay separate.

    A merged cause has the common prefix of the leaves' paths as its path, and the number of leaves as its
    count. Its certainty and detail are those of the first leaf.

    Args:
      causes: (path of a leaf, its cause) for each cause.
    """
    groups = grouped(((root(path), c.kind, c.level, *_change(c)), (path, c)) for path, c in causes)
    merged: list[Cause] = []
    for members in groups.values():
        if len(members) < FOLD_FROM:
            merged += [c for _, c in members]
        else:
            prefix = common_prefix([p for p, _ in members])
            (_, c), *_ = members
            before, after = _change(c)
            merged.append(
                msgspec.structs.replace(c, path=prefix, before=before, after=after, count=len(members))
            )
    return merged


def same_change(a: Cause, b: Cause) -> bool:
    """Return whether two causes of cache misses are equal except for the serial numbers of the function
    objects and static values in them. A report shows equal causes once."""
    return _unnumbered(a) == _unnumbered(b)


def _unnumbered(c: Cause) -> Cause:
    """Return ``c`` without the serial numbers in its values."""
    before, after = (_without_number(value) for value in (c.before, c.after))
    return msgspec.structs.replace(c, before=before, after=after)


def _without_number(value: Value | None) -> Value | None:
    """Return ``value`` without its serial number."""
    if isinstance(value, (FunctionObject, StaticValue)):
        return msgspec.structs.replace(value, serial=None)
    return value


def _change(c: Cause) -> tuple[Value | None, Value | None]:
    """Return (before, after) of a cause, without what may differ between leaves with the same change. For a
    shape, only the axes that changed stay; for a dtype, only the dtype; for committedness, only
    ``committed``."""
    a, b = c.before, c.after
    if isinstance(a, Commitment) and isinstance(b, Commitment):
        return Commitment(a.committed), Commitment(b.committed)
    if not isinstance(a, ArrayType) or not isinstance(b, ArrayType):
        return a, b
    if c.kind == "shape":
        return _axes(a, b) or (a, b)
    if c.kind in ("dtype", "weak_type", "prng"):
        return _without_shape(a, c.kind), _without_shape(b, c.kind)
    return a, b


def _without_shape(value: ArrayType, kind: str) -> ArrayType:
    """Return only the dtype of ``value``; for the ``kind`` ``weak_type``, also the weak type."""
    return ArrayType(None, value.dtype, value.weak_type if kind == "weak_type" else None)


def _axes(a: ArrayType, b: ArrayType) -> tuple[AxisSizes, AxisSizes] | None:
    """Return the sizes in ``a`` and the sizes in ``b`` of the axes in which two shapes differ: for
    ``[8,128]`` and ``[4,128]`` (axis 0 with size 8, axis 0 with size 4). Return None if the shapes have
    different ranks, or one of them is unknown."""

    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return None
    axes = [i for i, (m, n) in enumerate(zip(a.shape, b.shape, strict=True)) if m != n]
    x, y = (AxisSizes(tuple((i, of.shape[i]) for i in axes if of.shape is not None)) for of in (a, b))
    return x, y
