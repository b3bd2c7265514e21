"""Tables and texts of any size: the cursor stays where it was put, nothing scrolls under the reader."""

from __future__ import annotations

import asyncio

import pytest
import screen_runs
from textual.app import App, ComposeResult

from jaxscope.model.load import load
from jaxscope.tui import links, worker_process
from jaxscope.tui.cells import Column
from jaxscope.tui.lines import Growing, Lines
from jaxscope.tui.style import CSS, DARK
from jaxscope.tui.tableview import TableView
from jaxscope.tui.textview import TextView


class Bare(App):
    CSS = CSS

    def __init__(self, widget):
        super().__init__()
        self.widget = widget
        self.moves = []

    def on_line_view_moved(self, event):
        self.moves.append(event)

    def get_theme_variable_defaults(self):
        return DARK

    def compose(self) -> ComposeResult:
        yield self.widget


def table(**how):
    columns = [Column("name", lambda i, _: f"item {i}"), Column("n", lambda i, _: str(i), 9, right=True, order=lambda i: None if i % 7 == 0 else i, first=True)]  # fmt: skip
    return TableView(columns, str, **how)


def drive(widget, steps, size=(60, 20)):
    async def go():
        app = Bare(widget)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            widget.focus()
            await pilot.pause()
            return await steps(pilot)

    return asyncio.run(go())


def test_the_cursor_stays_on_its_item_and_the_item_where_it_is_on_the_screen():
    view = table()

    async def steps(pilot):
        view.show(list(range(100)))
        await pilot.pause()
        view.go_to(50)
        await pilot.pause()
        row = view.cursor - view.scroll_offset.y
        view.show(list(range(-30, 100)))  # thirty more above it
        await pilot.pause()
        assert view.current == 50
        assert view.cursor - view.scroll_offset.y == row
        view.show([1, 2, 50])
        await pilot.pause()
        assert view.current == 50
        view.show([1, 2])  # it is gone
        await pilot.pause()
        assert view.current == 2

    drive(view, steps)


def test_what_is_not_known_is_sorted_last_in_either_direction():
    view = table()

    async def steps(pilot):
        view.show(list(range(10)))
        await pilot.press("s")
        await pilot.pause()
        return list(view.items)

    assert drive(view, steps) == [9, 8, 6, 5, 4, 3, 2, 1, 0, 7]


@pytest.mark.parametrize("width", [1, 5, 12, 40, 200])
def test_a_row_is_exactly_as_wide_as_the_table(width):
    view = table()

    async def steps(pilot):
        view.show([0, 1])
        await pilot.pause()
        return [view.render_line(y).cell_length for y in range(4)], view.size.width

    lengths, width = drive(view, steps, size=(width, 8))
    assert set(lengths) == {width}


def test_a_column_is_as_wide_as_its_cells_need_where_there_is_room_and_an_empty_one_gives_way():
    columns = [
        Column("name", lambda i, _: "n" * 20),
        Column("place", lambda i, _: "p" * 12, 4),
        Column("cost", lambda i, _: "", 6),
    ]
    view = TableView(columns, str)

    async def steps(pilot):
        view.show([0])
        await pilot.pause()
        rows = []
        for width in (60, 40, 32):
            await pilot.resize_terminal(width, 6)
            await pilot.pause()
            rows.append((view.render_line(1).text, view.under_cursor()))
        return rows

    (wide, nothing), (narrow, none), (narrower, cut) = drive(view, steps, size=(60, 6))
    assert "n" * 20 in wide and "p" * 12 in wide and "n" * 20 in narrow and "p" * 12 in narrow
    assert (nothing, none, cut) == ("", "", "p" * 12) and "n" * 20 in narrower and "…" in narrower


def test_the_footer_text_explains_an_unknown_value():
    view = TableView([Column("line", lambda i, _: "?", unknown="the compiler kept no source line")], str)

    async def steps(pilot):
        view.show([0])
        await pilot.pause()
        return view.under_cursor()

    assert drive(view, steps) == "line ?: the compiler kept no source line"


def test_wide_letters_take_two_columns():
    view = TableView([Column("n", lambda i, _: "日本語日本語")], str)

    async def steps(pilot):
        view.show([0])
        await pilot.pause()
        return view.render_line(1).text

    assert drive(view, steps, size=(11, 6)) == "▸ 日本語日…"


