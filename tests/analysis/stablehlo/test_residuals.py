"""The values that a scan keeps for the gradient, in programs lowered by the JAX at hand."""

import pytest

from jaxscope.analysis.stablehlo.reading import analyze

CODE = """
def body(w, h, _):
    a, b = jnp.tanh(h * w), jnp.sin(h - w)
    c = a * jnp.exp(-b) + jnp.cos(a * b)
    return h + jnp.tanh(c * jnp.sin(c)) * b, None

def loss(kept, w, x):
    one = partial(body, w)
    return jax.lax.scan(kept(one), x, None, 20)[0].mean()  # scan

w, x = jnp.ones(8), jnp.ones((4, 8))
save("kept", jax.jit(jax.grad(partial(loss, lambda f: f))), w, x)
save("checkpointed", jax.jit(jax.grad(partial(loss, jax.checkpoint))), w, x)
def carried(w, x, n):
    return jax.lax.scan(lambda h, _: (h + 0.1 * jnp.sin(h * w), None), x, None, n)[0].mean()

save("few", jax.jit(jax.grad(partial(carried, n=20))), w, x)
save("many", jax.jit(jax.grad(partial(carried, n=100))), w, x)
save("forward", jax.jit(partial(loss, lambda f: f)), w, x)
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_a_scan_under_grad_keeps_its_values_unless_its_body_is_under_checkpoint(lower):
    found = lower(CODE)
    [kept] = analyze(found.texts["kept"]).residuals
    assert (kept.iterations, kept.source.line) == (20, found.line("scan"))
    assert kept.arrays >= 6 and kept.bytes == kept.arrays * 20 * 4 * 8 * 4  # f32[20, 4, 8] each
    assert analyze(found.texts["checkpointed"]).residuals == ()
    assert analyze(found.texts["forward"]).residuals == ()
    assert analyze(found.texts["few"]).residuals == ()
    [many] = analyze(found.texts["many"]).residuals
    assert many.iterations == 100 and many.arrays < 6
