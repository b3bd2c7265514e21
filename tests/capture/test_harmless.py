"""Do no harm: the program's output, its memory and its warm calls are as without us."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from folders import PROGRAMS
from package_code import nodes

from jaxscope.capture import warm
from jaxscope.schema import events as ev

pytestmark = pytest.mark.capture


def parts_that_can_fail() -> list[str]:
    """Every name that capture guards: the first argument of ``attempt`` and ``_guarded``."""
    names = set()
    for _, node in nodes(ast.Call, under="capture/"):
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called in ("attempt", "_guarded") and node.args and isinstance(node.args[0], ast.Constant):
            names.add(node.args[0].value)
    return sorted(names)


FAULTY = """
import jax, jax.numpy as jnp, numpy as np
table = jnp.arange(4.)
@jax.jit
def f(x): return x * table
@jax.jit
def printing(x):
    jax.debug.print("x is {}", x[0]); return x + 1
print(f(np.ones(4, 'f4')), f(np.ones((2, 4), 'f4')).shape)
for _ in range(6): y = printing(f(jnp.ones(4)))
jax.block_until_ready(y); jax.effects_barrier()
print(jax.grad(lambda x: f(x).sum())(jnp.ones(4)))
print(jax.jit(lambda x: x - 1).lower(jnp.ones(3)).compile()(jnp.ones(3)))
def broken(x): raise ValueError("the user's own error")
jax.jit(broken)(1.0)
"""


def bare_run(program: Path, env: dict) -> tuple[int, str, str]:
    """Exit code, stdout, and stderr from the program's own frame on, without us."""
    done = subprocess.run([sys.executable, str(program)], env=env, capture_output=True, text=True)
    return done.returncode, done.stdout, traceback_of(done.stderr, program)


def traceback_of(stderr: str, program: Path) -> str:
    """runpy's own frames stand above the script's: they are left out."""
    mark = f'File "{program}"'
    return stderr[stderr.index(mark) :] if mark in stderr else stderr


@pytest.mark.costly
def test_a_fault_in_any_part_changes_nothing_and_is_reported_once(record, tmp_path, clean_env):
    names = parts_that_can_fail()
    assert len(names) > 20, names
    program = tmp_path / "faulty.py"
    program.write_text(FAULTY)
    expected = bare_run(program, clean_env)
    assert expected[0] == 1 and "the user's own error" in expected[2] and "x is" in expected[1]
    # All at once, then some apart from those before them, which may have hidden them.
    for fault in (
        ",".join(names),
        "phase_durations",
        "miss_event,hlo",
        "trace_event,executable",
        "signature,memory",
        "function",
    ):
        run = record(program, check=False, env={"JAXSCOPE_FAULTS": fault})
        assert (run.code, run.out, traceback_of(run.err, program)) == expected, fault
        said = [e.seam for e in run.of(ev.Degraded)]
        assert said and len(said) == len(set(said)) and set(said) <= set(fault.split(",")), fault
        assert fault == ",".join(names) or set(said) == set(fault.split(",")), fault


def test_the_traceback_of_the_users_error_is_the_same_with_and_without_us(record, clean_env):
    program = PROGRAMS / "crash_in_step.py"
    run = record(program, check=False)
    assert (run.code, run.out, traceback_of(run.err, program)) == bare_run(program, clean_env)
    assert run.code == 1


@pytest.mark.parametrize("pure", ["", "1"], ids=["in C", "in Python"])
def test_no_callback_runs_on_a_warm_call_and_repeated_misses_are_only_counted(record, pure):
    run = record(
        """
        import jax, jax.numpy as jnp, numpy as np
        from jaxscope.capture import session
        probe = session.current().probe
        tree = {f"l{i}": jnp.ones(4) for i in range(100)}
        one = jax.jit(lambda x: x + 1)
        many = jax.jit(lambda t: jax.tree.map(lambda v: v * 2, t))
        @jax.jit
        def noisy(x):
            jax.debug.callback(lambda v: None, x); return x * 2
        for _ in range(5): one(jnp.ones(3)); one(np.ones(3, 'f4')); many(tree); noisy(tree["l0"])
        x = jnp.ones(3); n = np.ones(3, 'f4')
        noisy(tree["l0"])  # ends what jnp.ones began
        before = probe.callbacks, probe._writer._seq
        passed_on, received = [], probe.received
        probe.received = lambda name, *rest: (passed_on.append(name), received(name, *rest))
        for _ in range(500): one(x); one(n); many(tree)
        print("warm:", probe.callbacks - before[0], probe._writer._seq - before[1])
        for _ in range(400): noisy(tree["l0"])
        jax.effects_barrier()
        print("noisy:", probe.callbacks - before[0] >= 400, probe._writer._seq - before[1] <= 20)
        print("events passed on:", passed_on)
        """,
        env={warm.PURE: pure},
    )
    assert run.out.split("\n")[:3] == ["warm: 0 0", "noisy: True True", "events passed on: []"]
    counted = run.of(ev.MissesCounted)[-1].count
    assert len(run.misses("noisy")) + counted == 406


