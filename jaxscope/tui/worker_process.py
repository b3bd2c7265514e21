"""Work done in another process, so that nothing it does holds up the screen.

Not multiprocessing: the processes it keeps beside its own inherit ``sys.stderr`` by number, and under Textual
that has none.
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


class Others:
    """The worker processes that run now; ``stop`` ends them."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()

    def call(self, work: Any, *arguments: Any) -> Any:
        """Run ``work(*arguments)`` in another process and return its result. ``work`` must be a function of
        a module, and its arguments must be picklable.

        Raises:
          RuntimeError: it failed there, or was stopped.
        """
        (answer,) = self.each(work, *arguments)
        return answer

    def each(self, work: Any, *arguments: Any) -> Iterator[Any]:
        """Run the generator ``work(*arguments)`` in another process and yield its items.

        No other thread runs while an item is unpickled, so a large result should be divided into several
        items.

        Raises:
          RuntimeError: it failed there, or was stopped.
        """
        home = str(Path(jaxscope.__file__).resolve().parent.parent)
        path = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is for the view
        )
        assert process.stdin is not None and process.stdout is not None
        self._running.add(process)
        try:
            # stop ended the process: the code below reports what was not received.
            gone = contextlib.suppress(EOFError, pickle.UnpicklingError)
            with contextlib.suppress(BrokenPipeError), process, gone:
                pickle.dump((work, arguments), process.stdin)
                process.stdin.close()
                while True:
                    yield pickle.load(process.stdout)  # ours: from the process begun above
        finally:
            self._running.discard(process)
        if process.returncode:
            raise RuntimeError(f"{work.__name__} ended with {process.returncode} in another process")

    def stop(self) -> None:
        for process in list(self._running):
            process.terminate()


def main() -> None:
    work, arguments = pickle.load(sys.stdin.buffer)
    found = work(*arguments)
    for item in found if isinstance(found, Iterator) else [found]:
        pickle.dump(item, sys.stdout.buffer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
