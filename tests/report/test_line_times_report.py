"""Where the main thread spends its time, as text, HTML, JSON and in the view."""

import json

import jsonschema
import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.present.spans import plain
from jaxscope.present.text import Places
from jaxscope.report import contract, function_summary, html, json_report, line_times
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame
from jaxscope.schema.line_times import COMPILING, COPYING, OPERATIONS, PYTHON, WAITING, LineTime
from jaxscope.tui.rows import overview

AT = Frame("/home/ann/work/train.py", 7, "Trainer.fit.<locals>.<listcomp>")
OTHER = Frame("/home/ann/work/train.py", 31, "<module>")
MODEL = Frame("/home/ann/work/model.py", 12, "Model.__call__")


@pytest.fixture
def recorded(tmp_path):
    def of(*times, seconds=10.0):
        made = store.create(tmp_path / "run")
        log = Log(made)
        if times:
            log.say(ev.LineTimes(seconds=seconds, lines=list(times)), after=seconds)
        log.end()
        return load(made)

    return of


TIMES = (
    LineTime(PYTHON, [AT, OTHER], 6.3, 120),
    LineTime(OPERATIONS, [OTHER], 1.4, 30),
    LineTime(COMPILING, [OTHER], 2.0, 40, traced=[MODEL]),
    LineTime(PYTHON, [OTHER], 0.2, 4),
)


def printed(run, **more):
    return [
        " ".join(f"{line.text.plain} {line.right.plain if line.right else ''}".split())
        for line in line_times.section(run, Places(run), **more)
    ]


def test_the_longest_lines_are_listed_with_what_is_done_there(recorded):
    assert printed(recorded(*TIMES)) == [
        "",
        "Time of the main thread, by line (approximate; samples cover 10.0 s)",
        "Python code train.py:7 in Trainer.fit 6.3 s 63 %",
        "operations outside jit train.py:31 1.4 s 14 %",
        "tracing, lowering and compiling, all lines together 2.0 s 20 %",
        "included above: traced by JAX model.py:12 in Model.__call__ 2.0 s 20 %",
        "1 more line: --all shows them 0.20 s 2 %",
    ]


def test_the_lines_before_the_first_use_of_a_device_come_first(tmp_path):
    made = store.create(tmp_path / "run")
    log = Log(made)
    setup = [LineTime(COPYING, [AT], 3.0, 60), LineTime(PYTHON, [OTHER], 0.1, 5)]
    log.say(ev.LineTimes(setup_seconds=4.0, setup=setup), after=10.0)
    log.end()
    run = load(made)
    assert printed(run) == [
        "",
        "Time before the first use of a device, by line (approximate; samples cover 4.0 s)",
        "making arrays, or copying them to devices train.py:7 in Trainer.fit 3.0 s 75 %",
    ]
    assert len(printed(run, everything=True)) == 4
    found = line_times.as_json(run)
    assert (found.seconds, found.lines, found.setup_seconds, found.setup[0].share) == (0.0, [], 4.0, 0.75)


def test_compiling_has_the_seconds_of_the_header_and_other_tracing_its_own_line(tmp_path):
    made = store.create(tmp_path / "run")
    log = Log(made)
    log.backend()
    step = function("step")
    log.say(step)
    log.phase(log.missed(step, key(leaf("x", 4))), "compile", 1.0)
    times = [LineTime(COMPILING, [OTHER], 3.0, 60), LineTime(PYTHON, [AT], 2.5, 2)]
    log.say(ev.LineTimes(seconds=10.0, lines=times), after=10.0)
    log.end()
    assert printed(load(made))[2:] == [
        "Python code train.py:7 in Trainer.fit 2.5 s 25 %",  # one long call of C code
        "tracing, lowering and compiling, all lines together 1.0 s 10 %",
        "more time in JAX's tracer, such as for control flow outside jit 2.0 s 20 %",
    ]


def test_all_lines_are_listed_where_all_is_asked_for(recorded):
    lines = printed(recorded(*TIMES), everything=True)
    assert "tracing, lowering and compiling train.py:31 2.0 s 20 %" in lines
    assert "Python code train.py:31 0.20 s 2 %" in lines and not any("--all" in line for line in lines)


def test_nothing_is_printed_where_nothing_takes_long_or_was_measured(recorded):
    assert printed(recorded(LineTime(PYTHON, [AT], 0.4, 40))) == []


def test_the_json_has_all_lines_and_null_where_nothing_was_measured(recorded, tmp_path):
    run = recorded(*TIMES)
    text = "".join(json_report.pieces(run))
    jsonschema.validate(json.loads(text), contract.schema())
    found = json.loads(text)["line_times"]
    assert found["seconds"] == 10.0
    (first, second, *_), traced = found["lines"], found["traced"]
    assert (first["doing"], first["source"]["line"], first["share"], first["samples"]) == (
        "python",
        7,
        0.63,
        120,
    )
    assert first["callers"][0]["line"] == 31 and second["doing"] == "compiling"
    assert [t["source"]["line"] for t in traced] == [12] and traced[0]["callers"][0]["line"] == 31
    nothing = store.create(tmp_path / "other")
    Log(nothing).end()
    assert json.loads("".join(json_report.pieces(load(nothing))))["line_times"] is None


def test_the_page_and_the_view_say_the_same(recorded):
    run = recorded(*TIMES)
    assert "operations outside jit" in "".join(html.pieces(run))
    assert plain(overview.line_times(run, Places(run))) == (
        "apart from compiling, most time of the main thread: Python code  train.py:7 in Trainer.fit, 6.3 s, 63 %"
    )


@pytest.mark.parametrize(("waited", "said"), [(4.0, True), (0.6, False)])
def test_the_time_to_run_a_function_is_said_where_it_is_long(tmp_path, waited, said):
    made = store.create(tmp_path / "run")
    log = Log(made)
    log.say(function("step"))
    log.compiled(function("step"), key(leaf("w", 3)), site=OTHER)
    times = [LineTime(WAITING, [Frame(OTHER.file, 33, "<module>")], waited, 40)]
    log.say(ev.LineTimes(seconds=10.0, lines=times), after=10.0)
    log.end()
    run = load(made)
    (step,) = run.functions.values()
    lines = [one.text.plain.strip() for one in function_summary.entry(run, step, Places(run))]
    assert ("calls and waits for their results: about 4.0 s, 40 % of the sampled time" in lines) is said
