"""Describe each recompile in one line while the program runs, and warn before a recompile that can be
expected (``--live``)."""

from __future__ import annotations

from jaxscope.log.store import RunDir
from jaxscope.model import predictions
from jaxscope.model.causes import recompiled
from jaxscope.model.load import Tail
from jaxscope.model.predictions import PENDING
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.present.causes import explanations, first_and_more
from jaxscope.present.escape import escape
from jaxscope.present.functions import when_and_where
from jaxscope.present.render import text
from jaxscope.present.runs import compilation_name
from jaxscope.present.text import Places
from jaxscope.rules.carried_state import fix
from jaxscope.schema.events import Compiled, PhaseFailed

DIFFERENCES = 3


class Follower:
    """Reads the logs of a run while the program writes them, and describes the recompiles of the user's
    functions."""

    def __init__(self, directory: RunDir) -> None:
        self._tail = Tail(directory)
        self._reported: set[str] = set()

    @property
    def run(self) -> Run:
        """Return the run as far as its logs have been read."""
        return self._tail.run

    def poll(self) -> list[str]:
        """Read what the program has logged since the last call of ``poll``. Return a line for each recompile
        of a user's function that has ended since then, with a compilation or a failure, and a line for each
        recompile that the next call is expected to cause."""
        lines = []
        for event, c in self._tail.poll():
            if c is None or not isinstance(event, (Compiled, PhaseFailed)) or c.id in self._reported:
                continue
            if c.function.user:
                self._reported.add(c.id)
                if recompiled(self.run, c):
                    lines.append(live_line(self.run, c))
                lines += [warning(self.run, p) for p in predictions.of(self.run, c) if p.status == PENDING]
        return lines


def warning(run: Run, p: predictions.Prediction) -> str:
    """Return a line about a recompile that the next call is expected to cause, and about how to avoid it."""
    prediction = f"{escape(text(predictions.sentence(p)), 300)}; {escape(text(fix(p).words), 200)}"
    return f"jaxscope: {compilation_name(run, p.after)}: {prediction}"


def live_line(run: Run, c: Compilation) -> str:
    """Return a line about the recompile ``c``: ``jaxscope: train_step #4 (step 376, 7.0 s, train.py:88):
    batch['ids'] changed from ...``."""
    causes = "; ".join(first_and_more(explanations(run, c), DIFFERENCES))
    around = when_and_where(c, Places(run))
    return f"jaxscope: {compilation_name(run, c)} ({around}): {causes}"
