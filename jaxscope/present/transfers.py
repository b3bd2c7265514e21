"""Word the facts of transfers between host and devices."""

from __future__ import annotations

from jaxscope.model.run import Run
from jaxscope.model.transfers import Transfer
from jaxscope.present.spans import Span
from jaxscope.present.text import brief, function_name, seconds

LONG_S, LONG_SHARE = 0.05, 0.01  # a wait is long from so many seconds, or this share of the run


def long(run: Run, waited: float) -> bool:
    """Return whether the program waited so long for values from the devices that it is worth a line."""
    return waited > min(LONG_S, LONG_SHARE * (run.seconds or 0.0))


def waiting(waited: float) -> list[Span]:
    """Return ``the program waited 1.5 s for values from the devices``."""
    return ["the program waited ", (seconds(waited), "figure"), " for values from the devices"]


def name(t: Transfer) -> str:
    """Return the expression that copied, ``float(loss)``; without one the arguments or the kind of the
    transfer.
    """
    if t.text is None and t.function is not None:
        paths = ", ".join(t.paths[:3]) + (", ..." if len(t.paths) > 3 else "")
        return brief(f"{paths} of {function_name(t.function)}", 80)
    return brief(t.text or t.kind, 80)
