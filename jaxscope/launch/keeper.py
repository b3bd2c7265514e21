"""Run a program that continues after the command that started it has ended (``jaxscope run --detach``).

A separate process, the keeper, starts the program and waits for its end. The keeper has its own session, so
that closing the user's terminal does not end the keeper. The program's stdout and stderr are one
pseudo-terminal. The keeper reads from this pseudo-terminal until the end and copies the output to the file
``output.log``: a program blocks if nobody reads its terminal, and ends if its terminal is closed. The keeper
never writes to the terminal of the user.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import threading
import time
from typing import NamedTuple

from jaxscope.errors import JaxscopeError
from jaxscope.launch import program_events
from jaxscope.launch.detached import fork_apart
from jaxscope.launch.program_events import Ended
from jaxscope.launch.runner import FORWARDED, Companion, end_companion, spawn, start_companion
from jaxscope.launch.tee import open_terminal, read_some
from jaxscope.launch.xla_warnings import Listener
from jaxscope.log import files
from jaxscope.log.liveness import Heartbeat
from jaxscope.log.store import RunDir

QUIET_S = 0.2


class Kept(NamedTuple):
    """The process ids of a detached program and of its keeper, the process that waits for the program's end.
    The file ``keeper.json`` in the run directory has the same numbers."""

    keeper: int
    program: int


def start(argv: list[str], env: dict[str, str], run: RunDir, *, companion: Companion | None = None) -> Kept:
    """Start the program ``argv`` under a new keeper, and return as soon as the program runs.

    The keeper is a separate process that waits for the end of the program, and writes the program's output
    and its own stderr to the file ``output.log``. Call this only while this process has a single thread.

    Args:
      argv: the command of the program and its arguments.
      env: the environment of the program.
      run: the run directory, which contains the recording.
      companion: a function that runs in a thread of the keeper while the program runs, or None. Its arguments
        are an event that is set when the program ends, and the program's process id.

    Raises:
      JaxscopeError: the program could not be started, or its output cannot be written.
    """
    try:
        log = files.append(run.output, within=run.path)
    except OSError as e:
        raise JaxscopeError(
            f"cannot keep the program's output in {run.output}: {e.strerror}",
            hint="choose a writable place with --out DIR",
            slug="output-unwritable",
        ) from e
    ours, theirs = os.pipe()
    # The terminal is found before the fork: the keeper has none.
    like = next((fd for fd in (2, 1, 0) if os.isatty(fd)), None)
    pty, terminal = open_terminal(like=like)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    keep = [log, theirs, pty, terminal]
    try:
        pid = fork_apart(
            lambda: _keep(argv, env, run, mask, log, theirs, pty, terminal, companion), keep=keep
        )
    finally:
        for fd in keep:
            os.close(fd)
    with os.fdopen(ours, "rb") as answer:
        reply = json.loads(answer.read() or b'{"error": "the keeper ended before the program began"}')
    if "error" in reply:
        raise JaxscopeError(
            reply["error"], hint="run it without --detach to see the program's own output", slug="spawn"
        )
    return Kept(keeper=pid, program=reply["program"])


def _keep(
    argv: list[str],
    env: dict[str, str],
    run: RunDir,
    mask: set[int],
    log: int,
    answer: int,
    pty: int,
    terminal: int,
    companion: Companion | None,
) -> None:
    """Run as the keeper process: start the program ``argv``, copy its output to ``log``, and record in
    ``run`` how it ended.

    Args:
      env: the environment of the program.
      run: the run directory, which contains the recording.
      mask: the signals that the program blocks.
      log: file descriptor of ``output.log``.
      answer: file descriptor to which the program's process id, or an error, is written as JSON.
      pty, terminal: file descriptors of the keeper's and the program's end of the pseudo-terminal.
      companion: a function that runs in a thread while the program runs, or None. Its arguments are an event
        that is set when the program ends, and the program's process id.
    """
    os.setsid()
    os.dup2(log, 2, inheritable=False)
    os.close(log)
    signals = _listen()
    started = time.monotonic()
    try:
        pid = _spawn_in_terminal(argv, env, mask, terminal)
    except JaxscopeError as e:
        os.write(answer, json.dumps({"error": e.message}).encode())
        return
    with contextlib.suppress(OSError):
        process_ids = json.dumps({"keeper": os.getpid(), "program": pid}) + "\n"
        files.write(run.path / "keeper.json", process_ids, within=run.path)
    os.write(answer, json.dumps({"program": pid}).encode())
    os.close(answer)
    listener = Listener(run, env)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # the thread inherits this mask
    ended = threading.Event()
    thread = start_companion(companion, ended, pid)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    status = _drain_until_the_end(pid, pty, signals, run, listener)
    end = Ended.from_status(pid, status, time.monotonic() - started)
    # After this, reading from the pseudo-terminal ends when the last child of the program has closed it. The
    # end of the program is recorded before that. The output of such children is copied afterwards.
    os.close(terminal)
    open_still = _drain(pty, QUIET_S, listener)
    program_events.write_end(run, end)
    end_companion(thread, ended)
    if open_still:
        _drain(pty, None, listener)


def _spawn_in_terminal(argv: list[str], env: dict[str, str], mask: set[int], terminal: int) -> int:
    """Start the program ``argv`` without stdin, and with a pseudo-terminal as its stdout and stderr. Return
    its process id.

    Args:
      env: the environment of the program.
      mask: the signals that the program blocks.
      terminal: file descriptor of the program's end of the pseudo-terminal.

    Raises:
      JaxscopeError: the program could not be started.
    """
    # The program gets its own process group, so that a signal to the group reaches the program and its
    # children, but not the keeper.
    return spawn(
        argv,
        env,
        mask=mask,
        setpgroup=0,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, terminal, 1),
            (os.POSIX_SPAWN_DUP2, terminal, 2),
        ],
    )


def _listen() -> int:
    """From now on, write the number of each arriving signal as one byte into a pipe. Return the file
    descriptor to read from. The signals are SIGCHLD and FORWARDED, the signals for the program."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in FORWARDED | {signal.SIGCHLD}:
        signal.signal(number, lambda *_: None)  # not SIG_IGN, which the program would inherit
    return reader


