"""JSON, schema 1."""

import json
import math

import handwritten_runs
import msgspec
import pytest
from handwritten_runs import Log, function

from jaxscope import __version__
from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.report.json_report import as_json, dumps
from jaxscope.schema import events as ev

# The contract's keys; more may be there, none of these may go.
RUN = [
    "name",
    "argv",
    "started",
    "seconds",
    "exit_code",
    "complete",
    "recording_stopped",
    "jax",
    "jaxlib",
    "python",
    "platform",
    "devices",
    "processes",
    "degraded",
]
FUNCTION = [
    "id",
    "name",
    "qualname",
    "file",
    "line",
    "wrappers",
    "library",
    "eager",
    "watched",
    "calls",
    "traces",
    "lowerings",
    "compilations",
    "fast_path_misses",
    "persistent_cache_hits",
    "trace_seconds",
    "lower_seconds",
    "compile_seconds",
]
COMPILATION = [
    "id",
    "function",
    "process_index",
    "step",
    "time_seconds",
    "reached",
    "persistent_cache",
    "persistent_cache_reason",
    "call_site",
    "seconds",
    "key",
    "compared_with",
    "causes",
    "program",
]
LEAF = [
    "path",
    "type",
    "shape",
    "dtype",
    "weak_type",
    "sharding",
    "committed",
    "memory_kind",
    "layout",
    "origin",
]
PROGRAM = [
    "id",
    "of",
    "function",
    "module",
    "stablehlo",
    "hlo",
    "target",
    "num_partitions",
    "instructions",
    "problems",
    "fusions",
    "unfused_elementwise",
    "custom_calls",
    "collectives",
    "upcasts",
    "callbacks",
    "repeated_blocks",
    "remats",
    "loops",
    "memory",
    "flops",
    "bytes_accessed",
    "bounds",
    "estimated_cycles",
    "donation",
    "constants",
]
LATER = ["transfers"]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    directory = handwritten_runs.training(tmp_path_factory.mktemp("m") / "run")
    return json.loads(dumps(as_json(load(directory), directory)))


def test_every_key_of_the_contract_is_there(found):
    assert (found["schema"], found["jaxscope"]) == (1, __version__)
    assert set(RUN) <= set(found["run"])
    assert all(set(FUNCTION) <= set(f) for f in found["functions"])
    assert all(set(COMPILATION) <= set(c) for c in found["compilations"])
    assert all(set(PROGRAM) <= set(p) for p in found["programs"])
    assert all(set(LEAF) == set(a) for c in found["compilations"] for a in c["key"]["arguments"])


def test_what_is_not_known_yet_is_null_and_never_empty(found):
    assert all(found[name] is None for name in LATER)
    assert all(p["remats"] is None and p["bounds"] is None for p in found["programs"])
    assert found["functions"][1]["calls"] is None


def test_the_run_is_reported(found):
    run = found["run"]
    assert (run["name"], run["argv"]) == ("train", ["train.py", "--epochs", "3"])
    assert (run["started"], run["seconds"], run["exit_code"], run["complete"]) == (
        "2026-01-02T03:04:05.000Z",
        134.0,
        0,
        True,
    )
    assert (run["jax"], run["python"], run["platform"], run["processes"]) == ("0.12.0.1", "3.13.1", "cpu", 1)
    assert run["devices"][7] == {"id": 7, "kind": "cpu", "process_index": 0}
    assert run["degraded"] == [
        {"seam": "trace_frame", "reason": "jax._src.pjit._trace_for_jit has no local fun"}
    ]


def test_a_compilation_carries_its_key_and_what_differs_from_the_nearest(found):
    step = [c for c in found["compilations"] if c["function"].startswith("train_step")]
    assert [c["ordinal"] for c in step] == [1, 2, 3, 4, None]
    assert [c["reached"] for c in step][3:] == [["traced", "lowered", "compiled"], ["fast_path"]]
    last = step[3]
    assert (
        last["compared_with"] == step[2]["id"]
        and step[0]["compared_with"] is None
        and [c["kind"] for c in step[0]["causes"]] == ["first"]
    )
    before = {
        "kind": "array",
        "shape": [32, 512],
        "dtype": "int32",
        "weak_type": False,
        "type": "jax.Array",
    }
    assert last["causes"] == [
        {
            "kind": "shape",
            "level": "trace",
            "path": "batch['ids']",
            "before": "i32[32,512]",
            "after": "i32[32,511]",
            "certainty": "certain",
            "text": "batch['ids'] changed from i32[32,512] to i32[32,511]",
            "count": 1,
            "before_value": before,
            "after_value": {**before, "shape": [32, 511]},
        }
    ]
    assert (last["persistent_cache"], last["step"], last["seconds"]["compile"]) == ("hit", 376, 5.3)
    assert last["call_site"] == {"file": f"{handwritten_runs.CWD}/train.py", "line": 140, "function": "main"}
    assert (
        last["key"]["arguments"][-1]["shape"] == [32, 511]
        and last["key"]["arguments"][-1]["sharding"] == "cpu:0"
    )
    assert last["key"]["context"]["jax_enable_x64"] == "False"
    assert {c["id"] for c in step} <= {c["id"] for c in found["compilations"]}


