"""The timeline: what the documentation of the Trace Event Format requires, and what a reader of it draws."""

import json
from collections import defaultdict

import handwritten_runs
import jsonschema
import msgspec
import pytest
import screen_runs
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.report import timeline
from jaxscope.report.timeline import Recorded, Slice
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame

RUNS = {**screen_runs.ALL, **screen_runs.ELSEWHERE, "training": handwritten_runs.training}
NUMBER, TEXT, WHOLE = {"type": "number"}, {"type": "string"}, {"type": "integer", "minimum": 0}
COMMON = {"name": TEXT, "pid": WHOLE, "tid": WHOLE, "ts": NUMBER, "args": {"type": "object"}}


def of_phase(phase, required, **more):
    return {
        "if": {"properties": {"ph": {"const": phase}}},
        "then": {"properties": {**COMMON, **more}, "required": ["name", "pid", "ts", *required]},
    }


# "Trace Event Format", JSON Object Format; of the event types the complete, metadata and counter events.
FORMAT = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "traceEvents": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["ph"],
                "properties": {"ph": {"enum": ["X", "M", "C"]}},
                "allOf": [
                    of_phase("X", ["dur", "tid", "cat"], dur={"type": "number", "minimum": 0}, cat=TEXT),
                    of_phase("C", ["args"], args={"type": "object", "additionalProperties": NUMBER}),
                    of_phase(
                        "M",
                        ["args"],
                        name={
                            "enum": ["process_name", "process_sort_index", "thread_name", "thread_sort_index"]
                        },
                    ),
                ],
            },
        },
    },
}


def read(*recorded):
    found = json.loads("".join(timeline.pieces(recorded)))
    jsonschema.Draft202012Validator(FORMAT).validate(found)
    tracks = defaultdict(list)
    for e in found["traceEvents"]:
        if e["ph"] == "X":
            tracks[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    for slices in tracks.values():
        nested(slices)
    return found["traceEvents"]


def nested(slices):
    """Two slices of one track are apart, or one is inside the other: a reader drops others."""
    ends = []
    for begin, end in sorted(slices, key=lambda s: (s[0], -s[1])):
        while ends and ends[-1] <= begin + 1e-6 * abs(begin):
            ends.pop()
        assert not ends or end <= ends[-1] + 1e-6 * abs(end)
        ends.append(end)


@pytest.mark.parametrize("name", RUNS)
def test_the_timeline_of_every_kind_of_run_is_in_the_trace_event_format(name, tmp_path):
    directory = RUNS[name](tmp_path / "run")
    read(Recorded(load(directory), directory))


def names(events, category):
    return [e["name"] for e in events if e["ph"] == "X" and e["cat"] == category]


def test_phases_have_their_times_and_the_cause_of_a_recompile(tmp_path):
    directory = handwritten_runs.training(tmp_path / "train-1")
    events = read(Recorded(load(directory), directory))
    assert names(events, "trace").count("trace train_step") == 4
    compiles = [e for e in events if e.get("cat") == "compile" and "train_step" in e["name"]]
    assert [e["name"] for e in compiles] == ["compile train_step"] * 3 + ["load train_step"]  # from the cache
    assert [e["dur"] for e in compiles] == [7e6, 6.8e6, 5.2e6, 5.3e6]
    assert compiles[0]["args"] == {
        "function": "train_step",
        "line": "train.py:140",
        "step": 1,
        "compilation": 1,
    }
    assert "batch['ids'] changed from i32[32,512] to i32[32,511]" in compiles[3]["args"]["recompiled"]
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["train (pid 1000)"]


def test_steps_waits_and_live_arrays_have_tracks_of_their_own(tmp_path):
    run = store.create(tmp_path / "run", name="run", argv=["train.py"])
    log = handwritten_runs.Log(run)
    log.backend(8)
    for step, at in ((1, 1.0), (2, 2.0), (12, 5.0)):
        log.now = at
        log.say(ev.Step(index=step))
    line = Frame(f"{handwritten_runs.CWD}/train.py", 9, "main")
    for count, spent, at in ((1, 0.5, 6.0), (11, 2.5, 9.0)):
        log.now = at
        last = log._t()
        log.say(
            ev.Transferred(
                direction="device_to_host", via="float", site=line, count=count, seconds=spent, waits=count,
                first_ns=handwritten_runs.T0 + 5_500_000_000, last_ns=last,
            )
        )  # fmt: skip
    look = screen_runs.arrays(2, 3)
    log.say(msgspec.structs.replace(look, groups=look.groups[:1], count=1))
    log.end()
    events = read(Recorded(load(run), run))
    assert names(events, "step") == ["step 2", "steps 3 to 12"]
    waits = [e for e in events if e.get("cat") == "wait"]
    assert [(e["ts"], e["dur"], e["args"]["copies"]) for e in waits] == [(5.5e6, 5e5, 1), (7e6, 2e6, 10)]
    tracks = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert tracks == {"steps", "waits at train.py:9"}
    (counter,) = [e for e in events if e["ph"] == "C"]
    assert (counter["name"], counter["ts"]) == ("live arrays", 9e6) and counter["args"]["bytes"] > 0


def test_the_ranks_of_a_job_are_processes_on_one_clock(tmp_path):
    parts = []
    for rank, at in ((0, 0.0), (1, 2.0)):
        run = store.create(tmp_path / str(rank), name="job", argv=["train.py"])
        log = handwritten_runs.Log(run, at=at)
        log.backend(1)
        f = handwritten_runs.function("train_step")
        log.say(f)
        log.compiled(f, handwritten_runs.key(handwritten_runs.leaf("x", 3)), (1.0, 1.0, 1.0))
        log.end()
        parts.append(Recorded(load(run), run, rank))
    events = read(*parts)
    shown = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert shown == {1: "rank 0: job (pid 1000)", 2: "rank 1: job (pid 1000)"}
    first, second = (min(e["ts"] for e in events if e["ph"] == "X" and e["pid"] == n) for n in (1, 2))
    assert second - first == 2e6


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**6)), max_size=40))
def test_slices_that_overlap_are_put_on_several_tracks(spans):
    slices = [Slice(begin, begin + length, "x", "y", {}) for begin, length in spans]
    tracks = timeline._tracks(7, "phases", slices)
    assert sum(len(found) for _, _, found in tracks) == len(slices)
    assert [n for n, _, _ in tracks] == list(range(7, 7 + len(tracks)))
    for _, _, found in tracks:
        nested([(s.begin, s.end) for s in found])


def test_dump_writes_a_timeline(tmp_path, monkeypatch, capsys):
    from jaxscope import cli

    monkeypatch.setenv("JAXSCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    handwritten_runs.training(tmp_path / "home" / "runs" / "train-1")
    assert cli.command(["dump", "--perfetto", "run.json"]) == 0
    assert capsys.readouterr().out == "run.json\n"
    assert json.loads((tmp_path / "run.json").read_text())["displayTimeUnit"] == "ms"
    assert cli.command(["dump"]) == 2 and "--perfetto" in capsys.readouterr().err
