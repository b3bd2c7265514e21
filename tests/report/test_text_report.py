"""The report as a person sees it, at 80 columns."""

import io
import re
import threading

import handwritten_runs
import pytest
from handwritten_runs import Log, function, key, leaf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.report import text as pages
from jaxscope.report.console import console, replace_unencodable, wants_color
from jaxscope.report.function import render_function
from jaxscope.report.text import print_report, render, summary
from jaxscope.schema import events as ev

WHOLE = """\
train.py --epochs 3
44.1 s of 2 min 14 s (33 %) went into tracing, lowering and compiling
The other 89.9 s: 2.0 s until the first compilation (imports, set-up), 87.9 s
  for everything else
JAX 0.12.0.1 · Python 3.13.1 · 8 x cpu · exit code 0
23.9 s spent recompiling (1 weak type change 8.6 s, 1 shape change 7.0 s, 1
  dtype change 6.9 s, 11 new function objects 1.4 s)
1.6 s spent recompiling outside your jitted functions (20 of 23 compilations
  there)

Findings  (▲ warning, · note; on the right: the time lost)
  ▲ JX103  train_step recompiled: state.count is no longer weakly typed;   8.6 s
           it changed from i32[] weak to i32[]  (step 2, train.py:140)
           → in every call, including the first, pass state.count as an array
             that is not weakly typed: jnp.asarray(state.count, 'int32')
  ▲ JX101  train_step recompiled: batch['ids'] changed from i32[32,512]    7.0 s
           to i32[32,511]  (step 376, train.py:140)
           → pad batch['ids'] to the larger size, [32,512], in every call, and
             let no result depend on the padding (for example, jnp.mean(values,
             where=mask) with an argument mask: False for the padding, in the
             shape of values)
  ▲ JX102  train_step recompiled: 148 leaves under state.params changed    6.9 s
           dtype from f32 to bf16  (step 204, train.py:140)
           → convert state.params to the same dtype before every call, with
             .astype('float32')
  ▲ JX110  main.<lambda> recompiled 11 times: the jitted function is a     1.4 s
           new object, because a lambda was created again at data.py:31
           (train.py:33)
           → define the function once, at module level, and jit it there; pass
             the numbers and arrays that it reads from outside as arguments (in
             static_argnames, list those that determine shapes). If it uses an
             object that changes, such as an optimizer with a new learning rate,
             create this object in the function, from the values that are passed
  · JX123  41 calls of train_step missed JAX's fast path and were slower:
           batch['ids'] changed from a jax.Array to a numpy array, which by
           itself compiles nothing (compared with compilation #3, the most
           similar earlier one)  (step 380, train.py:140)
           → pass batch['ids'] as a jax.Array in every call: jnp.asarray(x)

Long first compilations that no finding is about: eval_step: 9.2 s
  (train.py:150); train_step: 8.8 s (train.py:140)

Your functions, slowest first
train_step  train.py:88                                                   31.3 s
    traced 4x in 5.8 s · lowered 4x in 1.2 s · compiled 4x in 24.3 s (1 from the
    persistent cache) · 41 fast-path misses · 381 calls
    #2  state.count is no longer weakly typed; it changed from i32[] weak to
        i32[]  (step 2, 8.6 s, train.py:140)
    #3  148 leaves under state.params changed dtype from f32 to bf16  (step 204,
        6.9 s, train.py:140)
    #4  batch['ids'] changed from i32[32,512] to i32[32,511]  (step 376, from
        the persistent cache, 7.0 s, train.py:140)
eval_step  train.py:120                                                    9.2 s
    traced 1x in 0.80 s · lowered 1x in 0.20 s · compiled 1x in 8.2 s
main.<lambda>  data.py:31                                                  1.6 s
    traced 12x in 0.12 s · lowered 12x in 0.24 s · compiled 12x in 1.2 s
    11x #2…#12  the jitted function is a new object, because a lambda was
                created again at data.py:31  (steps 1 to 11, 1.4 s together,
                train.py:33)

Outside your jitted functions  23 compilations of 1 operation and 1        2.0 s
    library function  train.py:52 (3x, 0.96 s), train.py:31 (13x, 0.69 s) and
    train.py:40 (7x, 0.37 s)

Not recorded  trace_frame: jax._src.pjit._trace_for_jit has no local fun
    run jaxscope doctor to see what this affects

jaxscope report DIRECTORY --function train_step   cache keys of train_step, compared
jaxscope dump DIRECTORY train_step -o DIR         what was compiled, as text
"""


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def directory(tmp_path):
    return handwritten_runs.training(tmp_path / "run")


