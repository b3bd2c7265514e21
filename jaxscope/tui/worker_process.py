"""Run functions in another process, so that they do not delay the thread that draws the screen.

This module does not use multiprocessing, because that needs the file descriptor of ``sys.stderr``. Under
Textual, ``sys.stderr`` has none.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jaxscope


class WorkerProcesses:
    """Runs functions in worker processes, a new one for each call of ``call`` or ``each``. ``stop`` ends the
    processes that still run."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()

    def call(self, work: Any, *arguments: Any) -> Any:
        """Run ``work(*arguments)`` in another process and return its result. ``work`` must be a function of a
        module, and its arguments must be picklable.

        Raises:
          RuntimeError: ``work`` failed in the other process, or ``stop`` ended that process.
        """
        (answer,) = self.each(work, *arguments)
        return answer

    def each(self, work: Any, *arguments: Any) -> Iterator[Any]:
        """Run the generator ``work(*arguments)`` in another process and yield its items; the result of an
        ordinary function is its only item. Receiving an item blocks all threads of this process, so a
        generator should divide a large result.

        Raises:
          RuntimeError: ``work`` failed in the other process, or ``stop`` ended that process.
        """
        home = str(Path(jaxscope.__file__).resolve().parent.parent)
        path = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C must not end it
        )
        assert process.stdin is not None and process.stdout is not None
        self._running.add(process)
        try:
            # If stop ends the process, reading fails here, and the return code is reported below.
            gone = contextlib.suppress(EOFError, pickle.UnpicklingError)
            with contextlib.suppress(BrokenPipeError), process, gone:
                pickle.dump((work, arguments), process.stdin)
                process.stdin.close()
                while True:
                    yield pickle.load(process.stdout)  # data of the process started above, so it is trusted
        finally:
            self._running.discard(process)
        if process.returncode:
            raise RuntimeError(f"{work.__name__} ended with {process.returncode} in another process")

    def stop(self) -> None:
        for process in list(self._running):
            process.terminate()


def main() -> None:
    """Run the function that the parent process sends through stdin, and send the results through stdout."""
    work, arguments = pickle.load(sys.stdin.buffer)
    found = work(*arguments)
    for item in found if isinstance(found, Iterator) else [found]:
        pickle.dump(item, sys.stdout.buffer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
