"""Who is told that a recording of this process began or ended.

Imports nothing, so that code which only watches functions costs nothing until something records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

current: Any = None  # the Session recording this process, or None
_listeners: list[Callable[[Any], None]] = []


def subscribe(listener: Callable[[Any], None]) -> None:
    """Tell ``listener`` of the recording now under way, and of each start and end (None)."""
    _listeners.append(listener)
    if current is not None:
        listener(current)


def tell(session: Any) -> None:
    global current
    current = session
    for listener in _listeners:
        listener(session)
