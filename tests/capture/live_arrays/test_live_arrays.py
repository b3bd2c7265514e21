"""Live arrays of real programs: their names, where they lie, what they take, and that looking changes nothing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap

import msgspec
import pytest
import training_loops
from folders import PROGRAMS, TESTS

from jaxscope.analysis import sharding
from jaxscope.log.store import RunDir
from jaxscope.model import arrays
from jaxscope.model.load import load
from jaxscope.report import arrays as report
from jaxscope.schema import events as ev
from jaxscope.schema.arrays import Holder

pytestmark = pytest.mark.capture

EIGHT = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}


@pytest.fixture(scope="module")
def placed(record_module):
    """(looks, what each device holds by array, from the program itself)"""
    done = record_module(PROGRAMS / "placements.py", env=EIGHT)
    looks = [s for s in arrays.snapshots(load(done.run)) if s.why == "asked"]
    return looks, json.loads(done.out.splitlines()[-1])


# path -> shape, spec, bytes in all, on each device, copies
ANSWERS = {
    "batch": ((64, 16), "P('data',)", 4096, 512, 1),
    "tensor['up']": ((16, 32), "P(None, 'model')", 2048, 1024, 4),
    "tensor['down']": ((32, 16), "P('model', None)", 2048, 1024, 4),
    "hybrid": ((16, 8), "P('data', 'model')", 512, 64, 1),
    "both": ((16, 8), "P(('model', 'data'),)", 512, 64, 1),
    "turned": ((4, 8), "P('b', ('c', 'a'))", 128, 16, 1),
    "mapped": ((8, 4), "P('_internal_pmap_axis_name',)", 128, 16, 1),
    "uneven": ((17, 4), "P()", 272, 272, 8),
    "mistake": ((1024,), "P()", 4096, 4096, 8),
    "pinned": ((32,), None, 128, 128, 1),
    "tiles": ((16, 4), None, 256, 128, 4),
    "first": ((3,), None, 3, 3, 1),
    "second": ((3,), None, 3, 3, 1),
    "free": ((2, 2), None, 16, 16, 1),
}


def only(snapshot, path):
    [group] = [g for g in snapshot.groups if g.path == path]
    return group


@pytest.mark.parametrize("path", ANSWERS)
def test_an_array_is_reported_by_name_bytes_spec_and_copies(path, placed):
    looks, _ = placed
    g = only(looks[0], path)
    spec = g.sharding.spec if g.sharding else None
    assert (g.shape, spec, g.global_bytes, g.device_bytes, g.replication) == ANSWERS[path]
    assert g.count == 1 and g.padding_bytes == 0
    assert g.origin.file.endswith("placements.py")


def test_members_of_a_list_are_distinguished_by_shape_alone(placed):
    found = {g.shape: (g.count, g.device_bytes) for g in placed[0][0].groups if g.path == "fsdp[*]"}
    assert found == {(128, 4): (1, 256), (8,): (1, 4)}


def test_memory_kinds_devices_and_committedness_are_reported(placed):
    look = placed[0][0]
    assert only(look, "pinned").memory_kind == "pinned_host"
    assert [only(look, p).sharding.text for p in ("first", "second")] == ["cpu:0", "cpu:5"]
    assert [only(look, p).committed for p in ("first", "batch", "free")] == [True, True, False]
    assert only(look, "batch").layout == "(0, 1)"


@pytest.mark.parametrize("path", ANSWERS)
def test_which_device_holds_which_slice_is_what_jax_says(path, placed):
    looks, truth = placed
    g = only(looks[0], path)
    cells = sharding.cells(g.sharding, g.shape)
    assert sorted([c.device, [list(s) for s in c.slices]] for c in cells) == sorted(truth[path])


def test_bytes_on_each_device_are_the_sum_of_what_lies_there(placed):
    look, truth = placed[0][0], placed[1]
    item = {g.path: g.global_bytes // max(1, _elements(g.shape)) for g in look.groups if g.path in truth}
    expected = dict.fromkeys(range(8), 0)
    for name, shards in truth.items():
        for device, slices in shards:
            expected[device] += item[name] * _elements([b - a for a, b in slices])
    for g in look.groups:
        if g.path not in truth:
            assert g.path is None or g.path.startswith("fsdp") or g.device_bytes < 100, g
            for c in sharding.cells(g.sharding, g.shape):
                expected[c.device] += g.device_bytes
    assert look.by_device == expected and look.bytes == sum(expected.values())


def _elements(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def test_parts_that_were_looked_at_are_no_further_memory(placed):
    before, after = placed[0]
    assert (after.count, after.bytes, after.by_device) == (before.count, before.bytes, before.by_device)


def test_the_json_has_the_keys_of_the_contract(record):
    done = record("import jax.numpy as jnp, jaxscope\nx = jnp.ones((4, 2))\njaxscope.snapshot()")
    [look, _] = msgspec.to_builtins(report.as_json(load(done.run)))["snapshots"]
    assert set(look) == {
        "time_seconds", "step", "count", "parts", "bytes", "by_device", "memory", "groups", "trees", "kinds", "dtypes",
    }  # fmt: skip
    [x] = [g for g in look["groups"] if g["path"] == "x"]
    assert set(x) == {
        "path", "count", "shared", "shape", "dtype", "global_bytes", "device_bytes", "sharding", "spec",
        "memory_kind", "replication", "padding_bytes", "committed", "origin", "layout", "asked", "compiled",
    }  # fmt: skip
    assert x["origin"]["line"] == 2 and x["shape"] == [4, 2]
    assert look["by_device"] == [{"device": 0, "bytes": look["bytes"]}] and look["step"] is None


def test_arrays_are_named_through_whatever_holds_them(record):
    done = record(PROGRAMS / "holders_of_arrays.py")
    [look] = [s for s in arrays.snapshots(load(done.run)) if s.why == "asked"]
    source = (PROGRAMS / "holders_of_arrays.py").read_text().splitlines()
    expected = {line.partition("# -> ")[2] for line in source if "# -> " in line}
    assert {g.path for g in look.groups} == expected and len(expected) > 14
    assert look.bounded == ["hits", "recent", "waiting.queue"]
    assert (look.lengths["recent"], look.lengths["waiting.queue"]) == (50, 70)


LEAK = """
import jax, jax.numpy as jnp, jaxscope
@jax.jit
def f(x): return x + 1
{state}
def main():
    x = jnp.zeros((64, 64))
    for i in range(40):
        x = f(x)
        {keep}
        jaxscope.step()
        if i % 8 == 0: jaxscope.snapshot()  # whatever there is time for beside: this many looks there are
