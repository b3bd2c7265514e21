"""For ``--stop-on-divergence``: make each process of a job wait after each compilation, until all processes
(ranks) of the job have compiled the same program. Only then does the program run.

No message is sent and no collective runs. The ranks write their logs to one shared directory. The process of
jaxscope that watches rank 0 compares these logs, and writes to this directory which programs are the same in
all ranks. A rank waits for a limited time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from jaxscope.log import ranks
from jaxscope.log.store import RunDir

POLL_S = 0.02  # seconds between two looks at the shared directory
HELD_S = 60.0  # the longest wait, in seconds
UNCOMPARED_S = 10.0  # the longest wait while no watcher compares the logs


class Agreement:
    """Makes this process wait, after a compilation, until all other ranks (processes of the job) have
    compiled the same program.

    Args:
      run: the directory to which this process records.
      given_up: is called once, with the reason as text, when a wait took too long. From then on ``wait``
        returns at once.
    """

    def __init__(self, run: RunDir, given_up: Callable[[str], None]) -> None:
        self._job_run = ranks.whole_of(run)
        self._rank_directory = run.path.name
        self._given_up = given_up

    def wait(self, call: int) -> None:
        """Wait until all ranks (processes of the job) have compiled the program that this process compiled in
        its call number ``call``. Return at once if this process is not part of a job, or if an earlier wait
        took too long.

        After HELD_S seconds, or UNCOMPARED_S seconds if no process compares the logs of the ranks, call
        ``given_up`` and return.
        """
        if self._job_run is None:
            return
        began = time.monotonic()
        while True:
            agreed = ranks.agreed(self._job_run)
            if agreed is not None and call in agreed.get(self._rank_directory, ()):
                return
            waited = time.monotonic() - began
            if waited > HELD_S or (agreed is None and waited > UNCOMPARED_S):
                self._job_run = None
                self._given_up(
                    f"after {waited:.0f} s the other ranks had not compiled the program of call {call}"
                    if agreed is not None
                    else "the jaxscope process of rank 0, which compares the ranks, is not running"
                )
                return
            time.sleep(POLL_S)
