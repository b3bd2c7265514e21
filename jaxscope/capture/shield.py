"""Keep exceptions of jaxscope away from the user's program.

Every callback runs inside ``attempt``, under the name of a part of the recording. A part that fails is
reported once, as a Degraded event with its reason. A part that fails STRIKES times without a success between
is skipped, first for STRIKES calls and then for twice as many each time it fails again, until it succeeds. A
part that this JAX does not have is switched off for good.

An exception raised by the program's own code, or because an array has been deleted, is not counted as a
failure: the program's own call raises the same.

KeyboardInterrupt and SystemExit pass through, even when they arrive in our code.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

from jaxscope.capture import frames

T = TypeVar("T")

STRIKES = 8
LONGEST_REST = 1024  # calls

_off: set[str] = set()
_failures: dict[str, int] = {}  # since the last success
_rests: dict[str, int] = {}  # for how many more calls
_reported: set[str] = set()
_report: Callable[[str, str], None] | None = None


class _Thread(threading.local):
    """Attributes:
    inside: the token of the callback of jaxscope that this thread runs; None outside.
    """

    inside: object | None = None


thread = _Thread()

# Names of parts that are made to fail, comma-separated: for tests.
FAULTS = frozenset(filter(None, os.environ.get("JAXSCOPE_FAULTS", "").split(",")))


def reset(report: Callable[[str, str], None] | None) -> None:
    """Forget all failures; ``report(name, reason)`` is called for each part the first time it fails."""
    global _report
    _off.clear()
    _failures.clear()
    _rests.clear()
    _reported.clear()
    _report = report


def switch_off(name: str, reason: str) -> None:
    """Skip ``name`` from now on: this JAX does not have it."""
    _off.add(name)
    _report_once(name, reason)


def works(name: str) -> bool:
    """Return whether ``name`` has never failed."""
    return name not in _off and name not in _reported


def is_off(name: str) -> bool:
    """Return whether ``name`` is skipped, for good or for some calls."""
    return name in _off or name in _rests


def _report_once(name: str, reason: str) -> None:
    if name not in _reported and _report is not None:
        _reported.add(name)
        try:
            _report(name, reason)
        except Exception:  # the log itself failed: it cannot be reported
            pass


def _failed(name: str, error: Exception) -> None:
    _failures[name] = failures = _failures.get(name, 0) + 1
    if failures >= STRIKES:
        _rests[name] = min(STRIKES << (failures - STRIKES), LONGEST_REST)
    try:
        reason = f"{type(error).__name__}: {str(error)[:300]}"
    except Exception:  # the __str__ of a class of the program
        reason = type(error).__name__
    # Text only: the exception's traceback holds frames, and frames hold arrays.
    _report_once(name, reason)


def _is_the_programs(error: Exception) -> bool:
    """Return whether ``error`` was raised in the program's code, or because an array has been deleted."""
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frames.is_user(frame) and not frames.is_library_file(frame.f_code.co_filename):
            return True
        trace = trace.tb_next
    return isinstance(error, RuntimeError) and any(
        type(text) is str and "deleted" in text for text in error.args
    )


def attempt(name: str, action: Callable[..., T], *args: object) -> T | None:
    """Return ``action(*args)``, or None if it fails or ``name`` is skipped."""
    if name in _off:
        return None
    if _rests and name in _rests:
        _rests[name] -= 1
        if _rests[name] >= 0:
            return None
        del _rests[name]
    try:
        if name in FAULTS:
            raise RuntimeError(f"fault injected in {name}")
        result = action(*args)
        if _failures:
            _failures.pop(name, None)
        return result
    except Exception as e:
        try:
            if not _is_the_programs(e):
                _failed(name, e)
        except Exception:  # reading the first exception may raise another
            pass
        return None


def enter(token: object) -> bool:
    """Mark this thread as inside a callback; return False if it is already. Then call ``leave`` with the same
    token.

    A ``__repr__`` of the user may call JAX. The events of that call must not be recorded as events of the
    program.
    """
    if thread.inside is not None:
        return False
    thread.inside = token
    return True


def busy() -> bool:
    """Return whether this thread is inside a callback of jaxscope."""
    return thread.inside is not None


def leave(token: object) -> None:
    """End the mark set with ``token``; do nothing if ``enter`` returned False, even if Ctrl-C hid its
    result."""
    if thread.inside is token:
        thread.inside = None
