"""In a process of a job with several processes (ranks), record where the main thread waits, and compare the
programs that this process compiles with those of the other processes. Nothing of this runs in a program with
one process."""

from __future__ import annotations

import threading
from collections.abc import Callable

from jaxscope.capture.agreement import Agreement
from jaxscope.capture.main_thread import MainThread
from jaxscope.capture.peers import Peers, digest
from jaxscope.log import files, ranks, store
from jaxscope.log.store import RunDir
from jaxscope.log.writer import Writer


class Rank:
    """This process as one of the ranks (processes) of a job: records where its main thread waits, and, if the
    ranks record to different directories, compares its programs with those of the other ranks.

    Args:
      run: the directory to which this process records.
      patience_s: after how many seconds without progress jaxscope names the ranks that wait.
      holds: whether each rank waits after a compilation until all ranks have compiled the program
        (``--stop-on-divergence``).
      degraded: is called with the name of a part of the recording that is not available, and the reason.
    """

    def __init__(
        self,
        run: RunDir,
        writer: Writer,
        patience_s: float,
        *,
        holds: bool,
        degraded: Callable[[str, str], None],
    ) -> None:
        self._run, self._writer, self._patience_s = run, writer, patience_s
        self._holds, self._degraded = holds, degraded
        self._count = 1
        self._main_thread: MainThread | None = None
        self._peers: Peers | None = None
        self._agreement: Agreement | None = None

    def begin(self, index: int, count: int) -> None:
        """Start to record where the main thread of this process (number ``index`` of ``count``, from 0)
        waits, except on a system without ``/proc``. If the ranks (processes of the job) do not record to one
        directory, also start to compare their programs. If they do, ``compiled`` waits for the other ranks if
        ``--stop-on-divergence`` is given."""
        self._count = count
        if not self._shares_directory():
            self._peers = Peers(self._writer, index, count)
        elif self._holds:
            self._agreement = Agreement(self._run, lambda why: self._degraded("agreement", why))
        watched = MainThread(self._writer, self._patience_s)
        try:
            watched.start()
        except OSError:  # a system without /proc
            return
        self._main_thread = watched

    def _shares_directory(self) -> bool:
        """Return whether all ranks (processes of the job) record to one directory. Each rank creates a
        directory of its own in it before JAX connects the ranks."""
        whole = ranks.whole_of(self._run)
        try:
            return (
                whole is not None
                and len(files.names(whole.path / store.RANKS, within=whole.path)) >= self._count
            )
        except OSError:
            return False

    def compiled(
        self,
        call: int,
        function: str,
        program: str | None,
        module: str | None,
        processes: int,
        *,
        calls_back: bool,
    ) -> None:
        """Handle that this process has compiled a program. If the ranks (processes of the job) record to one
        directory and ``--stop-on-divergence`` is given, wait until the other ranks have compiled the program.
        If they record to different directories, compare a program for all processes with those of the other
        ranks. Do nothing if another thread than the main thread has compiled the program.

        Args:
          call: the number of the call that compiled the program.
          function: the id of the function.
          program: the id of the program; None: unknown.
          module: the name of its module; None: unknown.
          processes: the number of processes on whose devices it runs. Programs of one process are ignored.
          calls_back: whether it may contain callbacks.
        """
        if processes < 2 or threading.current_thread() is not threading.main_thread():
            return
        if self._peers is not None and processes == self._count:
            self._peers.compiled(digest(program, module, calls_back=calls_back), function)
        if self._agreement is not None:
            self._agreement.wait(call)

    def leave(self) -> None:
        """Stop observing the main thread and comparing programs. Call this before JAX disconnects from the
        other processes."""
        main_thread, self._main_thread = self._main_thread, None
        peers, self._peers, self._agreement = self._peers, None, None
        if main_thread is not None:
            main_thread.stop()
        if peers is not None:
            peers.stop()
