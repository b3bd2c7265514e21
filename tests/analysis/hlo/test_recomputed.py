"""Forward passes that jax.checkpoint computes again, in programs that the JAX at hand compiles."""

import pytest

from jaxscope.analysis.hlo.program import analyze

CODE = """
def layer(w, x):
    return jnp.tanh(x @ w)

def loss(ws, x, layer=layer):
    for w in ws:
        x = layer(w, x)
    return (x**2).mean()

def in_a_scan(ws, xs):
    return jax.lax.scan(lambda sum, x: (sum + jax.checkpoint(loss)(ws, x), None), 0.0, xs)[0]

def saved(ws, x):
    return jax.checkpoint(loss, policy=jax.checkpoint_policies.dots_saveable)(ws, x)

ws, x = [jnp.ones((64, 64)) for _ in range(3)], jnp.ones((256, 64))
for name, f, x in [
    ("plain", loss, x),
    ("whole", jax.checkpoint(loss), x),
    ("saved", saved, x),
    ("in_a_scan", in_a_scan, jnp.ones((4, 256, 64))),
]:
    TEXTS[name] = jax.jit(jax.value_and_grad(f)).lower(ws, x).compile().as_text()
"""
FORWARD = 3 * 2 * 256 * 64 * 64  # flops of three products of [256,64] and [64,64]


@pytest.mark.capture
@pytest.mark.subprocess
def test_a_checkpoint_of_the_whole_loss_computes_its_products_again(lower):
    found = lower(CODE)
    whole = analyze(found.texts["whole"]).recomputed
    assert (whole.flops, whole.forward_flops) == (FORWARD, FORWARD)
    # the gradient has two products for each one of the forward pass, but none for the first argument
    assert whole.all_flops == 2 * FORWARD + 2 * FORWARD - FORWARD // 3
    for name in ("plain", "saved", "in_a_scan"):
        assert analyze(found.texts[name]).recomputed is None, name