def test_findings_and_the_ledger_name_function_line_and_seconds(found):
    first = found["findings"][0]
    assert (first["code"], first["severity"], first["certainty"], first["seconds"]) == (
        "JX103",
        "warning",
        "certain",
        8.6,
    )
    assert first["function"].startswith("train_step") and first["source"]["line"] == 140
    assert first["evidence"][0]["step"] == 2 and first["evidence"][0]["compilation"] in {
        c["id"] for c in found["compilations"]
    }
    assert (
        first["fix"]
        == "in every call, including the first, pass state.count as an array that is not weakly typed: jnp.asarray(state.count, 'int32')"
    )
    entry = next(e for e in found["ledger"] if e["cause"] == "shape")
    assert (entry["path"], entry["count"], entry["seconds"], entry["source"]["line"]) == (
        "batch['ids']",
        1,
        7.0,
        140,
    )
    assert sum(e["seconds"] for e in found["ledger"]) == pytest.approx(
        sum(f["trace_seconds"] + f["lower_seconds"] + f["compile_seconds"] for f in found["functions"])
    )


def test_static_arguments_and_programs_are_reported(found):
    evaluate = next(c for c in found["compilations"] if c["function"].startswith("eval_step"))
    assert evaluate["key"]["static"][0] | {"compares": None} == {
        "path": "mode",
        "repr": "'greedy'",
        "type": "str",
        "compares": None,
    }
    program = next(p for p in found["programs"] if p["id"] == "aa11")
    assert program["function"].startswith("train_step") and program["module"] == "jit_train_step"
    assert (program["target"], program["num_partitions"], program["flops"], program["bytes_accessed"]) == (
        "cpu",
        1,
        1e9,
        2e6,
    )
    assert program["memory"]["temp_bytes"] == 65536 and len(program["stablehlo"]) == 64


def test_a_run_killed_while_compiling_says_so(tmp_path):
    directory = store.create(tmp_path / "run")
    log, f = Log(directory), function("f")
    log.say(f)
    call = log.missed(f, None, inside=99)
    log.say(ev.PhaseBegan(call=call, phase="compile"), after=3)
    handwritten_runs.exited(directory, None, signal=9)
    found = json.loads(dumps(as_json(load(directory), directory)))
    assert (found["run"]["exit_code"], found["run"]["signal"], found["run"]["complete"]) == (None, 9, False)
    assert found["run"]["in_progress"][0]["phase"] == "compile"
    assert found["compilations"][0]["reached"] == [] and found["compilations"][0]["key"] is None


def test_an_empty_run_is_json_too(tmp_path):
    directory = store.create(tmp_path / "run")
    found = json.loads(dumps(as_json(load(directory), directory)))
    assert found["functions"] == found["compilations"] == found["programs"] == []
    assert found["run"]["seconds"] is None and found["run"]["jax"] is None


def test_what_is_written_is_ascii_and_json_whatever_the_program_is_called():
    odd = {"a\x1b\u202eé\U0001f600\x7f": ["\udcff", math.nan, math.inf, 1.5]}
    text = dumps(odd)
    assert text.isascii() and "\x1b" not in text and "\x7f" not in text
    assert msgspec.json.decode(text) == {"a\x1b\u202eé\U0001f600\x7f": ["\ufffd", None, None, 1.5]}
    assert json.loads(dumps({"é\U0001f600\x7f": math.nan})) == {"é\U0001f600\x7f": None}


def test_one_wrong_figure_does_not_spoil_the_clock(tmp_path):
    directory = store.create(tmp_path / "run")
    log = Log(directory)
    log.writer.emit(ev.Step(index=1, t_ns=2**62))
    assert json.loads(dumps(as_json(load(directory), directory)))["run"]["started"]