def printed(run, directory=None, *, width=80, **more) -> str:
    out = io.StringIO()
    render(run, console(out, width=width), directory, **more)
    return out.getvalue()


def one(run, name, *, width=80, **more) -> str:
    out = io.StringIO()
    render_function(run, name, console(out, width=width), **more)
    return out.getvalue()


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_the_report_of_a_training_run_is_understood_in_ten_seconds(directory):
    text = printed(load(directory), directory)
    page = text.replace(str(directory.path), "DIRECTORY")
    found, wanted = lines(page), lines(WHOLE)
    cut = next(i for i, line in enumerate(wanted) if line.startswith("jaxscope report"))
    assert found[:cut] == wanted[:cut]
    # The directory of this test is part of the commands.
    assert " ".join("".join(found[cut:]).split()).count("--function train_step") == 1


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_cut_away(directory, width):
    text = printed(load(directory), directory, width=width, everything=True)
    commands = [line for line in lines(text) if line.startswith("    jaxscope ")]  # to copy, so never wrapped
    assert len(commands) >= 2
    assert max(len(line) for line in lines(text) if line not in commands) <= width
    flowing = re.sub(r"\s+", "", text)
    for words in (
        "batch['ids']changedfromi32[32,512]toi32[32,511]",
        "148leavesunderstate.paramschangeddtypefromf32tobf16",
    ):
        assert words in flowing


def test_all_opens_what_is_folded(directory):
    run = load(directory)
    assert "normal  traced" not in printed(run)
    text = printed(run, everything=True)
    assert "    add  traced 20x" in text and "    normal  traced 3x" in text


def test_a_function_is_shown_with_its_keys_one_below_the_other(directory):
    text = one(load(directory), "train_step")
    assert [line for line in lines(text) if line.startswith("#")] == [
        "#1  step 1 · 8.8 s (trace 1.5 s, lower 0.30 s, compile 7.0 s)",
        "#2  step 2 · 8.6 s (trace 1.5 s, lower 0.30 s, compile 6.8 s)",
        "#3  step 204 · 6.9 s (trace 1.4 s, lower 0.30 s, compile 5.2 s)",
        "#4  step 376 · 7.0 s (trace 1.4 s, lower 0.30 s, compile 5.3 s) · from the",
    ]
    assert [line for line in lines(text) if line.endswith("(changed)")] == [
        "    state.count   i32[]  cpu:0  uncommitted  (changed)",
        "    state.params  148 leaves: bf16[512,512]  cpu:0  uncommitted  (changed)",
        "    batch['ids']  i32[32,511]  cpu:0  uncommitted  (changed)",
    ]
    assert "Same in all 4 keys" in text
    assert (
        "batch['ids'] changed from a jax.Array to a numpy array, which by itself compiles nothing"
        in " ".join(text.split())
    )


def test_two_keys_are_both(tmp_path):
    run = store.create(tmp_path / "run")
    log = handwritten_runs.Log(run)
    step = handwritten_runs.function("step")
    log.say(step)
    for n in (8, 7):
        log.compiled(step, handwritten_runs.key(handwritten_runs.leaf("x", n), handwritten_runs.leaf("y", 4)))
    log.end()
    assert "Same in both keys" in one(load(run), "step")


def test_one_compilation_can_be_requested(directory):
    text = one(load(directory), "train_step#3")
    assert "#3  step 204" in text and "#2  step" not in text
    assert "compared with #2: 148 leaves under state.params" in text


def test_all_shows_every_leaf_of_every_key(directory):
    text = one(load(directory), "train_step", everything=True)
    assert text.count("state.params['layer73']['bias']") == 4
    assert "jax_default_matmul_precision" in text


def test_many_keys_are_shown_from_both_ends(directory):
    text = one(load(directory), "main.<lambda>")
    assert "2 keys left out: --all shows them" in text
    assert "2 keys left out" not in one(load(directory), "main.<lambda>", everything=True)


