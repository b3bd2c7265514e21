"""The compiler's keeper, with a compiler that is a real process and behaves as real ones do: badly."""

import sys
import textwrap
import time

import pytest

from jaxscope.analysis import machines
from jaxscope.log import jobs, reader, store
from jaxscope.schema import events as ev
from jaxscope.targets import process
from jaxscope.targets.worker import Worker

TARGET = machines.parse("v5e:4x4")

# Reads a job's path a line and does what the module's bytes say.
COMPILER = """
import os, pathlib, signal, subprocess, sys, time
from jaxscope.log.jobs import Queue, Result, EXHAUSTED
from jaxscope.log.store import RunDir
run = RunDir(sys.argv[1]); queue = Queue(run); served = 0
for line in sys.stdin:
    path = pathlib.Path(line.strip()); id = path.stem; word = queue.module(id).decode()
    print("E0000 noise on stderr,", word, file=sys.stderr, flush=True)
    if word == "crash": os.kill(os.getpid(), signal.SIGSEGV)
    if word == "exit": sys.exit(3)
    if word == "hang":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (run.path / "child").write_text(str(child.pid)); time.sleep(600)
    if word == "exhausted":
        queue.answer(Result(id, EXHAUSTED, error="RESOURCE_EXHAUSTED: too large")); continue
    served += 1
    text, size = run.put_text(f"HloModule m{served} by {os.getpid()}")
    queue.answer(Result(id, seconds=0.1, text=text, text_bytes=size))
    if word == "answer and die later": time.sleep(0.5)
    if word.startswith("answer and die"): os.kill(os.getpid(), signal.SIGABRT)
"""


@pytest.fixture
def place(tmp_path):
    run = store.create(tmp_path / "run")
    program = tmp_path / "compiler.py"
    program.write_text(textwrap.dedent(COMPILER))
    return run, [sys.executable, str(program), str(run.path)]


def compiled(place, *words, limit=60.0):
    """What became of one job a word, by word."""
    run, command = place
    queue = jobs.Queue(run)
    ids = {f"{i:016x}": word for i, word in enumerate(words)}
    for id, word in ids.items():
        queue.put(jobs.Job(id=id, target=TARGET, partitions=16), word.encode())
        time.sleep(0.002)  # in this order
    queue.close()
    Worker(run, command, limit).drain()
    assert queue.waiting() == [] and not [p for p in queue.path.iterdir() if p.suffix in (".mlir", ".result")]
    found = [e for e in reader.read(run) if isinstance(e, ev.TargetCompiled)]
    assert [e.program for e in found] == list(ids)
    return [(e.outcome, e.error, run.text(e.text) if e.text else None) for e in found]


def test_one_process_compiles_one_job_after_the_other(place):
    (first, second) = compiled(place, "compile", "compile")
    assert first[0] == second[0] == "ok"
    assert first[2].startswith("HloModule m1 by ") and second[2] == first[2].replace("m1", "m2")


def test_a_crash_costs_one_programs_result_and_says_what_was_heard_last(place):
    before, crash, after = compiled(place, "compile", "crash", "compile")
    assert before[0] == after[0] == "ok" and after[2].startswith("HloModule m1")  # of a process started anew
    assert crash[0] == "crashed" and "SIGSEGV" in crash[1] and "noise on stderr, crash" in crash[1]


def test_an_orderly_exit_without_an_answer_is_no_answer_either(place):
    assert compiled(place, "exit")[0][1].startswith("the compiler's process ended with exit code 3")


@pytest.mark.parametrize("word", ["answer and die", "answer and die later"])
def test_an_answer_given_before_the_crash_counts_and_the_next_program_does_not_pay_for_it(place, word):
    (only, next_one) = compiled(place, word, "compile")
    assert only[0] == next_one[0] == "ok"


def test_out_of_memory_is_the_programs_result_and_the_compiler_goes_on(place):
    full, after = compiled(place, "exhausted", "compile")
    assert full[:2] == ("exhausted", "RESOURCE_EXHAUSTED: too large") and after[0] == "ok"


def test_a_compiler_that_hangs_is_given_up_with_all_it_has_started(place):
    late, after = compiled(place, "hang", "compile", limit=3.0)
    assert late[0] == "late" and after[0] == "ok"
    child = int((place[0].path / "child").read_text())
    for _ in range(1000):
        if not alive(child):
            return
        time.sleep(0.01)
    raise AssertionError("what the compiler started is still there")


def test_a_compiler_that_is_not_there_is_said_of_each_program(place):
    for outcome, error, _ in compiled((place[0], ["/no/such/compiler"]), "compile", "compile"):
        assert outcome == "crashed" and "/no/such/compiler" in error


def test_a_damaged_job_is_put_aside_and_said(place):
    run, command = place
    queue = jobs.Queue(run)
    queue.put(jobs.Job(id="0" * 16, target=TARGET, partitions=16), b"compile")
    (queue.path / f"{'0' * 16}.job").write_text("{")
    Worker(run, command).once()
    (only,) = [e for e in reader.read(run) if isinstance(e, ev.TargetCompiled)]
    assert only.outcome == "failed" and "cannot be read" in only.error and queue.waiting() == []


def test_the_keeper_ends_when_nobody_watches_the_program_any_more(place):
    import os

    run, command = place
    run.heartbeat.touch()
    os.utime(run.heartbeat, (1, 1))
    Worker(run, command).drain()  # returns: the queue was never closed


def test_the_compiler_hears_the_users_flags_and_not_the_programs_devices(monkeypatch):
    given = {
        "XLA_FLAGS": "--xla_a=1 --xla_force_host_platform_device_count=256 --xla_b",
        "LIBTPU_INIT_ARGS": "--x",
        "JAX_PLATFORMS": "tpu",
        "JAXSCOPE_RUN": "/somewhere",
        "JAXSCOPE": "record",
    }
    env = process.environment(given)
    assert env["XLA_FLAGS"].split() == ["--xla_a=1", "--xla_b"] and env["LIBTPU_INIT_ARGS"] == "--x"
    assert env["JAX_PLATFORMS"] == "cpu" and "JAXSCOPE_RUN" not in env and "JAXSCOPE" not in env


def alive(pid):
    from pathlib import Path

    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False
