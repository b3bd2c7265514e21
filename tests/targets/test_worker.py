"""The compiler's keeper, with a compiler that is a real process and behaves as real ones do: badly."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

import pytest

from jaxscope.analysis import machines
from jaxscope.cli import targeting
from jaxscope.log import jobs, reader, store
from jaxscope.model.load import Tail
from jaxscope.model.records import Program
from jaxscope.present import targets
from jaxscope.schema import events as ev
from jaxscope.targets import process
from jaxscope.targets import worker as worker_
from jaxscope.targets.worker import Worker

pytestmark = pytest.mark.subprocess

TARGET = machines.parse("v5e:4x4")

# Reads a job's path a line and does what the module's bytes say.
COMPILER = """
import os, pathlib, signal, subprocess, sys, time
from jaxscope.log.jobs import Queue, EXHAUSTED
from jaxscope.schema.events import TargetCompiled as Result
from jaxscope.log.store import RunDir
run = RunDir(sys.argv[1]); queue = Queue(run); served = 0
for line in sys.stdin:
    path = pathlib.Path(line.strip()); id = path.stem; word = queue.module(id).decode()
    print("E0000 noise on stderr,", word, file=sys.stderr, flush=True)
    if word == "crash": os.kill(os.getpid(), signal.SIGSEGV)
    if word == "check":
        print("F1121 22:51:40.640743   22841 target.cc:1737] Check failed: bounds().y <= 16 (18 vs. 16) \\n@ 0x7f2f", file=sys.stderr, flush=True)
        os.abort()
    if word == "kill": os.kill(os.getpid(), signal.SIGKILL)
    if word == "exit": sys.exit(3)
    if word.startswith("meet"):  # another compiler, which runs at the same time
        mine, other = word.split()[1:]
        (run.path.parent / mine).touch()
        while not (run.path.parent / other).exists(): time.sleep(0.01)
    if word == "hang":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (run.path / "child").write_text(str(child.pid)); time.sleep(600)
    if word == "exhausted":
        queue.put_result(Result(program=id, outcome=EXHAUSTED, error="RESOURCE_EXHAUSTED: too large")); continue
    served += 1
    text, size = run.put_text(f"HloModule m{served} by {os.getpid()}")
    queue.put_result(Result(program=id, seconds=0.1, text=text, text_bytes=size))
    if word == "answer and die later": time.sleep(0.5)
    if word.startswith("answer and die"): os.kill(os.getpid(), signal.SIGABRT)
"""


@pytest.fixture
def place(tmp_path):
    run = store.create(tmp_path / "run")
    program = tmp_path / "compiler.py"
    program.write_text(textwrap.dedent(COMPILER))
    yield run, [sys.executable, str(program), str(run.path)]
    with contextlib.suppress(OSError):  # what hangs in it, and whose worker a test has killed
        os.killpg(os.getpgid(int((run.path / "child").read_text())), signal.SIGKILL)


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
    assert queue.waiting() == [] and not list(queue.path.glob("*.result"))
    assert {p.stem for p in queue.path.glob("*.mlir")} == set(queue.lost())  # these can be asked for again
    found = [e for e in reader.read(run) if isinstance(e, ev.TargetCompiled)]
    assert [e.program for e in found] == list(ids)
    return [(e.outcome, e.error, run.text(e.text) if e.text else None) for e in found]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Places for two compilers, which no other run on this machine has."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(worker_, "compiler_slots", lambda: 2)


@contextlib.contextmanager
def taken(tmp_path, places):
    """Another process that has so many of the machine's places; its id."""
    code = (
        "import sys, tempfile, time; from jaxscope.targets import worker; import contextlib\n"
        "tempfile.tempdir, worker.compiler_slots = sys.argv[1], lambda: int(sys.argv[2])\n"
        "with contextlib.ExitStack() as stack:\n"
        "    [stack.enter_context(worker.compiler_slot(print)) for _ in range(int(sys.argv[2]))]\n"
        "    print('taken', flush=True); time.sleep(600)"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "tmp"), str(places)], stdout=subprocess.PIPE
    )
    try:
        assert other.stdout.readline() == b"taken\n"
        yield other
    finally:
        other.kill()
        other.wait()
        other.stdout.close()


