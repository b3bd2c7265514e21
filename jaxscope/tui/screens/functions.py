"""Show the functions, the compilations of the selected function, and the cache key of a compilation. The key
is compared with an earlier key, which shows why the function recompiled."""

from __future__ import annotations

from collections.abc import Iterable

from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from jaxscope.model.causes import compared
from jaxscope.model.records import Function
from jaxscope.present.functions import MISSED
from jaxscope.present.text import count, function_name
from jaxscope.schema.findings import CERTAIN
from jaxscope.schema.keys import Frame
from jaxscope.tui.actions import bindings
from jaxscope.tui.dialogs import Picker
from jaxscope.tui.lineview import LineView
from jaxscope.tui.paragraphs import Paragraphs
from jaxscope.tui.rows import functions as rows
from jaxscope.tui.screens.frame import View
from jaxscope.tui.tableview import TableView


class Functions(View):
    """The screen with the functions, their compilations and their cache keys."""

    NAME = "functions"
    SCOPES = ("functions",)
    BINDINGS = bindings("functions")

    def panes(self) -> Iterable[Widget]:
        self.filled_for: str | None = None  # the function selected when the screen was last filled
        self.against: str | None = None  # the compilation to compare with; None: that with the nearest key
        self.functions: TableView[Function] = TableView(
            (),
            lambda f: f.id,
            title="Functions",
            id="functions",
            empty=(
                "No function was compiled yet. Run jaxscope doctor to check that compilations can be"
                " recorded."
            ),
            about=(
                "Your functions, the slowest first; then library functions and eager operations. Calls"
                " are counted for watched functions; an empty cell is unknown."
            ),
        )
        self.attempts: TableView[rows.Attempt] = TableView(
            (),
            lambda a: a.compilation.id,
            title="Compilations",
            id="attempts",
            about=(
                "The calls of the function that traced, lowered or compiled; then those that only left"
                " the fast path."
            ),
        )
        self.key: TableView[rows.KeyRow] = TableView(
            (),
            lambda r: r.name,
            title="Key",
            id="key",
            empty="The cache key of this call was not recorded.",
            about=(
                "JAX's cache key of this call, part by part, compared with the nearest earlier key. ≠"
                " marks differences."
            ),
        )
        yield self.functions
        with Horizontal(id="columns"):
            yield self.attempts
            with Vertical(id="right"):
                yield Paragraphs(id="reasons")
                yield self.key

    def fill(self) -> None:
        run, app = self.feed.run, self.scope
        if not self.feed.running:
            self.functions.empty = (
                "No function was compiled. Run jaxscope doctor to check that compilations can be recorded."
            )
        with self.prevent(LineView.Moved):
            self.functions.columns = tuple(rows.function_columns(run, app.starred, self.feed.places()))
            found = rows.functions(run, app.starred)
            self.functions.show(found)
            users = sum(f.user for f in found)
            others = f", {count(len(found) - users, 'other')}" if len(found) > users else ""
            self.functions.entitle("Functions", f"{users:,} of yours{others}" if found else "")
            # Not more lines than needed, because the key below is long.
            self.functions.styles.height = (
                "2fr" if self.narrow else max(5, min(len(found) + 2, self.size.height // 3))
            )
            chosen = self.functions.current
            if app.function is not None and (chosen is None or chosen.id != app.function):
                elsewhere = app.function != self.filled_for  # the function was selected on another screen
                if (
                    elsewhere
                    and self.functions.needle
                    and app.function not in {f.id for f in self.functions.items}
                ):
                    self.functions.search("")
                self.functions.select(app.function)
        self.filled_for = app.function
        self._fill_attempts()

    def _fill_attempts(self) -> None:
        """Show the compilations of the selected function. If none of them is selected, select the slowest
        recompilation."""
        run, app = self.feed.run, self.scope
        f = self.functions.current
        with self.prevent(LineView.Moved):
            if f is None:
                self.attempts.empty = "" if self.functions.needle else "Choose a function above."
                self.attempts.show([])
            else:
                app.function = f.id
                self.attempts.entitle(f"Compilations of {function_name(f)}")
                self.attempts.empty = f"{function_name(f)} was never compiled."
                found = rows.attempts(run, f)
                self.attempts.columns = tuple(rows.attempt_columns(run, found))
                self.attempts.show(found)
                if not any(a.compilation.id == app.compilation for a in found):
                    # Select the recompilation that took longest.
                    again = [a for a in found if a.number and a.number > 1]
                    most = max(
                        again, key=lambda a: a.compilation.seconds, default=found[0] if found else None
                    )
                    app.compilation = most.compilation.id if most is not None else None
                self.attempts.select(app.compilation)
        self._fill_key()

    def _fill_key(self) -> None:
        """Show the cache key of the selected compilation beside the key with which it is compared."""
        run, a = self.feed.run, self.attempts.current
        if a is None:
            self.key.show([])
            self.words("reasons").say()
            return
        c = a.compilation
        self.scope.compilation = c.id
        comparison = compared(run, c)
        against = run.compilations.get(self.against or "")
        if against is c or (against is not None and against.function is not c.function):
            against = None
        nearest = against or (comparison.nearest if comparison is not None else None)
        n = run.number(nearest) if nearest is not None else None
        title = f"#{a.number}" if a.number else "fast-path miss"
        if nearest is not None:
            which = f"#{n}" if n else "a fast-path miss"
            title += f" compared with {which}" if against else f" compared with the nearest, {which}"
        before = f"#{n or '?'}" if against else "nearest earlier key"
        self.key.columns = tuple(rows.key_columns(compared=nearest is not None, before_title=before))
        missed = ""
        if comparison is not None and nearest is not None and against is None:
            likely = "" if comparison.causes[0].certainty == CERTAIN else " · likely cause"
            missed = MISSED[comparison.level] + likely
        self.key.entitle(f"Key of {title}", missed)
        self.key.show(rows.key_of(run, c, against))
        self.words("reasons").say(rows.reasons(run, c, against), [(rows.where(c, self.feed.places()), "dim")])

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        super().on_line_view_moved(event)
        if event.view is self.functions:
            f = self.functions.current
            if f is not None and f.id != self.scope.function:
                self.scope.select(function=f.id)
                self.filled_for = f.id
            self._fill_attempts()
        elif event.view is self.attempts:
            self._fill_key()

    def on_line_view_opened(self, event: LineView.Opened) -> None:
        if event.view is self.functions:
            self.enter(self.attempts)
        elif event.view is self.attempts:
            self.enter(self.key)
        else:
            self.action_program()

    def action_compare(self) -> None:
        """Let the user choose another compilation of the function, and compare the cache key of the current
        compilation with the key of the chosen one."""
        run, a = self.feed.run, self.attempts.current
        able = rows.others(run, a.compilation, same=True) if a is not None else []
        if not able:
            self.notify("This function has no other compilation to compare with.", markup=False)
            return
        if self.against is not None:
            able = [rows.Other(None, "the nearest earlier key"), *able]

        def beside(chosen: rows.Other | None) -> None:
            if chosen is not None:
                self.against = chosen.compilation.id if chosen.compilation is not None else None
                self._fill_key()

        self.app.push_screen(
            Picker("Compare its key with", rows.other_columns(run), lambda o: o.name, able), beside
        )

    def action_program(self) -> None:
        self.scope.go("program")

    def action_star(self) -> None:
        f = self.functions.current
        if f is not None:
            self.scope.starred ^= {f.id}
            self.fill()

    def place(self) -> Frame | None:
        f, a = self.functions.current, self.attempts.current
        if self.focused_view() is not self.functions and a is not None and a.compilation.site is not None:
            return a.compilation.site
        return f.defined if f is not None else None
