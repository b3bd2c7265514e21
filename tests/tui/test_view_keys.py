"""Every key of the table does what its help says."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
import runs_to_see
from seen import screen, settled

from jaxscope.tui import actions
from jaxscope.tui.app import App

# One worker runs all of them: the last one asks whether every action was tried.
pytestmark = pytest.mark.xdist_group("keys of the view")

TRIED: set[str] = set()


def drive(directory, steps, *, size=(120, 40), **how):
    """Run ``steps(pilot, app)`` on the settled app and return what it returns."""

    async def go():
        app = App(directory, **how)
        async with app.run_test(size=size) as pilot:
            await settled(pilot)
            return await steps(pilot, app)

    return asyncio.run(go())


async def press(pilot, *keys):
    for key in keys:
        TRIED.update(a.id for a in actions.ACTIONS if key in a.keys.split(","))
        await pilot.press(key)
        await settled(pilot)


def test_numbers_open_the_seven_screens(typical):
    async def steps(pilot, app):
        for key, name, words in actions.VIEWS:
            await press(pilot, key)
            assert app.current_mode == name
            assert f"[{key} {words}" in screen(app)

    drive(typical, steps)


def test_enter_leads_from_a_function_to_its_cause_to_its_program_and_escape_back(typical):
    async def steps(pilot, app):
        await press(pilot, "enter")
        assert app.current_mode == "functions"
        assert "Key of #3 beside the nearest key, #2" in screen(app)
        assert "≠ x" in screen(app)
        await press(pilot, "enter")
        assert app.focused.id == "attempts"
        await press(pilot, "enter")
        assert app.focused.id == "key"
        await press(pilot, "enter")
        assert app.current_mode == "program"
        assert "train_step #3" in screen(app)
        await press(pilot, "escape")
        assert app.current_mode == "functions"
        await press(pilot, "backspace")
        assert app.current_mode == "overview"

    drive(typical, steps)


def test_the_selection_is_shared_between_screens(typical):
    async def steps(pilot, app):
        await press(pilot, "2", "tab", "k")  # compilation 2 of train_step
        assert "Key of #2" in screen(app)
        await press(pilot, "m")
        assert app.current_mode == "program"
        assert "train_step #2" in screen(app)
        await press(pilot, "full_stop")
        assert "train_step #3" in screen(app)
        await press(pilot, "comma", "comma")
        assert "train_step #1" in screen(app)
        await press(pilot, "2")
        assert "Key of #1" in screen(app)

    drive(typical, steps)


def test_a_line_of_source_marks_what_it_became_and_back(typical):
    async def steps(pilot, app):
        await press(pilot, "3")
        assert app.focused.id == "source"
        await press(pilot, "g", "j", "j", "j", "j", "j")  # line 6
        text = screen(app)
        assert (
            "train.py:6 → 1 StableHLO operation: multiply → 4 instructions: sum, mul.1, fusion.1, all-reduce.1"
            in text
        )
        hlo = app.screen.stages["hlo"]
        assert sorted(hlo.linked) == [5, 10, 17, 18]
        await press(pilot, "tab", "tab")
        assert app.focused is hlo
        await press(pilot, "right_square_bracket")
        assert hlo.cursor == 10
        await press(pilot, "left_square_bracket")
        assert hlo.cursor == 5
        await press(pilot, "G", "k", "k")  # the all-reduce's neighbour: the last instruction is on line 20
        await press(pilot, "down")
        assert app.screen.source.cursor == 10
        await press(pilot, "enter")
        assert app.focused.id == "source"

    drive(typical, steps)


def test_a_large_program_is_read_in_another_process_to_the_same_links(typical, monkeypatch):
    monkeypatch.setattr("jaxscope.tui.screens.program.APART_BYTES", 0)
    monkeypatch.setattr("jaxscope.tui.feed.APART_BYTES", 0)

    async def steps(pilot, app):
        await press(pilot, "3")
        assert "train.py:11 → 1 StableHLO operation: subtract → 1 instruction: sub.1" in screen(app)

    drive(typical, steps)


def test_searching_a_text_goes_to_the_places_found_and_escape_ends_it(typical):
    async def steps(pilot, app):
        await press(pilot, "3", "tab", "tab", "slash", *"fus")
        hlo = app.screen.stages["hlo"]
        assert "/fus  1/3" in screen(app)
        await press(pilot, "enter")
        assert app.focused is hlo
        first = hlo.cursor
        await press(pilot, "n")
        assert hlo.cursor == hlo.found[1] > first
        await press(pilot, "N")
        assert hlo.cursor == first
        await press(pilot, "escape")
        assert hlo.needle == "" and not app.screen.query_one("#finding").display

    drive(typical, steps)


def test_filtering_a_table_keeps_the_rows_that_hold_the_text(typical):
    async def steps(pilot, app):
        await press(pilot, "2", "slash", *"eval")
        assert [f.name for f in app.screen.functions.items] == ["eval_step"]
        assert "1 of 3" in screen(app)
        await press(pilot, "escape")
        assert len(app.screen.functions.items) == 3

    drive(typical, steps)


def test_sorting_goes_through_the_columns_and_back_to_the_natural_order(typical):
    async def steps(pilot, app):
        await press(pilot, "2")
        table = app.screen.functions
        natural = [f.name for f in table.items]
        await press(pilot, "s")
        assert [f.name for f in table.items] == ["add", "eval_step", "train_step"]
        assert "function ▴" in screen(app)
        for _ in range(sum(c.order is not None for c in table.columns)):
            await press(pilot, "s")
        assert [f.name for f in table.items] == natural

    drive(typical, steps)


def test_a_star_keeps_a_function_at_the_top_and_the_cursor_stays_on_it(typical):
    async def steps(pilot, app):
        await press(pilot, "2", "down", "w")
        table = app.screen.functions
        assert table.items[0].name == "eval_step" == table.current.name
        assert "★ eval_step" in screen(app)

    drive(typical, steps)


def test_moving_by_lines_pages_and_to_the_ends(tmp_path):
    directory = runs_to_see.typical(tmp_path / "run")
    (directory.path / "output.log").write_text("".join(f"line {n} {'x' * 200}\n" for n in range(1, 301)))

    async def steps(pilot, app):
        await press(pilot, "7")
        text = app.screen.text
        assert text.cursor == 299  # it follows
        await press(pilot, "g")
        assert text.cursor == 0
        for key, expected in (("j", 1), ("down", 2), ("k", 1), ("up", 0)):
            await press(pilot, key)
            assert text.cursor == expected
        await press(pilot, "pagedown")
        page = text.cursor
        assert 10 < page < 40
        await press(pilot, "space", "pageup")
        assert text.cursor == page
        await press(pilot, "home", "ctrl+d")
        assert text.cursor == page // 2
        await press(pilot, "ctrl+u")
        assert text.cursor == 0
        await press(pilot, "end", "G")
        assert text.cursor == 299
        await press(pilot, "l", "right")
        assert text.scroll_offset.x == 16
        await press(pilot, "h", "left")
        assert text.scroll_offset.x == 0
        assert app.screen.following
        await press(pilot, "f")
        assert not app.screen.following

    drive(directory, steps)


def test_copying_takes_the_line_and_not_what_is_drawn(typical):
    async def steps(pilot, app):
        await press(pilot, "7", "g", "y")
        return app.clipboard

    assert drive(typical, steps) == "epoch 1: loss 0.5"


def test_zoom_leaves_one_pane_and_escape_brings_the_others_back(typical):
    async def steps(pilot, app):
        await press(pilot, "2", "z")
        assert app.screen.maximized is app.screen.functions
        await press(pilot, "escape")
        assert app.screen.maximized is None and app.current_mode == "functions"
        await press(pilot, "z", "z")
        assert app.screen.maximized is None

    drive(typical, steps)


def test_shift_tab_goes_to_the_pane_before(typical):
    async def steps(pilot, app):
        await press(pilot, "2", "tab", "shift+tab")
        assert app.focused.id == "functions"

    drive(typical, steps)


def test_a_finding_leads_to_its_evidence_and_can_be_hidden(typical):
    async def steps(pilot, app):
        await press(pilot, "6")
        text = screen(app)
        assert "JX101" in text and "Evidence" in text and "Why is this bad?" in text
        await press(pilot, "enter")
        assert app.current_mode == "functions"
        assert "≠ x" in screen(app)
        await press(pilot, "6", "x")
        assert "JX101" not in [f.code for f in app.screen.table.items]

    drive(typical, steps)


def test_a_collective_leads_to_its_instruction(typical):
    async def steps(pilot, app):
        await press(pilot, "4")
        assert "1 group of 8 devices" in screen(app)
        await press(pilot, "enter")
        hlo = app.screen.stages["hlo"]
        assert app.current_mode == "program" and app.focused is hlo
        assert "all-reduce.1 =" in hlo.text[hlo.cursor]

    drive(typical, steps)


def test_help_speaks_of_the_focused_pane(typical):
    async def steps(pilot, app):
        await press(pilot, "3", "question_mark")
        text = screen(app)
        assert "Your code." in text and "The next line marked" in text
        await pilot.press("escape")
        await settled(pilot)
        await press(pilot, "2", "f1")
        assert "Your functions, the slowest first" in screen(app)

    drive(typical, steps)


def test_the_palette_finds_commands_and_functions(typical):
    async def steps(pilot, app):
        await pilot.press("ctrl+p")
        TRIED.add("palette")
        for letter in "eval":
            await pilot.press(letter)
        for _ in range(100):
            await pilot.pause(0.02)
            if "function: eval_step" in screen(app):
                break
        await pilot.press("down", "enter")
        for _ in range(100):
            await pilot.pause(0.02)
            if app.current_mode == "functions":
                break
        await settled(pilot)
        assert app.screen.functions.current.name == "eval_step"

    drive(typical, steps)


def test_colours_change_between_dark_and_light(typical):
    async def steps(pilot, app):
        before = app.current_theme.dark
        await press(pilot, "ctrl+t")
        assert app.current_theme.dark is not before
        assert "train_step" in screen(app)

    drive(typical, steps)


def test_pausing_stops_what_is_taken_in(typical):
    async def steps(pilot, app):
        await press(pilot, "p")
        assert app.feed.paused
        await press(pilot, "p")
        assert not app.feed.paused

    drive(typical, steps)


def test_the_editor_opens_at_the_line(typical, monkeypatch, tmp_path):
    opened = []
    monkeypatch.setenv("EDITOR", "vim -R")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr("jaxscope.tui.verbs.subprocess.run", lambda command, **_: opened.append(command))

    async def steps(pilot, app):
        monkeypatch.setattr(app, "suspend", contextlib.nullcontext)
        await press(pilot, "3", "o")

    drive(typical, steps)
    assert opened == [["vim", "-R", "+11", "train.py"]]


def test_without_an_editor_it_says_what_to_set(typical, monkeypatch):
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)

    async def steps(pilot, app):
        await press(pilot, "3", "o")
        return [n.message for n in app._notifications]

    assert any("set EDITOR" in m for m in drive(typical, steps))


def test_q_leaves_a_run_that_is_over(typical):
    async def steps(pilot, app):
        await press(pilot, "q")
        return app.return_value, app._exit

    assert drive(typical, steps, owned=True) == (None, True)


@pytest.mark.parametrize(("answer", "result"), [("d", "detach"), ("s", "stop"), ("escape", None)])
def test_q_asks_before_it_leaves_a_program_that_runs(tmp_path, answer, result):
    directory = runs_to_see.running(tmp_path / "run")

    async def steps(pilot, app):
        assert app.feed.running
        await pilot.press("q")
        await pilot.pause()
        assert "still running" in screen(app)
        await pilot.press(answer)
        await pilot.pause()
        return app.return_value, app._exit

    assert drive(directory, steps, owned=True) == (result, result is not None)


def test_q_does_not_ask_about_a_program_that_somebody_else_started(tmp_path):
    directory = runs_to_see.running(tmp_path / "run")

    async def steps(pilot, app):
        await pilot.press("q")
        await pilot.pause()
        return app._exit

    assert drive(directory, steps)


def test_every_action_was_tried_above():
    """The other way round: an action without a test. Complete only where this whole file was run in order."""
    if len(TRIED) > 30:
        assert {a.id for a in actions.ACTIONS} - TRIED == set()
    keys = [k for a in actions.ACTIONS if a.scope == "app" for k in a.keys.split(",")]
    assert len(keys) == len(set(keys))


def test_a_footer_has_what_is_needed_most_at_any_width():
    for width in (40, 80, 160):
        made = actions.footer(["program", "text", "lines", "app"], width)
        assert sum(len(k) + len(w) + 3 for k, w in made) <= width
        assert ("q", "quit") in made
