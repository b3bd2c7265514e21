"""Widgets some of whose methods their subclasses must give: Textual's metaclass and Python's abstract classes in one."""

from __future__ import annotations

from abc import ABCMeta

from textual.message_pump import MessagePump


class AbstractMeta(ABCMeta, type(MessagePump)):  # type: ignore[misc]  # a metaclass that is only known at run time
    """``class Pane(Widget, metaclass=AbstractMeta)``: what is ``@abstractmethod`` in it must be there to make one."""
