"""A program that uses the real JAX, recorded through ``jaxscope run`` from beginning to end."""

import json
import sys

import pytest

pytestmark = pytest.mark.capture

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
