"""Find how much host memory this process may use: the memory of the machine, or less if a control group (a
container) limits it."""

from __future__ import annotations

import functools
import os
from pathlib import Path

# cgroup v2, then v1, as a process inside a container sees them.
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@functools.cache
def limit() -> int | None:
    """Return the host memory that this process may use, in bytes: that of the machine, or the limit of the
    control group if this is smaller. None if both are unknown. The limits are read only at the first call."""
    limits = [n for n in (_machine(), *map(_group, LIMITS)) if n is not None and n > 0]
    return min(limits, default=None)


def _machine() -> int | None:
    """Return the memory of the machine in bytes; None if it is unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def _group(file: str) -> int | None:
    """Return the memory limit in bytes that ``file``, a file of a Linux control group, contains. Return None
    if the file contains no number (``max``: no limit) or cannot be read."""
    try:
        text = Path(file).read_text().strip()
    except (OSError, ValueError):
        return None
    return int(text) if text.isdecimal() else None  # "max" where there is no limit
