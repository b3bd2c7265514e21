"""The exception that ended the program, as the interpreter keeps it; nothing is hooked for it."""

from __future__ import annotations

import sys

from jaxscope.capture import frames
from jaxscope.schema.events import Died

MAX_MESSAGE = 2000


def uncaught() -> Died | None:
    """What the interpreter printed a traceback of before it began to exit; None: nothing."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if not isinstance(error, BaseException):
        return None
    try:
        message = str(error)[:MAX_MESSAGE]
    except Exception:  # a __str__ of the program's
        message = ""
    return Died(
        error=type(error).__qualname__, message=message, stack=frames.raised_through(error.__traceback__)
    )
