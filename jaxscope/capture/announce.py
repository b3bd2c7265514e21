"""Notify subscribers when a recording of this process begins or ends.

This module imports nothing else of jaxscope, so that a function wrapped by ``jaxscope.watch`` costs nothing
until a recording begins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

current: Any = None  # the Session recording this process, or None
_listeners: list[Callable[[Any], None]] = []


def subscribe(listener: Callable[[Any], None]) -> None:
    """Call ``listener`` whenever a recording of this process begins or ends.

    Its argument is the recording (a ``capture.session.Session``) at the beginning, and None at the end. If a
    recording is in progress now, ``listener`` is also called at once.
    """
    _listeners.append(listener)
    if current is not None:
        listener(current)


def notify(session: Any) -> None:
    """Make ``session`` (a ``capture.session.Session``) the recording in progress, and call all subscribed
    listeners with it. None: from now on, no recording is in progress."""
    global current
    current = session
    for listener in _listeners:
        listener(session)
