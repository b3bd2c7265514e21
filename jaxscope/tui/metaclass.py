"""Widgets some of whose methods their subclasses must give: Textual's metaclass and Python's abstract classes
in one.
"""

from __future__ import annotations

from abc import ABCMeta

from textual.message_pump import (
    _MessagePumpMeta,  # of all its widgets; type(Widget) says nothing to a type checker
)


class AbstractMeta(ABCMeta, _MessagePumpMeta):
    """Let a widget have abstract methods: ``class Pane(Widget, metaclass=AbstractMeta)``."""
