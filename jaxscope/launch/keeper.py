"""Run a program whose starter may end: own its pseudo-terminal, its output and the record of its end.

The keeper has its own session, so that no terminal's hangup reaches it. The program's stdout and stderr are
one pseudo-terminal, always copied to ``output.log``: a program blocks at its next print if its terminal is
not read, and ends if it is closed. Views and commands read the files in the run directory. Never writes to
the terminal that started it.
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
from jaxscope.launch.runner import FORWARDED, LINGER_S, Beside, spawn
from jaxscope.launch.tee import open_terminal, read_some
from jaxscope.launch.xla_warnings import Listener
from jaxscope.log import files
from jaxscope.log.liveness import Heartbeat
from jaxscope.log.store import RunDir

QUIET_S = 0.2


class Kept(NamedTuple):
    """The process ids of a keeper and of its program; also in the run directory, as ``keeper.json``."""

    keeper: int
    program: int


def start(argv: list[str], env: dict[str, str], run: RunDir, *, beside: Beside | None = None) -> Kept:
    """Start ``argv`` under a new keeper and return as soon as the program runs.

    Call this function only while this process has a single thread. ``beside`` runs in a thread of the
    keeper while the program runs. The stderr of the keeper and of ``beside`` is ``output.log``.

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
        pid = fork_apart(lambda: _keep(argv, env, run, mask, log, theirs, pty, terminal, beside), keep=keep)
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


def _spawn_on(terminal: int, argv: list[str], env: dict[str, str], mask: set[int]) -> int:
    """Start the program with its output on ``terminal`` and no input.

    It has a new process group: "stop" in a view reaches the program's children, and not the keeper.
    """
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


def _keep(
    argv: list[str],
    env: dict[str, str],
    run: RunDir,
    mask: set[int],
    log: int,
    answer: int,
    pty: int,
    terminal: int,
    beside: Beside | None,
) -> None:
    os.setsid()
    os.dup2(log, 2, inheritable=False)
    os.close(log)
    woken = _listen()
    started = time.monotonic()
    try:
        pid = _spawn_on(terminal, argv, env, mask)
    except JaxscopeError as e:
        os.write(answer, json.dumps({"error": e.message}).encode())
        return
    with contextlib.suppress(OSError):
        process_ids = json.dumps({"keeper": os.getpid(), "program": pid}) + "\n"
        files.write(run.path / "keeper.json", process_ids, within=run.path)
    os.write(answer, json.dumps({"program": pid}).encode())
    os.close(answer)
    listener = Listener(run, env)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # for the thread, which inherits it
    ended = threading.Event()
    thread = threading.Thread(target=beside, args=(ended, pid), daemon=True) if beside else None
    if thread:
        thread.start()
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    status = _drain_until_the_end(pid, pty, woken, run, listener)
    end = Ended.from_status(pid, status, time.monotonic() - started)
    # With our copy closed, the pseudo-terminal ends with the last child of the program that has it open. The
    # program's end is recorded before, the output of such children afterwards.
    os.close(terminal)
    open_still = _drain(pty, QUIET_S, listener)
    program_events.write_end(run, end)
    ended.set()
    if thread:
        thread.join(LINGER_S)
    if open_still:
        _drain(pty, None, listener)


def _listen() -> int:
    """Receive signals by a pipe that wakes the keeper. A hangup is ignored: the keeper has no terminal.

    Handlers, not ignored signals: those the program would inherit.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in FORWARDED | {signal.SIGCHLD}:
        signal.signal(number, lambda *_: None)
    return reader


def _drain_until_the_end(pid: int, pty: int, woken: int, run: RunDir, listener: Listener) -> int:
    """Copy the program's output until it ends. Return its wait status."""
    beat_at, heartbeat = 0.0, Heartbeat(run.heartbeat)  # held until this process ends
    while True:
        now = time.monotonic()
        if now >= beat_at:
            beat_at = now + program_events.HEARTBEAT_S
            heartbeat.beat()
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        ready, _, _ = select.select([pty, woken], [], [], beat_at - now)
        if pty in ready:
            _write_down(read_some(pty), listener)
        if woken in ready:
            for number in read_some(woken):
                if number not in (signal.SIGCHLD, signal.SIGHUP):
                    with contextlib.suppress(OSError):
                        os.kill(pid, number)


def _drain(pty: int, quiet: float | None, listener: Listener) -> bool:
    """Read to the end, or until nothing came for ``quiet`` seconds. Returns whether there may be more."""
    while select.select([pty], [], [], quiet)[0]:
        data = read_some(pty)
        if not data:
            return False
        _write_down(data, listener)
    return True


def _write_down(data: bytes, listener: Listener) -> None:
    # A full disk loses output; it must not block the program, which waits for us to read.
    with contextlib.suppress(OSError):
        os.write(2, data)
    listener.hear(data)