KEPT_ALIVE = """
import gc, sys, weakref
import jax, jax.numpy as jnp, numpy as np
gc.disable()  # by reference count alone
class State:
    def __init__(self): self.w = jnp.ones(64); self.n = np.ones(64)
def scope():
    # every reader: signature, captured constants, donation, argument fates, grad, pmap, ahead of time
    table = jnp.arange(64.)
    state = {"w": jnp.ones(64), "deep": [jnp.ones((64, 2)), State().w]}
    batch = np.ones(64, "f4")
    f = jax.jit(lambda s, b: jax.tree.map(lambda v: v * 2, s["w"] * b * table), donate_argnums=())
    refs = [weakref.ref(v) for v in (table, state["w"], *state["deep"])]
    f(state, batch)
    g = jax.jit(lambda s: s * 3, donate_argnums=0)
    given = jnp.ones(64); refs.append(weakref.ref(given)); given = g(given); refs.append(weakref.ref(given))
    x = jnp.ones(64); refs.append(weakref.ref(x))
    jax.grad(lambda v: f({"w": v}, batch).sum())(x)
    lowered = f.lower({"w": x}, batch); lowered.compile()
    jax.pmap(lambda v: v + 1)(x[None])
    try: jax.jit(lambda v: 1 / 0)(x)
    except ZeroDivisionError: pass
    x = None; state = None; given = None
    alive_inside = [i for i, r in enumerate(refs) if r() is not None and i != 0]
    return refs, alive_inside
refs, alive_inside = scope()
jax.clear_caches()
baseline = sum(r() is not None for r in refs)
print("inside", alive_inside, "after", [i for i, r in enumerate(refs) if r() is not None])
"""


def test_no_array_is_kept_alive_by_any_reader(record):
    """As without a recording: none is. Reading ``f_locals`` before Python 3.13 would keep some."""
    assert record(KEPT_ALIVE).out == "inside [] after []\n"


def test_the_test_event_slot_is_chained_and_given_back(record):
    run = record(
        """
        import jax, jax.numpy as jnp
        from jax._src import util
        import jaxscope
        from jaxscope.capture import session
        session.stop()
        heard = []
        mine = lambda name, *args: heard.append(name)
        util.test_event_listener = mine
        with jaxscope.record("second"):
            assert util.test_event_listener is not mine
            jax.jit(lambda x: x + 1)(jnp.ones(3))
        print("jit_cpp_cache_miss" in heard, util.test_event_listener is mine)
        print(len(jax._src.monitoring.get_event_duration_listeners()), len(jax._src.monitoring.get_event_listeners()))
        """
    )
    assert run.out.split() == ["True", "True", "0", "0"]


def test_the_listeners_come_back_after_the_program_clears_them(record):
    run = record(PROGRAMS / "clear_listeners.py")
    after = run.misses("after")
    assert run.for_calls(ev.Compiled, after) and run.for_calls(ev.Traced, after)
    assert [e.seam for e in run.of(ev.Degraded)] == ["listeners"]


@pytest.mark.subprocess
@pytest.mark.parametrize("module", ["jaxscope", "jaxscope.api", "jaxscope.recording"])
def test_importing_jaxscope_imports_neither_jax_nor_a_terminal_library(module):
    code = f"import {module}, sys; print([m for m in ('jax', 'textual', 'rich', 'networkx') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
