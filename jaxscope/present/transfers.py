"""Write facts about transfers between host and devices as text."""

from __future__ import annotations

from jaxscope.model.run import Run
from jaxscope.model.transfers import Transfer
from jaxscope.present.spans import Span
from jaxscope.present.text import brief, function_name, seconds

LONG_S, LONG_SHARE = 0.05, 0.01  # a wait is long above these seconds, or above this share of the run


def is_long_wait(run: Run, waited: float) -> bool:
    """Return whether a report shows how long the run waited for values from the devices: ``waited`` (seconds)
    is more than 0.05 s or 1 % of the run."""
    return waited > min(LONG_S, LONG_SHARE * (run.seconds or 0.0))


def waiting(waited: float) -> list[Span]:
    """Return ``reading values on the host waited 1.5 s for the devices`` for ``waited`` seconds."""
    return ["reading values on the host waited ", (seconds(waited), "figure"), " for the devices"]


def name(t: Transfer) -> str:
    """Return a name for the transfers ``t`` between host and devices: the expression that caused them
    (``float(loss)``). If it is unknown, return the transferred arguments of a jitted function (``batch['x']
    of train_step``), or else the kind of the transfers (``device_put``)."""
    if t.text is None and t.function is not None:
        paths = ", ".join(t.paths[:3]) + (", ..." if len(t.paths) > 3 else "")
        return brief(f"{paths} of {function_name(t.function)}", 80)
    return brief(t.text or t.kind, 80)
