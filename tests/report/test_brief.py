"""The brief JSON report: its size whatever the run is, its schema, and that its commands lead on."""

import json

import handwritten_runs
import jsonschema
import msgspec
import pytest
import screen_runs
from hypothesis import given, settings
from hypothesis import strategies as st
from test_formats import FINDINGS, FRAMES, HOSTILE

from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.model.load import load
from jaxscope.report import bounded, brief, contract, show
from jaxscope.report.drill import Document
from jaxscope.report.json_report import compact
from jaxscope.schema import events as ev
from jaxscope.schema.findings import Evidence, Finding, Fix
from jaxscope.schema.keys import Frame

RUNS = {**screen_runs.ALL, **screen_runs.ELSEWHERE, "training": handwritten_runs.training}
LONG = st.builds(lambda text, n: text * n, HOSTILE, st.integers(1, 3000))
LONG_FINDINGS = st.lists(
    st.builds(
        Finding,
        code=st.sampled_from(["JX101", "JX302", "JX704"]),
        severity=st.sampled_from(["error", "warning", "note"]),
        certainty=st.just("certain"),
        title=LONG,
        function=st.none() | LONG,
        source=st.none() | FRAMES | st.builds(Frame, file=LONG, line=st.just(3), function=LONG),
        evidence=st.lists(st.builds(Evidence, text=LONG), max_size=2),
        fix=st.none()
        | LONG
        | st.builds(Fix, words=LONG, kind=st.just("pad"), arguments=st.dictionaries(HOSTILE, LONG)),
        seconds=st.none() | st.floats(),
    ),
    max_size=40,
)


def validated(text: str, schema: dict, kind: type) -> dict:
    found = json.loads(text)
    jsonschema.Draft202012Validator(schema).validate(found)
    msgspec.json.decode(text, type=kind)
    return found


@pytest.mark.parametrize("name", RUNS)
def test_the_brief_report_of_every_kind_of_run_is_what_its_schema_says(name, tmp_path):
    directory = RUNS[name](tmp_path / "run")
    text = brief.dumps(brief.brief(load(directory), directory, "run"))
    assert len(text) <= brief.MOST_BYTES
    found = validated(text, brief.schema(), brief.Brief)
    assert found["verdict"] and found["next"]


@pytest.fixture(scope="module")
def training(tmp_path_factory) -> RunDir:
    return handwritten_runs.training(tmp_path_factory.mktemp("brief") / "train-1")


@given(st.one_of(FINDINGS, LONG_FINDINGS), LONG)
@settings(max_examples=60)
def test_no_finding_and_no_name_makes_the_brief_report_longer_than_8192_bytes(training, found, name):
    run = load(training)
    entries = [contract.Finding.of(f) for f in found]
    original, Document.findings = Document.findings, lambda self: entries
    try:
        page = brief.brief(run, training, name)
    finally:
        Document.findings = original
    text = brief.dumps(page)
    assert len(text.encode()) <= brief.MOST_BYTES
    shown = validated(text, brief.schema(), brief.Brief)
    assert shown["counts"]["shown"] == len(shown["findings"]) <= len(found)
    assert bool(shown["findings"]) == bool(found)


def test_names_of_any_length_in_the_run_itself_leave_it_at_8192_bytes(tmp_path):
    run = store.create(tmp_path / "run", name="x" * 500, argv=["\u202e" * 4000])
    log = handwritten_runs.Log(run)
    log.backend(1)
    for n in range(30):
        f = handwritten_runs.function("\x1b\u00e9" * 2000 + str(n), "/" + "d/" * 2000 + "t.py", 5)
        log.say(f)
        for size in (1, 2):
            log.compiled(
                f, handwritten_runs.key(handwritten_runs.leaf("\u00e9" * 5000, size)), (1.0, 1.0, 1.0), step=n
            )
    log.say(ev.Died(error="E" * 9000, message="\x00" * 9000, stack=[Frame("f" * 9000, 1, "g")]))
    log.end()
    text = brief.dumps(brief.brief(load(run), run, "x"))
    assert len(text) <= brief.MOST_BYTES
    found = validated(text, brief.schema(), brief.Brief)
    assert found["counts"]["shown"] == len(found["findings"]) > 0


def test_the_first_findings_are_complete_and_the_rest_is_counted(training):
    found = json.loads(brief.dumps(brief.brief(load(training), training, "train-1")))
    first = found["findings"][0]
    assert (first["code"], first["fix_kind"], first["incomplete"]) == ("JX103", "typed_array", [])
    assert first["fix_arguments"] == {"path": "state.count", "dtype": "int32"}
    assert found["counts"] == {"error": 0, "warning": 4, "note": 1, "shown": 5}
    assert "44.1 s of 2 min 14 s" in found["verdict"] and "train.py:140" in found["verdict"]
    assert found["next"][0]["command"] == "jaxscope show train-1 findings/JX103/0"


@given(st.recursive(st.none() | LONG | st.floats(allow_nan=False) | st.booleans(),
                    lambda x: st.lists(x, max_size=9) | st.dictionaries(HOSTILE, x, max_size=9)),
       st.integers(6, 4000))  # fmt: skip
def test_a_value_is_cut_to_the_room_that_it_has(value, room):
    left_out = []
    kept = bounded.fitted(value, room, "", left_out)
    assert bounded.size(kept) <= room
    assert (kept == value) == (not left_out)


@pytest.mark.parametrize("name", RUNS)
def test_what_is_shown_of_a_run_is_bounded_and_what_its_schema_says(name, tmp_path):
    directory = RUNS[name](tmp_path / "run")
    document = Document(load(directory), directory)
    paths, seen = [""], set()
    while paths and len(seen) < 150:
        path = paths.pop()
        seen.add(path)
        text = compact(show.show(document, path, "run"))
        assert len(text) < show.MOST_BYTES, path
        found = validated(text, show.schema(), show.Shown)
        listed = found["value"] if isinstance(found["value"], list) else []
        named = [e["path"] for e in listed if isinstance(e, dict) and str(e.get("path")).startswith(path)]
        paths += [p for p in found["left_out"] + found["below"] + named if p not in seen]
