"""Work done in another process, so that nothing it does holds up the screen.

Not multiprocessing: the processes it keeps beside its own inherit ``sys.stderr`` by number, and under Textual that has none.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import jaxscope


class Others:
    """The processes at work; ``stop`` ends them."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()

    def call(self, work: Any, *arguments: Any) -> Any:
        """``work(*arguments)``: a function of a module, and arguments that can be pickled.

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
        self._running.add(process)
        try:
            answer, _ = process.communicate(pickle.dumps((work, arguments)))
        finally:
            self._running.discard(process)
        if process.returncode:
            raise RuntimeError(f"{work.__name__} ended with {process.returncode} in another process")
        return pickle.loads(answer)  # ours: from the process begun above

    def stop(self) -> None:
        for process in list(self._running):
            process.terminate()


def main() -> None:
    work, arguments = pickle.load(sys.stdin.buffer)
    sys.stdout.buffer.write(pickle.dumps(work(*arguments)))


if __name__ == "__main__":
    main()