def test_an_empty_table_says_what_would_be_here():
    view = table(empty="Nothing yet: press 2.")

    async def steps(pilot):
        await pilot.press("j", "k", "G", "enter", "y", "s")
        return "".join(view.render_line(y).text for y in range(6))

    assert "Nothing yet: press 2." in drive(view, steps)


def test_a_hundred_thousand_rows_draw_what_is_seen_and_nothing_else():
    drawn = []
    view = TableView([Column("n", lambda i, _: (drawn.append(i), str(i))[1])], str)

    async def steps(pilot):
        view.show(range(100_000))
        await pilot.pause()
        await pilot.press("G")
        await pilot.pause()
        assert view.current == 99_999

    drive(view, steps)
    assert len(drawn) < 200


def test_marks_from_another_pane_come_into_sight_and_do_not_come_back_as_moves():
    view = TextView()

    async def steps(pilot):
        view.show(Lines("\n".join(f"line {n}" for n in range(1000))))
        await pilot.pause()
        pilot.app.moves.clear()
        view.link(frozenset({500, 503}))
        await pilot.pause()
        text = "\n".join(view.render_line(y).text for y in range(18))
        assert "line 500" in text
        assert "┃  504 line 503" in text
        assert pilot.app.moves == []
        await pilot.press("j")
        await pilot.pause()
        assert len(pilot.app.moves) == 1

    drive(view, steps)


def test_a_line_of_megabytes_is_drawn_at_once():
    view = TextView()

    async def steps(pilot):
        view.show(Lines("x" * 5_000_000 + "\nshort"))
        await pilot.pause()
        await pilot.press("l", "j")
        assert view.cursor == 1
        assert len(view.copied(0)) < 5_000

    drive(view, steps)


async def finished(pilot, goes_on):
    for _ in range(2000):
        if not goes_on():
            return
        await pilot.pause(0.005)
    raise AssertionError("it never ended")


def test_a_long_search_goes_on_between_keys_and_finds_everything(monkeypatch):
    monkeypatch.setattr("jaxscope.tui.textview.SEARCH_S", -1.0)  # one slice at a time
    monkeypatch.setattr("jaxscope.tui.lines._LOOKED", 100)
    view = TextView()

    async def steps(pilot):
        view.show(Lines("".join(f"line {n} {'needle' if n % 7 == 3 else ''}\n" for n in range(400))))
        view.go_to(200)
        view.search("needle")
        assert view._search is not None and view.position().endswith("…")
        view.action_move(1)  # a key in between
        assert view.cursor == 201
        await finished(pilot, lambda: view._search is not None)
        assert view.found == list(range(3, 400, 7))
        assert view.cursor == 206  # the next one from where one was
        assert view.position() == "30/57"
        view.search("nowhere")
        view.search("line 39")  # typed on before the other had ended
        await finished(pilot, lambda: view._search is not None)
        assert view.found == [39, *range(390, 400)]
        view.search("")
        assert view.found == [] and view._search is None

    drive(view, steps)


def test_a_search_takes_in_what_is_printed_meanwhile_and_lets_go_of_what_is_gone(monkeypatch):
    monkeypatch.setattr("jaxscope.tui.lines.MOST_LINES", 100)
    view = TextView(numbers=False)
    text = Growing(["needle 0", "straw"])

    async def steps(pilot):
        view.show(text, name="output")
        view.search("needle")
        text.extend(["needle 2", "unfinished nee"])
        view.grown()
        assert view.found == [0, 2]
        text.replace_last("unfinished needle")
        view.grown()
        assert view.found == [0, 2, 3]
        text.extend(f"straw {n}" for n in range(98))  # the oldest lines go
        view.grown()
        assert text.dropped and view.found == [n for n in range(len(text)) if "needle" in text[n]]

    drive(view, steps)


def test_a_long_filter_goes_on_between_keys_and_takes_in_new_rows(monkeypatch):
    monkeypatch.setattr("jaxscope.tui.tableview.FILTER_S", -1.0)
    monkeypatch.setattr("jaxscope.tui.tableview.SLICE", 10)
    view = table()

    async def steps(pilot):
        view.show(list(range(300)))
        view.search("9")
        assert view._filtering is not None and view.position().endswith("…")
        view.action_move(1)
        view.show(list(range(320)))  # there are more meanwhile
        await finished(pilot, lambda: view._filtering is not None)
        assert list(view.items) == [n for n in range(320) if "9" in str(n)]
        view.search("99")
        view.search("31")
        await finished(pilot, lambda: view._filtering is not None)
        assert list(view.items) == [31, 131, 231, *range(310, 320)]
        view.search("")
        assert len(view.items) == 320

    drive(view, steps)


