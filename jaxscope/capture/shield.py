"""No exception of ours reaches the user's program.

Every callback and every seam runs inside ``attempt``. What fails is reported once, as a Degraded
event with its reason, and switched off for the rest of the process; everything else goes on.

KeyboardInterrupt and SystemExit pass: they are the user's, even when they arrive in our code.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_off: dict[str, str] = {}
_report: Callable[[str, str], None] | None = None
_local = threading.local()

# Names of parts that are made to fail, comma-separated: how the tests show the first sentence.
FAULTS = frozenset(filter(None, os.environ.get("JAXSCOPE_FAULTS", "").split(",")))


def reset(report: Callable[[str, str], None] | None) -> None:
    """Start afresh; ``report(name, reason)`` is told of each part the first time it fails."""
    global _report
    _off.clear()
    _report = report


def broken() -> dict[str, str]:
    """The parts switched off so far, with the reason."""
    return dict(_off)


def switch_off(name: str, reason: str) -> None:
    """Give up on ``name``; said once."""
    if name in _off:
        return
    _off[name] = reason
    if _report is not None:
        try:
            _report(name, reason)
        except Exception:  # the log itself failed: there is nobody left to tell
            pass


def attempt(name: str, action: Callable[..., T], *args: object) -> T | None:
    """``action(*args)``, or None where it fails now or has failed before."""
    if name in _off:
        return None
    try:
        if name in FAULTS:
            raise RuntimeError(f"fault asked for in {name}")
        return action(*args)
    except Exception as e:
        # Text only: the exception's traceback holds frames, and frames hold arrays.
        switch_off(name, f"{type(e).__name__}: {str(e)[:300]}")
        return None


def enter() -> bool:
    """True if this thread is not inside a callback of ours already; then ``leave`` must follow.

    A repr of the user's may call JAX, whose events must not be taken for the program's.
    """
    if getattr(_local, "inside", False):
        return False
    _local.inside = True
    return True


def leave() -> None:
    _local.inside = False
