"""What crosses between host and devices in real programs: found by line, counted, and nothing else changes."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest
import training_loops
from folders import PROGRAMS
from training_loops import LOOPS

from jaxscope.model import transfers as model
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.report import transfers as report
from jaxscope.schema import events as ev

pytestmark = pytest.mark.capture

FOUR = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}


def rows(done, direction=None):
    """(direction, kind, line) -> the transfer, of those with a line."""
    found = {}
    for t in model.transfers(load(done.run)):
        if t.source is not None and (direction is None or t.direction == direction):
            found[t.direction, t.kind, t.source.line] = t
    return found


@pytest.fixture(scope="module")
def kinds(record_module):
    """What programs/host_copies.py does on each of its lines, and what is found there."""
    done = record_module(PROGRAMS / "host_copies.py", env=FOUR)
    source = (PROGRAMS / "host_copies.py").read_text().splitlines()
    expected = {}
    for number, line in enumerate(source, 1):
        said = line.partition("# -> ")[2]
        for entry in filter(None, said.split("; ")):
            direction, kind, count, size = entry.split()
            expected[direction, kind, number] = (int(count), int(size))
    return expected, rows(done)


def test_every_way_of_reading_an_array_is_found_at_its_line_with_count_and_bytes(kinds):
    expected, found = kinds
    assert len(expected) > 20
    assert {k: (t.count, t.bytes) for k, t in found.items() if k in expected} == expected


def test_nothing_else_is_reported_of_that_program(kinds):
    expected, found = kinds
    calls = {k for k, t in found.items() if t.count is None}  # what a jitted call moves, known from its key
    assert set(found) - calls == set(expected)


def test_expressions_stand_as_the_user_wrote_them(kinds):
    texts = {t.text for t in kinds[1].values()}
    assert {"float(scalar())", "matrix().tolist()", 'logging.warning("%s", scalar())'} <= texts


def test_what_shares_memory_with_the_device_is_called_a_view_and_what_is_gathered_is_not(kinds):
    for (direction, kind, _), t in kinds[1].items():
        if direction == model.TO_HOST and t.text and "spread()" in t.text and kind != "float":
            assert t.views == 0, kind
        elif direction == model.TO_HOST and kind in ("float", "item", "tolist", "device_get"):
            assert t.views == t.count, kind


def test_a_program_killed_after_a_reshard_through_the_host_has_the_bytes_of_the_whole_array(record):
    done = record(
        """
        import os, signal
        import jax, jax.numpy as jnp
        from jax.sharding import NamedSharding, PartitionSpec as P
        mesh = jax.make_mesh((2, 2), ("a", "b"))
        x = jax.device_put(jnp.ones((64, 64)), NamedSharding(mesh, P("a", "b")))
        jax.device_put(x, NamedSharding(mesh, P("a", None)))
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        env=FOUR,
        check=False,
    )
    assert [t.bytes for t in rows(done, model.TO_HOST).values()] == [64 * 64 * 4]


def test_steps_are_those_in_which_a_line_was_reached(record):
    done = record(
        """
        import jax.numpy as jnp, jaxscope
        for i in range(12):
            if i % 3 == 0:
                float(jnp.ones(()) + i)
            float(jnp.ones(()) + i); float(jnp.ones(()) - i)
            jaxscope.step()
        """
    )
    found = sorted((line, t) for (_, _, line), t in rows(done, model.TO_HOST).items())
    assert [(line, t.count, t.steps, t.first_step) for line, t in found] == [(5, 4, 4, 1), (6, 24, 12, 1)]
    assert model.steps(load(done.run), load(done.run).main) == 12


def test_steps_by_calls_of_a_watched_function_are_counted_too(record):
    done = record(
        """
        import jax, jax.numpy as jnp, jaxscope
        before = float(jnp.ones(()) * 3)
        @jaxscope.watch(step=True)
        @jax.jit
        def step(x): return x + 1
        x = jnp.zeros(())
        for i in range(5):
            x = step(x)
            float(x)
        """
    )
    found = sorted(rows(done, model.TO_HOST).items(), key=lambda item: item[0][2])
    assert [(t.count, t.steps, t.first_step) for _, t in found] == [(1, 0, None), (5, 5, 1)]


