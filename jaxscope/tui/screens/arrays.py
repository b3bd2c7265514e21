"""The place of live arrays; says what will be here and what is known meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from jaxscope.tui.screens.frame import View, Words


class Arrays(View):
    NAME = "arrays"

    def panes(self) -> Iterable[Widget]:
        yield Words(id="empty", classes="stays")

    def fill(self) -> None:
        self.words("empty").say(
            [],
            [("Arrays are not recorded yet.", "bold")],
            [],
            ["Here will stand the live arrays by name: how many, how large on all devices and on each, how they are laid out over the mesh, and which of them grow."],
            [],
            ["Until then: the arguments of every compiled call with their shardings are in ", ("2 Functions", "key"), ", what each program holds in memory is in the header of ", ("3 Program", "key"), "."],
        )  # fmt: skip
