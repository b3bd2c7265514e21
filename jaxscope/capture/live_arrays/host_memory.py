"""How much memory this process may have: what the machine has, or less where a control group says so."""

from __future__ import annotations

import functools
import os
from pathlib import Path

# cgroup v2, then v1; as a container sees its own.
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@functools.cache
def limit() -> int | None:
    """Bytes; None: the system does not say."""
    found = [n for n in (_machine(), *map(_group, LIMITS)) if n is not None and n > 0]
    return min(found, default=None)


def _machine() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def _group(file: str) -> int | None:
    try:
        text = Path(file).read_text().strip()
    except (OSError, ValueError):
        return None
    return int(text) if text.isdecimal() else None  # "max": none
