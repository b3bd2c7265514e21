"""The programs of a run: both texts read once, kept beside the run, and what the recording adds to them."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.analysis import programs as analysis
from jaxscope.log import store
from jaxscope.model import programs
from jaxscope.model.load import load
from jaxscope.model.programs import circumstances, mesh_of
from jaxscope.report.json_report import as_json
from jaxscope.report.text import print_report
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Captured, Sharding

DATA = Path(__file__).parents[1] / "data" / "hlo"
NAME = "tf2_fsdptp_donate__cpu_jax0102"
F = function("train_step")
ON_MESH = Sharding("NamedSharding", "P('data') on data=4,model=2", "0-7", (("data", 4, "Auto"), ("model", 2, "Auto")), "P('data')", "device")  # fmt: skip


def text(stage: str) -> str:
    return gzip.decompress((DATA / f"{NAME}.{stage}.gz").read_bytes()).decode()


@pytest.fixture
def directory(tmp_path):
    run = store.create(tmp_path / "run")
    log = Log(run)
    log.say(F)
    texts = {"hlo": text("hlo.txt"), "stablehlo": text("stablehlo.mlir")}
    log.compiled(F, key(leaf("params", 4), shardings=[ON_MESH]), program="aa", texts=texts)
    log.end()
    return run


def count_analyzes(monkeypatch) -> list:
    ran: list = []
    real = analysis.analyze

    def counted(*given):
        ran.append(given)
        return real(*given)

    monkeypatch.setattr(analysis, "analyze", counted)
    return ran


def test_a_text_is_read_once_however_many_views_ask_and_never_again_when_kept(directory, monkeypatch, capsys):
    ran = count_analyzes(monkeypatch)
    run = load(directory)
    first = as_json(run, directory)["programs"]
    print_report(run, directory=directory)
    assert len(ran) == 1
    assert as_json(load(directory), directory)["programs"] == first
    assert len(ran) == 1, "the second reader finds it under derived/"
    assert list((directory.path / "derived").glob("*.msgpack"))


def test_what_is_kept_by_a_damaged_file_is_read_anew(directory, monkeypatch):
    ran = count_analyzes(monkeypatch)
    first = as_json(load(directory), directory)["programs"]
    [kept] = (directory.path / "derived").glob("*.msgpack")
    kept.write_bytes(b"\xc1 nonsense")
    assert as_json(load(directory), directory)["programs"] == first and len(ran) == 2


@pytest.mark.parametrize("piece", [1, 7, 10_000])
def test_fusions_are_kept_in_pieces_and_a_lost_piece_is_noticed(directory, monkeypatch, piece):
    monkeypatch.setattr(programs, "PIECE", piece)
    ran = count_analyzes(monkeypatch)
    run = load(directory)
    first = run.texts_of(run.programs["aa"])
    assert len(first.hlo.fusions.each) > 7
    [kept] = (directory.path / "derived").glob("*.msgpack")
    again = load(directory)
    assert again.texts_of(again.programs["aa"]) == first and len(ran) == 1
    if piece == 7:  # at the end of a piece nothing looks cut
        data = kept.read_bytes()
        ends, at = [], 8
        while at < len(data):
            at += 8 + int.from_bytes(data[at : at + 8])
            ends.append(at)
        kept.write_bytes(data[: ends[-2]])
        again = load(directory)
        assert again.texts_of(again.programs["aa"]) == first and len(ran) == 2


def test_collectives_come_with_the_axes_of_the_arguments_mesh(directory):
    [program] = as_json(load(directory), directory)["programs"]
    assert program["mesh"] == [["data", 4], ["model", 2]]
    assert {tuple(c["axes"]) for c in program["collectives"]} >= {("data",), ("model",)}
    assert program["memory"]["peak_bytes"] == 4096 + 128 + 65536
    assert program["donation"] and program["fusions"]["total"] > 0


def test_a_text_that_is_gone_or_damaged_leaves_the_rest(directory):
    run = load(directory)
    [p] = run.programs.values()
    blob = p.texts["hlo"]
    next(directory.path.glob(f"blobs/{blob}*")).write_bytes(b"no archive")
    [program] = as_json(run, directory)["programs"]
    assert program["fusions"] is None and program["donation"]


def test_the_recording_says_what_the_texts_do_not(tmp_path):
    run = store.create(tmp_path / "run")
    log = Log(run)
    log.say(F)
    call = log.missed(F, key(leaf("x", 4), leaf("y", 4), shardings=[ON_MESH]))
    log.phase(call, "trace", 0.1, captured=[Captured("TABLE", "global", (4,), "float32", 16)])
    log.phase(call, "lower", 0.1, program="p", donated=["x"])
    log.phase(call, "compile", 0.1, program="p", dropped_arguments=[1])
    log.say(ev.ArgumentFate(call=call, seen="exit", gone=["y"]))
    read = load(run)
    around = circumstances(read.programs["p"])
    assert (around.paths, around.dropped, around.donated) == (["x", "y"], [1], ["x"])
    assert [c.name for c in around.captured] == ["TABLE"]
    [c] = read.compilations.values()
    assert mesh_of(c) == [("data", 4), ("model", 2)] and c.fate.gone == ["y"]


FIRST_TIME = """
import sys, threading
from jaxscope.analysis.programs import Texts
from jaxscope.model import programs

data = b"".join(programs._packed(Texts(None, None)))
barrier, read = threading.Barrier(2), []

def look():
    barrier.wait()
    read.append(programs._unpacked(data))

threads = [threading.Thread(target=look) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
sys.exit(read != 2 * [Texts(None, None)])
"""


@pytest.mark.subprocess
def test_two_threads_that_are_the_first_to_read_do_not_end_the_process():
    # A view of a run with runs in it reads each in a thread of its own.
    for _ in range(8):
        done = subprocess.run([sys.executable, "-c", FIRST_TIME], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