def test_what_was_being_compiled_when_it_died_is_reported_first(tmp_path):
    run = store.create(tmp_path / "run")
    log, f = Log(run), function("train_step")
    log.say(f)
    call = log.missed(f, key(leaf("x", 4)))
    log.phase(call, "trace", 0.2)
    log.say(ev.PhaseBegan(call=call, phase="compile"))
    log.say(ev.Step(index=1), after=12.5)
    handwritten_runs.exited(run, None, signal=9, seconds=12.7)
    text = printed(load(run), run)
    assert "12.7 s of 12.7 s (100 %)" in text and "ended by SIGKILL" in text
    assert "Unfinished when it ended: compiling train_step #1 for 12.5 s  (train.py:140)" in text


def test_a_run_that_is_still_going_on_says_so(tmp_path):
    run = store.create(tmp_path / "run")
    Log(run)
    run.heartbeat.touch()
    assert "still running" in printed(load(run), run)


def test_a_run_without_anything_says_what_may_be_the_matter(tmp_path):
    run = store.create(tmp_path / "run", argv=["x.py"])
    handwritten_runs.exited(run, 0)
    text = printed(load(run), run)
    assert "Nothing was compiled" in text and "did the program import jax?" in text
    assert "exit code 0" in text
    run = store.create(tmp_path / "failed", argv=["x.py"])
    handwritten_runs.exited(run, 1)
    assert "did the program fail before it imported jax?" in " ".join(printed(load(run), run).split())


def test_the_same_key_twice_is_reported_honestly(tmp_path):
    run = store.create(tmp_path / "run")
    log, f = Log(run), function("f")
    log.say(f)
    for _ in range(2):
        log.compiled(f, key(leaf("x", 4)))
    log.compiled(f, None)
    text = printed(load(run), run)
    assert (
        "nothing that was recorded differs from the nearest earlier call (compared: 1 array argument"
        in " ".join(text.split())
    )
    assert "its cache key was not recorded" in text


def test_recompiles_of_one_kind_are_one_line(tmp_path):
    run = store.create(tmp_path / "run")
    log, f = Log(run), function("predict")
    log.say(f)
    for n in range(50):
        log.compiled(f, key(leaf("x", n + 1)), step=n)
    text = printed(load(run), run)
    assert "49x #2…#50  most recently: x changed from f32[49] to f32[50]" in text
    assert "--all" not in text


def test_events_of_a_newer_jaxscope_and_damaged_lines_are_mentioned(tmp_path):
    run = store.create(tmp_path / "run")
    Log(run)
    (run.events / "7-x.jsonl").write_bytes(b'{"kind":"Dreamt\\u001b[2J"}\nnoise\n')
    text = printed(load(run), run)
    assert r"1 event of a newer jaxscope: Dreamt\x1b[2J" in text
    assert "1 line of the log could not be read" in text


HOSTILE = "evil[red]\x1b[2J\u202e\n[/]:smile:"


def hostile_run(path, name=HOSTILE):
    run = store.create(path, name=name, argv=["train.py", name])
    log = Log(run, cwd=name, jax=name)
    log.backend(kind=name)
    f = function(name, file=f"/{name}.py", wrappers=[name], signature=name, form=name)
    log.say(f)
    for n in (1, 2):
        log.compiled(
            f, key(leaf(f"x{name}", n, type=name), options={name: str(n)}, tree=name * n), effects=[name]
        )
    call = log.missed(f, None)
    log.say(ev.PhaseBegan(call=call, phase=name))
    log.say(ev.Degraded(seam=name, reason=name))
    return run


def assert_harmless(text: str) -> None:
    assert all(c.isprintable() or c == "\n" for c in text), [
        c for c in text if not c.isprintable() and c != "\n"
    ]


def test_hostile_names_are_shown_and_do_nothing(tmp_path):
    run = hostile_run(tmp_path / "run")
    loaded = load(run)
    for text in (
        printed(loaded, run),
        printed(loaded, run, everything=True),
        one(loaded, HOSTILE, everything=True),
        summary(run),
    ):
        assert_harmless(text)
        assert "[red]" in text and ":smile:" in text.replace("\n", "")


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    name=st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20), width=st.integers(10, 130)
)
def test_any_name_at_any_width_renders_without_control_characters(tmp_path_factory, name, width):
    run = hostile_run(tmp_path_factory.mktemp("r") / "run", name)
    assert_harmless(printed(load(run), run, width=width))


