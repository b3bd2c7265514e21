"""One line per recompile, as it happens, and a warning before one that is to come; for terminals and batch logs."""

from __future__ import annotations

from jaxscope.log.store import RunDir
from jaxscope.model import predictions
from jaxscope.model.causes import recompiled
from jaxscope.model.function_lookup import number_of
from jaxscope.model.load import Tail
from jaxscope.model.predictions import PENDING
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.present.render import text
from jaxscope.report import function_summary, phrases
from jaxscope.report.escape import escape
from jaxscope.report.phrases import Places, function_name
from jaxscope.rules.carried_state import fix
from jaxscope.schema.events import Compiled, PhaseFailed

DIFFERENCES = 3


class Follower:
    """Follows a run's logs. Speaks of the user's functions only: eager operations compile by the hundred."""

    def __init__(self, directory: RunDir) -> None:
        self._tail = Tail(directory)
        self._said: set[str] = set()

    @property
    def run(self) -> Run:
        """What is known so far."""
        return self._tail.run

    def poll(self) -> list[str]:
        """The lines that are new since the last call."""
        found = []
        for event, c in self._tail.poll():
            if c is None or not isinstance(event, (Compiled, PhaseFailed)) or c.id in self._said:
                continue
            if c.function.user:
                self._said.add(c.id)
                if recompiled(c):
                    found.append(live_line(self.run, c))
                found += [warning(self.run, p) for p in predictions.of(self.run, c) if p.status == PENDING]
        return found


def warning(run: Run, p: predictions.Prediction) -> str:
    """A recompile that is still to come, and how to avoid it."""
    n = number_of(run, p.after)
    mark = f" #{n}" if n else ""
    said = f"{escape(text(predictions.sentence(p)), 300)}; {escape(text(fix(p).words), 200)}"
    return f"jaxscope: {function_name(p.after.function)}{mark}: {said}"


def live_line(run: Run, c: Compilation) -> str:
    """``jaxscope: train_step #4 (step 376, traced, 7.0 s, train.py:88): batch['ids']: i32[32,512] → ...``"""
    n = number_of(run, c)
    said = "; ".join(phrases.first_and_more(phrases.why(run, c), DIFFERENCES))
    mark = f" #{n}" if n else ""
    return f"jaxscope: {function_name(c.function)}{mark} ({function_summary.circumstances(c, Places(run))}): {said}"
