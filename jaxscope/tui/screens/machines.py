"""Define the base class of the screens that show a program for one of several machines: the host, on which
the program ran, or a target, which is another accelerator for which it was compiled too."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from textual.binding import Binding

from jaxscope.model.records import Compilation
from jaxscope.present.runs import compilation_name
from jaxscope.tui import actions
from jaxscope.tui.cells import Part
from jaxscope.tui.dialogs import Picker
from jaxscope.tui.rows import machines as rows
from jaxscope.tui.screens.frame import View

ALONE = "No other targets. Use jaxscope run --target v5e:4x4; jaxscope targets lists what is possible."


class ByMachine(View):
    """A screen that shows the programs of one machine: the host or a target (another accelerator). All
    screens of this class share the selected machine."""

    SCOPES: ClassVar[tuple[str, ...]] = ("machines",)
    BINDINGS: ClassVar[list[Binding]] = actions.bindings("machines")

    @abstractmethod
    def compilation_to_compare(self) -> Compilation | None:
        """Return the compilation of the main run for which ``action_machines`` compares the programs of all
        machines. None if nothing was compiled."""

    def machines(self) -> list[rows.Machine]:
        """Return all machines that the user can select."""
        return rows.machines(self.feed.recordings)

    def machine(self) -> rows.Machine:
        """Return the selected machine; the host if none is selected, or if the selected one does not
        exist."""
        return rows.find(self.machines(), self.scope.machine)

    def elsewhere(self) -> str | None:
        machine = self.machine()
        return rows.display_name(machine) if machine.name is not None else None

    def say_machines(self, c: Compilation | None) -> None:
        """Show the line of machines with the selected one marked; nothing if there is only the host. ``c`` is
        the compilation whose state is shown for each target, as in ``rows.strip``."""
        key = {a.id: actions.spelled(a.keys) for a in self.scope.actions}
        keys = key["machines.next"], key["machines.beside"]
        width = self.app.size.width
        line: list[Part] = rows.strip(self.machines(), self.machine(), c, self.feed.run, keys, width)
        self.words("machines").say(line)

    def action_machine(self, by: int) -> None:
        found = self.machines()
        if len(found) < 2:
            self.notify(ALONE, markup=False)
            return
        self.scope.machine = found[(found.index(self.machine()) + by) % len(found)].name
        self.renew()

    def action_machines(self) -> None:
        """Let the user choose a machine from a list that compares the programs of one compilation."""
        found, c = self.machines(), self.compilation_to_compare()
        if len(found) < 2 or c is None:
            self.notify(ALONE if len(found) < 2 else "Nothing was compiled yet.", markup=False)
            return

        def take(chosen: rows.Seen | None) -> None:
            if chosen is not None:
                self.scope.machine = chosen.machine.name
                self.renew()

        title = f"{compilation_name(self.feed.run, c)} for each target; only the host ran it"
        each = [rows.seen_as(c, machine, self.feed.run) for machine in found]
        self.app.push_screen(Picker(title, rows.columns(found), rows.seen_id, each), take)