@pytest.mark.long
def test_a_hundred_thousand_copies_are_a_bounded_number_of_events(record):
    done = record(
        """
        import jax, jax.numpy as jnp
        x = jax.jit(lambda: [jnp.float32(i) for i in range(200)])()
        for _ in range(250):
            for v in jax.device_put(x, may_alias=False): float(v)
        """
    )
    [t] = [t for t in rows(done).values() if t.kind == "float"]
    assert t.count == 50_000
    assert len([e for e in done.of(ev.Transferred) if e.via == "float"]) < 70


def test_a_killed_program_has_said_most_of_what_it_copied(record):
    done = record(
        """
        import jax, jax.numpy as jnp, os, signal
        f = jax.jit(lambda x: x + 1)
        for i in range(1000): float(f(jnp.float32(i)))
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        check=False,
    )
    [t] = [t for t in rows(done).values() if t.kind == "float"]
    assert 750 <= t.count <= 1000


NUMPY = """
import jax, numpy as np, jaxscope
@jaxscope.watch
@jax.jit
def counted(x, s): return x.sum() * s
@jax.jit
def uncounted(x): return x.sum()
@jaxscope.watch
@jax.jit
def varying(x): return x.sum()
for i in range(40):
    counted(np.ones((64, 8), "float32"), np.float32(2))
    uncounted(np.ones((4, 2), "float64"))
    varying(np.ones(8 + i % 2, "float32"))
"""


def test_numpy_arguments_are_counted_where_calls_are_and_told_per_call_elsewhere(record):
    found = [
        t for t in model.transfers(load(record(NUMPY).run)) if t.function and t.direction == "host_to_device"
    ]
    told = {(t.function.name, t.count, t.bytes, t.paths) for t in found}
    assert told == {
        ("counted", 40, 40 * (64 * 8 * 4 + 4), ("x", "s")),
        ("uncounted", None, 4 * 2 * 4, ("x",)),
        ("varying", 40, 20 * (32 + 36), ("x",)),
    }
    assert all(t.blocked_seconds is None for t in found)


VARYING = """
import os, signal, sys, equinox as eqx, jax, jax.numpy as jnp, numpy as np, jaxscope
from flax import nnx

@jaxscope.watch
@jax.jit
def step(w, batch, *, scale=None):
    r = (batch["x"] @ w).sum() + batch["y"].sum()
    return w + r * (1 if scale is None else scale)

class Model(nnx.Module):
    def __init__(self): self.w = nnx.Param(jnp.ones((4, 2)))

@jaxscope.watch
@nnx.jit
def apply(model, x): return (x @ model.w[...]).sum()

@jaxscope.watch
@eqx.filter_jit
def loss(linear, x): return jax.vmap(linear)(x).sum()

model, linear = Model(), eqx.nn.Linear(4, 2, key=jax.random.key(0))
def run(epochs):
    w = jnp.ones(8)
    for _ in range(epochs):
        for k in range(10):
            rows = 3 if k < 9 else 2
            batch = {"x": np.ones((rows, 8)), "y": np.ones(rows, "float32")}
            if k == 3: batch = jax.tree.map(jnp.asarray, batch)
            w = step(w, batch, scale=np.float32(2) if k == 5 else None)
            apply(model, np.ones((rows, 4), "float32"))
            loss(linear, np.ones((rows, 4), "float32") if k % 2 else jnp.ones((rows, 4)))
run(3)
"""
# Calls with something of NumPy's in them, and its bytes as float32, in one epoch.
ONE_EPOCH = {
    "step": (9, 8 * (3 * 8 * 4 + 3 * 4) + (2 * 8 * 4 + 2 * 4) + 4),
    "apply": (10, 9 * 3 * 4 * 4 + 2 * 4 * 4),
    "loss": (5, 4 * 3 * 4 * 4 + 2 * 4 * 4),
}


def brought(run):
    return {
        (t.function.name, t.process.id): (t.count, t.bytes)
        for t in model.transfers(run)
        if t.function is not None and t.direction == "host_to_device"
    }


@pytest.mark.parametrize("ends", ["", "os.kill(os.getpid(), signal.SIGKILL)"], ids=["at its end", "killed"])
def test_numpy_arguments_that_differ_from_call_to_call_are_counted_exactly(record, ends):
    found = brought(load(record(VARYING + ends, check=False).run))
    assert {name: figures for (name, _), figures in found.items()} == {
        name: (3 * calls, 3 * size) for name, (calls, size) in ONE_EPOCH.items()
    }


def test_numpy_arguments_of_a_forked_child_are_not_counted_as_the_parents(record):
    forks = """
pid = os.fork()
if pid == 0:
    run(2)
    from jaxscope.capture import session
    session.stop("exit"); os._exit(0)
os.waitpid(pid, 0)
"""
    run = load(record(VARYING + forks, check=False).run)
    found = brought(run)
    parent = run.main.id
    assert {name: figures for (name, p), figures in found.items() if p == parent} == {
        name: (3 * calls, 3 * size) for name, (calls, size) in ONE_EPOCH.items()
    }


def test_what_is_not_known_of_numpy_arguments_is_not_claimed(record):
    done = record(
        """
        import jax, numpy as np, jaxscope
        f = jaxscope.watch(jax.jit(lambda x, n: x.sum() * n, static_argnums=1))
        for i in range(10): f(np.ones(3 + i % 2, "float32"), np.int32(2))  # NumPy's, and no array
        """
    )
    assert {figures[0] for figures in brought(load(done.run)).values()} == {None}


def test_numpy_arguments_for_several_devices_are_counted_exactly(record):
    done = record(
        """
        import jax, numpy as np
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
        mesh = Mesh(np.array(jax.devices()), ("d",))
        w = jax.device_put(np.ones((8, 4), "float32"), NamedSharding(mesh, P("d")))
        f = jax.jit(lambda w, x: w + x)
        for _ in range(7): f(w, np.ones((8, 4), "float32"))
        """,
        env=FOUR,
    )
    [t] = [t for t in rows(done).values() if t.kind == "argument"]
    assert (t.direction, t.count, t.text) == ("host_to_device", 7, 'f(w, np.ones((8, 4), "float32"))')


def test_an_array_on_another_device_is_reported_with_its_bytes_and_its_argument(record):
    done = record(
        """
        import jax, jax.numpy as jnp, numpy as np, jaxscope
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
        mesh = Mesh(np.array(jax.devices()), ("d",))
        w = jax.device_put(np.ones((8192, 4), "float32"), NamedSharding(mesh, P("d")))
        far = jax.device_put(np.ones((8192, 4), "float32"), jax.devices()[3])
        here = jnp.ones((8192, 4))
        @jaxscope.watch
        @jax.jit
        def spread(w, u): return w + u
        @jaxscope.watch
        @jax.jit
        def single(w, u): return w + u
        for _ in range(6):
            spread(w, here)
            single(far, here)
        """,
        env=FOUR,
    )
    run = load(done.run)
    between = {t.source.line: t for t in model.transfers(run) if t.kind == "argument"}
    assert {(t.direction, t.count, t.bytes) for t in between.values()} == {
        ("device_to_device", 6, 6 * 96 << 10),  # three of four parts of a replicated or split array
        ("device_to_device", 6, 6 * 128 << 10),
    }
    from jaxscope.rules.registry import findings

    found = sorted(words.title(f) for f in findings(run) if f.code == "JX511")
    assert [t.split(" is not on ")[0] for t in found] == ["u of single", "u of spread"]


CALLBACKS = """
import threading, jax, jax.numpy as jnp, numpy as np
log = []
def note(x): log.append(float(x))
def host(x): return np.asarray(x) * 2
@jax.jit
def f(x):
    jax.debug.callback(note, x.sum())
    jax.debug.print("{}", x[0])
    return jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
for _ in range(5): y = f(jnp.ones(4))
jax.block_until_ready(y); jax.effects_barrier()
z = jnp.ones(3) + 1
def reader(): log.append(z.tolist())
t = threading.Thread(target=reader); t.start(); t.join()
"""


def test_what_jax_does_for_callbacks_is_nobodys_line_and_a_thread_of_the_users_is_the_users(record):
    found = rows(record(CALLBACKS))
    assert {(k, line) for (_, k, line), t in found.items() if t.count is not None} == {("tolist", 14)}


def test_a_forked_child_counts_its_own(record):
    done = record(
        """
        import os, sys
        import jax, jax.numpy as jnp
        values = jax.device_put([jnp.float32(i) for i in range(12)])
        for v in values[:5]: float(v)
        pid = os.fork()
        if pid == 0:
            for v in values[5:]: float(v)
            from jaxscope.capture import session
            session.stop("exit"); os._exit(0)
        os.waitpid(pid, 0)
        """,
        check=False,
    )
    run = load(done.run)
    counts = sorted(t.count for t in model.transfers(run) if t.kind == "float")
    assert counts == [5, 7] and len(run.processes) == 2


def test_worker_processes_of_a_pool_are_followed(record, tmp_path):
    (tmp_path / "pool.py").write_text(
        "import multiprocessing as mp\n"
        "def work(n):\n"
        "    import jax.numpy as jnp\n"
        "    return sum(float(jnp.float32(i) + 1) for i in range(n))\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool: print(pool.map(work, [4, 4]))\n"
        "    float(__import__('jax').numpy.float32(3))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "run", "-q", "-o", "out", "pool.py"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    from jaxscope.log.store import RunDir

    floats = [t for t in model.transfers(load(RunDir(tmp_path / "out"))) if t.kind == "float"]
    assert sorted((t.source.line, t.count) for t in floats) == [(4, 8), (7, 1)]


HARMLESS = """
import copy, gc, inspect, io, pickle, sys, threading, traceback, weakref
import jax, jax.numpy as jnp, numpy as np
f = jax.jit(lambda x: x * 2)
def kinds():
    s, m = f(jnp.ones(())), f(jnp.arange(6.).reshape(2, 3))
    return [float(s), int(s), bool(s), s.item(), m.item(5), m.item(1, 2), m.tolist(), str(m), repr(m), f"{s:.3f}",
            np.asarray(m).tolist(), jax.device_get({"a": m})["a"].tolist(), m.tobytes(), complex(s), [1, 2, 3][f(jnp.int32(1))],
            pickle.loads(pickle.dumps(m)).tolist(), copy.deepcopy(m).tolist(), copy.copy(m).tolist(), [v.tolist() for v in m]]
print(kinds())
x = f(jnp.ones((2, 2)))
print(isinstance(x, jax.Array), type(x).__name__, type(x).__module__)
print(inspect.signature(x.item), inspect.signature(type(x).item), x.item.__name__, x.item.__qualname__, x.item.__doc__)
print(inspect.ismethod(x.item), inspect.isfunction(type(x).item), x.item == x.item, hash(x.item) == hash(x.item), x.item.__self__ is x)
print(callable(x.item), x.item.__module__, getattr(x.item, "nothing", "none"), sorted(set(dir(x)))[-3:], len(dir(x)))
later = f(jnp.ones(())).item
print(later(), later(), hasattr(x, "item"), list(map(lambda a: a.item(), [f(jnp.ones(())), f(jnp.zeros(()))])))
def failing(act):
    try: act()
    except BaseException:
        print(traceback.format_exc())
failing(lambda: f(jnp.ones(2)).item())
failing(lambda: float(f(jnp.ones(2))))
gone = f(jnp.ones(3)); gone.delete()
failing(lambda: gone.tolist()); failing(lambda: gone.item(0)); failing(lambda: str(gone))
def broken(v): raise ValueError("the host's own error")
bad = jax.jit(lambda v: jax.pure_callback(broken, jax.ShapeDtypeStruct((), "float32"), v))
import logging; logging.disable()
failing(lambda: float(bad(jnp.ones(()))).real)
print(jnp.asarray(np.ones(3)), jnp.array([1, 2]), jnp.array(np.ones(2), dtype="int32"), jax.jit(jnp.asarray)(np.ones(2)))
failing(lambda: jnp.asarray(np.array(["a"]))); failing(lambda: jnp.array(np.ones(2), device="nowhere"))
def alive():
    v = f(jnp.ones(4)); refs = [weakref.ref(v)]
    v.tolist(); str(v); v.item(2); n = np.asarray(v); del n
    w = f(jnp.ones(())); refs.append(weakref.ref(w)); float(w); float(w); w.item()
    counts = sys.getrefcount(v), sys.getrefcount(w)
    gc.disable(); v = w = None
    return counts, [r() is None for r in refs]
print(alive())
given = jax.jit(lambda a: a + 1, donate_argnums=0)
d = f(jnp.ones(4)); d.tolist(); d = given(d); print(d.tolist())
float(bad(jnp.ones(())))
"""


def without_runner(text: str) -> list[str]:
    """An error in a callback is reported with the whole stack, without the frames of runpy that start us."""
    return [line for line in text.splitlines() if "<string>" not in line and "<frozen runpy>" not in line]


def test_results_errors_tracebacks_and_what_can_be_inspected_are_as_without_us(record, tmp_path, clean_env):
    program = tmp_path / "harmless.py"
    program.write_text(HARMLESS)
    bare = subprocess.run([sys.executable, str(program)], env=clean_env, capture_output=True, text=True)
    assert bare.returncode == 1 and "the host's own error" in bare.stdout and "([" not in bare.stderr[:1]
    done = record(program, check=False)
    mark = f'File "{program}"'
    assert without_runner(done.out) == without_runner(bare.stdout)
    assert without_runner(done.err[done.err.index(mark) :]) == without_runner(
        bare.stderr[bare.stderr.index(mark) :]
    )
    assert done.code == 1
    assert not done.of(ev.Degraded)


def test_a_fault_of_ours_in_the_midst_of_a_copy_changes_nothing(record, tmp_path, clean_env):
    program = tmp_path / "harmless.py"
    program.write_text(HARMLESS)
    bare = subprocess.run([sys.executable, str(program)], env=clean_env, capture_output=True, text=True)
    for fault in ("host_copies", "device_puts", "staged_arrays", "transfers"):
        done = record(program, check=False, env={"JAXSCOPE_FAULTS": fault})
        assert (without_runner(done.out), done.code) == (without_runner(bare.stdout), 1)
        assert {e.seam for e in done.of(ev.Degraded)} == {fault}


def test_jaxs_class_is_exactly_as_before_when_the_recording_has_ended(record):
    done = record(
        """
        import jax, jax.numpy as jnp, jaxscope
        from jaxscope.capture import session
        session.stop()
        kind = type(jnp.ones(3))
        before = dict(vars(kind))
        converts = jax.lax.convert_element_type_p
        implementation = converts.impl
        for _ in range(2):
            with jaxscope.record("inside"):
                during = dict(vars(kind))
                assert converts.impl is not implementation
                kept = jnp.ones(()).item
            assert list(vars(kind)) == list(before) and all(vars(kind)[k] is v for k, v in before.items())
            assert converts.impl is implementation
        print(sorted(k for k in before if during[k] is not before[k]), kept())
        with jaxscope.record("without", transfers=False):
            print(all(vars(kind)[k] is v for k, v in before.items()))
        """
    )
    changed, same = done.out.splitlines()
    assert same == "True" and changed.endswith("1.0") and "'item'" in changed and "_value" not in changed


def test_a_program_that_puts_something_of_its_own_there_keeps_it(record):
    done = record(
        """
        import jax, jax.numpy as jnp, jaxscope
        from jaxscope.capture import session
        kind = type(jnp.ones(3))
        ours = vars(kind)["item"]
        kind.item = lambda self, *a: "mine"
        session.stop()
        print(jnp.ones(()).item())
        kind.item = ours  # what it took from the class before
        print(jnp.ones(()).item(), float(jnp.ones(())))
        """
    )
    assert done.out.split() == ["mine", "1.0", "1.0"]


@pytest.mark.parametrize("how", ["option", "environment", "file"])
def test_counting_is_switched_off_by_option_environment_or_file(how, tmp_path, clean_env):
    (tmp_path / "p.py").write_text(
        "import jax.numpy as jnp, inspect\nx = jnp.ones(())\nfloat(x)\n"
        "print(type(vars(type(x))['item']).__name__)\n"
    )
    if how == "file":
        (tmp_path / "pyproject.toml").write_text("[tool.jaxscope.run]\ntransfers = false\n")
    env = {**clean_env, **({"JAXSCOPE_TRANSFERS": "0"} if how == "environment" else {})}
    options = ["--no-transfers"] if how == "option" else []
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "run", "-q", "-o", "out", *options, "p.py"],
        cwd=tmp_path, env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "function"), done.stderr
    from jaxscope.log.store import RunDir

    assert report.as_json(load(RunDir(tmp_path / "out"))) is None


def test_what_is_read_in_threads_at_once_is_all_counted(record):
    done = record(
        """
        import threading, jax, jax.numpy as jnp
        values = jax.device_put([jnp.float32(i) for i in range(4000)], may_alias=False)
        def read(k):
            for v in values[k::4]: float(v)
        threads = [threading.Thread(target=read, args=(k,)) for k in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        """
    )
    [t] = [t for t in rows(done).values() if t.kind == "float"]
    assert (t.count, t.bytes) == (4000, 16_000)


@pytest.mark.long
@pytest.mark.parametrize("program", [name for name, loop in LOOPS.items() if loop.reads])
def test_the_loss_a_real_training_loop_reads_is_reported_at_its_own_line(program, record_module):
    after, count = LOOPS[program].after, LOOPS[program].reads
    lines = training_loops.source(program).splitlines()
    line = next(n for n, text in enumerate(lines, 1) if after.strip() in text)
    t = rows(training_loops.recorded(program, record_module))[model.TO_HOST, "float", line]
    assert (t.count, t.bytes) == (count, 4 * count) and t.text and t.text.startswith("float(")


def test_the_json_has_the_keys_of_the_contract(record):
    done = record("import jax.numpy as jnp\nx = float(jnp.ones(()) + 1)")
    found = msgspec.to_builtins(report.as_json(load(done.run)))
    [t] = [t for t in found if t["direction"] == "device_to_host"]
    assert set(t) >= {"direction", "kind", "count", "bytes", "blocked_seconds", "steps", "source"}
    assert (t["kind"], t["count"], t["bytes"], t["steps"]) == ("float", 1, 4, None)
    assert t["source"]["line"] == 2 and set(t["source"]) == {"file", "line", "function"}


def test_putting_a_deleted_array_again_and_again_leaves_the_counting_as_it_was(record):
    run = record(
        """
        import jax, jax.numpy as jnp, numpy as np
        x = jnp.arange(10.)
        x.delete()
        for _ in range(20):
            try: jax.device_put(x, jax.devices()[0])
            except RuntimeError: pass
        for i in range(5): y = jax.device_put(np.ones(3 + i, "float32"))  # five, afterwards
        """
    )
    puts = [e for e in run.of(ev.Transferred) if e.via == "device_put"]
    assert max(e.count for e in puts) == 5 and max(e.bytes for e in puts) == 4 * (3 + 4 + 5 + 6 + 7)


ROUNDED = """
import jax, jax.numpy as jnp, numpy as np

times = 1.7e9 + np.arange(200) * 50.0
for _ in range(3):
    t = jnp.asarray(times)
whole = jnp.array(np.arange(200) + 2**40)
gaps, asked = jnp.asarray(times - times[0]), jnp.asarray(times, jnp.bfloat16)

@jax.jit
def last(data, rest):
    return data["time"][-1] + rest

for n in (2, 3):
    last({"time": times, "gap": times - times[0]}, np.arange(n))
"""


def test_a_conversion_that_loses_differences_is_recorded_once_for_its_line(record, tmp_path):
    program = tmp_path / "rounded.py"
    program.write_text(ROUNDED)
    found = load(record(program).run).main.rounded
    assert [(e.site.line, e.before, e.after, round(e.share, 1)) for e in found] == [
        (6, "float64", "float32", 0.6),
        (7, "int64", "int32", 1.0),
        (15, "float64", "float32", 0.6),
    ]
    assert [(e.text, e.argument) for e in found] == [
        ("jnp.asarray(times)", None),
        ("jnp.array(np.arange(200) + 2**40)", None),
        ("last", "data['time']"),
    ]
