"""The JSON report against its published schema."""

from __future__ import annotations

import json

import jsonschema
import msgspec
import pytest
import screen_runs

from jaxscope import cli
from jaxscope.model.load import load
from jaxscope.report import contract
from jaxscope.report.json_report import pieces

RUNS = {**screen_runs.ALL, **screen_runs.ELSEWHERE}


@pytest.mark.parametrize("name", RUNS)
def test_a_report_is_what_the_schema_says(name, tmp_path):
    directory = RUNS[name](tmp_path / "run")
    text = "".join(pieces(load(directory), directory))
    jsonschema.Draft202012Validator(contract.schema()).validate(json.loads(text))
    msgspec.json.decode(text, type=contract.Report)  # which knows no other keys


def test_the_command_prints_the_schema(capsys):
    assert cli.command(["report", "--schema"]) == 0
    printed = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert set(printed["$defs"]["Report"]["required"]) >= {"schema", "run", "compilations", "findings"}


def test_a_key_that_is_not_in_the_schema_is_an_error():
    schema = contract.schema()
    assert all(
        d.get("additionalProperties") is False for name, d in schema["$defs"].items() if name != "Frame"
    )
