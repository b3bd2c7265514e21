"""Where the time of a step goes, as text, HTML, JSON and in the view: one wording, and silence where it is little."""

import json

import jsonschema
import pytest
from handwritten_runs import CWD, Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.model.step_time import step_seconds
from jaxscope.present import steps as words
from jaxscope.present.spans import plain
from jaxscope.present.text import Places
from jaxscope.report import contract, html, json_report, step_time
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame
from jaxscope.tui.rows import overview

STEP = function("train_step")


def recorded(path, *lines, seconds=0.05, profile=None):
    """Ten steps of ``seconds``, after one that compiled; ``lines``: (line, expression, direction, seconds)."""
    run = store.create(path)
    log = Log(run, transfers=True)
    log.say(STEP)
    log.compiled(STEP, key(leaf("x", 1)), line=30)
    for n in range(11):
        for line, text, direction, took in lines:
            site = Frame(f"{CWD}/train.py", line, "main")
            facts = {"count": n + 1, "seconds": n * took, "step_seconds": n * took}
            log.say(ev.Transferred(direction=direction, via=text[:5], text=text, site=site, **facts))
        log.now += seconds
        log.say(ev.StepTimed(step=n + 1, marked=True, clock_ns=int(log.now * 1e9)))
    if profile is not None:
        profiled = ev.Profiled(first_step=12, last_step=13, seconds=1.0, devices=1, busy_seconds=profile)
        log.say(profiled, after=2.0)
    log.end()
    return load(run)


WAITS = (31, "float(loss)", "device_to_host", 0.03)
COPIES = (28, "jax.device_put(batch)", "host_to_device", 0.005)
TINY = (40, "float(x)", "device_to_host", 0.0001)


def printed(run, **more):
    return [
        " ".join(f"{line.text.plain} {line.right.plain if line.right else ''}".split())
        for line in step_time.section(run, Places(run), **more)
    ]


def test_lines_are_shown_with_their_share_and_the_rest_as_what_it_is(tmp_path):
    run = recorded(tmp_path / "run", WAITS, COPIES, TINY)
    assert printed(run) == [
        "",
        "Time of a step 50 ms, the mean of 10 steps without a compilation (2 to 11)",
        "waiting for float(loss) train.py:31 30 ms 60 %",
        "copying jax.device_put(batch) train.py:28 5.0 ms 10 %",
        "1 more line: --all shows them 100 µs 0 %",
        "the rest: Python code, dispatch, and waiting that was not recorded 15 ms 30 %",
    ]
    assert "waiting for float(x) train.py:40 100 µs 0 %" in printed(run, everything=True)
    assert "".join(p if isinstance(p, str) else p[0] for p in overview.step_time(run, Places(run))) == (
        "a step takes 50 ms: 30 ms waiting for float(loss)  train.py:31"
    )
    document = "".join(html.pieces(run))
    assert "Time of a step" in document and "waiting for float(loss)" in document


def test_a_profile_adds_how_long_the_devices_waited(tmp_path):
    run = recorded(tmp_path / "run", profile=0.37)
    assert printed(run)[-2:] == [
        "the rest: Python code, dispatch, and waiting that was not recorded 50 ms 100 %",
        "the device waited for the host 63 % of the time (profile of steps 12 to 13)",
    ]


@pytest.mark.parametrize("lines", [(), (TINY,)], ids=["none", "little"])
def test_nothing_is_shown_where_the_lines_take_little(lines, tmp_path):
    run = recorded(tmp_path / "run", *lines, profile=0.99)
    assert printed(run) == [] and overview.step_time(run, Places(run)) == []
    assert "Time of a step" not in "".join(html.pieces(run))
    assert printed(run, everything=True)[1].startswith("Time of a step 50 ms")


def test_json_has_every_figure_and_null_where_steps_are_not_counted(tmp_path):
    def as_json(run):
        document = json.loads("".join(json_report.pieces(run)))
        jsonschema.Draft202012Validator(contract.schema()).validate(document)
        return document["step_time"]

    found = as_json(recorded(tmp_path / "run", WAITS, COPIES))
    assert [(e["cause"], e["source"]["line"], e["expression"]) for e in found["lines"]] == [
        ("wait", 31, "float(loss)"),
        ("copy", 28, "jax.device_put(batch)"),
    ]
    parts = [e["seconds"] for e in found["lines"]]
    assert found["seconds"] == pytest.approx(sum(parts) + found["rest_seconds"])
    assert (found["first_step"], found["last_step"], found["steps"]) == (2, 11, 10)
    assert found["device_waits_share"] is None and found["profiled_steps"] is None
    log = Log(store.create(tmp_path / "none"))
    log.end()
    assert as_json(load(log.run)) is None


def test_steps_after_the_last_timed_one_are_counted(tmp_path):
    log = Log(store.create(tmp_path / "run"), transfers=True)
    log.say(STEP)
    for n in range(1, 6):
        log.now += 0.05
        log.say(ev.StepTimed(step=n, marked=True, clock_ns=int(log.now * 1e9)))
    log.say(ev.Step(index=9))
    run = load(log.run)
    assert plain(words.total(step_seconds(run))).endswith("(2 to 5 of 9)")
