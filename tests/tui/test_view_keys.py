"""Every key of the table does what its help says."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import json
import re
import time
from pathlib import Path

import handwritten_runs
import pytest
import screen_runs
from screens import screen, settled, until
from textual import events
from textual.css import stylesheet
from textual.css.stylesheet import Stylesheet
from textual.widgets import Tooltip

from jaxscope.log import store
from jaxscope.schema import events as ev
from jaxscope.schema.arrays import ArrayGroup
from jaxscope.schema.keys import Frame
from jaxscope.schema.line_times import PYTHON, LineTime
from jaxscope.tui import actions
from jaxscope.tui.app import App
from jaxscope.tui.palette import Commands
from jaxscope.tui.screens import frame

pytestmark = pytest.mark.subprocess  # the whole view


def drive(directory, steps, *, size=(120, 40), notifications=False, tooltips=False, **how):
    """Run ``steps(pilot, app)`` on the settled app and return what it returns."""

    async def go():
        app = App(directory, **how)
        async with app.run_test(size=size, notifications=notifications, tooltips=tooltips) as pilot:
            await settled(pilot)
            return await steps(pilot, app)

    return asyncio.run(go())


async def press(pilot, *keys):
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


def test_counts_of_functions_and_programs_agree_on_all_screens(tmp_path):
    run = store.create(tmp_path / "run")
    log = handwritten_runs.Log(run)
    log.backend(1)
    own, other = (
        handwritten_runs.function("train_step"),
        handwritten_runs.function("add", None, None, eager=True),
    )
    takes = handwritten_runs.key(handwritten_runs.leaf("x", 4))
    hlo = "HloModule jit_f\n\nENTRY %main (p: f32[4]) -> f32[4] {\n  ROOT %p = f32[4]{0} parameter(0)\n}\n"
    for seen, program, texts in ((own, "p0", {"hlo": hlo}), (other, "p1", None)):
        log.say(seen)
        log.compiled(seen, takes, program=program, texts=texts)
    log.end()
    handwritten_runs.exited(run)

    async def steps(pilot, app):
        assert "  no recompiles of your function  2 programs" in screen(app)
        assert "(1 outside your jitted functions)" in screen(app)
        await press(pilot, "2")
        assert "Functions  1 of yours, 1 other" in screen(app)
        await press(pilot, "4")
        assert "no program with a recorded text communicates (1 of 2 programs" in screen(app)

    drive(run, steps)


def test_numbers_open_the_seven_screens(typical):
    async def steps(pilot, app):
        for key, name, words in actions.VIEWS:
            await press(pilot, key)
            assert app.current_mode == name
            assert f"[{key} {words}" in screen(app)
        await press(pilot, "1")
        assert app.current_mode == "overview"

    drive(typical, steps)


def test_enter_leads_from_a_function_to_its_cause_to_its_program_and_escape_back(typical):
    async def steps(pilot, app):
        await press(pilot, "enter")
        assert app.current_mode == "functions"
        assert "Key of #3 compared with the nearest, #2" in screen(app)
        assert "≠ x" in screen(app)
        await press(pilot, "enter")
        assert app.focused.id == "attempts"
        await press(pilot, "enter")
        assert app.focused.id == "key"
        await press(pilot, "enter")
        assert app.current_mode == "program"
        assert "train_step #3" in screen(app)
        await press(pilot, "escape")
        assert app.current_mode == "functions" and app.focused.id == "key"
        for pane in ("attempts", "functions"):  # back the way that enter went
            await press(pilot, "escape")
            assert app.focused.id == pane
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
        await press(pilot, "G", "k", "k")  # the all-reduce's neighbor: the last instruction is on line 20
        await press(pilot, "down")
        assert app.screen.source.cursor == 10
        await press(pilot, "enter")
        assert app.focused.id == "source"

    drive(typical, steps)


@pytest.mark.subprocess
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
        assert "fus" in screen(app) and " 1/3" in screen(app)
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


def test_what_is_typed_in_one_burst_behind_the_slash_is_looked_for(typical):
    async def steps(pilot, app):
        await press(pilot, "2")
        for key in ("slash", *"loss"):
            app.post_message(events.Key(key, "/" if key == "slash" else key))
        await settled(pilot)
        table = app.screen.functions
        assert (table.needle, table.sorted_by, app.current_mode) == ("loss", None, "functions")

    drive(typical, steps)


def test_a_filter_without_a_match_says_so_and_nothing_else(typical):
    async def steps(pilot, app):
        await press(pilot, "2", "slash", *"zzz")
        said = screen(app)
        assert "No row contains 'zzz'." in said
        assert "compiled yet" not in said and "Choose a function" not in said

    drive(typical, steps)


def test_a_filter_stays_while_the_program_compiles_on(typical):
    async def steps(pilot, app):
        await press(pilot, "2")
        chosen = app.function
        others = [f.name for f in app.screen.functions.items if f.id != chosen]
        await press(pilot, "slash", *others[0])
        for _ in range(3):  # news come
            app.screen.renew()
            await settled(pilot)
        assert app.screen.functions.needle == others[0]
        assert chosen not in {f.id for f in app.screen.functions.items}

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
    directory = screen_runs.typical(tmp_path / "run")
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
        assert "JX101" in text and "Evidence" in text and "What it does" in text
        await press(pilot, "enter")
        assert app.current_mode == "functions"
        assert "≠ x" in screen(app)
        await press(pilot, "6", "x")
        assert "JX101" in app.hidden and "1 finding hidden" in screen(app)
        assert [f.code for f in app.screen.table.items][-1] == "JX101", "a hidden code stands last"
        app.screen.table.action_bottom()
        await press(pilot, "x")
        assert not app.hidden and "finding hidden" not in screen(app)

    drive(typical, steps)


def test_the_notice_about_a_hidden_finding_goes_when_the_finding_is_shown_again(typical):
    async def steps(pilot, app):
        await press(pilot, "6", "x")
        assert "JX101 is hidden until you quit" in screen(app)
        app.screen.table.action_bottom()
        await press(pilot, "x")
        assert not app.hidden and "is hidden until you quit" not in screen(app)

    drive(typical, steps, notifications=True)


def test_tabs_and_the_keys_of_the_footer_answer_the_mouse(typical):
    async def steps(pilot, app):
        await pilot.click("#tabs", offset=(screen(app).splitlines()[1].index("Functions"), 0))
        await settled(pilot)
        assert app.current_mode == "functions"
        await pilot.click("#footer", offset=(screen(app).splitlines()[-1].index("program"), 0))
        await settled(pilot)
        assert app.current_mode == "program"

    drive(typical, steps)


def test_escape_closes_a_notice_before_it_goes_back(typical):
    async def steps(pilot, app):
        await press(pilot, "2")
        app.notify("something happened", timeout=60)
        await settled(pilot)
        assert "something happened" in screen(app)
        await press(pilot, "escape")
        assert app.current_mode == "functions" and "something happened" not in screen(app)
        await press(pilot, "escape")
        assert app.current_mode == "overview"

    drive(typical, steps, notifications=True)


def test_the_timeline_is_drawn_closer_and_wider(typical):
    async def steps(pilot, app):
        lanes = app.screen.lanes
        whole = lanes.columns[-1].title
        await press(pilot, "plus", "plus")
        closer = lanes.columns[-1].title
        assert whole.startswith("0 …") and closer != whole
        await press(pilot, "full_stop")
        assert lanes.columns[-1].title != closer
        await press(pilot, "comma")
        assert lanes.columns[-1].title == closer
        await press(pilot, "minus", "minus")
        assert lanes.columns[-1].title == whole

    drive(typical, steps)


def test_keys_choose_a_compilation_in_the_timeline_and_enter_opens_it(typical):
    async def steps(pilot, app):
        assert "train_step #3, step 21, 5.0 s: x changed from f32[31,4] to f32[30,4]" in screen(app)
        await press(pilot, "left")
        assert "train_step #2, step 11, 4.0 s: x changed from f32[32,4] to f32[31,4]" in screen(app)
        await press(pilot, "left", "left", "left")
        assert "train_step #1, step 1, 3.0 s: the first time" in screen(app)
        await press(pilot, "right", "enter")
        assert app.current_mode == "functions" and "Key of #2" in screen(app)

    drive(typical, steps)


def test_the_mouse_names_the_compilation_under_it(typical, monkeypatch):
    monkeypatch.setattr(App, "TOOLTIP_DELAY", 0.01)

    async def steps(pilot, app):
        row = next(line for line in screen(app).splitlines() if line.startswith("▸ train_step"))
        line = screen(app).splitlines().index(row)
        for at, number in ((row.index("░"), 1), (row.rindex("░"), 3)):
            await pilot.hover(offset=(at, line))
            if number == 3:  # the first movement hides the tooltip
                await pilot.hover(offset=(at, line))
            await until(lambda number=number: f"train_step #{number}, step" in shown(app), 10.0)
        await pilot.hover(offset=(row.rindex("·"), line))
        await until(lambda: not shown(app), 10.0)

    def shown(app) -> str:
        tooltip = app.screen.get_child_by_type(Tooltip)
        return str(tooltip.content) if tooltip.display else ""

    drive(typical, steps, tooltips=True)


def test_a_small_terminal_shows_the_findings_alone(typical):
    async def steps(pilot, app):
        assert "JX101" in screen(app) and "Compile time" not in screen(app)
        assert app.focused is app.screen.findings

    drive(typical, steps, size=(60, 15))


def test_a_collective_leads_to_its_instruction(typical):
    async def steps(pilot, app):
        await press(pilot, "4")
        assert "1 group of 8 devices" in screen(app)
        await press(pilot, "enter")
        hlo = app.screen.stages["hlo"]
        assert app.current_mode == "program" and app.focused is hlo
        assert "all-reduce.1 =" in hlo.text[hlo.cursor]

    drive(typical, steps)


def test_a_collective_shows_its_source_and_why_its_axes_are_unknown(typical):
    async def steps(pilot, app):
        await press(pilot, "4")
        seen = screen(app)
        assert re.search(r"▸ +6 +return \(h \* h\)\.sum\(\)", seen)
        assert "axes ?: the mesh of the program is unknown" in seen

    drive(typical, steps, size=(160, 48))


def test_a_wide_overview_shows_the_source_of_its_finding_and_why_the_latest_was_compiled(typical):
    async def steps(pilot, app):
        seen = screen(app)
        assert re.search(r"▸ +11 +return w - loss", seen)
        assert "the first time this function is seen" in seen and "eval_step #1  1.3 s" in seen

    drive(typical, steps, size=(160, 48))


@pytest.mark.parametrize("size", [(120, 40), (160, 48)], ids=["120x40", "160x48"])
def test_the_overview_opens_with_the_source_lines_before_any_key(typical, size):
    async def opened():
        app = App(typical)
        async with app.run_test(size=size):
            # below the finding, and below the latest compilation
            await until(lambda: screen(app).count("▸ 11      return w - loss(w, x)") == 2, 30.0)

    asyncio.run(opened())


@pytest.mark.parametrize("size", [(120, 40), (160, 48)], ids=["120x40", "160x48"])
def test_the_overview_of_a_run_without_findings_shows_time_and_memory(tmp_path, size):
    run = store.create(tmp_path / "run")
    log = handwritten_runs.Log(run)
    log.backend(1)
    own = handwritten_runs.function("train_step")
    log.say(own)
    log.compiled(own, handwritten_runs.key(handwritten_runs.leaf("x", 4)), program="p0")
    log.say(ev.LineTimes(seconds=10.0, lines=[LineTime(PYTHON, [Frame("train.py", 7, "augment")], 6.3, 120)]))
    groups = [ArrayGroup("params", 2, (256, 256), "float32", 524_288, 524_288, None, None, None, None)]
    log.say(ev.ArraysSeen(why="time", count=2, groups=groups))
    log.say(ev.ArraysSeen(why="exit", count=0, groups=[]))
    log.end()
    handwritten_runs.exited(run)

    async def steps(pilot, app):
        seen = screen(app)
        assert "No problems found" in seen
        assert re.search(
            r"Time of the main thread, by line +\S?.*\n +6\.3 s   63 %  Python code  train\.py:7", seen
        )
        assert re.search(r"Peak memory of programs, on one device.*\n +68\.1 KiB  train_step #1", seen)
        assert re.search(r"Live arrays while the program ran: 2 arrays.*\n.* params  2 arrays", seen)

    drive(run, steps, size=size)


def test_the_footer_has_the_text_that_a_row_has_no_room_for(typical):
    async def steps(pilot, app):
        table = app.screen.findings
        footer = screen(app).splitlines()[-1]
        assert "…" in screen(app).splitlines()[4] and footer.startswith(f" {table.under_cursor()[:20]}")
        assert "q quit" in footer
        await pilot.resize_terminal(200, 48)
        await settled(pilot)
        assert table.under_cursor() == "" and not screen(app).splitlines()[-1].startswith(" train")

    drive(typical, steps, size=(60, 15))


def test_a_newer_compilation_does_not_take_the_place_of_the_program_that_is_read(typical, monkeypatch):
    async def steps(pilot, app):
        await press(pilot, "3")
        read = app.screen.compilation_to_compare()
        assert app.compilation is None
        monkeypatch.setattr("jaxscope.tui.rows.program.default", lambda run, _: run.functions["newer"])
        assert app.screen.compilation_to_compare() is read
        await press(pilot, "comma")  # one is chosen
        assert app.screen.compilation_to_compare() is not read

    drive(typical, steps)


def test_help_speaks_of_the_focused_pane(typical):
    async def steps(pilot, app):
        await press(pilot, "3", "question_mark")
        text = screen(app)
        assert "Your code." in text and "This screen" in text and "Compare this program" in text
        await pilot.press("escape")
        await settled(pilot)
        await press(pilot, "2", "f1")
        assert "Your functions, the slowest first" in screen(app)

    drive(typical, steps)


def test_the_palette_finds_commands_and_functions(typical):
    async def steps(pilot, app):
        await pilot.press("ctrl+p")
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


def test_colors_change_between_dark_and_light(typical):
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


def test_the_editor_opens_at_the_line(typical, monkeypatch):
    opened = []
    monkeypatch.setenv("EDITOR", "vim -R")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr(
        "jaxscope.tui.app_actions.subprocess.run", lambda command, **_: opened.append(command)
    )

    async def steps(pilot, app):
        monkeypatch.setattr(app, "suspend", contextlib.nullcontext)
        await press(pilot, "3", "o")

    drive(typical, steps)
    assert opened == [["vim", "-R", "+11", "--", str(typical.path / "src" / "train.py")]]


def test_without_an_editor_it_says_what_to_set(typical, monkeypatch):
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)

    async def steps(pilot, app):
        await press(pilot, "3", "o")
        return [n.message for n in app._notifications]

    assert any("set EDITOR" in m for m in drive(typical, steps))


def test_a_file_that_is_not_there_is_not_given_to_the_editor(typical, monkeypatch, tmp_path):
    monkeypatch.setenv("EDITOR", "vim")
    monkeypatch.delenv("VISUAL", raising=False)

    async def steps(pilot, app):
        await press(pilot, "3")
        monkeypatch.chdir(tmp_path)
        await press(pilot, "o")
        return [n.message for n in app._notifications]

    assert drive(typical, steps) == ["there is no file train.py"]


@pytest.mark.subprocess
def test_an_editor_that_is_not_there_is_reported_and_the_view_comes_back(typical, monkeypatch):
    monkeypatch.setenv("EDITOR", "nosuch-editor --wait")
    monkeypatch.delenv("VISUAL", raising=False)
    went = []

    @contextlib.contextmanager
    def suspend():  # as Textual does it: an exception inside, and it never comes back
        went.append("out")
        yield
        went.append("back")

    async def steps(pilot, app):
        monkeypatch.setattr(app, "suspend", suspend)
        await press(pilot, "3", "o")
        return [n.message for n in app._notifications]

    [said] = drive(typical, steps)
    assert went == ["out", "back"] and "nosuch-editor" in said


def test_q_leaves_a_run_that_is_over(typical):
    async def steps(pilot, app):
        await press(pilot, "q")
        return app.return_value, app._exit

    assert drive(typical, steps, owned=True) == (None, True)


@pytest.mark.parametrize(("answer", "result"), [("d", "detach"), ("s", "stop"), ("escape", None)])
def test_q_asks_before_it_leaves_a_program_that_runs(tmp_path, answer, result):
    directory = screen_runs.running(tmp_path / "run")

    async def steps(pilot, app):
        assert app.feed.running
        await pilot.press("q")
        await pilot.pause()
        assert "still running" in screen(app)
        await pilot.press(answer)
        await pilot.pause()
        return app.return_value, app._exit

    assert drive(directory, steps, owned=True) == (result, result is not None)


def test_ctrl_c_leaves_a_run_that_is_over_also_out_of_a_dialog_or_a_search(typical):
    for before in ([], ["e"], ["question_mark"], ["slash", "x"], ["ctrl+p"]):

        async def steps(pilot, app, before=before):
            await press(pilot, *before)
            await pilot.press("ctrl+c")
            return app.return_value, app._exit, app.return_code

        assert drive(typical, steps, owned=True) == (None, True, 0), before


@pytest.mark.parametrize("before", [[], ["e"], ["slash", "x"]], ids=["screen", "dialog", "search"])
def test_ctrl_c_asks_once_before_it_leaves_a_program_that_runs(tmp_path, before):
    directory = screen_runs.running(tmp_path / "run")

    async def steps(pilot, app):
        await pilot.press(*before, "ctrl+c", "ctrl+c")
        await pilot.pause()
        assert "still running" in screen(app)
        await pilot.press("escape")
        await pilot.pause()
        assert "still running" not in screen(app) and not app._exit
        await pilot.press("ctrl+c", "s")
        return app.return_value, app._exit

    assert drive(directory, steps, owned=True) == ("stop", True)


def at_once(app, *keys):
    """As a terminal gives what was typed ahead: all keys are in the app's queue before the first is handled."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))


