"""Upload a run while it is recorded, in a process of its own: the program never waits for the store.

``python -m jaxscope.launch.upload RUN URL`` follows the run directory. Its stdin ends when ``jaxscope run``
has seen the end of the program; it then uploads what is left, and ends when no process writes in the run.
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

FIRST_S, MOST_S = 5.0, 60.0  # between two rounds; each pause is twice as long as the one before
QUIET_S = 10.0  # after the end of the program: without a finished request
END_S = 60.0  # and in all
LATE_S = 60.0  # of a process that nobody waits for: after the last process has left the run
AGAIN_S = 1.0
LOOK_S = 0.05
MOST_STATE = 1 << 16


class State(NamedTuple):
    """The state of the upload of a run, as it is in ``upload.json``.

    Attributes:
      sent: bytes that are uploaded.
      files, bytes: files and bytes that are not uploaded yet (a large file
        counts several times).
      error: the error of the last request; None: it succeeded, or there was none.
      final: whether the end of the program is uploaded, or cannot be uploaded.
    """

    sent: int = 0
    files: int = 0
    bytes: int = 0
    error: str | None = None
    final: bool = False


def start(record: RunDir, url: str, *, overwrite: bool = False) -> subprocess.Popen[bytes] | None:
    """Start the process that uploads the run ``record`` to ``url``; None: it cannot be started."""
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
    """Wait until the end of the program is uploaded: at most END_S seconds, and at most QUIET_S seconds
    without a finished request.

    A process that is late then is killed. Ctrl-C ends the wait.
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
    """Return how far the run is uploaded."""
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
        found: Any = json.loads(files.read(record.path / removal.UPLOAD, MOST_STATE, within=record.path))
        return State(**found)
    return State()


def main(directory: str, url: str, *, overwrite: bool) -> None:
    """Upload the run until it has ended."""
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
        # A detached program goes on, or a child process of one that has ended.
        if _in_use(record):
            until = time.monotonic() + LATE_S
        time.sleep(pause)
        pause = min(MOST_S, pause * 2)
        _round(record, upload, last=True)


def _in_use(record: RunDir) -> bool:
    beat = liveness.beat_of(record.heartbeat)
    return removal.in_use(record.path) or (
        beat is not None and beat.going is None and liveness.recent(beat.at)
    )


def _round(record: RunDir, upload: remote.Upload, *, last: bool = False) -> None:
    """Upload what is there and write the state; with ``last`` once more after a failure."""
    _write(record, upload)
    error = None
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
        upload.look()
    _write(record, upload, error, final=last)


def _write(record: RunDir, upload: remote.Upload, error: str | None = None, *, final: bool = False) -> None:
    number, size = upload.left
    state = State(upload.sent, number, size, error, final)
    with contextlib.suppress(OSError):
        files.write(record.path / removal.UPLOAD, json.dumps(state._asdict()), within=record.path)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], overwrite="--overwrite" in sys.argv[3:])
