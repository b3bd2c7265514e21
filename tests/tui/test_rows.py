"""What screens show, made without a terminal."""

from __future__ import annotations

import itertools
import os
import types

import handwritten_runs
import msgspec
import pytest
import screen_runs
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis import levels
from jaxscope.analysis import programs as texts
from jaxscope.errors import UsageError
from jaxscope.log import jobs, store
from jaxscope.log.store import RunDir
from jaxscope.model import causes, timeline
from jaxscope.model.load import load
from jaxscope.model.records import Program
from jaxscope.model.run import Run
from jaxscope.present import findings as words
from jaxscope.present.functions import MISSED
from jaxscope.present.text import Places
from jaxscope.schema import events as ev
from jaxscope.schema.causes import ArrayType, Cause
from jaxscope.schema.findings import Contexts, Finding
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import message
from jaxscope.tui import actions, editor, links, tokens
from jaxscope.tui.cells import Column, fitted, parts, plain
from jaxscope.tui.lines import LONGEST, MOST_LINES, Growing, Lines
from jaxscope.tui.rows import chrome, death, findings, functions, lanes, machines, output, overview, program


@given(st.text(alphabet="ab\n\r", max_size=200))
def test_lines_are_those_of_the_text(text):
    expected = text.split("\n")
    if expected[-1] == "":
        expected.pop()
    lines = Lines(text)
    assert [lines[n] for n in range(len(lines))] == [line.rstrip("\r") for line in expected]


@given(st.text(alphabet="aBİ\n", max_size=100), st.text(alphabet="aBbİ", min_size=1, max_size=3))
def test_a_search_finds_every_line_that_holds_it_and_no_other(text, needle):
    lines = Lines(text)
    assert list(itertools.chain(*lines.search(needle))) == [
        n for n in range(len(lines)) if any(tokens.matches(lines[n], needle))
    ]


def test_a_search_finds_what_crosses_the_slices_it_is_made_in(monkeypatch):
    monkeypatch.setattr("jaxscope.tui.lines._SLICE", 10)
    lines = Lines("".join(f"line {n} needle\n" for n in range(50)))
    assert list(itertools.chain(*lines.search("needle"))) == list(range(50))
    assert len(lines) == 50


def test_a_long_line_is_shown_by_its_beginning():
    assert len(Lines("x" * 10_000)[0]) == LONGEST + 1


def test_an_output_without_end_lets_the_oldest_lines_go():
    lines = Growing(str(n) for n in range(MOST_LINES + 10))
    assert len(lines) <= MOST_LINES
    assert lines.dropped
    assert lines[len(lines) - 1] == str(MOST_LINES + 9)


COLORED = {"value", "type", "op", "collective", "attr", "string", "number", "comment", "word", "symbol"}


@given(st.text(max_size=300))
@pytest.mark.parametrize("spans", [tokens.hlo, tokens.stablehlo, tokens.python])
def test_colors_lie_within_the_line_in_order(spans, line):
    at = 0
    for begin, end, kind in spans(line):
        assert at <= begin < end <= len(line)
        assert kind in COLORED
        at = end


def test_hlo_is_distinguished():
    line = '  ROOT %all-reduce.1 = bf16[8,4]{1,0} all-reduce(%dot.1), channel_id=1, metadata={op_name="a/b"}'
    found = {(line[b:e], kind) for b, e, kind in tokens.hlo(line)}
    assert {("ROOT", "word"), ("%all-reduce.1", "value"), ("bf16[8,4]{1,0}", "type"), ("all-reduce", "collective"),
            ("channel_id", "attr"), ("1", "number"), ('"a/b"', "string")} <= found  # fmt: skip


def test_stablehlo_is_distinguished():
    line = "    %0 = stablehlo.dot_general %arg1, %arg0 : (tensor<8x4xf32>) -> tensor<8x4xf32> loc(#loc3)"
    found = {(line[b:e], kind) for b, e, kind in tokens.stablehlo(line)}
    assert {
        ("%0", "value"),
        ("stablehlo.dot_general", "op"),
        ("tensor<8x4xf32>", "type"),
        ("loc(#loc3)", "comment"),
    } <= found