def test_two_runs_compile_at_the_same_time_where_the_machine_has_room_for_two(place, machine, tmp_path):
    """Each compiler here waits for the other one: one after the other, neither would ever end."""
    run, command = place
    runs = [run, store.create(tmp_path / "second")]
    threads = []
    for n, each in enumerate(runs):
        jobs.Queue(each).put(
            jobs.Job(id=f"{n:016x}", target=TARGET, partitions=16), f"meet {n} {1 - n}".encode()
        )
        jobs.Queue(each).close()
        threads.append(threading.Thread(target=Worker(each, [*command[:2], str(each.path)], 60.0).drain))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert [outcomes(each) for each in runs] == [{"0": "ok"}, {"1": "ok"}]


def test_a_run_that_waits_for_the_compilers_of_others_says_for_which_processes(place, machine, tmp_path):
    run, command = place
    queue = jobs.Queue(run)
    queue.put(jobs.Job(id="0" * 16, target=TARGET, partitions=16), b"compile")
    queue.close()
    with taken(tmp_path, 2) as other:
        thread = threading.Thread(target=Worker(run, command).drain)
        thread.start()
        until(lambda: queue.behind())
        assert queue.behind() == (other.pid, other.pid)
        tail = Tail(run)
        tail.run.retargeted["0" * 16] = program = Program(id="0" * 16)
        tail.poll()
        assert program.state == "waiting" and targets.state(program)[0] == (
            f"waiting for 2 compilers of other runs (processes {other.pid}, {other.pid})"
        )
        assert not outcomes(run)
    thread.join()
    assert outcomes(run) == {"0": "ok"} and queue.behind() == ()


def test_nobody_waits_for_the_compilers_of_others_for_ever(machine, tmp_path):
    with taken(tmp_path, 2), worker_.compiler_slot(lambda processes: None, limit=0.3):
        pass  # without a place


def test_one_process_compiles_one_job_after_the_other(place):
    (first, second) = compiled(place, "compile", "compile")
    assert first[0] == second[0] == "ok"
    assert first[2].startswith("HloModule m1 by ") and second[2] == first[2].replace("m1", "m2")


def test_a_crash_costs_one_programs_result_and_says_what_was_received_last(place):
    before, crash, after = compiled(place, "compile", "crash", "compile")
    assert before[0] == after[0] == "ok" and after[2].startswith("HloModule m1")  # of a process started anew
    assert crash[0] == "crashed" and "SIGSEGV" in crash[1] and "noise on stderr, crash" in crash[1]


def test_of_a_compiler_that_failed_a_check_of_its_own_that_check_is_the_reason(place):
    (check,) = compiled(place, "check")
    assert check[0] == "crashed"
    assert (
        check[1]
        == "the compiler's process died of SIGABRT: target.cc:1737] Check failed: bounds().y <= 16 (18 vs. 16)"
    )


def worker_of(place):
    """A worker's process, as ``jaxscope run`` starts one, with the compiler of these tests."""
    run, command = place
    code = "import sys; from jaxscope.log.store import RunDir; from jaxscope.targets.worker import Worker\nWorker(RunDir(sys.argv[1]), sys.argv[2:]).drain()"
    return subprocess.Popen([sys.executable, "-c", code, str(run.path), *command], start_new_session=True)


def killed_while_compiling(place, word="hang"):
    """Two jobs are queued; the worker is killed while it waits for the first."""
    run, _ = place
    queue = jobs.Queue(run)
    for n, each in enumerate((word, "compile")):
        queue.put(jobs.Job(id=f"{n:016x}", target=TARGET, partitions=16), each.encode())
        time.sleep(0.002)
    queue.close()
    worker = worker_of(place)
    until(lambda: any(isinstance(e, ev.TargetCompiling) for e in reader.read(run)))
    worker.kill()
    worker.wait()
    return queue, worker


def later(queue):
    """Make the last sign of life a minute old."""
    for path in queue.path.iterdir():
        os.utime(path, (time.time() - 60,) * 2)


def until(true):
    for _ in range(6000):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it does not happen")


def outcomes(run):
    return {e.program[-1]: e.outcome for e in reader.read(run) if isinstance(e, ev.TargetCompiled)}


def test_what_waits_for_a_worker_that_was_killed_is_abandoned_and_can_be_compiled_again(place):
    run, command = place
    queue, _ = killed_while_compiling(place)
    assert queue.abandoned() == frozenset()  # nobody can know yet
    later(queue)
    assert {id[-1] for id in queue.abandoned()} == {"0", "1"}
    (queue.path / f"{0:016x}.mlir").write_bytes(b"compile")
    assert queue.again() == 2 and queue.count_attempt("0" * 16) == 0
    Worker(run, command).drain()
    assert outcomes(run) == {"0": "ok", "1": "ok"} and queue.abandoned() == frozenset()


