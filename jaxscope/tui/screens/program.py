"""Show one program: the user's source, its StableHLO and its HLO, side by side.

The line under the cursor in one pane marks the lines of the other panes that correspond to it.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual.containers import Horizontal
from textual.events import DescendantFocus
from textual.widget import Widget

from jaxscope.analysis.hlo.fusions import Fusion
from jaxscope.log.store import RunDir
from jaxscope.model import sources
from jaxscope.model.records import Compilation
from jaxscope.present.runs import compilation_name
from jaxscope.schema.keys import Frame
from jaxscope.tui import links, tokens
from jaxscope.tui.actions import bindings
from jaxscope.tui.dialogs import Page, Picker
from jaxscope.tui.feed import APART_BYTES
from jaxscope.tui.lines import Lines
from jaxscope.tui.lineview import LineView
from jaxscope.tui.paragraphs import Paragraphs
from jaxscope.tui.rows import machines
from jaxscope.tui.rows import program as rows
from jaxscope.tui.rows.functions import Other, other_columns, others
from jaxscope.tui.screens.machines import ByMachine
from jaxscope.tui.textview import NOTHING, TextView

# Not Textual's loading indicator, because parsing its style rules takes a fifth of the time for a key.
READING = "reading …"
TITLES = {"stablehlo": "StableHLO, as lowered", "hlo": "HLO, optimized"}


class ProgramView(ByMachine):
    """The screen with the source, the StableHLO and the HLO of one program."""

    NAME = "program"
    SCOPES = ("program", *ByMachine.SCOPES)
    BINDINGS = bindings("program")

    def panes(self) -> Iterable[Widget]:
        self.shown: tuple[str, ...] | None = None  # the machine, compilation and texts shown
        self.reading: str | None = None  # the compilation that is shown although none was selected
        self.file: str | None = None
        self.links, self.linked = links.NONE, False
        self.by: dict[str, dict[links.Place, list[int]]] = {"stablehlo": {}, "hlo": {}}
        self.stage = "hlo"  # the text that is shown if there is room for one only
        self.source = TextView(
            title="source",
            id="source",
            about="Your code. Moving here marks the operations that come from a line.",
            empty="The source line is unknown, or its file is not on this machine.",
        )
        self.stages = {
            stage: TextView(
                title=title,
                id=stage,
                about=f"{title}. Moving here marks the source line of an operation;"
                f" ] and [ go to the next and previous marked line.",
            )
            for stage, title in TITLES.items()
        }
        yield Paragraphs(id="machines")
        yield Paragraphs(id="summary", classes="stays")
        yield Paragraphs(id="verdict")
        with Horizontal(id="columns"):
            yield self.source
            yield from self.stages.values()
        yield Paragraphs(id="link", classes="stays")

    def _chosen(self) -> Compilation | None:
        """Return the compilation to show: the selected one, else the one shown before, else the latest of the
        selected function, else that of ``rows.default``. None if no call was recorded."""
        run, app = self.feed.run, self.scope
        c = run.compilations.get(app.compilation or "")
        if c is not None and app.function in (None, c.function.id) and not c.only_missed:
            return c
        read = run.compilations.get(self.reading or "")  # it stays, even if a newer compilation is recorded
        if read is not None and app.function in (None, read.function.id):
            return read
        return rows.default(run, app.function)

    def compilation_to_compare(self) -> Compilation | None:
        return self._chosen()

    def _seen(self) -> machines.Seen | None:
        """Return what corresponds on the selected machine to the compilation to show; None: there is no
        compilation."""
        c = self._chosen()
        return machines.seen_as(c, self.machine(), self.feed.run) if c is not None else None

    def fill(self) -> None:
        seen = self._seen()
        self.say_machines(seen.asked if seen is not None else None)
        if seen is None:
            self.words("verdict").say()
            self.words("summary").say([("No program yet: nothing was compiled.", "dim")])
            self._fold()
            return
        if seen.machine.target is None:
            compilation = seen.compilation or seen.asked
            self.words("summary").say(rows.summary(seen.run, compilation, seen.program, seen.texts))
        else:
            self.words("summary").say(machines.summary(seen))
        # With targets, the line stays even if it is empty. Otherwise selecting a target would move the texts.
        self.words("verdict").set_class(len(self.machines()) > 1, "stays")
        self.words("verdict").say(machines.verdict(seen))
        wanted = [seen.machine.name or "", seen.asked.id]
        if seen.program is not None:
            wanted += sorted(seen.program.texts.values())
            wanted += [seen.program.state] if seen.machine.target is not None else []
        if tuple(wanted) != self.shown:
            self.shown = tuple(wanted)
            self._open(seen)
        elif self.linked:
            self._arrive()
        self.reading = seen.asked.id if seen.asked.program in self.feed.run.programs else None
        self._fold()

    def _open(self, on_machine: machines.Seen) -> None:
        """Show the source file of ``on_machine``, and start a thread that loads the texts of its program."""
        self.links, self.by, self.linked = links.NONE, {"stablehlo": {}, "hlo": {}}, False
        program, machine = on_machine.program, on_machine.machine
        host = machine.target is None and on_machine.compilation is not None
        target = "" if machine.name is None else f", for {machines.display_name(machine)}"
        blobs = dict(program.texts) if program is not None else {}
        for stage, view in self.stages.items():
            view.show(NOTHING)
            view.entitle(TITLES[stage] + target)
            if stage in blobs:
                view.empty = READING
            elif host:
                view.empty = rows.absent(on_machine.run, on_machine.compilation or on_machine.asked, stage)
            else:
                view.empty = machines.absent(on_machine, stage)
        function = on_machine.asked.function.seen
        self._show_file(function.file, function.line)
        self.words("link").say()
        if blobs:
            shown, large = self.shown, program is not None and sum(program.text_bytes.values()) > APART_BYTES
            self.run_worker(
                lambda: self._load(shown, on_machine.directory, blobs, large),
                thread=True,
                exclusive=True,
                group="program",
            )

    def _load(self, shown: object, directory: RunDir, blobs: dict[str, str], large: bool) -> None:
        """Load the texts of a program from the run ``directory``, then the slower links between their lines
        and the source. This method runs in a separate thread.

        Args:
          shown: the value of ``self.shown`` at the start; if that has changed since, the result is not used.
          blobs: the hash of each text, by ``stablehlo`` or ``hlo``.
          large: whether to make the links in another process.
        """
        for stage in ("hlo", "stablehlo"):
            if stage in blobs:
                try:
                    text, trouble = Lines(directory.data(blobs[stage])), ""
                except Exception as e:  # damaged, gone or too large: shown in place of the text
                    text, trouble = Lines(""), f"The text cannot be read: {e}"
                self.app.call_from_thread(self._loaded, shown, stage, text, trouble)
        arguments = (directory, blobs.get("hlo"), blobs.get("stablehlo"))
        try:
            if large:  # making the links in this process would block the screen
                found = links.joined(self.feed.processes.each(links.in_pieces, *arguments))
            else:
                found = links.of_run(*arguments)
        except Exception:  # for example, the view was closed and ended the other process
            found = links.NONE
        by = {"stablehlo": found.stablehlo.lines(), "hlo": found.hlo.lines()}
        self.app.call_from_thread(self._linked, shown, found, by)

    def _loaded(self, shown: object, stage: str, text: Lines, trouble: str) -> None:
        """Show the ``text`` that ``_load`` loaded, or the error ``trouble``, unless another program is shown
        by now."""
        if shown == self.shown:
            view = self.stages[stage]
            view.empty = trouble
            view.show(text, tokens.hlo if stage == "hlo" else tokens.stablehlo)

    def _linked(
        self, shown: object, line_links: links.Links, by: dict[str, dict[links.Place, list[int]]]
    ) -> None:
        """Use the links that ``_load`` made, unless another program is shown by now. Show the source file
        from which most operations come, if none come from the shown file."""
        if shown != self.shown:
            return
        self.links, self.by, self.linked = line_links, by, True
        if self._arrive():
            return
        if self.file not in {file for file, _ in self._made()}:
            files = (line_links.stablehlo.files() + line_links.hlo.files()).most_common(1)
            if files:
                self._show_file(files[0][0], min(line for file, line in self._made() if file == files[0][0]))
        self._near()

    def _made(self) -> set[links.Place]:
        """Return the source lines from which operations of the StableHLO or the HLO come."""
        return {*self.by["hlo"], *self.by["stablehlo"]}

    def _arrive(self) -> bool:
        """Go to the source line and the HLO instruction that another screen selected, and clear the
        selection. Return False if neither was selected, or only an instruction that this program does not
        have."""
        app = self.scope
        place, name, app.place, app.instruction = app.place, app.instruction, None, None
        if place is not None:
            self._show_file(place.file, place.line)
        at = next((line for line, known in self.links.hlo.names.items() if known == name), None)
        if at is not None:
            self.stages["hlo"].go_to(at, center=True)
            self.stages["hlo"].focus()
            self._follow(self.stages["hlo"])
        elif place is not None:
            self._near()
        return at is not None or place is not None

    def _near(self) -> None:
        """Move the cursor of the source to the next line from which an operation of the program comes, unless
        it is on such a line. After the last such line of the file comes the first."""
        lines = sorted(line for file, line in self._made() if file == self.file)
        at = self.source.cursor + 1
        if lines and at not in lines:
            self.source.go_to(next((n for n in lines if n >= at), lines[0]) - 1, center=True)
        self._follow(self.source)

    def _show_file(self, file: str | None, line: int | None) -> None:
        """Show the source ``file`` at ``line`` (from 1); an empty pane if it cannot be read."""
        text = sources.of(self.feed.run)(file) if file else None
        self.file = file if text is not None else None
        with self.prevent(LineView.Moved), self.source.prevent(LineView.Moved):
            self.source.entitle(self.feed.places(whole=True).file(file) if file else "source")
            self.source.show(Lines(text or ""), tokens.python, name=file)
            if text is not None and line is not None:
                self.source.go_to(line - 1, center=True)

    def _follow(self, view: LineView) -> None:
        """Mark the lines of the panes that correspond to the line under the cursor of ``view``, and describe
        them in the line below the panes. If they are in another source file, show that file."""
        places: list[links.Place]
        if view is self.source:
            places = [(self.file, view.cursor + 1)] if self.file is not None else []
        else:
            stage_links = self.links.hlo if view is self.stages["hlo"] else self.links.stablehlo
            places = stage_links.places.get(view.cursor, [])
        lines = {stage: sorted({n for p in places for n in by.get(p, [])}) for stage, by in self.by.items()}
        for stage, other in self.stages.items():
            other.link(frozenset(lines[stage]), follow=other is not view)
        if view is not self.source:
            if places and places[0][0] != self.file:
                self._show_file(*places[0])
            self.source.link(frozenset(line - 1 for file, line in places if file == self.file))
        else:
            self.source.link(frozenset({view.cursor} if any(lines.values()) else ()), follow=False)
        if view is self.source and not any(lines.values()):
            self.words("link").say([("no operation of this program comes from this line", "dim")])
        else:
            self.words("link").say(
                rows.link(self.links, places, lines["stablehlo"], lines["hlo"], self.feed.places())
            )

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        super().on_line_view_moved(event)
        if event.view is self.focused or event.view is self.focused_view():
            self._follow(event.view)

    def on_line_view_opened(self, event: LineView.Opened) -> None:
        """On Enter in the source, move the focus to the pane of StableHLO or HLO. On Enter in one of those,
        move the focus to the source."""
        self.enter(self.stages[self.stage] if event.view is self.source else self.source)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        super().on_descendant_focus(event)
        for stage, view in self.stages.items():
            if view.has_focus:
                self.stage = stage
        self._fold()

    def _fold(self) -> None:
        """If the screen is too narrow for three panes, hide the text (StableHLO or HLO) that had the focus
        less recently. The key tab still reaches it."""
        for stage, view in self.stages.items():
            view.set_class(self.narrow and stage != self.stage, "folded")

    def action_other(self, by: int) -> None:
        c = self._chosen()
        other = rows.neighbor(self.feed.run, c, by) if c is not None else None
        if other is not None:
            self.scope.select(function=other.function.id, compilation=other.id)
            self.renew()

    def action_fusions(self) -> None:
        """Show the list of fusions; enter goes to the chosen one in the HLO."""
        seen = self._seen()
        texts = seen.texts if seen is not None else None
        if seen is None or texts is None or texts.hlo is None:
            coming = seen is not None and seen.program is not None and "hlo" in seen.program.texts
            self.notify("The HLO has not been read yet." if coming else "No HLO was recorded.", markup=False)
            return
        found = rows.fusions(texts)

        def show(chosen: Fusion | None) -> None:
            line = next(
                (n for n, name in self.links.hlo.names.items() if chosen and name == chosen.name), None
            )
            if line is not None:
                self.stages["hlo"].focus()
                self.stages["hlo"].go_to(line, center=True)

        whose = "" if seen.machine.name is None else f" for {machines.display_name(seen.machine)}"
        title = f"{len(found):,} fusions of {compilation_name(self.feed.run, seen.asked)}{whose}"
        self.app.push_screen(
            Picker(title, rows.fusion_columns(self.feed.places()), rows.fusion_id, found), show
        )

    def action_diff(self) -> None:
        """Let the user choose another compilation, then show how the current program differs from that of the
        chosen one."""
        run, c = self.feed.run, self._chosen()
        able = others(run, c, same=False) if c is not None else []
        if c is None or not able:
            self.notify("There is no other compilation to compare with.", markup=False)
            return

        def compare(chosen: Other | None) -> None:
            if chosen is not None and chosen.compilation is not None:
                before = chosen.compilation
                self.notify("comparing …", timeout=2, markup=False)
                self.run_worker(lambda: self._differ(before, c), thread=True, exclusive=True, group="diff")

        self.app.push_screen(Picker("Compare with", other_columns(run), lambda o: o.name, able), compare)

    def _differ(self, before: Compilation, after: Compilation) -> None:
        """Show how the program of ``after`` differs from that of ``before``. Runs in a separate thread."""
        run = self.feed.run
        for c in (before, after):
            if c.program in run.programs:
                self.feed.read(run.programs[c.program or ""])
        with self.feed.locked_run():
            text = rows.difference(
                run, self.feed.directory, before, after, max(40, min(130, self.app.size.width * 9 // 10) - 8)
            )
        title = f"{compilation_name(run, after)} compared with {compilation_name(run, before)}"
        self.app.call_from_thread(self.app.push_screen, Page(title, text))

    def place(self) -> Frame | None:
        if self.file is None or self.source.cursor < 0:
            return None
        return Frame(self.file, self.source.cursor + 1, "")