@pytest.mark.parametrize("spans", [tokens.hlo, tokens.stablehlo, tokens.python])
@pytest.mark.parametrize(
    "piece", ['"', "\\", "(", "loc(", "/*", "%", "tensor<", "f32[", "'", "-", "a-", "1."]
)
def test_coloring_takes_linear_time_on_hostile_lines(spans, piece):
    spans(
        piece * (LONGEST // len(piece))
    )  # a quadratic one would not be noticed, an exponential one never ends


@given(st.text(max_size=40), st.integers(1, 30), st.booleans())
def test_a_cell_is_cut_or_filled_to_its_width(text, width, right):
    from rich.cells import cell_len

    made = fitted(text, width, right=right)
    assert sum(cell_len(t) for t, _ in made) == width


def test_what_is_drawn_is_escaped():
    assert plain("a\x1b[2Jb\u202e") == r"a\x1b[2Jb\u202e"
    assert parts([("\n", "bold")]) == [(r"\n", "bold")]


def test_output_is_followed_while_lines_are_being_written(tmp_path):
    path = tmp_path / "output.log"
    found = output.Output(path)
    assert not found.poll()
    with path.open("ab", buffering=0) as f:
        f.write(b"one\ntw")
        assert found.poll()
        assert [found.lines[n] for n in range(len(found.lines))] == ["one", "tw"]
        f.write(b"o\nthr")
        assert found.poll()
        assert [found.lines[n] for n in range(len(found.lines))] == ["one", "two", "thr"]
        f.write(b"ee\r\n")
        assert found.poll()
        assert not found.poll()
    assert [found.lines[n] for n in range(len(found.lines))] == ["one", "two", "three"]


def test_the_end_of_a_long_output_is_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(output, "FIRST", 100)
    (tmp_path / "output.log").write_bytes(b"x" * 500 + b"\nlast\n")
    found = output.Output(tmp_path / "output.log")
    found.poll()
    assert found.lines[len(found.lines) - 1] == "last"
    assert found.skipped == 406


@pytest.mark.parametrize(
    ("environ", "command"),
    [
        ({"EDITOR": "vim"}, ["vim", "+7", "--", "/a b.py"]),
        ({"EDITOR": "nano"}, ["nano", "+7", "/a b.py"]),
        ({"EDITOR": "code --wait"}, ["code", "--wait", "--goto", "/a b.py:7"]),
        ({"VISUAL": "hx", "EDITOR": "vim"}, ["hx", "/a b.py:7"]),
        ({"EDITOR": "ed"}, ["ed", "/a b.py"]),
        ({"EDITOR": "'"}, None),
        ({}, None),
    ],
)
def test_editors_get_the_line_in_their_own_words(environ, command):
    assert editor.command("/a b.py", 7, environ) == command


@pytest.mark.parametrize("name", ["+!touch x", "--cmd=x", "-c:q", "+call f()", "a:1:2", "a\nb", "\x1b[2J"])
def test_a_file_of_a_name_that_an_editor_takes_for_a_command_is_given_as_a_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert editor.openable(name) is None  # not there
    (tmp_path / name).write_text("")
    path = editor.openable(name)
    assert path == (str(tmp_path / name) if name.isprintable() else None)
    for which in ("vim", "nano", "emacs", "code", "hx", "ed", "kak"):
        made = editor.command(path or "/", -1, {"EDITOR": which})
        assert made[-1].startswith("/") and made[:-1] in (
            [which], [which, "+1"], [which, "+1", "--"], [which, "--goto"],
        )  # fmt: skip
        assert made[-1] == (path or "/") or ":" not in (path or "/")


def test_an_editor_is_given_no_pipe_and_no_directory(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert editor.openable(str(tmp_path / "pipe")) is None
    assert editor.openable(str(tmp_path)) is None
    assert editor.openable("a\0b") is None


def test_the_timeline_has_a_column_for_every_part_of_the_run(typical):
    run = load(typical)
    lane = timeline.lanes(run)[0]
    bar = "".join(p[0] for p in lanes.bar(lane, lanes.Axis(60.0), 60))
    assert len(bar) == 60
    assert bar.startswith("·········░██")  # its first trace began 9 s into the run
    assert bar[40:] == "·" * 20


def test_each_tick_of_the_timeline_names_the_compilation_that_begins_there(tmp_path):
    run = load(screen_runs.failed(tmp_path / "run"))
    [lane] = timeline.lanes(run)
    first, second = timeline.compilations(lane)
    under = [lanes.under(run, lane, lanes.Axis(9.0), 9, at) for at in range(9)]
    assert under == [[], [first], [first], [second], [second], [second], [second], [second], []]
    assert lanes.words(run, second, Places(run)) == "train_step #2, step 2, 3.4 s (train.py:140)"
    causes.of(run, second)  # the cause is computed now
    assert lanes.words(run, second, Places(run)) == (
        "train_step #2, step 2, 3.4 s: x changed from f32[8] to f32[9] (train.py:140)"
    )
    drawn = lanes.bar(lane, lanes.Axis(9.0), 9, mark=timeline.extent(run, second)[0])
    assert [at for at, (_, style) in enumerate(drawn) if style == "tab"] == [3]


def test_a_number_on_the_timeline_stands_for_several_compilations(typical):
    run = load(typical)
    lane = timeline.lanes(run)[0]
    assert lanes.under(run, lane, lanes.Axis(60.0), 1, 0) == timeline.compilations(lane)
    assert lanes.bar(lane, lanes.Axis(60.0), 1)[0][0] == "3"


def test_a_failed_compilation_is_on_the_timeline(tmp_path):
    run = load(screen_runs.failed(tmp_path / "run"))
    bar = "".join(p[0] for p in lanes.bar(timeline.lanes(run)[0], lanes.Axis(9.0), 9))
    assert bar == "·░█│████·", "two tries, the second begins with a tick"


@pytest.mark.parametrize("ns", [1 << 63, -(1 << 64), 10**400], ids=["63 bits", "-64 bits", "400 digits"])
def test_times_of_a_damaged_log_are_drawn_at_the_edge_of_the_timeline(typical, ns):
    run = load(typical)
    drawn = next(f for f in run.functions.values() if f.user and f.compilations)
    c = next(c for c in drawn.compilations if c.compiled is not None)
    c.compiled = msgspec.structs.replace(c.compiled, t_ns=ns)
    assert {len(lanes.bar(lane, lanes.Axis(60.0), 60)) for lane in timeline.lanes(run)} == {60}


def test_a_dead_program_says_what_it_died_of_first(tmp_path):
    directory = screen_runs.failed(tmp_path / "run")
    lines = directory.output.read_text().splitlines()
    said = death.why(load(directory), lines, Places(load(directory)))
    assert "RESOURCE_EXHAUSTED" in plain(said[0])
    assert "train.py:140 in main" in plain(said[1])


def test_a_program_that_read_its_input_behind_the_view_is_to_be_run_without_it(tmp_path):
    run = store.create(tmp_path / "asks")
    handwritten_runs.exited(run, 1)
    lines = [
        "Traceback (most recent call last):",
        '  File "a.py", line 1',
        "EOFError: EOF when reading a line",
    ]
    said = [plain(line) for line in death.why(load(run), lines, Places(load(run)))]
    assert "EOFError" in said[0] and "jaxscope run --no-tui" in said[1]


def test_a_program_that_ended_well_has_not_died(typical):
    assert death.why(load(typical), ["ValueError: not the end"], Places(load(typical))) == []


def test_what_compiles_now_and_for_how_long(tmp_path):
    run = load(screen_runs.running(tmp_path / "run"))
    assert plain(overview.now(run, Places(run), running=True)).startswith(
        "In progress: compiling train_step #1 for "
    )


def test_the_changed_part_of_a_key_comes_first(typical):
    run = load(typical)
    step = next(f for f in run.functions.values() if f.name == "train_step")
    rows = functions.key_of(run, step.compilations[2])
    assert (rows[0].name, rows[0].changed) == ("x", True)
    assert not any(r.changed for r in rows[1:])
    assert functions.key_of(run, step.compilations[0])[0].before is None


def test_unknown_counts_are_not_zero(tmp_path):
    run = load(screen_runs.degraded(tmp_path / "run"))
    f = next(iter(run.functions.values()))
    cells = {c.title: plain(c.cell(f, 20)) for c in functions.function_columns(run, set(), Places(run))}
    assert "calls" not in cells, "no function's calls were counted: the column is left out"
    assert cells["site"] == "?"


def test_the_header_fits_where_it_must(every_run):
    _, directory = every_run
    run = load(directory)
    for width in (80, 120, 200):
        tabs = chrome.tabs("overview", [], width)
        assert sum(len(plain(button.parts)) for button in tabs) <= width
    assert plain(chrome.header(run, directory, "exited", paused=False, width=80))


def test_lines_lead_to_operations_and_back():
    found = links.of_texts(*(screen_runs.texts("/u/train.py")[stage] for stage in ("hlo", "stablehlo")))
    assert found.stablehlo.lines()["/u/train.py", 6] == [3]
    assert found.hlo.places[17] == [("/u/train.py", 6)]
    assert found.hlo.names[18] == "all-reduce.1"


@given(st.text(max_size=200), st.text(max_size=200))
def test_links_of_any_text_are_found_or_not_but_never_fail(hlo, stablehlo):
    links.of_texts(hlo, stablehlo)
    links.of_texts("HloModule x\n" + hlo, "module {\n" + stablehlo)


def test_every_action_says_what_it_does():
    assert len({a.id for a in actions.ACTIONS}) == len(actions.ACTIONS)
    for action in actions.ACTIONS:
        assert action.help.endswith(".")
        assert actions.spelled(action.keys) or action.group


def test_a_column_without_a_width_takes_what_is_left():
    assert Column("x", lambda i, w: str(w)).width == 0


def dying(path, output, code=1, *events):
    run = store.create(path, name="dies", argv=["train.py"])
    log = handwritten_runs.Log(run)
    for event in events:
        log.say(event)
    log.end()
    handwritten_runs.exited(run, code)
    loaded = load(run)
    return [plain(line) for line in death.why(loaded, output, Places(loaded))]


TRACEBACK = [
    "epoch 1",
    "Traceback (most recent call last):",
    '  File "train.py", line 3, in <module>',
    "    main()",
    '  File "train.py", line 2, in main',
    "ValueError: too many",
]


def test_a_death_that_the_recording_did_not_see_is_reported_by_the_traceback(tmp_path):
    said = dying(tmp_path / "run", TRACEBACK)
    assert said[0] == "✖ ValueError: too many"
    assert said[1].strip() == 'File "train.py", line 2, in main'  # the innermost first


def test_an_error_that_was_survived_is_not_what_a_program_died_of(tmp_path):
    said = dying(tmp_path / "run", [*TRACEBACK, *(f"epoch {n}" for n in range(2, 9))], 5)
    assert said == ["✖ exit code 5. Last lines of its output:", "  epoch 6", "  epoch 7", "  epoch 8"]


def test_a_death_by_a_deleted_array_names_who_had_been_given_it(tmp_path):
    run = store.create(tmp_path / "run", name="dies", argv=["train.py"])
    log = handwritten_runs.Log(run)
    step = handwritten_runs.function("train_step")
    log.say(step)
    call = log.missed(step, handwritten_runs.key(handwritten_runs.leaf("state", 4, 4)))
    log.phase(call, "lower", 0.1, program="p", donated=["state"])
    site = Frame(f"{handwritten_runs.CWD}/train.py", 7, "main")
    log.say(
        ev.Died(error="RuntimeError", message="Array has been deleted with shape=float32[4,4].", stack=[site])
    )
    log.end()
    handwritten_runs.exited(run, 1)
    loaded = load(run)
    said = [plain(line) for line in death.why(loaded, [], Places(loaded))]
    assert said[0] == "✖ Uncaught RuntimeError: Array has been deleted with shape=float32[4,4]."
    assert said[1] == "  at train.py:7 in main"
    assert "train_step donates state, f32[4,4]" in said[2]


def test_want_of_memory_comes_with_what_was_requested_and_what_was_alive(tmp_path):
    run = load(screen_runs.failed(tmp_path / "run"))
    said = [plain(line) for line in death.why(run, [], Places(run))]
    assert "RESOURCE_EXHAUSTED: Out of memory" in said[0]
    assert any("needs on each device: arguments" in line for line in said)
    assert any(
        "train_step was being compiled and has not run; its previous compilation needs" in line
        for line in said
    )
    assert any("Live arrays at that time: 12 arrays" in line for line in said)
    assert any("state.opt_state[*].mu['dense']['kernel']  ●8" in line for line in said)


def test_want_of_memory_is_reported_in_four_lines_where_there_is_little_room(tmp_path):
    run = load(screen_runs.failed(tmp_path / "run"))
    said = [plain(line) for line in death.why(run, [], Places(run), brief=True)]
    assert len(said) == 4
    for line, part in zip(
        said, ("Out of memory", "train.py:140", "needs on each", "Live arrays at that time"), strict=True
    ):
        assert part in line


def waiting(path, *lines):
    """A run whose lines (number, text, times, seconds) copied to the host."""
    run = store.create(path, name="waits", argv=["train.py"])
    log = handwritten_runs.Log(run)
    log.now = 10.0
    for number, text, times, seconds in lines:
        site = Frame(f"{handwritten_runs.CWD}/train.py", number, "main")
        log.say(ev.Transferred(direction="device_to_host", via="float", site=site, text=text, count=times, seconds=seconds))  # fmt: skip
    log.end()
    return load(run)


def test_the_overview_says_how_long_the_program_waited_for_values_and_where_most(tmp_path):
    found = waiting(tmp_path / "two", (7, "float(loss)", 40, 1.5), (9, "print(\x1b[2Jx)", 2, 2.5))
    assert plain(overview.waited(found, Places(found))) == (
        "reading values on the host waited 4.0 s for the devices, 2.5 s of it in print(\\x1b[2Jx) 2x  train.py:9"
    )
    one = waiting(tmp_path / "one", (7, "float(loss)", 40, 1.5))
    assert plain(overview.waited(one, Places(one))) == (
        "reading values on the host waited 1.5 s for the devices, in float(loss) 40x  train.py:7"
    )


@pytest.mark.parametrize("counted", ["by marks", "by calls"])
def test_steps_are_shown_however_the_program_counts_them(tmp_path, counted):
    run = store.create(tmp_path / "run")
    log = handwritten_runs.Log(run)
    step = handwritten_runs.function("train_step")
    log.say(step)
    if counted == "by calls":
        log.say(ev.Watched(function=step.function, step=True))
        log.say(ev.Called(function=step.function, count=1))
    log.compiled(
        step, handwritten_runs.key(handwritten_runs.leaf("x", 32)), step=None if counted == "by marks" else 1
    )
    if counted == "by marks":
        log.say(ev.Step(index=10))
    log.compiled(step, handwritten_runs.key(handwritten_runs.leaf("x", 31)), step=11)
    log.say(ev.Step(index=40) if counted == "by marks" else ev.Called(function=step.function, count=40))
    log.end()
    found = load(run)
    header = chrome.header(found, run, "exited", paused=False, width=120)
    assert "  step 40  " in plain(header)
    heading, line = map(plain, overview.steps(found, 80))
    assert heading == " recompiles by step, 0 to 40  █ first compilation"
    assert line == " ·█·········1" + 29 * "·"


def test_the_overview_is_silent_where_nothing_worth_a_word_was_waited_for(tmp_path):
    for n, lines in enumerate(([], [(7, "float(x)", 40, None)], [(7, "float(x)", 40, 0.001)])):
        found = waiting(tmp_path / str(n), *lines)
        assert overview.waited(found, Places(found)) == []


def test_the_overview_is_silent_where_a_damaged_log_gives_a_negative_time(tmp_path):
    run = store.create(tmp_path / "run")
    handwritten_runs.Log(run)
    handwritten_runs.exited(run, seconds=-5.0)
    found = load(run)
    assert found.seconds == 0.0 and overview.waited(found, Places(found)) == []


def test_keys_can_be_given_to_actions_by_id():
    table = actions.remapped({"find": "ctrl+f,/", "export.svg": "^e", "findings.hide": "H"})
    assert {
        a.id: a.keys for a in table if a.keys != next(b.keys for b in actions.ACTIONS if b.id == a.id)
    } == {
        "find": "ctrl+f,slash",
        "export.svg": "ctrl+e",
        "findings.hide": "H",
    }


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"fnd": "x"}, "there is no action named 'fnd' in [tool.jaxscope.keys] did you mean find?"),
        ({"find": ""}, "for example"),
        ({"find": "a b"}, "'a b' cannot be a key for find"),
        ({"find": "j"}, "line.down"),
        ({"functions.star": "z"}, "pane.zoom"),
    ],
)
def test_keys_that_cannot_be_say_why(keys, said):
    with pytest.raises(UsageError) as e:
        actions.remapped(keys)
    assert said in f"{e.value.message} {e.value.hint}"


