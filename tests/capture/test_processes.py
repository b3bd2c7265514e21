"""The recording survives what programs do: threads, forks, kills, full disks."""

import json
import signal
import subprocess
import sys

import pytest
from folders import PROGRAMS

from jaxscope.log import reader, store
from jaxscope.model.load import load
from jaxscope.schema import events as ev

pytestmark = [pytest.mark.capture, pytest.mark.costly]


def test_threads_compile_at_once_and_every_call_keeps_its_own_phases(record):
    run = record(
        """
        import threading, jax, jax.numpy as jnp
        def work(n):
            for i in range(5):
                jax.jit(lambda x: jnp.sin(x) * n + i)(jnp.ones(n * 10 + i + 1))
        threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
        [t.start() for t in threads]; [t.join() for t in threads]
        """
    )
    misses = run.misses("work.<locals>.<lambda>")
    assert len(misses) == 40
    for kind in (ev.Traced, ev.Lowered, ev.Compiled):
        assert len(run.for_calls(kind, misses)) == 40
    for miss in misses:
        (lowered,) = run.for_calls(ev.Lowered, [miss])
        (compiled,) = run.for_calls(ev.Compiled, [miss])
        assert lowered.program == compiled.program and lowered.thread == miss.thread == compiled.thread
    assert [e.seq for e in run.events] == list(range(len(run.events)))


@pytest.mark.parametrize("program", ["multiprocess_fork", "multiprocess_spawn"])
def test_children_of_multiprocessing_write_logs_of_their_own(program, record):
    """Spawned children are followed by the runner's boot file: here only forked ones are."""
    run = record(PROGRAMS / f"{program}.py")
    starts = run.of(ev.RunStarted)
    pids = {e.pid for e in run.of(ev.Compiled)}
    if program == "multiprocess_fork":
        assert {s.how for s in starts} == {"record", "fork"} and len(pids) >= 2
    else:
        assert [s.how for s in starts] == ["record"]
    for process in pids:
        own = [e for e in run.events if e.pid == process]
        introduced = {e.function for e in own if isinstance(e, ev.FunctionSeen)}
        assert {e.function for e in own if isinstance(e, ev.Missed)} <= introduced
        calls = {e.call for e in own if isinstance(e, ev.Missed)}
        assert {e.call for e in own if isinstance(e, ev.ArgumentFate)} <= calls
    for log in run.run.logs():
        seqs = [json.loads(line)["seq"] if b'"seq"' in line else 0 for line in log.read_bytes().splitlines()]
        assert seqs == list(range(len(seqs)))


ENDLESS = """
import sys, time, jaxscope, jax, jax.numpy as jnp
@jaxscope.watch
@jax.jit
def step(x): return x + 1
run = jaxscope.record(sys.argv[1]).start()
for i in range(3): step(jnp.ones(i + 1))
step(jnp.ones(1))
print("ready", flush=True)
while True: time.sleep(1)
"""


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_nothing_that_was_recorded_is_lost_when_the_program_is_killed(sig, tmp_path, clean_env):
    program = tmp_path / "endless.py"
    program.write_text(ENDLESS)
    child = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path / "run")],
        env=clean_env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(sig)
    code = child.wait(30)
    assert code == -sig
    events = list(reader.read(store.RunDir(tmp_path / "run")))
    kinds = [type(e).__name__ for e in events]
    assert kinds.count("Compiled") >= 3 and events[0].name == "run"
    (step,) = [f for f in load(store.RunDir(tmp_path / "run")).functions.values() if f.watched]
    assert step.calls == 4
    assert ("RunEnded" in kinds) == (sig == signal.SIGINT), "only an orderly exit is called one"


def test_a_full_disk_stops_the_recording_with_one_line_and_not_the_program(record):
    run = record(
        """
        import resource, jax, jax.numpy as jnp
        resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))  # as a full disk: writes fail or are cut short
        for i in range(30): jax.jit(lambda x: x * i)(jnp.ones(i + 1))
        print("the program ends as it would")
        """
    )
    assert run.out == "the program ends as it would\n"
    (line,) = [text for text in run.err.splitlines() if "jaxscope" in text]
    assert "recording stopped" in line and "the program continues" in line
    assert run.of(ev.Compiled), "what was written before is still readable"
    assert run.of(ev.RecordingStopped)[0].reason == "File too large" and not load(run.run).complete


