"""Add numbers of which some may be unknown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

N = TypeVar("N", int, float)


def known_sum(values: Iterable[N | None]) -> N | None:
    """Return the sum of ``values``, or None if one of them is None (unknown)."""
    listed = list(values)
    known = [n for n in listed if n is not None]
    return sum(known) if len(known) == len(listed) else None
