"""Upload a recording of a program to a remote store while the program runs.

The command ``python -m jaxscope.launch.upload RUN URL`` is a separate process, so that the program never
waits for the store. When the program has ended, ``jaxscope run`` closes the stdin of this command. The
command then uploads the rest, and ends when no process writes into the run directory any more.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from typing import Any, NamedTuple

from jaxscope.errors import JaxscopeError
from jaxscope.log import files, liveness, remote, removal
from jaxscope.log.store import RunDir

FIRST_S, MOST_S = 5.0, 60.0  # first and longest pause between two uploads; each is twice as long as the last
QUIET_S = 10.0  # after the end of the program: longest wait without a successful request
END_S = 60.0  # longest wait after the end of the program
LATE_S = 60.0  # longest time to upload the rest, after the last process has stopped writing
AGAIN_S = 1.0  # pause before a failed request is repeated
LOOK_S = 0.05
MOST_STATE = 1 << 16


class State(NamedTuple):
    """How much of a recording is uploaded. The file ``upload.json`` of the recording has the same values.

    Attributes:
      sent: number of bytes that this upload has sent.
      files, bytes: number of files and of bytes that are not uploaded yet. A large file is uploaded in pieces
        and counts as several files.
      error: the error of the last upload; None: no error.
      final: whether the files were uploaded, or could not be uploaded, after the end of the program.
    """

    sent: int = 0
    files: int = 0
    bytes: int = 0
    error: str | None = None
    final: bool = False


def start(record: RunDir, url: str, *, overwrite: bool = False) -> subprocess.Popen[bytes] | None:
    """Start a process that uploads the recording ``record`` to the address ``url`` while the program runs.
    Return the process; None if it cannot be started. With ``overwrite``, replace a recording that the store
    has at this address."""
    words = [sys.executable, "-P", "-m", "jaxscope.launch.upload", str(record.path), url]
    with contextlib.suppress(OSError):
        return subprocess.Popen(
            [*words, "--overwrite"] if overwrite else words,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    return None


def finish(process: subprocess.Popen[bytes] | None, record: RunDir) -> State:
    """Wait until the recording ``record``, whose program has ended, is uploaded. Return the final state; if
    the upload does not succeed, the state so far with an ``error``. ``process`` is the result of ``start``.

    The uploading process is killed after END_S seconds, after QUIET_S seconds without progress, or at Ctrl-C.
    """
    if process is None:
        return State(error="no process can be started")
    with contextlib.suppress(OSError, AttributeError):
        process.stdin.close()  # type: ignore[union-attr]
    began = quiet = time.monotonic()
    sent = read(record).sent
    late = None
    try:
        while process.poll() is None:
            state = read(record)
            now = time.monotonic()
            if state.sent != sent:
                sent, quiet = state.sent, now
            if state.final:
                return state
            if now - quiet > QUIET_S or now - began > END_S:
                late = f"the store has not answered for {now - quiet:.0f} s"
                break
            time.sleep(LOOK_S)
    except KeyboardInterrupt:
        late = "interrupted"
    process.kill()
    process.wait()
    state = read(record)
    if late is None and not state.final:
        late = "the process that uploads has ended"
    return state if state.final else state._replace(error=state.error or late)


def read(record: RunDir) -> State:
    """Return the state in the file ``upload.json`` of the recording ``record``. If the file cannot be read,
    all numbers are 0."""
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
        found: Any = json.loads(files.read(record.path / removal.UPLOAD, MOST_STATE, within=record.path))
        return State(**found)
    return State()


def main(directory: str, url: str, *, overwrite: bool) -> None:
    """Upload the recording in ``directory`` to ``url`` repeatedly, until no process writes into it any more,
    and then until everything is uploaded, for at most LATE_S seconds. With ``overwrite``, replace a recording
    that the store has at this address. The parent process closes the stdin of this process when the program
    has ended."""
    os.nice(10)
    record = RunDir(directory)
    upload = remote.Upload(record.path, url, overwrite=overwrite)
    pause, going = FIRST_S, True
    _round(record, upload)
    while going:
        going = not select.select([0], [], [], pause)[0]
        pause = min(MOST_S, pause * 2)
        _round(record, upload, last=not going)
    until = time.monotonic() + LATE_S
    while _in_use(record) or (upload.left[0] and time.monotonic() < until):
        # A detached program, or a child process of a program that has ended, still writes into the run.
        if _in_use(record):
            until = time.monotonic() + LATE_S
        time.sleep(pause)
        pause = min(MOST_S, pause * 2)
        _round(record, upload, last=True)


def _in_use(record: RunDir) -> bool:
    """Return whether a process still writes into the recording ``record``: the process has locked a file of
    the recording, or if locks cannot be checked, its heartbeat is recent."""
    beat = liveness.beat_of(record.heartbeat)
    return removal.in_use(record.path) or (
        beat is not None and beat.going is None and liveness.recent(beat.at)
    )


def _round(record: RunDir, upload: remote.Upload, *, last: bool = False) -> None:
    """Upload what has changed in the recording ``record`` since the last call, and write the state to
    ``upload.json``.

    Args:
      upload: the connection to the store, which remembers what is uploaded already.
      last: whether the program has ended. The state is then final, and after an error of the store, the
        upload is tried once more.
    """
    _write(record, upload)
    for again in (True, False):
        error = None
        try:
            if last:
                upload.again()
            upload.round(lambda: _write(record, upload))
        except JaxscopeError as e:
            error = f"{e.message}: {e.hint}" if e.hint else e.message
            again = False
        except OSError as e:
            error = remote.one_line(e)
        if error is None or not last or not again:
            break
        time.sleep(AGAIN_S)
    if error is not None:
        upload.measure()
    _write(record, upload, error, final=last)


def _write(record: RunDir, upload: remote.Upload, error: str | None = None, *, final: bool = False) -> None:
    """Write the state of ``upload`` to the file ``upload.json`` of the recording ``record``.

    Args:
      error: the error of the last upload; None: no error.
      final: whether the program had ended before this upload.
    """
    number, size = upload.left
    state = State(upload.sent, number, size, error, final)
    with contextlib.suppress(OSError):
        files.write(record.path / removal.UPLOAD, json.dumps(state._asdict()), within=record.path)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], overwrite="--overwrite" in sys.argv[3:])