main()
"""
LEAKS = {
    "a list": ("history = []", "history.append(x)", "history[*]"),
    "a dict by number": ("seen = {}", "seen[i] = x", "seen[*]"),
    "a closure": (
        "def recorder():\n    kept = []\n    return kept.append\nkeep = recorder()\n"
        "def make():\n    kept = []\n    def note(x): kept.append(x)\n    return note\nnote = make()",
        "note(x)",
        "note.<closure>.kept[*]",
    ),
    "an attribute of a method's object": (
        "class Log:\n    def __init__(self): self.items = []\n    def add(self, x): self.items.append(x)\n"
        "add = Log().add",
        "add(x)",
        "add.items[*]",
    ),
    "a default argument": ("def note(x, kept=[]): kept.append(x)", "note(x)", "note.<default>.kept[*]"),
}


LEAKS |= {
    "a dict by text": ("seen = {}", "seen['abcdefgh'[i % 8] * (i + 1)] = x", "seen[*]"),
    "exceptions": (
        "errors = []\ndef fail(x):\n    try: raise ValueError\n    except ValueError as e: errors.append(e)",
        "fail(x)",
        "errors[*].__traceback__.<locals>.x",
    ),
    "a cache": ("import functools\n@functools.lru_cache(None)\ndef get(i): return f(kept[0])\nkept = [0]",
                "kept[0] = x; get(i)", "get.<cache>[*]"),
}  # fmt: skip


@pytest.mark.parametrize("how", LEAKS)
def test_a_leak_is_found_with_what_holds_it(how, record):
    state, keep, path = LEAKS[how]
    run = load(record(LEAK.format(state=state, keep=keep)).run)
    [growth] = arrays.growing(run)
    assert path in (growth.path, growth.group.path)
    assert growth.more_arrays == pytest.approx(1) and growth.more_bytes == pytest.approx(16384)


HIDDEN = {
    "a cycle": (
        "import gc; gc.disable()\nclass Node:\n    def __init__(self, x): self.me, self.value = self, x",
        "Node(x)",
        Holder("object", "__main__.Node"),
    ),
    "a container in a library": (
        "import json\njson.kept = []",
        "json.kept.append(x)",
        Holder("container", "list"),
    ),
    "a jit cache": (
        "taken = jnp.zeros((64, 64))\n@jax.jit\ndef g(y): return y + taken.sum()",
        "globals().update(taken=x); g(jnp.ones(i + 1))",
        Holder("trace"),
    ),
}


@pytest.mark.parametrize("how", HIDDEN)
def test_what_no_variable_leads_to_is_found_with_what_holds_it(how, record):
    state, keep, held = HIDDEN[how]
    run = load(record(LEAK.format(state=state, keep=keep)).run)
    [found] = arrays.growing(run)
    assert found.group.path is None and found.holder.kind == held.kind
    assert held.name in (None, found.holder.name)
    assert (found.holder.count is None) == (held.kind != "container")


def test_a_program_that_keeps_nothing_does_not_grow(record):
    run = load(record(LEAK.format(state="", keep="pass")).run)
    assert arrays.growing(run) == [] and len(run.main.snapshots) > 4


TRAINING = {
    "optax_train.py": ("params", "opt_state"),
    "nnx_train.py": ("model", "optimizer"),
    "equinox_train.py": ("model", "opt_state"),
    "haiku_train.py": ("params",),
}


@pytest.mark.parametrize(
    "program", ["optax_train.py", *(pytest.param(name, marks=pytest.mark.long) for name in [*TRAINING][1:])]
)
def test_arrays_of_a_training_program_carry_the_users_names(program, record_module):
    run = load(training_loops.recorded(program, record_module).run)
    looks = [s for s in arrays.of_main(run) if s.why == "asked"]
    assert len(looks) >= 10
    for look in looks:
        assert look.unnamed_share <= 0.05, [(g.path, g.global_bytes, g.origin) for g in look.groups]
    names = {g.path for g in looks[-1].groups}
    for root in TRAINING[program]:
        assert any(n and root in n for n in names), names
    assert not any("<closure>" in n or "._" in n for n in names if n), names


def test_nothing_is_kept_alive_and_nothing_is_fetched(record):
    done = record(
        """
        import gc, sys, weakref, jax, jax.numpy as jnp, jaxscope
        from jax._src.array import ArrayImpl
        fetched = []
        real = ArrayImpl._value
        ArrayImpl._value = property(lambda self: (fetched.append(1), real.fget(self))[1])
        def main():
            state = {"w": jnp.ones((8, 8))}
            gc.disable()
            ref = weakref.ref(state["w"])
            before = sys.getrefcount(state["w"])
            jaxscope.snapshot()
            after = sys.getrefcount(state["w"])
            state["w"] = None
            print(ref() is None, before == after, len(fetched))
        main()
        def once():
            x = jnp.ones(3); ref = weakref.ref(x)
            for _ in range(3): jaxscope.step()
            x = None
            print(ref() is None)
        once()
        """
    )
    assert done.out.splitlines() == ["True True 0", "True"]
    assert len(done.of(ev.ArraysSeen)) >= 2


def test_variables_a_program_took_as_a_dict_are_left_alone(record, tmp_path, clean_env):
    """Before Python 3.13 a frame has one dict for all who ask: reading it would change what they hold."""
    program = tmp_path / "taken.py"
    program.write_text(
        textwrap.dedent(
            """
        import jax.numpy as jnp, jaxscope
        def main(x):
            config = locals()
            y = jnp.ones(3)
            exec("made = 5")
            jaxscope.snapshot()
            print(sorted(config), len(config))
        main(jnp.ones(2))
        def evaluated(model):
            y = jnp.ones(5)
            vars(model)
            jaxscope.snapshot()
        class Model: pass
        evaluated(Model())
        """
        )
    )
    bare = subprocess.run([sys.executable, str(program)], env=clean_env, capture_output=True, text=True)
    done = record(program)
    assert done.out == bare.stdout and done.out.startswith("[")
    second = [e for e in done.of(ev.ArraysSeen) if e.why == "asked"][1]
    assert [g.path for g in second.groups if g.shape == (5,)] == ["y"]


def test_no_backend_is_started_by_looking(record):
    done = record(
        "import jax, jaxscope\njaxscope.snapshot()\njaxscope.step()\nprint(len(jax._src.xla_bridge._backends))"
    )
    assert done.out.strip() == "0"
    assert {e.count for e in done.of(ev.ArraysSeen)} == {0}


def test_arrays_are_not_looked_at_where_that_was_not_wanted(record):
    done = record(
        "import jax.numpy as jnp, jaxscope\nx = jnp.ones(3)\njaxscope.snapshot()\njaxscope.step()",
        arrays=False,
    )
    assert done.of(ev.ArraysSeen) == []


def test_a_program_that_dies_for_want_of_memory_tells_what_was_alive(record):
    done = record(
        """
        import jax, jax.numpy as jnp
        def main():
            state = {"w": jnp.ones((16, 16))}
            grow(state)
        def grow(state):
            more = jnp.ones(3)
            return jnp.ones(1 << 46)
        main()
        """,
        check=False,
    )
    assert done.code == 1
    [last] = [e for e in done.of(ev.ArraysSeen) if e.why == "exhausted"]
    assert (
        last.error.startswith("RESOURCE_EXHAUSTED") and last.site.function == "grow" and last.site.line == 8
    )
    assert {"state['w']", "more"} <= {g.path for g in last.groups}


def test_ten_thousand_arrays_are_a_small_event_of_the_users_names(record):
    done = record(
        """
        import jax, jax.numpy as jnp, numpy as np, jaxscope
        def main():
            make = jax.jit(lambda: [jnp.zeros(2) for _ in range(100)])
            blocks = {f"block{i:03d}": {"w": make(), "meta": list(range(3000))} for i in range(100)}
            jaxscope.snapshot()
            tree = {f"k{i}": v for i, v in enumerate(v for b in blocks.values() for v in b["w"])}
            del blocks
            jaxscope.snapshot()
        main()
        """
    )
    first, second = [e for e in done.of(ev.ArraysSeen) if e.why == "asked"]
    assert first.count >= 10_000 and sum(g.count for g in first.groups if g.path) >= 10_000
    assert {g.path for g in first.groups} >= {f"blocks['block{i:03d}']['w'][*]" for i in range(100)}
    assert [g.count for g in second.groups if g.path == "tree['k*']"] == [10_000]
    logs = [line for log in done.run.logs() for line in log.read_bytes().splitlines()]
    assert max(len(line) for line in logs if b"ArraysSeen" in line) < 64_000


TWO_HOSTS = """
import sys, jax
jax.distributed.initialize(f"localhost:{sys.argv[1]}", 2, int(sys.argv[2]))
import numpy as np, jaxscope
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))
with jaxscope.record(sys.argv[3]):
    x = jax.make_array_from_callback(
        (8, 4), NamedSharding(mesh, P("data", "model")), lambda part: np.ones((8, 4), "float32")[part])
    jaxscope.snapshot()
