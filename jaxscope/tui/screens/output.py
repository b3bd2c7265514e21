"""Show the program's output. The screen follows the end of the output until the user scrolls away from it."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from jaxscope.present.text import size
from jaxscope.tui.actions import bindings
from jaxscope.tui.lineview import LineView
from jaxscope.tui.screens.frame import View
from jaxscope.tui.textview import TextView


class OutputView(View):
    """The screen with the program's output."""

    NAME = "output"
    SCOPES = ("output",)
    BINDINGS = bindings("output")

    def panes(self) -> Iterable[Widget]:
        self.following = True
        self.text = TextView(
            title="Output",
            id="output",
            about="The program's stdout and stderr. f follows the end of the output.",
        )
        yield self.text

    def fill(self) -> None:
        output = self.scope.output
        if not output.exists:
            self.text.empty = (
                "The output went to the terminal that started the program. jaxscope run --detach records it."
            )
        elif not len(output.lines):
            self.text.empty = "Nothing was printed yet."
        lines = output.lines
        if self.text.text is not lines:
            self.text.show(lines, name="output")
        else:
            self.text.grown()
        if self.following and len(lines):
            self.call_after_refresh(self._to_the_end)
        self._say()

    def tick(self) -> None:
        super().tick()
        if len(self.scope.output.lines) != self.text.virtual_size.height:
            self.fill()

    def _to_the_end(self) -> None:
        with self.text.prevent(LineView.Moved):
            self.text.action_bottom()

    def _say(self) -> None:
        output = self.scope.output
        left = f"the first {size(output.skipped)} left out: {output.path}" if output.skipped else ""
        self.text.entitle("Output", left or ("following" if self.following and self.feed.running else ""))

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        super().on_line_view_moved(event)
        self.following = self.text.cursor >= self.text.line_count - 1
        self._say()

    def action_follow(self) -> None:
        self.following = not self.following
        if self.following:
            self._to_the_end()
        self._say()
