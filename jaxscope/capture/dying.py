"""The exception that ended the program, as the interpreter keeps it; nothing is hooked for it."""

from __future__ import annotations

import sys

from jaxscope.capture import frames
from jaxscope.schema.events import Died
from jaxscope.schema.keys import Frame

MAX_MESSAGE = 2000
MAX_FRAMES = 20


def uncaught() -> Died | None:
    """What the interpreter printed a traceback of before it began to exit; None: nothing."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if not isinstance(error, BaseException):
        return None
    found: list[Frame] = []
    trace = error.__traceback__
    while trace is not None:
        if frames.is_user(trace.tb_frame):
            code = trace.tb_frame.f_code
            found.append(Frame(code.co_filename, trace.tb_lineno, code.co_qualname))
        trace = trace.tb_next
    try:
        message = str(error)[:MAX_MESSAGE]
    except Exception:  # a __str__ of the program's
        message = ""
    return Died(error=type(error).__qualname__, message=message, stack=found[::-1][:MAX_FRAMES])
