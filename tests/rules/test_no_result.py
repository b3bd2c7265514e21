"""JX203: a program of which nothing leaves; JX110 is silent where another function object is not all that changed."""

import pytest

from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry

pytestmark = [pytest.mark.capture, pytest.mark.costly]
PROGRAM = """
import functools, jax, jax.numpy as jnp

@jax.jit
def lost(state, x):
    state["w"] = state["w"] + x

@jax.jit
def shown(x):
    jax.debug.callback(lambda v: None, x + 1)

@jax.jit
def empty(x):
    pass

@jax.jit
def checked(x):
    y = x + 1
    return y if x.ndim else None

def make(n):
    @functools.partial(jax.jit, static_argnames="n")
    def step(x, n): return x * n
    return step

def initial(n):
    @jax.jit
    def parameters(x): return {"w": jnp.zeros((x.size, n))}
    return parameters

class Net:
    def jitted(self):
        if not hasattr(self, "win"):
            def win(x):
                return x + 1
            self.win = jax.jit(win)
        return self.win

    def winner(self, x):
        return self.jitted()(x)

x = jnp.ones(3)
for _ in range(3):
    net = Net()
    net.winner(x), net.winner(x)
initial(4)(x), initial(1)(x)  # the same code for two networks, whose parameters have other shapes
for n in 2, 3, 4:
    make(n)(x, n)        # other static values, too
for _ in range(3):
    make(0)(x, 5)        # the same call of a new object
lost({"w": x}, x), shown(x), empty(x), checked(x), checked(x[0])
"""


def test_a_program_without_a_result_is_found_and_a_new_object_where_it_is_all_that_changed(record):
    run = load(record(PROGRAM).run)
    found = {f.code: f for f in registry.findings(run) if f.code in ("JX203", "JX110")}
    assert (
        words.title(found["JX203"]) == "lost returns no array and has no effect: XLA removes its 1 operation"
    )
    assert [f.code for f in registry.findings(run)].count("JX203") == 1
    objects = [f for f in registry.findings(run) if f.code == "JX110"]
    # the two networks have other parameters, which need programs of their own; make is called for each call
    made, of_net = objects
    assert len(made.evidence) == 5 and words.title(made).startswith("make.step recompiled 5 times")
    advice = words.fix_text(made)
    assert "Call make only once for each set of arguments" in advice
    assert "n also changed its value in 3 of the recompiles" in advice  # of the other two, the object alone
    assert "because Net.jitted defined it again" in words.title(of_net)
    assert "Net.jitted defines the function again for each Net object" in words.fix_text(of_net)
