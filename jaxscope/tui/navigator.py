"""Define what a screen may ask of the app, so that screens do not import the app."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from jaxscope.schema.keys import Frame
from jaxscope.tui.actions import Action
from jaxscope.tui.feed import Feed
from jaxscope.tui.rows.output import Output


class Navigator(Protocol):
    """The selection that all screens share, and the functions that lead from one screen to another.

    Attributes:
      feed: the run, which is followed while it is written.
      output: the output of the program.
      actions: all keys and commands, including the keys that the user configured.
      function, compilation, instruction, place: the selection; None: nothing is selected.
      machine: the target whose program is shown; None: the machine on which the program ran.
      finding: the id of the selected finding.
      starred: ids of functions that the user marked.
      hidden: codes of findings that the user hid.
    """

    feed: Feed
    output: Output
    actions: Sequence[Action]
    function: str | None
    compilation: str | None
    instruction: str | None
    place: Frame | None
    machine: str | None
    finding: str | None
    starred: frozenset[str]
    hidden: frozenset[str]

    @property
    def hurried(self) -> bool:
        """Return whether keys are waiting."""

    def select(
        self,
        *,
        function: str,
        compilation: str | None = None,
        instruction: str | None = None,
        place: Frame | None = None,
    ) -> None:
        """Select ``function`` and a part of it on all screens."""

    def go(self, name: str) -> None:
        """Open the screen ``name`` after the keys that are waiting."""

    def open_function(self, function: str) -> None:
        """Select ``function`` and open the screen of functions."""

    def outside(self, command: Sequence[str], name: str, instead: str | None = None) -> None:
        """Give the terminal to ``command`` until it ends."""

    def output_tail(self) -> list[str]:
        """Return the last lines that the program printed."""