@pytest.mark.parametrize(
    "keys",
    [["q", "e", "c", "h", "o", "enter"], ["q", "question_mark"], ["e", "ctrl+c"], ["question_mark", "ctrl+c"]]
    + [["q", k, "q", "slash", "ctrl+p", "enter"] for k in "1234567"],
    ids="".join,
)
def test_what_is_typed_after_leaving_is_ignored(typical, keys):
    async def steps(pilot, app):
        at_once(app, *keys)
        for _ in range(20):
            await pilot.pause(0.01)
        assert app._exit and app._exception is None and len(app.screen_stack) <= 2
        return app.return_value, app.return_code, app.current_mode

    assert drive(typical, steps) == (None, 0, "overview")


@pytest.mark.parametrize("ahead", ["e", "?", "d", "q"])
def test_the_first_answer_to_whether_to_stop_holds_whatever_is_typed_after_it(tmp_path, ahead):
    directory = screen_runs.running(tmp_path / "run")

    async def steps(pilot, app):
        at_once(app, "q", "s", {"?": "question_mark"}.get(ahead, ahead), "d", "e")
        for _ in range(20):
            await pilot.pause(0.01)
        assert app._exit and app._exception is None
        return app.return_value, app.return_code

    assert drive(directory, steps, owned=True) == ("stop", 0)


