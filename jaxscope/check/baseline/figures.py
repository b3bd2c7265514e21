"""Numbers of a baseline beside numbers of now: which are worse, which better, and how to say it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec


class Drift(msgspec.Struct, frozen=True):
    """One figure that is another now. ``worse``: beyond the tolerance, in the direction that costs."""

    name: str
    before: int
    after: int
    worse: bool

    @property
    def share(self) -> float | None:
        """By how much of what it was; None where it was nothing."""
        return (self.after - self.before) / self.before if self.before else None

    def text(self, unit: str = "") -> str:
        """``temp 1.5 MiB, 1.0 MiB in the baseline (+50 %)``."""
        spell = size if unit == "bytes" and size(self.before) != size(self.after) else lambda n: f"{n:,}"
        share = f" ({_percent(self.share)})" if self.share is not None and self.before > 9 else ""
        return f"{self.name} {spell(self.after)}, {spell(self.before)} in the baseline{share}"


def drifts(
    before: Mapping[str, int], after: Mapping[str, int], tolerance: float = 0.0, *, fewer_is_worse: bool = False
) -> list[Drift]:  # fmt: skip
    """The figures that differ by more than ``tolerance``, the largest change first; one that is missing is 0."""
    found = []
    for name in dict.fromkeys([*after, *before]):
        x, y = before.get(name, 0), after.get(name, 0)
        if abs(y - x) > tolerance * x:
            found.append(Drift(name, x, y, (y < x) if fewer_is_worse else (y > x)))
    return sorted(found, key=lambda d: (not d.worse, -abs(d.share or float("inf")), d.name))


def worse(found: Iterable[Drift]) -> list[Drift]:
    return [d for d in found if d.worse]


def better(found: Iterable[Drift]) -> list[Drift]:
    return [d for d in found if not d.worse]


def size(n: int) -> str:
    """``812 B``, ``3.4 MiB``."""
    value = float(n)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{n:,} B" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1024
    raise AssertionError


def _percent(share: float | None) -> str:
    value = (share or 0.0) * 100
    return f"{value:+,.0f} %" if abs(value) >= 1 else f"{value:+.1f} %"