def test_a_worker_that_is_alive_has_abandoned_nothing_however_long_it_takes(place):
    run, _ = place
    queue = jobs.Queue(run)
    queue.put(jobs.Job(id="0" * 16, target=TARGET, partitions=16), b"hang")
    worker = worker_of(place)
    try:
        until(lambda: any(isinstance(e, ev.TargetCompiling) for e in reader.read(run)))
        later(queue)
        alive_at = (queue.path / "alive").stat
        until(lambda: time.time() - alive_at().st_mtime < 5)
        assert queue.abandoned() == frozenset()
    finally:
        worker.kill()
        worker.wait()


def test_a_program_over_which_two_workers_were_killed_is_given_up_and_the_rest_goes_on(place):
    run, command = place
    queue, _ = killed_while_compiling(place)
    queue.count_attempt("0" * 16)
    Worker(run, command).drain()
    assert outcomes(run) == {"0": "crashed", "1": "ok"} and queue.lost() == ["0" * 16]


def test_the_command_that_waits_starts_a_killed_worker_again(place, monkeypatch, capsys):
    run, _ = place
    queue, worker = killed_while_compiling(place)
    (queue.path / f"{0:016x}.mlir").write_bytes(b"compile")
    monkeypatch.setattr(targeting, "begin", lambda record, env: worker_of(place))
    assert targeting.end(run, worker, wait=True, quiet=True) is False
    assert outcomes(run) == {"0": "ok", "1": "ok"}
    assert "ended (signal 9): started again" in capsys.readouterr().err


def test_a_worker_that_never_compiles_anything_is_not_started_for_ever(place, monkeypatch, capsys):
    run, _ = place
    queue, worker = killed_while_compiling(place)
    dies = [sys.executable, "-c", "raise SystemExit(4)"]
    started = []
    monkeypatch.setattr(targeting, "begin", lambda record, env: started.append(1) or subprocess.Popen(dies))
    assert targeting.end(run, worker, wait=True, quiet=True) is False
    assert len(started) == targeting.RESTARTS and "(exit code 4): 2 not compiled" in capsys.readouterr().err
    assert len(queue.waiting()) == 2


def test_a_compiler_that_was_killed_costs_its_own_program_which_can_be_requested_again(place):
    run, command = place
    (only,) = compiled(place, "kill")
    assert only[0] == "crashed" and "SIGKILL (killed, perhaps because memory ran out)" in only[1]
    queue = jobs.Queue(run)
    (queue.path / f"{0:016x}.mlir").write_bytes(b"compile")
    assert queue.again() == 1
    Worker(run, command).drain()
    assert outcomes(run) == {"0": "ok"} and queue.lost() == []


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


def test_a_compiler_that_is_not_there_is_reported_of_each_program(place):
    for outcome, error, _ in compiled((place[0], ["/no/such/compiler"]), "compile", "compile"):
        assert outcome == "crashed" and "/no/such/compiler" in error


def test_a_damaged_job_is_put_aside_and_reported(place):
    run, command = place
    queue = jobs.Queue(run)
    queue.put(jobs.Job(id="0" * 16, target=TARGET, partitions=16), b"compile")
    (queue.path / f"{'0' * 16}.job").write_text("{")
    Worker(run, command).once()
    (only,) = [e for e in reader.read(run) if isinstance(e, ev.TargetCompiled)]
    assert only.outcome == "failed" and "cannot be read" in only.error and queue.waiting() == []


def test_the_keeper_ends_when_nobody_watches_the_program_any_more(place):
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


def test_the_tpus_compiler_leaves_no_files_behind_unless_the_user_wants_them():
    assert process.environment({})["TPU_LOG_DIR"] == "disabled"
    assert process.environment({"TPU_LOG_DIR": "/there", "TPU_MIN_LOG_LEVEL": "0"}).items() >= {
        ("TPU_LOG_DIR", "/there"),
        ("TPU_MIN_LOG_LEVEL", "0"),
    }


def alive(pid):
    from pathlib import Path

    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def test_what_the_programs_environment_says_to_a_compiler_reaches_this_one(place, monkeypatch):
    from jaxscope.targets import worker

    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda words, **how: started.append(how["env"]))
    env = {
        "LIBTPU_INIT_ARGS": "--xla_x=1",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "JAXSCOPE_RUN": "r",
    }
    worker.start(place[0], env)
    assert started[0]["LIBTPU_INIT_ARGS"] == "--xla_x=1" and started[0]["XLA_FLAGS"] == ""
    assert "JAXSCOPE_RUN" not in started[0]
