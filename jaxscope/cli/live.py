"""Print lines on stderr while the program runs.

With ``--live``, print a line for each recompile. In a job of several processes (ranks), print a line if ranks
compile different programs, or if ranks make no progress because they wait for another rank
(``--compare-ranks``, which is the default up to MOST_RANKS ranks).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
import time

from jaxscope.cli.stderr import print_message
from jaxscope.launch.runner import Companion
from jaxscope.log import files, liveness, ranks, store
from jaxscope.log.store import RunDir

LIVE_S = 0.1
COMPARE_S = 0.5
HOLDING_S = 0.1  # with --stop-on-divergence: the ranks wait for the result of the comparison
MOST_RANKS = 256  # compared without --compare-ranks: the watcher needs 0.8 MB of memory for each
SHARE = 10  # at most one tenth of a core is used to compare ranks
END_S = 5.0  # seconds between SIGTERM and SIGKILL for a program that diverges
DIVERGED = 4  # exit code


def handle_follow(args: argparse.Namespace) -> int:
    """Run ``jaxscope _follow DIRECTORY PID``: until the process PID ends, print a line for each recompile
    that is recorded in DIRECTORY. Return 0."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program, which may continue
    gone = threading.Event()

    def watch() -> None:
        while liveness.is_running(args.pid):
            time.sleep(LIVE_S)
        gone.set()

    threading.Thread(target=watch, daemon=True).start()
    live(RunDir(args.directory))(gone, args.pid)
    return 0


def together(besides: list[Companion]) -> Companion | None:
    """Return a function that runs all functions in ``besides`` at the same time while the program runs, and
    waits until they return; None if ``besides`` is empty. Each function takes an event that is set when the
    program ends, and the program's process id."""
    if len(besides) < 2:
        return besides[0] if besides else None

    def run(ended: threading.Event, pid: int) -> None:
        threads = [threading.Thread(target=each, args=(ended, pid), daemon=True) for each in besides]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return run


def compare_ranks(
    record: RunDir, rank: int | None, patience_s: float | None, *, holds: bool, most_ranks: int | None
) -> Companion:
    """Return a function that prints, while the program runs, where the ranks (processes) of a job differ, and
    records this in the run of the job. In other ranks than rank 0, the function does nothing.

    Args:
      record: the run directory of this process.
      rank: the rank of this process; None: JAX's process index, once it is recorded.
      patience_s: seconds without progress after which a line names the waiting ranks; None:
        ``live_ranks.PATIENCE_S``.
      holds: whether each rank waits after a compilation until all ranks have compiled the program
        (``capture.agreement``).
      most_ranks: the comparison ends when the job has more ranks than this; None: no limit.
    """

    def follow(ended: threading.Event, pid: int) -> None:
        try:
            whole = ranks.whole_of(record)
            if whole is None or not _is_first(record, rank, ended):
                return
            from jaxscope.report.live_ranks import PATIENCE_S, Comparison  # 0.1 s, in rank 0 alone

            comparison = Comparison(whole, PATIENCE_S if patience_s is None else patience_s, holds=holds)
            agreed: dict[str, list[int]] | None = None
            last = False
            while (
                most_ranks is None
                or len(files.names(whole.path / store.RANKS, within=whole.path)) <= most_ranks
            ):
                began = time.thread_time()
                lines = comparison.poll(last=last)
                if comparison.diverged is not None and not ranks.diverged(whole):
                    ranks.write_diverged(whole, comparison.diverged)
                if holds and comparison.agreed != agreed:
                    agreed = comparison.agreed
                    ranks.write_agreed(whole, agreed)
                if lines:
                    sys.stderr.write("".join(f"{line}\n" for line in lines))
                    sys.stderr.flush()
                if last:
                    return
                last = ended.wait(
                    max(HOLDING_S if holds else COMPARE_S, (time.thread_time() - began) * SHARE)
                )
        except OSError:
            pass  # stderr is closed, or the shared directory is gone
        except Exception as e:
            print_message(
                f"--compare-ranks stopped because of an error: {type(e).__name__}: {e};"
                f" the recording continues"
            )

    return follow


def _is_first(record: RunDir, rank: int | None, ended: threading.Event) -> bool:
    """Return whether ``record`` is the directory of rank 0 of the job. If ``rank`` is None, wait until JAX's
    process index is recorded; False if ``ended`` is set before."""
    if rank is not None:
        return rank == 0
    from jaxscope.model.rank_log import Known, RankLog

    log = RankLog(record, Known())
    while (index := log.index) is None:
        if ended.wait(COMPARE_S):
            return False
        log.poll()
    return index == 0


def stop_on_divergence(record: RunDir) -> Companion:
    """Return a function that ends the program of this rank (process of a job) once rank 0 has recorded that
    ranks compile different programs: with SIGTERM, and if it still runs after END_S seconds, with SIGKILL.
    ``record`` is the run directory of this process."""

    def follow(ended: threading.Event, pid: int) -> None:
        whole = ranks.whole_of(record)
        if whole is None:
            return
        while not ended.wait(COMPARE_S / 2):
            if ranks.diverged(whole):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGTERM)
                    if not ended.wait(END_S):  # inside XLA no handler runs; JAX's handler does not end it
                        os.kill(pid, signal.SIGKILL)
                return

    return follow


def live(record: RunDir) -> Companion:
    """Return a function that prints a line on stderr for each recompile in the log of ``record``. It takes an
    event that is set when the program ends, and the program's process id (not used), and returns soon after
    the event is set."""

    def follow(ended: threading.Event, pid: int) -> None:
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
