"""No exception of ours reaches the user's program.

Every callback and every seam runs inside ``attempt``. What fails is reported once, as a Degraded
event with its reason; what fails STRIKES times with no success between is switched off for the rest of
the process (one odd object must not blind us to all others). Everything else goes on.

KeyboardInterrupt and SystemExit pass: they are the user's, even when they arrive in our code.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

STRIKES = 8

_off: set[str] = set()
_failures: dict[str, int] = {}  # since the last success
_reported: set[str] = set()
_report: Callable[[str, str], None] | None = None
_local = threading.local()

# Names of parts that are made to fail, comma-separated: how the tests show the first sentence.
FAULTS = frozenset(filter(None, os.environ.get("JAXSCOPE_FAULTS", "").split(",")))


def reset(report: Callable[[str, str], None] | None) -> None:
    """Start afresh; ``report(name, reason)`` is told of each part the first time it fails."""
    global _report
    _off.clear()
    _failures.clear()
    _reported.clear()
    _report = report


def switch_off(name: str, reason: str) -> None:
    """Do without ``name`` from now on: this JAX does not have it."""
    _off.add(name)
    _failed(name, reason)


def works(name: str) -> bool:
    """Has ``name`` never failed?"""
    return name not in _off and name not in _reported


def is_off(name: str) -> bool:
    """Is ``name`` done without?"""
    return name in _off


def _failed(name: str, reason: str) -> None:
    _failures[name] = _failures.get(name, 0) + 1
    if _failures[name] >= STRIKES:
        _off.add(name)
    if name not in _reported and _report is not None:
        _reported.add(name)
        try:
            _report(name, reason)
        except Exception:  # the log itself failed: there is nobody left to tell
            pass


def attempt(name: str, action: Callable[..., T], *args: object) -> T | None:
    """``action(*args)``, or None where it fails or is switched off."""
    if name in _off:
        return None
    try:
        if name in FAULTS:
            raise RuntimeError(f"fault asked for in {name}")
        result = action(*args)
        if _failures:
            _failures.pop(name, None)
        return result
    except Exception as e:
        # Text only: the exception's traceback holds frames, and frames hold arrays.
        _failed(name, f"{type(e).__name__}: {str(e)[:300]}")
        return None


def enter(token: object) -> bool:
    """True if this thread is not inside a callback of ours already; ``leave`` with the same token follows.

    A repr of the user's may call JAX, whose events must not be taken for the program's.
    """
    if getattr(_local, "inside", None) is not None:
        return False
    _local.inside = token
    return True


def busy() -> bool:
    """Is this thread inside a callback of ours?"""
    return getattr(_local, "inside", None) is not None


def leave(token: object) -> None:
    """Only who entered leaves, even where a Ctrl-C arrived between entering and knowing it."""
    if getattr(_local, "inside", None) is token:
        _local.inside = None
