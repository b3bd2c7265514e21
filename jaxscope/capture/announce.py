"""Notify subscribers when a recording of this process begins or ends.

Imports nothing else of jaxscope, so that watching a function costs nothing until something records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

current: Any = None  # the Session recording this process, or None
_listeners: list[Callable[[Any], None]] = []


def subscribe(listener: Callable[[Any], None]) -> None:
    """Call ``listener`` with the current recording, then with each new one, and with None at its end."""
    _listeners.append(listener)
    if current is not None:
        listener(current)


def notify(session: Any) -> None:
    """Make ``session`` (None: no recording) the current one, and call all listeners with it."""
    global current
    current = session
    for listener in _listeners:
        listener(session)
