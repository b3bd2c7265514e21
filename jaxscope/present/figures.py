"""Numbers as text: bytes, seconds, shares, counts and lists of names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePath

from jaxscope.schema.keys import Frame


def seconds(value: float | None) -> str:
    """``28.1 s``, ``41 ms``, ``2 min 14 s``; ``?`` where it is not known."""
    if value is None or not math.isfinite(value):
        return "?"
    if value < 0.0005:
        return "0 s" if value <= 0 else "<1 ms"
    if value < 0.0995:
        return f"{value * 1e3:.0f} ms"
    if value < 9.95:
        return f"{value:.2f} s" if value < 0.995 else f"{value:.1f} s"
    if value < 119.5:
        return f"{value:.1f} s" if value < 99.95 else f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 120:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min"


def count(n: float, one: str, many: str | None = None) -> str:
    """``1 trace``, ``1,200 traces``, ``0.333 traces``."""
    number = f"{n:,}" if isinstance(n, int) else f"{n:.3g}"
    return f"{number} {one if number == '1' else many or one + 's'}"


def size(n: float) -> str:
    """Bytes: ``812 B``, ``3.4 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if n < 1024 or unit == "TiB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    raise AssertionError


def listed(names: Sequence[str], most: int | None = None, things: str = "") -> str:
    """``a, b and c``; of more than ``most`` the first of them: ``a, b and 4 more``."""
    shown = list(names if most is None else names[:most])
    if len(names) > len(shown):
        shown.append(f"{len(names) - len(shown):,} more{f' {things}' if things else ''}")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else ""


def line(frame: Frame) -> str:
    """``train.py:12``."""
    return f"{PurePath(frame.file).name}:{frame.line}"


def article(noun: str) -> str:
    """``an int``, ``a list``; a noun that is not known, ``?``, has none."""
    return noun if noun == "?" else f"{'an' if noun[:1] in 'aeiouAEIOU' else 'a'} {noun}"