def test_q_asks_about_a_program_that_was_just_started_and_has_printed_nothing_yet(made):
    async def steps(pilot, app):
        assert not app.feed.running  # as far as the recording tells
        await press(pilot, "q")
        assert "The program is still running." in screen(app)
        await press(pilot, "escape", "q", "d")

    async def over(pilot, app):
        await press(pilot, "q")
        return app.return_value

    directory = made("empty")
    drive(directory, steps, owned=True, alive=lambda: True)
    assert drive(directory, over, owned=True, alive=lambda: False) is None


def test_q_does_not_ask_about_a_program_that_somebody_else_started(tmp_path):
    directory = screen_runs.running(tmp_path / "run")

    async def steps(pilot, app):
        await pilot.press("q")
        await pilot.pause()
        return app._exit

    assert drive(directory, steps)


async def typed(pilot, text):
    for letter in text:
        await pilot.press(letter)
    await pilot.pause()


async def seen_soon(pilot, app, text):
    """Work of another thread or process ends in its own time."""
    for _ in range(1500):
        if text in screen(app):
            return
        await pilot.pause(0.02)
    raise AssertionError(screen(app))


def test_names_of_arrays_open_and_lead_to_their_mesh(typical):
    async def steps(pilot, app):
        await press(pilot, "5")
        text = screen(app)
        assert (
            "Arrays after step 40: 49 arrays" in text
            and "▾ state" in text
            and "mesh data=4 x model=2" in text
        )
        assert "['bias']" not in text
        await press(pilot, "down", "enter")
        assert app.screen.table.current.prefix == "state.params"
        assert "▾ .params" in screen(app)
        await press(pilot, "enter")
        assert "▹ .params" in screen(app)
        await press(pilot, "slash", *"kernel")
        assert app.screen.table.items[0].label == "state.opt_state[*].mu['dense']['kernel']"
        assert len(app.screen.table.items) == 4
        await press(pilot, "escape")
        assert "▹ .params" in screen(app)

    drive(typical, steps)