"""


def test_of_a_mesh_over_two_processes_each_claims_its_own_devices(tmp_path, clean_env):
    (tmp_path / "host.py").write_text(TWO_HOSTS)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    env = {**clean_env, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    both = [
        subprocess.Popen(
            [sys.executable, "host.py", port, str(n), f"run{n}"],
            cwd=tmp_path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for n in (0, 1)
    ]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    mine = []
    for n in (0, 1):
        [look] = [s for s in arrays.of_main(load(RunDir(tmp_path / f"run{n}"))) if s.why == "asked"]
        x = only(look, "x")
        assert (x.global_bytes, x.device_bytes, x.replication) == (128, 32, 1)
        assert len(sharding.device_ids(x.sharding.devices)) == 4
        assert list(look.by_device.values()) == [32, 32] and look.bytes == 64
        mine.append(set(look.by_device))
    assert not mine[0] & mine[1]


def test_the_token_of_an_ordered_effect_has_no_size_and_takes_nothing_from_the_others(record):
    done = record(
        """
        import jax, jax.numpy as jnp, numpy as np, jaxscope
        from jax.experimental import io_callback

        @jax.jit
        def asks(x):
            return io_callback(lambda a: np.asarray(a) + 1, jax.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=True)

        x = asks(jnp.ones((8, 8)))
        jaxscope.snapshot()
        """
    )
    assert "array_bytes" not in {d.seam for d in load(done.run).degraded}
    look = next(s for s in arrays.snapshots(load(done.run)) if s.why == "asked")
    assert "x" in {g.path for g in look.groups}


COLLECTED = """
import gc, sys, threading
from jaxscope.capture.live_arrays import variable_paths

