"""``--live``: print a line on stderr for each recompile as it happens, of our program or of another
process."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from jaxscope.cli.stderr import print_message
from jaxscope.log.store import RunDir

LIVE_S = 0.1


def handle_follow(args: argparse.Namespace) -> int:
    """Print a line per recompile of a process that is not our child, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program, which may continue
    gone = threading.Event()

    def watch() -> None:
        while _alive(args.pid):
            time.sleep(LIVE_S)
        gone.set()

    threading.Thread(target=watch, daemon=True).start()
    live(RunDir(args.directory))(gone)
    return 0


def live(record: RunDir) -> Callable[[threading.Event], None]:
    """Return a function that prints recompiles as the log is written, until its event is set."""

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
                last = ended.wait(LIVE_S)  # one more poll after the end, for events written in between
        except OSError:
            pass  # stderr is closed
        except Exception as e:
            print_message(
                f"--live stopped because of an error: {type(e).__name__}: {e}; the recording continues"
            )

    return follow


def _alive(pid: int) -> bool:
    try:
        # The program is a zombie while its parent waits for our stderr to be closed.
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        pass  # no /proc on macOS
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # a process of another user
    return True