def test_earlier_and_later_looks_at_the_arrays(typical):
    async def steps(pilot, app):
        await press(pilot, "5", "comma")
        assert "after step 21" in screen(app) and "3 of 4 snapshots" in screen(app)
        await press(pilot, "comma", "comma", "comma")
        assert "after step 1:" in screen(app)
        await press(pilot, *["full_stop"] * 5)
        assert "4 of 4 snapshots" in screen(app)

    drive(typical, steps)


def test_an_array_leads_to_the_call_that_takes_it(tmp_path, monkeypatch):
    import msgspec

    directory = screen_runs.typical(tmp_path / "run")
    monkeypatch.chdir(directory.path / "src")
    log = next((directory.path / "events").glob("1000*.jsonl"))
    log.write_text(log.read_text().replace("batch['x']", "x"))
    assert msgspec

    async def steps(pilot, app):
        await press(pilot, "5", "slash", *"batch", "escape")
        app.screen.table.select(next(r.id for r in app.screen.table.items if r.prefix == "x"))
        await press(pilot, "enter")
        assert app.current_mode == "functions"
        assert "Key of #3" in screen(app)

    drive(directory, steps)


def test_a_key_is_compared_with_the_one_that_is_chosen(typical):
    async def steps(pilot, app):
        await press(pilot, "2", "c")
        assert "Compare its key with" in screen(app)
        await typed(pilot, "#1")
        await press(pilot, "enter")
        text = screen(app)
        assert "Key of #3 compared with #1" in text
        assert "compared with train_step #1: x changed from f32[32,4] to f32[30,4]" in text
        await press(pilot, "c", "enter")  # the first answer
        assert "compared with the nearest, #2" in screen(app)
        await press(pilot, "c", "escape")
        assert app.current_mode == "functions"

    drive(typical, steps)