def test_no_key_of_the_table_is_for_two_things_at_once():
    assert actions.remapped({a.id: a.keys for a in actions.ACTIONS if a.keys}) == actions.ACTIONS


def test_a_page_of_differences_has_the_colors_of_before_and_after():
    assert tokens.differences("- train-1") == [(0, 9, "before")]
    assert tokens.differences("  all-gather: +2 of 3 MiB") == [(14, 25, "after")]
    line = "    temp: 3 MiB → 4 MiB (+1 MiB)"
    assert [(line[b:e], k) for b, e, k in tokens.differences(line)] == [
        ("3 MiB", "before"),
        ("4 MiB (+1 MiB)", "after"),
    ]
    assert tokens.differences("nothing") == []


def test_fusions_come_by_what_they_move():
    found = texts.analyze(screen_runs.texts("train.py")["hlo"], None)
    [fusion] = program.fusions(found)
    cells = {c.title: plain(c.cell(fusion, 60)) for c in program.fusion_columns(Places(Run()))}
    assert cells == {"fusion": "fusion.1", "kind": "loop", "runs": "1x", "moves": "256 B", "line": "train.py:6", "holds": "multiply"}  # fmt: skip


def test_a_headline_leaves_out_only_what_all_recompiles_say():
    cause = Cause("shape", "trace", "x", ArrayType((2,), "int8"), ArrayType((3,), "int8"), "certain")
    title = message("recompiled-alike", function="step", n=3, cause=cause, than=None, also=None)
    found = Finding("JX101", "warning", "certain", title, contexts=Contexts(targets=["v5e:4x4"]))
    assert words.headline(found) == "step: x changed from i8[2] to i8[3] (also for v5e:4x4)"
    other = "<lambda> wants 18.2 TiB on each device: the host has 23.5 GiB"
    assert words.headline(Finding("JX101", "warning", "certain", other)) == other