@pytest.mark.subprocess
def test_another_process_answers_in_one_piece_or_in_many_and_says_when_it_failed():
    others = worker_process.WorkerProcesses()
    assert others.call(len, "four") == 4
    assert list(others.each(iter, [0, 1, 2])) == [0, 1, 2]
    with pytest.raises(RuntimeError, match="int ended with 1 in another process"):
        others.call(int, "no number")
    assert not others._running


def test_links_in_pieces_are_the_same_links(tmp_path):
    directory = screen_runs.typical(tmp_path / "run")
    program = load(directory).programs["p0"]
    blobs = program.texts["hlo"], program.texts["stablehlo"]
    whole = links.of_run(directory, *blobs)
    assert whole.hlo.places and whole.stablehlo.places
    assert links.joined(links.in_pieces(directory, *blobs)) == whole


def test_a_row_that_has_gone_is_not_spelled_out_to_say_so():
    """What it stands for may be the whole run: its repr took a third of a second of a key's time."""

    class Item:
        def __init__(self, name):
            self.name = name

        def __repr__(self):
            raise AssertionError("spelled out")

    view = TableView([Column("name", lambda i, _: i.name)], lambda i: i.name)

    async def steps(pilot):
        view.show([Item(f"item {n}") for n in range(9)])
        view.go_to(4)
        view.show([Item(f"item {n}") for n in range(2, 9)])  # the same by name
        assert view.current.name == "item 4"
        view.show([view.items[n] for n in (6, 2, 1)])  # the same themselves
        assert view.current.name == "item 4" and view.cursor == 1

    drive(view, steps)


def counted(view):
    """The lines that are drawn from now on."""
    drawn, draw = [], view.render_line

    def one(y):
        drawn.append(view.scroll_offset.y + y)
        return draw(y)

    view.render_line = one
    return drawn


def test_a_step_of_the_cursor_draws_two_lines_and_no_other():
    view = TextView()

    async def steps(pilot):
        view.show(Lines("\n".join(f"line {n}" for n in range(100))))
        await pilot.press("down")
        await pilot.pause()
        drawn = counted(view)
        await pilot.press("down")
        await pilot.pause()
        assert sorted(drawn) == [1, 2]

    drive(view, steps)


def test_marks_from_another_pane_draw_the_lines_that_gain_or_lose_one():
    view = TextView()

    async def steps(pilot):
        view.show(Lines("\n".join(f"line {n}" for n in range(100))))
        view.link({3, 4, 70}, follow=False)
        await pilot.pause()
        drawn = counted(view)
        view.link({4, 5}, follow=False)
        await pilot.pause()
        assert sorted(drawn) == [3, 5]

    drive(view, steps)


def test_a_search_gives_way_to_somebody_who_types():
    view = TextView()

    async def steps(pilot):
        calm = view.pause()
        pilot.app.hurried = True
        assert view.pause() > calm

    drive(view, steps)


@pytest.mark.subprocess
def test_a_large_text_is_read_by_another_process_and_not_once_more_by_the_view(tmp_path, monkeypatch):
    from jaxscope.model import programs
    from jaxscope.tui import feed

    directory = screen_runs.typical(tmp_path / "run")
    monkeypatch.setattr(feed, "APART_BYTES", 0)
    monkeypatch.setattr(programs.programs, "analyze", lambda *_: pytest.fail("read by the view itself"))
    its = feed.Feed(directory)
    its.tail.poll()
    for program in its.run.programs.values():
        assert its.read(program).hlo is not None
    its.stop()


def test_the_view_merges_findings_with_one_root_cause_as_reports_do(typical, monkeypatch):
    from jaxscope.rules import registry
    from jaxscope.tui import feed

    monkeypatch.setattr(registry.root_cause, "with_what_follows", lambda run, found: list(found)[:1])
    its = feed.Feed(typical)
    its.tail.poll()
    its.texts = dict.fromkeys(its.run.programs)
    its._draw_conclusions()
    assert len(its.findings) == 1
    assert [f.identity for f in its.findings] == [f.identity for f in registry.findings(load(typical))]
    its.stop()