stop = threading.Event()
def deep(n): return stop.wait() if n == 0 else deep(n - 1)
for _ in range(8): threading.Thread(target=deep, args=(5,), daemon=True).start()

class Own(threading.local): pass
class Node: pass
def garbage():
    node = Node(); node.me = node; node.own = Own(); node.own.x = 1

for ahead in range(1, 120):  # the collector sets in so many objects later: once in the midst of the look
    gc.disable(); gc.collect()
    for _ in range(3): garbage()
    gc.set_threshold(gc.get_count()[0] + ahead)
    gc.enable()
    variable_paths.stacks(sys._getframe())
print("through", gc.isenabled())
stop.set()
"""


@pytest.mark.subprocess
def test_a_look_is_no_deadlock_where_the_collector_frees_a_thread_local_in_its_midst():
    done = subprocess.run([sys.executable, "-c", COLLECTED], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["through", "True"], done.stderr


COUNTED = [
    "one_buffer", "placements", "sharded", "donation", "host_copies", "pmap_and_shard_map", "captured",
    "effects", "optax_train", "haiku_train",
]  # fmt: skip
SLOW = ["equinox_train", "nnx_train", "three_causes", "many_kinds", "let_go", "numpyro_nuts"]


def test_what_is_reported_of_each_device_is_what_jaxs_live_arrays_take_there(record):
    """Each buffer once, at every look of many programs; arrays with a name all stand there."""
    slow = os.environ.get("JAXSCOPE_TEST_SLOW") == "1"
    programs = [str(PROGRAMS / f"{name}.py") for name in COUNTED + (SLOW if slow else [])]
    samples = sorted(map(str, (TESTS.parent / "samples").glob("*.py"))) if slow else []
    run = record(PROGRAMS / "counted_by_hand.py", *programs, *samples, env=EIGHT)
    *differ, said = run.out.splitlines()
    assert differ == [] and said.startswith("looks: "), run.out
    looks = arrays.snapshots(load(run.run))
    shared = [_shared(look) for look in looks if look.why == "asked"]
    assert shared[0]["parts[*]"] == (8, 8) and shared[0]["whole"] == (1, 0)
    assert shared[1]["of_first"] == (1, 0) and shared[1]["outlived"] == (1, 0)
    assert shared[2]["alone"] == (1, 1) and shared[2]["copied"] == (1, 0)
    assert {shared[2]["whole"], shared[2]["clone"]} == {(1, 0), (1, 1)}
    assert shared[5]["kept[*]"] == (10, 0)
    assert {p: shared[6][f"state['{p}']"] for p in "abc"} == dict.fromkeys("abc", (1, 0))


PENDING = """
import jax, jax.numpy as jnp, jaxscope