def test_a_mesh_is_drawn_with_the_bytes_over_its_axes():
    from jaxscope.analysis.hlo import program as compiled
    from jaxscope.analysis.programs import Texts
    from jaxscope.model.records import Program
    from jaxscope.tui.rows import collectives

    text = screen_runs.HLO.replace("replica_groups=[1,8]<=[8]", "replica_groups={{0,1},{2,3},{4,5},{6,7}}")
    texts = {"p": Texts(compiled.analyze(text, mesh=[("data", 4), ("model", 2)]), None)}
    [row] = collectives.rows({"p": Program("p")}, texts)
    drawn = [
        "".join(part if isinstance(part, str) else part[0] for part in line)
        for line in collectives.mesh(row, texts, 60)
    ]
    assert drawn[0] == "mesh data=4 x model=2"
    assert drawn[2].startswith("model      128 B █")
    assert drawn[4:] == [
        "       model →",
        "data ↓ 0━━━1",
        "       2━━━3",
        "       4━━━5",
        "       6━━━7",
    ]
    assert collectives.mesh(row, {}, 60) == []


def test_a_mesh_shows_the_axis_of_which_groups_have_only_a_part():
    """Such a collective was drawn without lines: its axes were compared as "part of data" with "data"."""
    from jaxscope.analysis.hlo import program as compiled
    from jaxscope.analysis.programs import Texts
    from jaxscope.model.records import Program
    from jaxscope.tui.rows import collectives

    text = screen_runs.HLO.replace("replica_groups=[1,8]<=[8]", "replica_groups={{0,3},{1,2},{4,7},{5,6}}")
    texts = {"p": Texts(compiled.analyze(text, mesh=[("data", 8)]), None)}
    [row] = collectives.rows({"p": Program("p")}, texts)
    drawn = [plain(line) for line in collectives.mesh(row, texts, 60)]
    assert "over part of data" in plain(collectives.detail(Run(), row, Places(Run()))[1])
    assert drawn[2].startswith("?")  # along which part of the axis is unknown
    assert drawn[-1] == "0━━━1━━━2━━━3━━━4━━━5━━━6━━━7"