def _drain_until_the_end(pid: int, pty: int, signals: int, run: RunDir, listener: Listener) -> int:
    """Copy the output of the program ``pid`` to stderr, which is the file ``output.log``, until the program
    ends. Return its wait status.

    Forward signals that the keeper gets to the program, except SIGHUP, which the closing of a terminal
    causes. Once per second, write the heartbeat (a file with the current time) in the run directory ``run``.

    Args:
      pty: file descriptor of the keeper's end of the pseudo-terminal.
      signals: file descriptor from which the numbers of arrived signals are read (``_listen``).
      listener: finds XLA's warnings in the output.
    """
    beat_at, heartbeat = 0.0, Heartbeat(run.heartbeat)  # its lock is held until this process ends
    while True:
        now = time.monotonic()
        if now >= beat_at:
            beat_at = now + program_events.HEARTBEAT_S
            heartbeat.beat()
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        ready, _, _ = select.select([pty, signals], [], [], beat_at - now)
        if pty in ready:
            _write_down(read_some(pty), listener)
        if signals in ready:
            for number in read_some(signals):
                if number not in (signal.SIGCHLD, signal.SIGHUP):
                    with contextlib.suppress(OSError):
                        os.kill(pid, number)


def _drain(pty: int, quiet: float | None, listener: Listener) -> bool:
    """Copy the output of the program to stderr until the output ends, or until no output has come for
    ``quiet`` seconds. Return False if the output has ended, True if more may come later.

    Args:
      pty: file descriptor of this process's end of the pseudo-terminal.
      quiet: the longest wait for output in seconds; None: no limit.
      listener: finds XLA's warnings in the output.
    """
    while select.select([pty], [], [], quiet)[0]:
        data = read_some(pty)
        if not data:
            return False
        _write_down(data, listener)
    return True


def _write_down(data: bytes, listener: Listener) -> None:
    """Write ``data``, output of the program, to stderr, which is ``output.log``. ``listener`` records XLA's
    warnings in ``data``."""
    # If the disk is full, output is lost, but the program must not block: it waits until its output is read.
    with contextlib.suppress(OSError):
        os.write(2, data)
    listener.search(data)
