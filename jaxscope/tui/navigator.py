"""Define what a screen may use of the app, so that screens do not import the app."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from jaxscope.schema.keys import Frame
from jaxscope.tui.actions import Action
from jaxscope.tui.feed import Feed
from jaxscope.tui.rows.output import Output


class Navigator(Protocol):
    """The part of the app that screens use: the selection that all screens share, and the methods that lead
    from one screen to another.

    Attributes:
      actions: all actions, with the keys that the user configured.
      function, compilation: ids of the selected function and compilation; None: nothing is selected.
      instruction: the name of the HLO instruction at which the program screen is to open; None: at no
        instruction.
      place: the source line at which the program screen is to open; None: at no particular line.
      machine: the target (``--target``) whose program is shown; None: the machine that ran the program.
      finding: the id of the finding that the findings screen is to select; None: no change.
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
        """Return whether a key was pressed just now, so that long work should leave time for keys."""

    def select(
        self,
        *,
        function: str,
        compilation: str | None = None,
        instruction: str | None = None,
        place: Frame | None = None,
    ) -> None:
        """Select ``function`` and ``compilation`` (ids) for all screens; None: no compilation. The program
        screen then opens at the HLO ``instruction`` with this name, or at the source line ``place``; None: at
        no particular line."""

    def go(self, name: str) -> None:
        """Switch to the screen with this name, such as ``arrays``, once the keys already typed are
        handled."""

    def open_function(self, function: str) -> None:
        """Select ``function`` and open the functions screen."""

    def outside(self, command: Sequence[str], name: str, instead: str | None = None) -> None:
        """Run ``command`` in the terminal and return to the view when it ends. If it cannot be run, show
        ``instead``, or if that is None, ``name`` (of the command) and the error."""

    def output_tail(self) -> list[str]:
        """Return the last 200 lines that the program printed."""