def test_the_fusions_of_a_program_lead_to_their_instruction(typical):
    async def steps(pilot, app):
        await press(pilot, "3", "f")
        assert "1 fusions of train_step #3" in screen(app)
        await press(pilot, "enter")
        hlo = app.screen.stages["hlo"]
        assert app.focused is hlo and "%fusion.1 =" in hlo.text[hlo.cursor]

    drive(typical, steps)


def test_t_goes_through_the_machines_that_a_program_was_also_compiled_for(made):
    async def steps(pilot, app):
        await press(pilot, "3", "comma")
        hlo = app.screen.stages["hlo"]
        assert b"T(8,128)" not in hlo.text.data and "[host cpu]" in screen(app)
        await press(pilot, "t")
        assert b"T(8,128)" in hlo.text.data  # the text of that machine's compiler
        assert "train.py  for v5e:4x2" in screen(app) and "3.0 GiB of 15.8 GiB on a device" in screen(app)
        assert "train.py:11 → 1 StableHLO operation: subtract → 1 instruction: sub.1" in screen(app)
        await press(pilot, "f")
        assert "1 fusions of train_step #1 for v5e:4x2" in screen(app)
        await press(pilot, "escape", "4")
        assert "Collectives, for v5e:4x2  1 in 1 program" in screen(
            app
        )  # all such screens speak of one machine
        await press(pilot, "enter")
        assert app.current_mode == "program" and "%all-reduce.1" in hlo.text[hlo.cursor]
        await press(pilot, "2")
        assert "for v5e:4x2" not in screen(app).splitlines()[0]
        for state in (
            "Compiling for",
            "Waiting for the compiler",
            "The compiler of a100:8 crashed",
            "does not fit: 20.3 GiB",
        ):
            await press(pilot, "3", "t")
            assert not hlo.line_count and state in hlo.empty
        await press(pilot, "t")
        assert "[host cpu]" in screen(app) and hlo.line_count

    drive(made("elsewhere"), steps, size=(160, 48))


