"""``--live``: a line on stderr per recompile as it happens, of the program we run or of one that runs elsewhere."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from jaxscope.cli.stderr import say
from jaxscope.log.store import RunDir

LIVE_S = 0.1


def handle_follow(args: argparse.Namespace) -> int:
    """Print a line per recompile of a process that is no child of ours, until it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program, which may go on
    gone = threading.Event()

    def watch() -> None:
        while _alive(args.pid):
            time.sleep(LIVE_S)
        gone.set()

    threading.Thread(target=watch, daemon=True).start()
    live(RunDir(args.directory))(gone)
    return 0


def live(record: RunDir) -> Callable[[threading.Event], None]:
    """Prints what the log says, as it is written, until the program has ended."""

    def follow(ended: threading.Event) -> None:
        try:
            from jaxscope.report.live import Follower

            follower = Follower(record)
            last = False
            while True:
                lines = follower.poll()
                if lines:
                    sys.stderr.write("".join(f"{line}\n" for line in lines))
                    sys.stderr.flush()
                if last:
                    return
                last = ended.wait(LIVE_S)  # once more after the end: what was written in between
        except OSError:
            pass  # nobody reads our stderr any more
        except Exception as e:
            say(f"--live stopped because of an error: {type(e).__name__}: {e}; the recording continues")

    return follow


def _alive(pid: int) -> bool:
    try:
        # Who waits for our stderr to be closed before it waits for the program leaves a zombie meanwhile.
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        pass  # no /proc on macOS
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # somebody else's, and alive
    return True
