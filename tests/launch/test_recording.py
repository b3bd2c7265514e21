"""A program that uses the real JAX, recorded through ``jaxscope run`` from beginning to end."""

import io
import json
import sys

import pytest

from jaxscope.model.load import load
from jaxscope.report import text

pytestmark = [pytest.mark.capture, pytest.mark.costly]

TRAIN = """
import json, sys
import jax, jax.numpy as jnp

@jax.jit
def step(x):
    return x * 2

for n in (3, 3, 4):
    step(jnp.ones(n))
finders = [getattr(f, "__name__", type(f).__name__) for f in sys.meta_path]
print(json.dumps([sorted(sys.modules), finders, [str(h) for h in jax.jit(step).__class__.__mro__]]))
"""


def test_it_is_recorded_and_nothing_else_is_different(place):
    program = place.program("train.py", TRAIN)
    plain, ours = place.run(program, plain=True), place.run(program)
    assert plain.returncode == ours.returncode == 0, ours.stderr
    (modules, finders, mro), (our_modules, our_finders, our_mro) = (
        json.loads(plain.stdout),
        json.loads(ours.stdout),
    )
    assert (our_finders, our_mro) == (finders, mro)
    added = {name.partition(".")[0] for name in set(our_modules) - set(modules)}
    # typing_extensions: msgspec imports it where it is installed.
    assert added - set(sys.stdlib_module_names) <= {"jaxscope", "msgspec", "typing_extensions", "zstandard"}
    assert "step" in ours.stderr
    assert f"jaxscope report {place.latest.path.name}" in ours.stderr
    (started,) = place.events("RunStarted")
    (ended,) = place.events("ProgramExited")
    assert started.pid == ended.program_pid
    assert len(place.events("RunEnded")) == 1
    assert len(place.events("Compiled")) >= 2


def test_live_says_why_it_recompiled(place):
    ours = place.run("-q", "--live", place.program("train.py", TRAIN))
    assert "step" in ours.stderr
    assert "f32[3]" in ours.stderr
    assert "f32[4]" in ours.stderr


EXHAUSTED = """
import jax, jax.numpy as jnp
@jax.jit
def grow(x):
    return jnp.zeros(1 << 46) + x
def main():
    state = {"w": jnp.ones((16, 16))}
    grow(state["w"][0, 0]).block_until_ready()
main()
"""


def test_a_program_that_dies_for_want_of_memory_says_first_what_was_alive(place):
    """JAX lets go of its arrays at exit, before the recording ends: they are looked at before that."""
    ours = place.run("-q", place.program("grow.py", EXHAUSTED))
    assert ours.returncode == 1 and "RESOURCE_EXHAUSTED" in ours.stderr
    [last] = [e for e in place.events("ArraysSeen") if e.why in ("exit", "exhausted")]
    assert last.why == "exhausted" and "state['w']" in {g.path for g in last.groups}
    page = io.StringIO()
    text.print_report(load(place.latest), file=page)
    lines = [line.strip() for line in page.getvalue().splitlines()]
    at = next(n for n, line in enumerate(lines) if line.startswith("Out of memory"))
    body = " ".join(lines[at:])
    assert at < 7 and "needs on each device" in body.split("Live arrays at that time:")[0]
    assert "state['w']" in body.split("Live arrays at that time:")[1]


def test_at_the_end_of_a_program_its_arrays_are_still_there(place):
    ours = place.run(
        "-q", place.program("kept.py", "import jax.numpy as jnp\nkept = [jnp.ones(3), jnp.ones(4)]\n")
    )
    assert ours.returncode == 0
    [last] = place.events("ArraysSeen")
    assert (last.why, last.addressable) == ("exit", "0") and {g.path for g in last.groups} == {"kept[*]"}
