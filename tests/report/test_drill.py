"""Paths into the JSON report lead to the values that the report has."""

import json

import handwritten_runs
import pytest
import screen_runs

from jaxscope.errors import UsageError
from jaxscope.model.load import load
from jaxscope.report import drill, show
from jaxscope.report.json_report import as_json, compact


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    directory = handwritten_runs.training(tmp_path_factory.mktemp("drill") / "train-1")
    run = load(directory)
    return drill.Document(run, directory), as_json(run, directory)


def value(document, path):
    found = show.show(document, path, "train-1", everything=True)
    assert found.complete
    return json.loads(compact(found))["value"]


def test_each_key_of_the_report_is_a_path(made):
    document, report = made
    for key in report:
        if key not in ("functions", "findings"):
            assert value(document, key) == report[key], key
    assert value(document, "functions") == report["functions"]
    by_code = [f for group in value(document, "findings") for f in group]
    assert sorted(map(str, by_code)) == sorted(map(str, report["findings"]))


def test_functions_and_their_compilations_have_names(made):
    document, report = made
    step = next(f for f in report["functions"] if f["name"] == "train_step")
    assert value(document, "functions/train_step") == value(document, "functions/train.py:88") == step
    own = [c for c in report["compilations"] if c["function"] == step["id"] and c["ordinal"] is not None]
    assert value(document, "functions/train_step/compilations") == own
    assert value(document, "functions/train_step/compilations/2/key") == own[1]["key"]
    assert (
        value(document, "compilations/train_step#2")
        == own[1]
        == value(document, f"compilations/{own[1]['id']}")
    )
    assert value(document, f"functions/{drill.escaped(step['id'])}/line") == 88


def test_findings_have_codes_positions_and_ids(made):
    document, report = made
    shape = next(f for f in report["findings"] if f["code"] == "JX101")
    assert value(document, "findings/JX101/0") == shape == value(document, f"findings/{shape['id']}")
    assert value(document, "findings/0") == report["findings"][0]
    assert shape in value(document, "functions/train_step/findings")
    assert [value(document, p) for p in drill.finding_paths(document.findings())] == report["findings"]


def test_an_id_leads_to_the_entry_that_it_names(made):
    document, _ = made
    evidence = "findings/JX101/0/evidence/0"
    compilation = value(document, f"{evidence}/compilation")
    assert compilation["ordinal"] == 4 and compilation["function"].startswith("train_step@")
    assert value(document, f"{evidence}/compilation/compared_with")["ordinal"] == 3
    assert value(document, "functions/train_step/compilations/1/program/memory/temp_bytes") == 65536
    assert value(document, "programs/aa11/compilations/0")["ordinal"] == 1
    assert value(document, "findings/JX101/0/function")["name"] == "train_step"
    # The function of a line is a plain name.
    assert value(document, "findings/JX101/0/source/function") == "main"


def test_a_key_with_a_slash_is_written_as_in_a_json_pointer(made):
    assert drill.segments("a~1b/c~0d") == ["a/b", "c~d"] == [*drill.segments(drill.escaped("a/b")), "c~d"]


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        ("finding", "there is no 'finding' below the report", "schema, jaxscope, run, functions"),
        ("findings/JX999", "there is no 'JX999' below findings", "JX103, JX101"),
        ("findings/JX101/7", "there is no '7' below findings/JX101", "there are: 0"),
        ("run/name/x", "there is no 'x' below run/name", "nothing is below it"),
        ("functions/trian_step", "no function called 'trian_step'", "did you mean train_step"),
        ("functions/train_step/compilations/99", "there is no '99'", "there are: 1, 2, 3, 4"),
        ("programs/zz", "there is no 'zz' below programs", "aa11"),
    ],
)
def test_a_path_that_leads_nowhere_names_what_there_is(made, path, message, hint):
    with pytest.raises(UsageError) as e:
        drill.follow(made[0], path)
    assert message in e.value.message and hint in e.value.hint


def test_ids_of_a_finding_of_another_setting_are_of_that_run(tmp_path):
    directory = screen_runs.varied_with_findings(tmp_path / "run")
    run = load(directory)
    document, report = drill.Document(run, directory), as_json(run, directory)
    inner = [(n, f) for n, f in enumerate(report["findings"]) if f["sub_run"] is not None]
    assert inner
    for n, f in inner:
        for m, e in enumerate(f["evidence"]):
            if e["compilation"] is not None:
                found = value(document, f"findings/{n}/evidence/{m}/compilation")
                assert found in report["sub_runs"][f["sub_run"]]["compilations"]
    assert value(document, "sub_runs/0/run") == report["sub_runs"][0]["run"]