def test_the_machines_stand_side_by_side_and_enter_takes_one(made):
    async def steps(pilot, app):
        await press(pilot, "4", "T")
        seen = screen(app)
        assert "train_step #2 for each target" in seen or "train_step #1 for each target" in seen
        assert [s.machine.name for s in app.screen.table.items] == [None, *screen_runs.OUTCOMES, "v5e:4x4"]
        await press(pilot, *"h100", "enter")
        assert app.machine == "h100:8" and "for h100:8" in screen(app)

    drive(made("elsewhere"), steps)


def test_one_program_under_two_settings_is_two_machines(made):
    async def steps(pilot, app):
        await press(pilot, "3")
        await seen_soon(pilot, app, "host cpu --model=4")
        assert "[host cpu --model=2]" in screen(app)
        await press(pilot, "T")
        assert [s.machine.name for s in app.screen.table.items] == [None, "host cpu --model=4"]
        assert [s.state for s in app.screen.table.items] == ["ok", "ok"]
        await press(pilot, "down", "enter")
        await settled(pilot)
        assert app.machine == "host cpu --model=4" and "for host cpu --model=4" in screen(app)
        assert app.screen.stages["hlo"].line_count

    drive(made("varied"), steps, size=(160, 48))


def test_of_a_run_of_one_machine_it_is_reported_how_to_have_others(typical):
    async def steps(pilot, app):
        await press(pilot, "3")
        before = screen(app)
        await press(pilot, "t", "T")
        assert app.machine is None
        assert [n.message.count("jaxscope run --target") for n in app._notifications] == [1, 1]
        assert "targets:" not in before

    drive(typical, steps)


def test_what_a_machine_makes_of_it_appears_as_its_compiler_is_done(made):
    directory = made("elsewhere")
    compiler = screen_runs.Compiler(directory)
    blob, size = directory.put_text(screen_runs.texts("train.py")["hlo"])

    async def steps(pilot, app):
        await press(pilot, "3", "comma", "t", "t")
        assert "Compiling for v6e:4x2" in app.screen.stages["hlo"].empty
        done = ev.TargetCompiled(
            program="0@v6e:4x2", target="v6e:4x2", seconds=1.5, text=blob, text_bytes=size, peak_bytes=1 << 30
        )
        compiler.say(done)
        await seen_soon(pilot, app, "compiled in 1.5 s")
        await seen_soon(pilot, app, "[v6e:4x2 ✓]")
        await seen_soon(pilot, app, "1.0 GiB of 31.")
        await settled(pilot)
        assert app.screen.stages["hlo"].line_count and app.machine == "v6e:4x2"

    drive(directory, steps, size=(160, 48))


def test_a_run_within_is_found_when_it_begins_while_one_looks(made):
    directory = made("elsewhere")
    within = directory.path / "sub"
    aside = directory.path / "aside"
    within.rename(aside)

    async def steps(pilot, app):
        await press(pilot, "3", "comma")
        assert "v5e:4x4" not in screen(app)
        aside.rename(within)
        await seen_soon(pilot, app, "v5e:4x4 ✖")
        while app.machine != "v5e:4x4":
            await press(pilot, "t")
        assert "The run on 16" not in app.screen.stages[
            "hlo"
        ].empty and "does not fit: 20.3 GiB in 15.8 GiB" in screen(app)
        await press(pilot, "full_stop")
        assert "no such compilation of train_step" in app.screen.stages["hlo"].empty

    drive(directory, steps, size=(160, 48))


