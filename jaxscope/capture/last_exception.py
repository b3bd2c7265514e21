"""Read the exception that ended the program from ``sys.last_exc``, where the interpreter keeps it. No hook
such as ``sys.excepthook`` is installed."""

from __future__ import annotations

import sys

from jaxscope.capture import frames
from jaxscope.schema.events import Died

MAX_MESSAGE = 2000


def stored() -> BaseException | None:
    """Return the uncaught exception for which the interpreter last printed a traceback; None if there was
    none."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return error if isinstance(error, BaseException) else None


def uncaught() -> Died | None:
    """Return the event ``Died`` (an entry of the log) for the uncaught exception that ends the program: its
    class, its message and the user's lines. Return None if there is no such exception."""
    error = stored()
    if error is None:
        return None
    try:
        message = str(error)[:MAX_MESSAGE]
    except Exception:  # the program's own __str__
        message = ""
    return Died(
        error=type(error).__qualname__,
        message=message,
        stack=frames.raised_through(error.__traceback__),
        library=frames.raised_in(error.__traceback__),
    )
