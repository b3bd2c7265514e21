"""A trace inside another trace: JAX announces its beginning and never its end."""

import signal
import subprocess
import sys
import weakref

import pytest

from jaxscope.capture.calls.nested_traces import Endings
from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.schema import events as ev

pytestmark = pytest.mark.capture

PROGRAM = """
import jax, jax.numpy as jnp
@jax.jit
def good(x): return x * 2
@jax.jit
def bad(x): raise ValueError("bad shape")
@jax.jit
def deep(x): return bad(good(x))
@jax.jit
def outer(x): return deep(x) + 1
@jax.jit
def careful(x):
    try: return bad(x)
    except ValueError as e: return good(x + 1.0)
kept = []
@jax.jit
def keeps(x):
    try: return bad(x)
    except ValueError as e: kept.append(e)
    return good(jnp.concatenate([x, x]))
x = jnp.ones(3)
try: outer(x)
except ValueError as e: print(e)
print(careful(x), keeps(x))
print(jax.grad(lambda v: good(v).sum())(jnp.ones(5)))
try: jax.grad(bad)(1.0)
except ValueError as e: print(e)
"""


def test_a_nested_trace_that_raised_differs_from_one_that_returned(record):
    run = record(PROGRAM)
    assert run.out.count("bad shape") == 2

    def ends(name):
        calls = run.misses(name)
        failed = run.for_calls(ev.PhaseFailed, calls)
        assert {e.phase for e in failed} <= {"trace"}
        traced = run.for_calls(ev.Traced, calls)
        assert len({e.call for e in traced + failed}) == len(traced) + len(failed), "each has one end"
        return len(traced), len(failed)

    assert ends("good") == (3, 0) and ends("bad") == (0, 4)
    assert ends("deep") == (0, 1) and ends("outer") == (0, 1)
    assert ends("careful") == (1, 0) and ends("keeps") == (1, 0)
    order = [(type(e).__name__, e.call) for e in run.events if isinstance(e, (ev.Traced, ev.PhaseFailed))]
    (outer,) = run.misses("outer")
    (deep,) = run.misses("deep")
    assert order.index(("PhaseFailed", deep.call)) < order.index(("PhaseFailed", outer.call))


def test_what_is_being_traced_inside_a_trace_is_seen_while_it_runs(tmp_path, clean_env):
    program = tmp_path / "slow.py"
    program.write_text(
        """
import sys, time, jaxscope, jax
jaxscope.record(sys.argv[1]).start()
@jax.jit
def done(x): return x
@jax.jit
def slow(x):
    print("now", flush=True)
    time.sleep(600)
@jax.jit
def outer(x): return slow(done(x))
outer(1.0)
"""
    )
    child = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path / "run")], env=clean_env, stdout=subprocess.PIPE
    )
    assert child.stdout.readline() == b"now\n"
    child.send_signal(signal.SIGKILL)
    child.wait(30)
    child.stdout.close()
    run = load(store.RunDir(tmp_path / "run"))
    assert [(p.compilation.function.name, p.phase) for p in run.in_progress()] == [
        ("outer", "trace"),
        ("slow", "trace"),
    ]


class Held:
    pass


def test_how_a_frame_was_left_is_known_without_keeping_it():
    endings = Endings()

    def work(how):
        held = Held()
        watched.append((endings.watch(sys._getframe(), held), weakref.ref(held)))
        if how == "raise":
            raise ValueError
        if how == "look":
            assert endings.returned(watched[-1][0]) is None, "it runs"

    def caller(how):
        work(how)
        return endings.returned(watched[-1][0])

    watched = []
    assert caller("return") is True and caller("look") is True
    try:
        caller("raise")
    except ValueError:
        assert endings.returned(watched[-1][0]) is None, "its traceback holds the frame"
    assert endings.returned(watched[-1][0]) is False
    assert [ref() for _, ref in watched] == [None] * 3
    assert endings.watch(sys._getframe(), ()) is None, "takes no weak reference"


EVALUATED = """
import jax, jax.numpy as jnp
@jax.jit
def solved(x):
    with jax.ensure_compile_time_eval():
        inverse = jnp.linalg.inv(jnp.eye(4) * 3.0)
    return x @ inverse
print(solved(jnp.ones((2, 4))))
"""


def test_the_seconds_of_all_functions_add_up_where_operations_are_compiled_inside_a_trace(record):
    run = load(record(EVALUATED).run)
    [solved] = [f for f in run.functions.values() if f.name == "solved"]
    within = [c for c in run.compilations.values() if c.reached_phases & 4 and c.missed.inside is not None]
    assert within, "operations are compiled while solved is traced"
    assert sum(f.seconds for f in run.functions.values()) == pytest.approx(run.compiling_seconds, rel=0.02)
    [(_, _, whole), *_] = solved.compilations[0].ended_phases()
    assert whole > solved.trace_seconds + 0.5 * sum(c.seconds for c in within)
