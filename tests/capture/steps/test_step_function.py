"""Every call of --step-function is counted, whatever JAX does with the hook that counts them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jaxscope.log.store import RunDir
from jaxscope.model.load import load

pytestmark = pytest.mark.capture

# Each of these makes JAX put its own hook in the place of whatever is there, in this thread or for all.
PROGRAM = """
import threading
import jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P

@jax.jit
def train(p, x):
    return p - 0.1 * jax.grad(lambda p: jax.nn.relu(x @ p).sum())(p)

p, x = jnp.ones((3, 3)), jnp.ones((2, 3))

def calls(n):
    for _ in range(n):
        train(p, x)

calls(10)
with jax.debug_nans(False):
    calls(10)
with jax.debug_infs(True):
    calls(10)
    try:
        jnp.log(jnp.zeros(3)).block_until_ready()
        print("no check")
    except FloatingPointError:
        print("checked")
calls(10)
jax.config.update("jax_debug_infs", True)
calls(10)
jax.config.update("jax_debug_infs", False)
calls(10)
mesh = jax.sharding.Mesh(jax.devices()[:1], ("a",))
for _ in range(2):
    jax.shard_map(lambda x: x + 1, mesh=mesh, in_specs=P("a"), out_specs=P("a"))(x)
    calls(5)
thread = threading.Thread(target=calls, args=(10,))
thread.start()
thread.join()
train(p, jnp.ones((5, 3)))
print(jnp.log(jnp.zeros(3))[0])
"""


def test_no_call_is_lost_where_jax_changes_its_hook(tmp_path, clean_env):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [
        "-m",
        "jaxscope",
        "run",
        "--no-tui",
        "-q",
        "--step-function",
        "train",
        "-o",
        "run",
        "program.py",
    ]
    done = python(command, tmp_path, clean_env)
    said = done.stdout.split()  # and what JAX says of the check
    assert "checked" in said and said[-1] == "-inf", "the checks that were asked for are made, and no others"
    run = load(RunDir(tmp_path / "run"))
    [train] = [f for f in run.functions.values() if f.name == "train"]
    assert sum(train.counted_calls.values()) == 81
    assert train.compilations[-1].step == 81, "what the gate goes by"


def python(words, folder, env):
    done = subprocess.run(
        [sys.executable, *words], env=env, cwd=folder, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done


LATE = """
import jax, jax.numpy as jnp
from jax._src import api, config
from jaxscope import jax_internals

def state():
    flags = [(f._update_global_hook, f._update_thread_local_hook) for f in (config.debug_nans, config.debug_infs)]
    return api._post_hook_state.get_global(), api._post_hook_state.get_local(), flags

train = jax.jit(lambda x: x + 1)
x = jnp.ones(3)
train(x)
with jax.debug_nans(False):
    pass  # from here on this thread has a hook of its own: none
was, counted = state(), []
undo = jax_internals.on_fast_path(counted.append)
for _ in range(7):
    train(x)
undo()
assert state() == was, (state(), was)
train(x)
assert len(counted) == 7, len(counted)
"""


def test_who_begins_to_count_late_misses_none_and_leaves_jax_as_it_was(tmp_path, clean_env):
    python(["-c", LATE], tmp_path, clean_env)