def test_findings_of_every_setting_are_there_and_lead_to_the_run_they_are_of(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(
        "jaxscope.tui.app_actions.subprocess.run", lambda command, **_: opened.append(command)
    )
    directory = screen_runs.varied_with_findings(tmp_path / "run")

    async def steps(pilot, app):
        await press(pilot, "6")
        await seen_soon(pilot, app, "to f32[5] (with --model=")
        said = screen(app)
        assert said.count("JX101") >= 2 and "to f32[3]" in said and "to f32[5]" in said
        table = app.screen.table
        of_the_other = next(
            n for n, f in enumerate(app.feed.findings) if f.contexts.settings == ["--model=4"]
        )
        table.go_to(of_the_other)
        await press(pilot, "enter")
        assert app.current_mode == "findings"
        [said] = [n.message for n in app._notifications]  # this one has no terminal to give away
        assert "jaxscope view" in said and "/--model=4" in said
        monkeypatch.setattr(app, "suspend", contextlib.nullcontext)
        await press(pilot, "enter")
        assert [command[-2:] for command in opened] == [
            ["view", str(screen_runs.store.sub_runs(directory)[0].path)]
        ]
        table.go_to(1 - of_the_other)
        await press(pilot, "enter")
        assert app.current_mode == "functions"

    drive(directory, steps, size=(160, 48))


def test_a_program_is_compared_with_another(typical):
    async def steps(pilot, app):
        await press(pilot, "3", "d")
        assert "Compare with" in screen(app)
        await typed(pilot, "#2")
        await press(pilot, "enter")
        await seen_soon(pilot, app, "train_step #3 compared with train_step #2")
        assert "x changed from f32[31,4] to f32[30,4]" in screen(app)
        await press(pilot, "escape")
        assert "Compare with" not in screen(app)

    drive(typical, steps)


def test_the_ignore_line_of_a_finding_is_copied(typical):
    async def steps(pilot, app):
        await press(pilot, "6")
        code = app.screen.table.current.code
        await press(pilot, "i")
        return code, app.clipboard

    code, copied = drive(typical, steps)
    assert copied == f'ignore = ["{code}"]'


@pytest.mark.subprocess
def test_screen_report_and_texts_are_written_to_files_that_were_not_there(typical, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    async def steps(pilot, app):
        await press(pilot, "2", "e")
        assert "this screen as text" in screen(app)
        await press(pilot, "escape")
        for _ in range(2):
            await app.run_action("export_text")
        await app.run_action("export_svg")
        await app.run_action("export_json")
        await app.run_action("export_programs")
        await pilot.press("e")
        await typed(pilot, "as text")
        await pilot.press("enter")
        await settled(pilot)

    drive(typical, steps)
    name = typical.path.name
    assert "train_step" in (tmp_path / f"{name}.functions.txt").read_text()
    assert (tmp_path / f"{name}.functions-2.txt").exists() and (tmp_path / f"{name}.functions-3.txt").exists()
    assert (tmp_path / f"{name}.functions.svg").read_text().startswith("<svg")
    report = json.loads((tmp_path / f"{name}.report.json").read_text())
    assert report["schema"] == 1 and len(report["functions"]) == 3
    assert {p.name for p in (tmp_path / f"{name}.texts").iterdir()} == {f"train_step.3.{kind}" for kind in ("stablehlo.mlir", "hlo.txt", "key.json")}  # fmt: skip


@pytest.mark.subprocess
def test_the_groups_of_ranks_of_a_job_are_listed_and_enter_opens_one_of_each(typical, tmp_path):
    async def steps(pilot, app):
        await press(pilot, "R")
        listed = screen(app)
        await press(pilot, "down", "enter")
        opened = screen(app)
        await press(pilot, "escape", "tab", "enter", "escape")
        return listed, opened, app.screen

    listed, opened, last = drive(screen_runs.of_ranks(tmp_path / "job"), steps, size=(140, 40))
    assert (
        "▸ ranks 0, 1, 3 " in listed and "JX850 rank 2 and the others compiled different programs" in listed
    )
    assert re.search(r"rank 2 .*3 .*·+█", listed) and "enter report of the lowest rank" in listed
    assert "Rank 2 " in opened and "evaluate" in opened
    assert isinstance(last, frame.View), (
        "enter in the other pane opens nothing, and escape has closed the list"
    )


@pytest.mark.subprocess
def test_a_run_that_is_no_job_has_no_ranks_to_show(typical):
    async def steps(pilot, app):
        await press(pilot, "R")
        return [n.message for n in app._notifications]

    assert "this run is no job of several processes" in drive(typical, steps)


@pytest.mark.subprocess
def test_a_file_that_cannot_be_written_is_reported(typical, monkeypatch, tmp_path):
    monkeypatch.setattr("jaxscope.tui.exports.free", lambda *_: tmp_path / "nowhere" / "x")

    async def steps(pilot, app):
        await app.run_action("export_text")
        await app.run_action("export_json")
        await settled(pilot)
        return [n.message for n in app._notifications]

    said = drive(typical, steps)
    assert any("No such file" in m for m in said) and any("could not be written" in m for m in said)


def test_keys_of_the_configuration_replace_those_of_the_table(typical):
    async def steps(pilot, app):
        await pilot.press("2", "B")
        await settled(pilot)
        assert "★ train_step" in screen(app)
        assert " B star" in screen(app)
        await pilot.press("w")
        await settled(pilot)
        assert "★ train_step" in screen(app)
        await pilot.press("question_mark")
        await settled(pilot)
        assert re.search(r" B {3,}Keep this function", screen(app))
        await pilot.press("escape", "f8")
        await settled(pilot)
        return [n.message for n in app._notifications]

    said = drive(typical, steps, keys={"functions.star": "B", "export.text": "f8"}, size=(160, 48))
    assert any(m.startswith("written: ") for m in said)


def test_a_screen_that_was_opened_before_has_the_colors_of_another_theme_too(typical):
    async def steps(pilot, app):
        def heading():
            return app.screen.focused.style_of("heading").color, app.screen.words("header").styles.background

        await press(pilot, "2", "1")
        dark = heading()
        await press(pilot, "ctrl+t")
        light = heading()
        await press(pilot, "2")
        assert heading() == light != dark

    drive(typical, steps)


def test_nothing_is_parsed_twice_whatever_screens_are_opened(typical, monkeypatch):
    parsed = []
    parse = stylesheet.parse

    def counted(scope, css, *more, **how):
        parsed.append((scope, css))
        return parse(scope, css, *more, **how)

    async def steps(pilot, app):
        monkeypatch.setattr(stylesheet, "parse", counted)  # what is parsed before: all of it, for the theme
        for key in "234567":
            await press(pilot, key, "slash", "escape")
        assert len(parsed) == len(set(parsed)), "what a screen brings is parsed once, and the rest not again"
        parsed.clear()
        for key in "1234567":
            await press(pilot, key)
        assert not parsed

    drive(typical, steps)


def test_the_screen_that_is_left_is_not_styled_again(typical, monkeypatch):
    styled = []
    apply = Stylesheet.apply

    def counted(self, node, **how):
        styled.append(node)
        apply(self, node, **how)

    async def steps(pilot, app):
        left = app.screen
        monkeypatch.setattr(Stylesheet, "apply", counted)
        await press(pilot, "2")
        assert app.screen is not left and styled
        # The pane that had the keys looks otherwise where it has them no more.
        assert {w for w in styled if w.screen is left} <= {app.screen, *left.focus_chain}

    drive(typical, steps)


def test_the_line_to_search_in_is_made_before_somebody_searches_but_not_while_keys_come(typical):
    async def steps(pilot, app):
        made = lambda: bool(app.screen.query("#find"))
        app.feed.key = lambda: None  # the time of the last key is set here
        app.feed.key_at = time.monotonic() + 60
        await press(pilot, "2")
        await asyncio.sleep(2 * frame.LEISURE_S)
        assert not made(), "somebody types"
        app.feed.key_at = 0.0
        await until(made)
        assert not app.screen.query_one("#finding").display
        await press(pilot, "slash", *"step")
        assert app.focused.id == "find" and app.focused.value == "step"
        assert len(app.screen.query("#find")) == 1

    drive(typical, steps)


def test_screens_change_at_any_moment_while_that_line_is_made(typical, monkeypatch):
    monkeypatch.setattr(frame, "LEISURE_S", 0.001)

    async def steps(pilot, app):
        app.feed.key = lambda: None  # nobody types, as far as the screens know
        for key in "23456712345671":
            app.post_message(events.Key(key, key))
            await asyncio.sleep(0.01 * (ord(key) % 3))
        await settled(pilot)
        assert app.is_running and app.current_mode == "overview"
        await press(pilot, "slash", "a")
        assert app.focused.id == "find"

    drive(typical, steps)


def test_letters_that_are_typed_come_before_news(typical):
    async def steps(pilot, app):
        await press(pilot, "slash")
        app.feed.key_at = 0.0
        await pilot.press("x")
        assert app.feed.key_at > 0, "a letter is a key too"
        app.feed.key()
        took = app._took_at = time.monotonic()
        app._tick()
        assert app._took_at == took
        app.feed.key_at = 0.0
        app._tick()
        assert app._took_at > took

    drive(typical, steps)


def test_the_palette_names_its_groups(typical):
    async def steps(pilot, app):
        await pilot.press("2", "ctrl+p")
        await settled(pilot)
        provider = Commands(app.screen_stack[0])
        return {words.partition(":")[0] for words, _, _ in provider._commands()}

    assert drive(typical, steps) == {"go", "view", "find", "export", "run", "theme"}


def test_the_end_of_a_program_is_reported_on_any_screen(tmp_path):
    import handwritten_runs

    directory = screen_runs.running(tmp_path / "run")

    async def steps(pilot, app):
        await pilot.press("7")
        await settled(pilot)
        assert app.feed.running
        handwritten_runs.exited(directory, 3, seconds=9.0)
        for _ in range(1000):
            await pilot.pause(0.02)
            if app._notifications:
                break
        return [n.message for n in app._notifications]

    assert drive(directory, steps, owned=True) == [
        "The program has ended: exit code 3, its log not closed. Press 1 for the cause."
    ]


def test_a_running_view_is_laid_out_anew_when_its_terminal_changes(tmp_path):
    directory = screen_runs.running(tmp_path / "run")

    async def steps(pilot, app):
        for size, (key, name, _) in zip(((160, 48), (30, 8), (3, 2)) * 3, actions.VIEWS, strict=False):
            await pilot.resize_terminal(*size)
            await pilot.press(key)
            await pilot.pause()
            assert len(screen(app).splitlines()) == size[1] and app.current_mode == name
        await pilot.resize_terminal(120, 40)
        await settled(pilot)
        assert "[7 Output]" in screen(app) and app.screen.has_class("narrow") is False

    drive(directory, steps, size=(80, 24))


def tried() -> set[str]:
    """What the tests of this file press, and the actions that they run: every text in a call of the one or the other."""
    found = set()
    for node in ast.walk(ast.parse(Path(__file__).read_text())):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            if name in ("press", "run_action"):
                found |= {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)}
    return found


def test_every_action_is_tried_above():
    """The other way round: an action without a test."""
    known = tried()
    assert {a.id for a in actions.ACTIONS if not {*a.keys.split(","), a.does} & known} == set()
    keys = [k for a in actions.ACTIONS if a.scope == "app" and a.keys for k in a.keys.split(",")]
    assert len(keys) == len(set(keys))


def test_a_footer_has_what_is_needed_most_at_any_width():
    for width in (40, 80, 160):
        made = actions.footer(["program", "text", "lines", "app"], width)
        assert sum(len(actions.spelled(a.keys)) + len(a.words) + 3 for a in made) <= width
        assert "quit" in [a.words for a in made]
