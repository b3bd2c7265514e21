"""Values that a compiled function keeps, as a run tells of them."""

import pytest
from handwritten_runs import Log, exited, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.report import json_report
from jaxscope.rules import registry
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame

STEP = function("train_step")
CALL = Frame("/home/ann/work/train.py", 140, "main")
READ = Frame("/home/ann/work/train.py", 90, "train_step")


def run_of(tmp_path, *said, **more):
    """A run in which ``rate`` changed after the first trace, then what ``said`` says."""
    directory = store.create(tmp_path / "run")
    log = Log(directory)
    log.say(STEP)
    log.say(ev.Watched(function=STEP.function))
    log.compiled(STEP, key(leaf("x", 4)))
    event = {
        **{"function": STEP.function, "call": 1, "name": "rate", "where": "closure", "how": "rebound"},
        **{"before": "0.1", "after": "0.01", "read": READ, "site": CALL, "seen": "call", "step": 7},
        **{"calls": 7, "certain": True},
        **more,
    }
    log.say(ev.CaptureChanged(**event), after=1.0)
    for other in said:
        log.compiled(STEP, key(leaf("x", 4), function_object=2))
        log.say(other)
    log.end()
    exited(directory)
    return load(directory)


def findings(run):
    return [f for f in registry.findings(run) if f.code == "JX131"]


def test_a_call_that_was_served_with_the_old_value_is_an_error_at_its_line(tmp_path):
    run = run_of(tmp_path)
    [finding] = findings(run)
    assert (finding.severity, finding.certainty, finding.source) == ("error", "certain", CALL)
    assert "train_step computes with an old value of rate" in words.title(finding)
    assert "0.1 " in words.title(finding) and "0.01 now" in words.title(finding)
    assert finding.evidence[0].source == READ and finding.evidence[0].compilation == "1000.1"
    assert finding.evidence[1].step == 7
    [told] = json_report.as_json(run)["stale_captures"]
    assert (told["status"], told["ended_by"], told["after_compilation"]) == ("stale", None, "1000.1")
    assert told["read"]["line"] == 90 and told["seen_at"]["line"] == 140


@pytest.mark.parametrize(
    "event",
    [
        {"where": "global", "reader": "helper", "before": "list", "after": "list"},
        {"where": "global of helper", "before": "list", "after": "another list"},  # of an older version
    ],
)
def test_the_function_that_reads_the_value_and_an_equal_text_are_named(tmp_path, event):
    run = run_of(tmp_path, **event)
    [finding] = findings(run)
    assert "it was list when traced, and is another list now" in words.title(finding)
    assert "read rate (global of helper) as list" in words.evidence(finding.evidence[0])
    [entry] = json_report.as_json(run)["stale_captures"]
    assert (entry["where"], entry["variable"], entry["reader"]) == ("global of helper", "global", "helper")
    assert (entry["before"], entry["after"]) == ("list", "another list")


def test_an_attribute_of_a_static_argument_has_its_own_advice(tmp_path):
    [finding] = findings(run_of(tmp_path, where="static"))
    assert "create a new object instead of changing" in words.fix_text(finding)


@pytest.mark.parametrize(
    ("seen", "calls", "status"),
    [("call", 8, "ended"), ("step", 8, "withdrawn"), ("step", 9, "ended"), ("step", None, "withdrawn")],
)
def test_a_new_trace_ends_it_or_shows_that_nothing_came_of_it(tmp_path, seen, calls, status):
    run = run_of(tmp_path, ev.CaptureRenewed(function=STEP.function, call=1, by=2, calls=calls), seen=seen)
    assert [s.status for s in run.stale] == [status]
    assert len(findings(run)) == (status == "ended")
    assert json_report.as_json(run)["stale_captures"][0]["ended_by"] == "1000.2"


def test_a_new_trace_for_another_object_does_not_end_it(tmp_path):
    run = run_of(tmp_path, ev.CaptureRenewed(function=STEP.function, call=5, by=2, calls=8))
    assert [s.status for s in run.stale] == ["stale"]


@pytest.mark.parametrize(("seen", "severity"), [("step", "error"), ("exit", "warning")])
def test_what_was_not_seen_at_a_call_is_likely_at_most(tmp_path, seen, severity):
    [finding] = findings(run_of(tmp_path, seen=seen, how="in place", site=None))
    assert (finding.certainty, finding.severity, finding.source) == ("likely", severity, READ)
    assert "contains 0.01 now" in words.title(finding)


def test_an_event_that_says_nothing_of_a_call_that_is_lost_still_reads(tmp_path):
    [finding] = findings(run_of(tmp_path, call=99, read=None, site=None, before=None, after=None, where=""))
    assert finding.evidence[0].compilation is None and finding.source is None
