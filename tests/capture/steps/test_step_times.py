"""When steps ended, and what copies of their thread took: in real programs that measure themselves."""

import json

import pytest

from jaxscope.model import step_time, transfers
from jaxscope.model.load import load

pytestmark = pytest.mark.capture

SLEEP, STEPS = 0.01, 40
PROGRAM = f"""\
import json, threading, time
import jax, jax.numpy as jnp, numpy as np, jaxscope

@jax.jit
def train_step(w, x):
    return w + 1e-6 * (x @ x @ x).sum()

def elsewhere(stop):
    while not stop.wait(0.002):
        jax.device_put(np.ones(250_000))

w, x, stop = jnp.ones(()), np.ones((500, 500), "float32"), threading.Event()
WATCHED
thread = threading.Thread(target=elsewhere, args=(stop,))
thread.start()
clock, ends, waits, copies = time.perf_counter, [0.0], [], []
for _ in range({STEPS}):
    time.sleep({SLEEP})
    began = clock()
    batch = jax.device_put(x)
    put = clock()
    w = train_step(w, batch)
    called = clock()
    float(w)
    waits.append(clock() - called); copies.append(put - began)
    MARKED
    ends.append(clock())
stop.set()
thread.join()
print(json.dumps([ends, waits, copies]))
"""
MARKS = PROGRAM.replace("WATCHED", "").replace("MARKED", "jaxscope.step()")
CALLS = PROGRAM.replace("WATCHED", "train_step = jaxscope.watch(step=True)(train_step)").replace("MARKED", "")
PUT, PUT_ELSEWHERE, READ = (
    PROGRAM.splitlines().index(line) + 1
    for line in ("    batch = jax.device_put(x)", "        jax.device_put(np.ones(250_000))", "    float(w)")
)


@pytest.mark.parametrize("program", [MARKS, CALLS], ids=["marks", "calls"])
def test_the_parts_of_a_step_are_within_what_the_program_measured_itself(program, record_module):
    done = record_module(program)
    run = load(done.run)
    found = step_time.step_seconds(run)
    ends, waits, copies = json.loads(done.out)
    counted = slice(found.first - 1, found.last)
    # A step that begins with a call ends with the copy before the next call.
    copied = slice(counted.start + (program is CALLS), counted.stop + (program is CALLS))
    assert not found.compiling and 20 <= found.steps == found.last - found.first + 1 <= STEPS
    spent = {(s.cause, s.line.line, s.text): s.seconds for s in found.spent}
    assert spent.keys() == {("wait", READ, "float(w)"), ("copy", PUT, "jax.device_put(x)")}
    theirs = {"wait": sum(waits[counted]) / found.steps, "copy": sum(copies[copied]) / found.steps}
    for (cause, *_), own in spent.items():
        assert 0 < own <= theirs[cause]
        assert cause == "copy" or own > theirs[cause] / 2
    if program is MARKS:
        theirs = (ends[found.last] - ends[found.first - 1]) / found.steps
        assert found.seconds == pytest.approx(theirs, rel=0.05)
    assert found.rest >= SLEEP
    assert found.rest + sum(spent.values()) == pytest.approx(found.seconds)
    assert found.device_waits is None  # no profile


def test_copies_of_another_thread_are_no_part_of_a_step(record_module):
    run = load(record_module(MARKS).run)
    lines = {t.source.line: t for t in transfers.transfers(run) if t.source is not None}
    assert lines[PUT_ELSEWHERE].blocked_seconds > 0
    [counted] = {e.step_seconds for e in run.main.transfers.values() if e.site.line == PUT_ELSEWHERE}
    assert counted == 0


@pytest.mark.parametrize("program", [MARKS, CALLS], ids=["marks", "calls"])
def test_few_times_are_written(program, record_module):
    run = load(record_module(program).run)
    steps = [t.event.step for t in run.main.step_times]
    assert steps == [n for n in (0, 1, 2, 3, 4, 6, 8, 11, 14, 18, 23, 29, 37) if n or program is CALLS]
    assert {t.event.marked for t in run.main.step_times} == {program is MARKS}


def test_steps_that_are_not_counted_have_no_time(record):
    program = MARKS.replace("jaxscope.step()", "").replace(f"range({STEPS})", "range(6)")
    assert step_time.step_seconds(load(record(program).run)) is None