def test_the_summary_of_a_large_run_does_not_keep_the_prompt_waiting_for_rules(directory, monkeypatch):
    asked = []
    monkeypatch.setattr(pages.variants, "findings", lambda parts: asked.append(1) or [])
    summary(directory)
    assert asked
    monkeypatch.setattr(pages, "QUICK_COMPILATIONS", 1)
    asked.clear()
    assert "full report, with the findings of this large run: jaxscope report" in " ".join(
        summary(directory).split()
    )
    assert not asked


def test_the_summary_is_short_and_leads_to_the_report(directory):
    text = summary(directory)
    assert len(text.splitlines()) < 15
    assert text.startswith("jaxscope: 44.1 s of 2 min 14 s went into tracing")
    assert "15 recompiles" not in text and "17 compilations of your functions (14 recompiles)" in " ".join(
        text.split()
    )
    assert "full report: jaxscope report" in text
    assert "\x1b" not in text


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("environment", "terminal", "color"),
    [
        ({}, True, True), ({}, False, False), ({"NO_COLOR": "1"}, True, False), ({"FORCE_COLOR": "1"}, False, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False), ({"TERM": "dumb"}, True, False), ({"FORCE_COLOR": "0"}, False, False),
    ],
)  # fmt: skip
def test_color_is_for_terminals_and_those_who_ask(monkeypatch, directory, environment, terminal, color):
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = Terminal() if terminal else io.StringIO()
    assert wants_color(stream) is color
    print_report(load(directory), file=stream, directory=directory)
    assert ("\x1b[" in stream.getvalue()) is color


def test_a_stream_without_arrows_gets_ascii(directory):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    replace_unencodable(stream)
    print_report(load(directory), file=stream, directory=directory)
    stream.flush()
    assert b"-> pad batch['ids'] to the larger size" in raw.getvalue()


def test_compilations_of_several_threads_at_once_are_no_part_of_less_time(tmp_path):
    log, f = Log(store.create(tmp_path / "run")), function("f")
    log.say(f)
    log.compiled(f, key(leaf("x", 1)))
    calls = [log.missed(f, key(leaf("x", n))) for n in (2, 3)]
    began = log.now
    log.phase(calls[0], "compile", 8.0)
    log.now = began
    thread = threading.Thread(target=log.phase, args=(calls[1], "compile", 8.0))
    thread.start()
    thread.join()
    to = io.StringIO()
    print_report(load(log.run), file=to)
    assert "16.0 s spent recompiling, some of it in parallel (2 shape changes)" in " ".join(
        to.getvalue().split()
    )


@pytest.mark.parametrize("message", ["no such key", "RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes"])
def test_where_nobody_saw_the_output_the_summary_says_of_what_the_program_died(tmp_path, message):
    run = store.create(tmp_path / "run")
    log = Log(run)
    log.say(ev.Died(error="SomeError", message=message))
    log.end()
    assert f"Uncaught SomeError: {message}" in summary(run, unseen=True)
    assert "Died" not in summary(run), "its traceback stands above"


class ZMQInteractiveShell:
    """What a notebook's kernel is recognized by."""


@pytest.mark.parametrize("colored", [False, True])
def test_in_a_notebook_a_report_is_one_output(directory, monkeypatch, colored):
    written = []

    class Frontend(io.StringIO):
        def write(self, text):
            written.append(text)
            return len(text)

        def isatty(self):
            return True

    monkeypatch.setattr("builtins.get_ipython", ZMQInteractiveShell, raising=False)
    monkeypatch.setattr("sys.stdout", Frontend())
    monkeypatch.setenv("TERM", "xterm-color" if colored else "dumb")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    print_report(load(directory))
    assert len(written) == 1
    assert "Your functions, slowest first" in written[0]
    assert ("\x1b[" in written[0]) == colored


def test_a_command_that_is_too_long_stands_below_what_it_prints(directory):
    run = load(directory)
    assert "cache keys of train_step, compared:\n    jaxscope report" in printed(run, directory, width=60)
    [line] = [x for x in lines(printed(run, directory, width=300)) if "cache keys of train_step" in x]
    assert line.startswith("jaxscope report") and line.endswith("   cache keys of train_step, compared")
