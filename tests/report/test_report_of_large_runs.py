"""Reports of runs with many compilations: what is held in memory and what is done for each is counted, not timed."""

import io
import json
import sys
from collections import Counter

import msgspec
import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.analysis import causes as explaining
from jaxscope.analysis import keys as analysis
from jaxscope.log import reader, store
from jaxscope.model import key_index
from jaxscope.model.load import load
from jaxscope.report import json_report
from jaxscope.report.console import console
from jaxscope.report.json_report import as_json, dumps, pieces
from jaxscope.report.text import render

FUNCTIONS, EACH = 30, 8


def many(path, functions=FUNCTIONS, each=EACH):
    run = store.create(path, argv=["train.py"])
    log = Log(run)
    log.backend()
    for f in range(functions):
        step = function(f"step{f}", line=f + 1)
        log.say(step)
        for n in range(each):
            log.compiled(step, key(leaf("x", n + 1, 8), leaf("w", 8, 8)), program=f"p{f}.{n}")
    log.end()
    return run


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return many(tmp_path_factory.mktemp("many") / "run")


def test_the_document_in_pieces_is_the_document(directory, monkeypatch):
    whole = dumps(as_json(load(directory), directory))
    assert "".join(pieces(load(directory), directory)) == whole
    monkeypatch.setattr(json_report, "PIECE", 1)
    assert "".join(pieces(load(directory), directory)) == whole
    assert len(json.loads(whole)["compilations"]) == FUNCTIONS * EACH


def test_runs_within_a_run_are_written_in_pieces_too(tmp_path):
    run = many(tmp_path / "run", 1, 1)
    many(store.sub_run(run, "A=1"), 2, 2)
    found = "".join(pieces(load(run), run))
    assert found == dumps(as_json(load(run), run))
    assert [len(sub["compilations"]) for sub in json.loads(found)["sub_runs"]] == [4]


def test_a_name_that_is_no_utf_8_is_written(tmp_path):
    run = store.create(tmp_path / "run", argv=["train.py"])
    log = Log(run)
    f = function("st\u00e4p\x7f", file="/odd\udcff.py")
    log.say(f)
    log.compiled(f, key(leaf("x", 3)))
    log.end()
    text = "".join(pieces(load(run), run))
    assert text.isascii() and "\x7f" not in text
    (found,) = msgspec.json.decode(text)["functions"]
    assert found["name"] == f.name


def test_the_document_is_written_while_it_is_made(directory, monkeypatch):
    made = Counter()
    entry = json_report.compilation_json

    def counting(run, c, number):
        made["compilations"] += 1
        return entry(run, c, number)

    monkeypatch.setattr(json_report, "compilation_json", counting)
    monkeypatch.setattr(json_report, "PIECE", 1)
    text = ""
    most = 0
    for piece in pieces(load(directory), directory):
        text += piece
        most = max(most, made["compilations"] - text.count('"persistent_cache_reason"'))
    assert most == 1, "no entry is made before the one before it has been handed on"
    assert made["compilations"] == FUNCTIONS * EACH


def test_events_are_not_collected_before_they_are_folded(directory, monkeypatch):
    monkeypatch.setattr(reader, "CHUNK", 4096)
    monkeypatch.setattr(reader, "LEAST", 4096)
    alive = []
    run_of = reader.Reader.stream

    def watching(self, progress=None):
        logs = self._files
        for entry in run_of(self, progress):
            alive.append(sum(f.offset for f in logs.values()))
            yield entry

    monkeypatch.setattr(reader.Reader, "stream", watching)
    run = load(directory)
    assert len(run.compilations) == FUNCTIONS * EACH
    size = sum(path.stat().st_size for path in directory.logs())
    assert alive[0] < 8192 < size, "the first event is folded when the first piece of the log has been read"
    assert alive[-1] == size


def test_logs_of_several_processes_are_merged_by_time_as_they_are_read(tmp_path, monkeypatch):
    run = store.create(tmp_path / "run", argv=["train.py"])
    logs = [Log(run, pid=1000 + n, at=n / 3) for n in range(3)]
    for n in range(50):
        for log in logs:
            f = function(f"step{n}")
            log.say(f, after=1.0)
    for log in logs:
        log.end()
    every = reader.Reader(run).entries()
    monkeypatch.setattr(reader, "CHUNK", 700)
    monkeypatch.setattr(reader, "LEAST", 300)
    assert list(reader.Reader(run).stream()) == every


def test_equal_keys_are_taken_apart_once(directory, monkeypatch):
    taken = []
    flatten = analysis.flatten
    monkeypatch.setattr(key_index, "flatten", lambda *args: taken.append(1) or flatten(*args))
    run = load(directory)
    "".join(pieces(run, directory))
    assert len(taken) == EACH, "all functions are called with the same few keys"


@pytest.mark.parametrize("form", ["json", "text"])
def test_what_is_done_grows_with_the_compilations_alone(tmp_path, form):
    """Calls of Python functions, of a run and of one four times as large."""

    def calls(run):
        loaded = load(run)
        count = 0

        def each(frame, event, arg):
            nonlocal count
            count += event == "call"

        sys.setprofile(each)
        try:
            if form == "json":
                "".join(pieces(loaded, run))
            else:
                render(loaded, console(io.StringIO()), run)
        finally:
            sys.setprofile(None)
        return count

    calls(many(tmp_path / "first", 2, 2))  # imports, regular expressions, tables
    small, large = calls(many(tmp_path / "small", 25)), calls(many(tmp_path / "large", 100))
    assert large < 4.6 * small


def test_the_same_change_of_arrays_is_explained_once(directory, monkeypatch):
    compared = []
    leaves = explaining._leaves
    monkeypatch.setattr(explaining, "_leaves", lambda *args: compared.append(1) or leaves(*args))
    run = load(directory)
    "".join(pieces(run, directory))
    assert len(compared) == EACH - 1, "all functions meet the same changes"
