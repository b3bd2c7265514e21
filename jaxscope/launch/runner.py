"""Run the user's program in another Python process and wait for its end (``jaxscope run``).

For the user, the program behaves as without jaxscope. The program has the same terminal, process group and
standard streams as this process, each signal reaches the program exactly once, and Ctrl-Z stops both
processes. This process ends in the same way as the program. The program records itself; this process only
writes the heartbeat (a file with the current time) and an event about the end of the program.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from jaxscope.errors import JaxscopeError
from jaxscope.launch import program_events
from jaxscope.launch.group_signals import Witness
from jaxscope.launch.program_events import Ended
from jaxscope.launch.tee import Tee
from jaxscope.log.liveness import Heartbeat
from jaxscope.log.store import RunDir

# A function that runs in a thread while the program runs (see the argument ``companion`` of ``run``)
Companion = Callable[[threading.Event, int], None]

_HAS_SIGINFO = hasattr(signal, "sigtimedwait")  # on Linux, not on macOS

# Signals that are not forwarded: faults of this process itself, SIGPIPE and SIGXFSZ (Python ignores these
# two), stops because a background process reads from the terminal or writes to it, and SIGCHLD.
_OURS = [
    "KILL",
    "STOP",
    "SEGV",
    "BUS",
    "FPE",
    "ILL",
    "TRAP",
    "SYS",
    "EMT",
    "PIPE",
    "XFSZ",
    "TTIN",
    "TTOU",
    "CHLD",
]
if not _HAS_SIGINFO:
    _OURS.append("ALRM")  # the timer of _next_signal
FORWARDED = signal.valid_signals() - {getattr(signal, f"SIG{name}", 0) for name in _OURS}
# Signals by which a user or a scheduler ends a program
ENDS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
_STOPS = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}

# systemd and Slurm signal the processes of a group one after the other. After this time they have finished.
SETTLE_S = 0.05
TOGETHER_S = 1.0  # a signal to the group and one to this process within this time count as one
LINGER_S = 2.0  # maximal wait for the thread of ``companion`` after the end of the program


def run(
    argv: list[str],
    env: dict[str, str],
    record: RunDir | None,
    *,
    tee: bool = False,
    companion: Companion | None = None,
) -> Ended:
    """Start the program ``argv``, wait for its end, and return how the program ended.

    Args:
      argv: the command of the program and its arguments.
      env: the environment of the program.
      record: the run directory, into which the heartbeat (a file with the current time) and the end of the
        program are written; None: they are not written.
      tee: whether to copy the program's stderr into the file ``output.log``, too.
      companion: a function that runs in a thread while the program runs, or None. Its arguments are an event
        that is set when the program ends, and the program's process id.

    Raises:
      JaxscopeError: the program could not be started.
    """
    held: set[int] = {*FORWARDED, signal.SIGCHLD, signal.SIGALRM}
    # The signals are blocked before the program and any thread exist, so that no signal is missed and threads
    # inherit the mask. No handler is installed, so that signals that are ignored here (nohup, a shell's `&`)
    # are ignored in the program, too.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    copy = witness = None
    try:
        copy = Tee.start(record, env) if tee and record is not None else None
        witness = Witness.start()
        started = time.monotonic()
        pid = spawn(argv, env, mask=before, stderr=copy.write_end if copy else None)
        if copy:
            copy.handed_over()
        if witness:
            witness.guard(pid)
        if record is not None:
            import jaxscope.log.writer  # noqa: F401  needed at the end; imported while the program starts
        ended = threading.Event()
        thread = start_companion(companion, ended, pid)
        watch = _Watch(pid, held, witness, record)
        status = watch.until_the_end()
        end = Ended.from_status(pid, status, time.monotonic() - started)
        end = end._replace(interrupted=_is_interrupted(watch.received | {end.signal}))
        if copy:
            copy.finish()
        if record is not None:
            program_events.write_end(record, end)
        watch.close()
        end_companion(thread, ended)
        return end
    finally:
        if witness:
            witness.leave()
        _forget(signal.sigpending() & held)  # the Ctrl-C that ended the program must not end the summary
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_interrupted(received: set[int | None]) -> bool:
    """Return whether a user or a scheduler has requested the end of the program: a signal of ENDS that this
    process does not ignore is in ``received`` or pending in this process. ``received`` are the signals that
    this process got, and the signal that ended the program (None: no signal did)."""
    ends = {n for n in ENDS if signal.getsignal(n) is not signal.SIG_IGN}
    return bool(ends & (received | signal.sigpending()))


def spawn(
    argv: list[str], env: dict[str, str], *, mask: set[int], stderr: int | None = None, **more: Any
) -> int:
    """Start the command ``argv`` by ``posix_spawn``. Return the id of the new process.

    SIGPIPE and SIGXFSZ, which Python ignores, have their default effect in the new process, as with the
    module ``subprocess``.

    Args:
      env: the environment of the process.
      mask: the signals that the process blocks.
      stderr: file descriptor that becomes the stderr of the process; None: stderr is unchanged.
      more: further arguments of ``os.posix_spawn``.

    Raises:
      JaxscopeError: the system could not start the process.
    """
    if stderr is not None:
        more["file_actions"] = [(os.POSIX_SPAWN_DUP2, stderr, 2)]
    python_ignores = [s for s in (signal.SIGPIPE, getattr(signal, "SIGXFSZ", None)) if s]
    try:
        pid = os.posix_spawn(
            argv[0],
            argv,
            env,
            setsigmask=mask,
            setsigdef=python_ignores,
            **more,
        )
    except OSError as e:
        raise JaxscopeError(
            f"cannot start {argv[0]}: {e.strerror}",
            hint="run it without jaxscope to see whether it starts",
            slug="spawn",
        ) from e
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        # Inherited from a parent that never waits for its children. The kernel would discard the exit code.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return pid


class _Watch:
    """Waits for the end of the process ``pid`` and forwards signals to it.

    Args:
      signals: the signals that are blocked in this process and read one by one.
      witness: finds out whether a signal was sent to the whole process group; None: all signals are
        forwarded.
      record: the run directory, for the heartbeat (a file with the current time); None: no heartbeat is
        written.
    """

    def __init__(self, pid: int, signals: set[int], witness: Witness | None, record: RunDir | None) -> None:
        self.pid = pid
        self.signals = signals
        self.witness = witness
        self.heartbeat = Heartbeat(record.heartbeat) if record is not None else None
        self.seen: dict[int, float] = {}  # the time at which each signal was sent to the whole group
        self.passed_on = 0  # the latest signal that was forwarded
        self.received: set[int | None] = set()

    def until_the_end(self) -> int:
        """Forward signals until the program ends. Return its wait status."""
        beat_at = 0.0
        while True:
            now = time.monotonic()
            if now >= beat_at:
                beat_at = now + program_events.HEARTBEAT_S
                if self.heartbeat is not None:
                    self.heartbeat.beat()
            # In every iteration, not only on SIGCHLD: several pending SIGCHLD are delivered as one.
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                self._stop_too(os.WSTOPSIG(status))
            elif pid:
                return status
            else:
                self._forward(_next_signal(self.signals, beat_at - now))

    def close(self) -> None:
        """Release the lock on the heartbeat file, by which other processes see that this process still waits
        for the program. Call this method after the end of the program has been recorded."""
        if self.heartbeat is not None:
            self.heartbeat.close()

    def _forward(self, arrived: tuple[int, bool | None, int] | None) -> None:
        """Forward a signal of FORWARDED to the program, unless it was sent to the whole process group or by
        the program itself. ``arrived`` is a result of ``_next_signal``; None: there is no signal."""
        if arrived is None or arrived[0] not in FORWARDED:
            return
        number, from_terminal, sender = arrived
        if sender != self.pid:
            self.received.add(number)
        if not from_terminal:
            time.sleep(SETTLE_S)
            _forget({number} & signal.sigpending())  # two equal pending signals count as one
        # The program has a signal to the group already. A second KeyboardInterrupt would break its clean-up.
        in_group = self._group_had(number)
        if number not in _STOPS:  # _stop_too needs a stop later, when the program has stopped
            self.seen.pop(number, None)
        # A signal that the program sends to its parent must not be sent back.
        if not (from_terminal or in_group or sender == self.pid):
            self.passed_on = number
            with contextlib.suppress(OSError):
                os.kill(self.pid, number)

    def _group_had(self, number: int) -> bool:
        """Return whether signal ``number`` was sent to the whole process group within the last TOGETHER_S
        seconds."""
        now = time.monotonic()
        if self.witness:
            self.seen.update(dict.fromkeys(self.witness.seen(), now))
        return now - self.seen.get(number, -TOGETHER_S) < TOGETHER_S

    def _stop_too(self, number: int) -> None:
        """Stop this process, because signal ``number`` has stopped the program, and return when it is
        continued. Do nothing if only the program was stopped, for example by a debugger; without a witness
        this is unknown, and this process stops. Return at once for SIGSTOP: sent to the whole group, it has
        stopped this process already."""
        if self.witness and number != self.passed_on and not self._group_had(number):
            time.sleep(SETTLE_S)
            if not self._group_had(number):
                return
        if number == signal.SIGSTOP:
            return  # a SIGSTOP to the whole group has stopped this process already
        self.passed_on = 0
        self.seen.pop(number, None)
        # The Ctrl-Z of the terminal may be pending here, too. As the signal is blocked, both become one stop.
        os.kill(os.getpid(), number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
        signal.pthread_sigmask(signal.SIG_BLOCK, self.signals)


def _next_signal(signals: set[int], seconds: float) -> tuple[int, bool | None, int] | None:
    """Wait at most ``seconds`` for one of ``signals``, which are blocked. Return (its number, whether the
    kernel sent it, process id of the sender); None if none arrived. On macOS, the second item is None and the
    third is 0."""
    if _HAS_SIGINFO:
        info = signal.sigtimedwait(signals, max(seconds, 0.0))
        # A terminal's signals have SI_KERNEL (0x80) and go to its foreground group; kill() has SI_USER (0).
        return (info.si_signo, info.si_code > 0, info.si_pid) if info else None
    # macOS drops a blocked SIGCHLD that has no handler. So return at least ten times a second, for the caller
    # to check whether the program has ended.
    signal.setitimer(signal.ITIMER_REAL, min(max(seconds, 0.01), 0.1))
    number = signal.sigwait(signals)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return (number, None, 0) if number != signal.SIGALRM else None


def _forget(numbers: set[int]) -> None:
    """Remove the pending signals ``numbers``, so that they have no effect when signals are unblocked."""
    for number in numbers:
        signal.sigwait([number])


def start_companion(companion: Companion | None, ended: threading.Event, pid: int) -> threading.Thread | None:
    """Start and return a thread that runs ``companion(ended, pid)``; None if ``companion`` is None. The
    caller sets ``ended`` when the program with the process id ``pid`` has ended."""
    if companion is None:
        return None
    thread = threading.Thread(target=companion, args=(ended, pid), name="jaxscope-companion", daemon=True)
    thread.start()
    return thread


def end_companion(thread: threading.Thread | None, ended: threading.Event) -> None:
    """Set ``ended``, because the program has ended, and wait at most LINGER_S seconds for ``thread``, the
    result of ``start_companion``."""
    ended.set()
    if thread:
        thread.join(LINGER_S)