def test_a_program_that_runs_its_exit_handlers_early_is_recorded_to_its_real_end(record):
    run = record(
        """
        import atexit, os, jax, jax.numpy as jnp
        f = jax.jit(lambda x: x * 2)
        f(jnp.ones(3))
        for n in (4, 5):
            atexit._run_exitfuncs()  # as chex's own tests do
            f(jnp.ones(n))
        atexit.register(f, jnp.ones(6))
        """
    )
    read = load(run.run)
    assert sum(f.compiled for f in read.functions.values() if f.user) == 4
    assert read.complete and [type(e).__name__ for e in run.events][-1] == "RunEnded"
    assert len(run.of(ev.RunEnded)) == 3


def test_a_run_directory_that_vanishes_stops_the_recording_only(record):
    run = record(
        """
        import shutil, jaxscope, jax, jax.numpy as jnp
        from jaxscope.capture import session
        jax.jit(lambda x: x + 1)(jnp.ones(3))
        shutil.rmtree(session.current().run.path)
        jax.jit(lambda x: x + 2)(jnp.ones(3))
        print("goes on")
        """,
        check=False,
    )
    assert (run.code, run.out) == (0, "goes on\n")
    assert run.err.count("jaxscope: recording stopped") == 1


def test_an_unwritable_place_costs_the_recording_and_not_the_program(record):
    run = record(
        """
        import jaxscope, jax, jax.numpy as jnp
        open("file", "w").close()
        from jaxscope.capture import session
        session.stop()
        with jaxscope.record("file/run"): print(jax.jit(lambda x: x + 1)(jnp.ones(2)))
        for _ in range(2):
            with jaxscope.record("again") as r: jax.jit(lambda x: x + 1)(jnp.ones(3))
            print(r.path.name)
        """
    )
    assert run.out.splitlines() == ["[2. 2.]", "again", "again-2"]
    assert run.err.count("not recording: cannot make the run directory") == 1


def test_a_file_of_the_programs_is_never_written_to(record):
    """os.closerange closes all descriptors, ours among them; the next open gets the number."""
    run = record(
        """
        import os, jax, jax.numpy as jnp
        os.closerange(3, 64)
        files = [open(f"data{i}", "w+") for i in range(8)]
        jax.jit(lambda x: x + 1)(jnp.ones(3))
        print([os.path.getsize(f.name) for f in files])
        """,
        check=False,
    )
    assert run.out == "[0, 0, 0, 0, 0, 0, 0, 0]\n"
    assert run.err.count("recording stopped") == 1


def test_recordings_follow_each_other_and_nest_in_one_process(record):
    run = record(
        """
        import jaxscope, jax, jax.numpy as jnp
        from jaxscope.capture import session
        with jaxscope.record("inner") as inner: jax.jit(lambda x: x + 1)(jnp.ones(3))
        print(inner.path == session.current().run.path)
        session.stop()
        with jaxscope.record("first"): jax.jit(lambda x: x + 2)(jnp.ones(3))
        with jaxscope.record("second"): jax.jit(lambda x: x + 3)(jnp.ones(3))
        from jaxscope.log import reader, store
        for name in ("first", "second"):
            kinds = [type(e).__name__ for e in reader.read(store.RunDir(name))]
            print(name, kinds.count("Compiled") >= 1, kinds[0], kinds[-1])
        """
    )
    assert run.out.splitlines() == [
        "True",
        "first True RunStarted RunEnded",
        "second True RunStarted RunEnded",
    ]
    assert "already recording to" in run.err


