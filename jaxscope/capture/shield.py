"""Keep exceptions of jaxscope away from the user's program.

Every callback of jaxscope runs inside ``attempt``, under the name of a part of the recording, such as
``line_times``. When a part first fails, an event ``Degraded`` with the reason is written. A part that fails
STRIKES times without a success in between is then skipped: first for STRIKES calls, then for twice as many
each time it fails again (at most LONGEST_REST), until it succeeds. A part that needs what the installed JAX
does not have is switched off for good.

Two kinds of exceptions do not count as failures: those that the program's own code raises, and those raised
because an array has been deleted. The program gets the same exception when it uses the object itself.

KeyboardInterrupt and SystemExit are not caught, even when they arrive in code of jaxscope, and neither is an
exception that a signal handler of the program raises there (a timeout).
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
from collections.abc import Callable
from typing import TypeVar

from jaxscope.capture import frames

T = TypeVar("T")

STRIKES = 8
LONGEST_REST = 1024  # the most calls for which a part is skipped

_off: set[str] = set()  # parts that are switched off for good
_failures: dict[str, int] = {}  # for each part, the failures since its last success
_rests: dict[str, int] = {}  # for each part that is skipped, for how many more calls
_reported: set[str] = set()
_report: Callable[[str, str], None] | None = None


class _Thread(threading.local):
    """The state of each thread: a thread sees its own values.

    Attributes:
      inside: identifies the callback of jaxscope that the thread is running; None: it is running none.
    """

    inside: object | None = None


thread = _Thread()

# For tests: names of parts that are made to fail, separated by commas.
FAULTS = frozenset(filter(None, os.environ.get("JAXSCOPE_FAULTS", "").split(",")))


def reset(report: Callable[[str, str], None] | None) -> None:
    """Forget which parts of the recording failed or were switched off. From now on, call ``report`` with the
    name of a part and the reason when this part first fails or is switched off. None: nothing is reported."""
    global _report
    _off.clear()
    _failures.clear()
    _rests.clear()
    _reported.clear()
    _report = report


def switch_off(name: str, reason: str) -> None:
    """Skip the part ``name`` of the recording, such as ``line_times``, for good. Report the ``reason`` (for
    example, the installed JAX does not have what the part needs), unless something was reported about the
    part before."""
    _off.add(name)
    _report_once(name, reason)


def works(name: str) -> bool:
    """Return whether no failure of the part ``name`` of the recording was reported and the part is not
    switched off. A part that failed once does not count as working, even if it succeeds later."""
    return name not in _off and name not in _reported


def is_off(name: str) -> bool:
    """Return whether the part ``name`` of the recording is skipped at present, for good or for some calls."""
    return name in _off or name in _rests


def _report_once(name: str, reason: str) -> None:
    """Report that the part ``name`` of the recording failed, with the ``reason``. Do nothing if a failure of
    this part was reported before, or failures are not reported."""
    if name not in _reported and _report is not None:
        _reported.add(name)
        try:
            _report(name, reason)
        except Exception:  # the log itself failed: there is nowhere to report it
            pass


def _failed(name: str, error: Exception) -> None:
    """Count ``error`` as a failure of the part ``name`` of the recording. Report the first failure. After
    STRIKES failures in a row, the part is skipped for some calls."""
    _failures[name] = failures = _failures.get(name, 0) + 1
    if failures >= STRIKES:
        _rests[name] = min(STRIKES << (failures - STRIKES), LONGEST_REST)
    try:
        reason = f"{type(error).__name__}: {str(error)[:300]}"
    except Exception:  # the __str__ of a class of the program
        reason = type(error).__name__
    # Only text is kept: the exception's traceback would keep frames alive, and these arrays.
    _report_once(name, reason)


def _is_the_programs(error: Exception) -> bool:
    """Return whether ``error`` is no failure of jaxscope: a function of the program is in its traceback, or
    its message says that an array has been deleted."""
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frames.is_user(frame) and not frames.is_not_users_file(frame.f_code.co_filename):
            return True
        trace = trace.tb_next
    return isinstance(error, RuntimeError) and any(
        type(text) is str and "deleted" in text for text in error.args
    )


def of_signal_handler(error: Exception) -> bool:
    """Return whether a signal handler of the program raised ``error``. Such a handler may run between any two
    instructions, also of jaxscope, and the program waits for its exception."""
    trace, handlers = error.__traceback__, []
    for number in signal.valid_signals():
        handlers.append(getattr(signal.getsignal(number), "__code__", None))
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


def attempt(name: str, action: Callable[..., T], *args: object) -> T | None:
    """Call ``action(*args)`` and return its result; None if it raises an exception. KeyboardInterrupt,
    SystemExit and exceptions of signal handlers are not caught.

    The exception counts as a failure of the part ``name`` of the recording (such as ``line_times``), unless
    the program's own code raised it or an array was deleted. Also return None, without calling ``action``,
    while this part is skipped or switched off.
    """
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
            passes_on = of_signal_handler(e)
            if not passes_on and not _is_the_programs(e):
                _failed(name, e)
        except Exception:  # reading the first exception may raise another
            passes_on = False
        if passes_on:
            raise
        return None


def start_thread(run: Callable[..., object], *args: object) -> None:
    """Call ``run(*args)`` in a new thread that no signal interrupts: a signal that the program blocks or
    waits for must not be handled in a thread of jaxscope. The thread is not among those of the program
    (``threading.enumerate()``).

    Raises:
      RuntimeError: the system has no more threads, or the interpreter ends.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # the new thread inherits it
    try:
        _thread.start_new_thread(run, args)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def enter(token: object) -> bool:
    """Mark this thread as inside a callback of jaxscope, and return True. If it is marked already, return
    False: the callback must then do nothing. ``token`` is a new object that identifies the callback, to be
    passed to ``leave`` afterwards."""
    # A callback may run code of the program, such as a ``__hash__``, which may call JAX. The events of these
    # calls must not be recorded as the program's.
    if thread.inside is not None:
        return False
    thread.inside = token
    return True


def busy() -> bool:
    """Return whether this thread is inside a callback of jaxscope."""
    return thread.inside is not None


def leave(token: object) -> None:
    """Remove the mark that ``enter`` made with ``token`` in this thread. Do nothing if ``enter`` made none.
    Call this even if ``enter`` did not return, because Ctrl-C may interrupt it after the mark was made."""
    if thread.inside is token:
        thread.inside = None