OUTCOMES = (jobs.OK, jobs.EXHAUSTED, jobs.FAILED, jobs.CRASHED, jobs.LATE, jobs.MISSING)


@pytest.mark.parametrize("state", [*OUTCOMES, "skipped", "compiling", "waiting", "abandoned"])
def test_each_state_of_a_program_for_a_target_has_a_mark_and_an_explanation(state):
    """A target whose compiler's process had ended had the mark "?", and "failed: " without a reason."""
    assert state in machines.MARKS
    machine = machines.Machine("v5e:4x4", types.SimpleNamespace(run=Run(), directory=None), "v5e:4x4")
    program = Program("0", compiling=state == "compiling", abandoned=state == "abandoned")
    if state in OUTCOMES:
        program.target_compiled = ev.TargetCompiled(
            program="0", target="v5e:4x4", outcome=state, error="reason"
        )
    elif state == "skipped":
        program.target_lowered = ev.Retargeted(program="0", target="v5e:4x4", skipped="reason")
    assert program.state == state
    text = machines.absent(machines.Seen(machine, None, None, program), "hlo")
    assert text and not text.rstrip().endswith(":")


def test_the_cost_of_a_finding_may_grow_only_while_the_program_runs():
    found = Finding("JX101", "warning", "certain", "slow", seconds=3.7)
    facts = [plain(findings.seen(found, Places(Run()), running=running)[1]) for running in (True, False)]
    assert facts == ["warning · certain · costs 3.7 s so far", "warning · certain · costs 3.7 s"]


def test_the_header_says_whose_recompiles_there_are_none_of_if_it_has_room(tmp_path):
    run = load(screen_runs.running(tmp_path / "run"))
    wide, narrow = (
        plain(chrome.header(run, RunDir(tmp_path), "running", paused=False, width=n)) for n in (120, 50)
    )
    assert "  no recompiles of your function  " in wide
    assert narrow.endswith("  no recompiles")


def test_each_cache_that_a_call_can_miss_has_words():
    assert set(MISSED) == set(levels.LEVELS)


def test_a_rule_shows_each_item_of_a_list_in_a_paragraph_of_its_own():
    shown = [
        "".join(part if isinstance(part, str) else part[0] for part in line)
        for line in findings.rule("JX107")
    ]
    items = [line for line in shown if line.startswith("- ")]
    assert len(items) > 1 and not any(" - at most" in item for item in items), items