def test_jax_distributed_processes_each_keep_a_log_under_their_index(tmp_path, clean_env):
    """Two processes, two CPU devices each, one run directory a process, the same program in both."""
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    program = tmp_path / "distributed.py"
    program.write_text(
        """
import sys, jax
index, port, out = int(sys.argv[1]), sys.argv[2], sys.argv[3]
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=index)
import jaxscope, numpy as np, jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
with jaxscope.record(f"{out}/{index}"):
    mesh = Mesh(np.array(jax.devices()), ("d",))
    x = jax.make_array_from_callback((8,), NamedSharding(mesh, P("d")), lambda i: np.ones(8, "f4")[i])
    print(float(jax.jit(lambda v: v.sum())(x)))
jax.distributed.shutdown()
"""
    )
    env = {**clean_env, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    children = [
        subprocess.Popen(
            [sys.executable, str(program), str(i), str(port), str(tmp_path)],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(2)
    ]
    outs = [c.communicate(timeout=120) for c in children]
    assert [c.returncode for c in children] == [0, 0], outs
    programs = []
    for index in range(2):
        events = list(reader.read(store.RunDir(tmp_path / str(index))))
        (backend,) = [e for e in events if isinstance(e, ev.BackendSeen)]
        assert backend.process_count == 2 and len(backend.devices) == 4
        compiled = [e for e in events if isinstance(e, ev.Compiled) and e.module == "jit(<lambda>)"]
        assert {e.process_index for e in compiled} == {index}
        programs.append([e.program for e in compiled])
    assert programs[0] == programs[1]


COUNTING = """
import os, sys, signal, multiprocessing as mp, jaxscope, jax, jax.numpy as jnp
@jaxscope.watch
@jax.jit
def step(x): return x + 1
@jax.jit
def shows(x): jax.debug.callback(lambda: None); return x * 2
def calls(n):
    for _ in range(n): step(x); shows(x); jaxscope.step()
x = 1.0
if __name__ == "__main__":
    run = jaxscope.record(sys.argv[1]).start()
    calls(500)
    child = mp.get_context("fork").Process(target=lambda: (calls(300), os.kill(os.getpid(), signal.SIGKILL)))
    child.start(); child.join()
    calls(7)
    print(child.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL])
def test_the_last_calls_before_a_program_falls_silent_or_is_killed_are_counted(sig, tmp_path, clean_env):
    program = tmp_path / "counting.py"
    program.write_text(COUNTING)
    parent = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path / "run")],
        env=clean_env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    pid = int(parent.stdout.readline())

    def told():
        run = load(store.RunDir(tmp_path / "run"))
        steps = {p.pid: p.step for p in run.processes.values()}
        (step,) = [f for f in run.functions.values() if f.name == "step"]
        (shows,) = [f for f in run.functions.values() if f.name == "shows"]
        calls = {run.processes[p].pid: n for p, n in step.counted_calls.items()}
        return steps, calls, shows.fast_path_misses

    alive = told()
    assert alive[:2] == ({parent.pid: 507, pid: 300}, {parent.pid: 507, pid: 300})
    assert alive[2] >= 800, "all but those that were described in full"
    parent.send_signal(sig)
    parent.wait(30)
    assert told() == alive
    parent.stdin.close(), parent.stdout.close()


def test_where_counts_cannot_be_mapped_they_are_written_to_the_log(record):
    run = record(
        """
        import jaxscope, jax, jax.numpy as jnp
        from jaxscope.capture import session
        import jaxscope.log.counts as counts
        def full(path, number): raise OSError(28, "No space left on device")
        counts._page = full
        @jaxscope.watch
        @jax.jit
        def step(x): return x + 1
        for _ in range(1000): step(1.0)
        print(list(session.current().run.events.glob("*.counts")))
        """
    )
    assert run.out == "[]\n"
    assert [(e.count, e.cell) for e in run.of(ev.Called)][-1] == (1000, None)


def test_memory_that_is_read_beside_the_program_is_complete_when_the_recording_ends(record):
    run = record(
        """
        import os, time, jax, jax.numpy as jnp
        from jaxscope.capture import program_memory, texts
        program_memory.WORTH_A_THREAD_S, read = 0, texts.memory
        def slow(executable):
            time.sleep(0.2)
            return read(executable)
        texts.memory = slow
        x = jnp.ones(64)
        for n in (2, 3, 4):
            jax.jit(lambda x: jnp.sin(x) * n)(x)
            if n == 2:
                child = os.fork()
                if child == 0:
                    os._exit(0)  # the thread that reads is not in the child, and nothing waits for it
                os.waitpid(child, 0)
        """
    )
    folded = load(run.run)
    compiled = [c.compiled for c in folded.compilations.values() if c.compiled is not None]
    assert len(compiled) >= 4 and all(
        c.memory is not None and c.memory.temp_bytes is not None for c in compiled
    )
    assert run.of(ev.MemoryRead)
    assert isinstance(run.events[-1], ev.RunEnded)