@jax.jit
def f(x):
    for _ in range(8):
        x = jnp.tanh(x @ x)
    return x

x = jnp.ones((800, 800))
jax.block_until_ready(f(x) + 1)
for _ in range(3):
    y = f(f(f(f(x))))
    z = y + 1  # has no memory before y is computed
    jaxscope.snapshot()
    print(y.is_ready())
"""


def test_a_look_does_not_wait_for_what_is_being_computed(record):
    assert "False" in record(PENDING).out.split()


def _shared(look):
    """By path: how many arrays, and how many of them lie in the memory of others."""
    found = {}
    for g in look.groups:
        count, shared = found.get(g.path, (0, 0))
        found[g.path] = count + g.count, shared + g.shared
    return found


def test_without_addresses_the_parts_that_jax_keeps_of_arrays_on_several_devices_are_still_known(record):
    run = record(PROGRAMS / "placements.py", env={**EIGHT, "JAXSCOPE_FAULTS": "array_buffers"}, check=False)
    before, after = [s for s in arrays.snapshots(load(run.run)) if s.why == "asked"]
    # Of arrays on one device, here 0 or 5, they are counted twice: nothing says whose they are.
    assert {**after.by_device, 0: 0, 5: 0} == {**before.by_device, 0: 0, 5: 0}
    assert {g.path for g in after.groups} >= {g.path for g in before.groups}
    assert [e.seam for e in run.of(ev.Degraded)] == ["array_buffers"]
