"""Define a metaclass for widgets with abstract methods: it joins Textual's metaclass and the metaclass of
Python's abstract classes."""

from __future__ import annotations

from abc import ABCMeta

# The metaclass of all widgets; a type checker does not know what type(Widget) is.
from textual.message_pump import _MessagePumpMeta


class AbstractMeta(ABCMeta, _MessagePumpMeta):
    """Let a widget have abstract methods: ``class Pane(Widget, metaclass=AbstractMeta)``."""
