"""Conversions to a wider type whose values are stored or multiplied, in programs lowered by the JAX at hand."""

import pytest

from jaxscope.analysis.stablehlo.reading import analyze

CODE = """
def norm(x):
    y = x.astype(jnp.float32)
    y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(jnp.mean(jnp.square(y), -1, keepdims=True))
    return y.astype(x.dtype)

half, wide = jnp.ones((8, 16), "bfloat16"), jnp.ones((16, 16))
save("norm", jax.jit(norm), half)
save("loss", jax.jit(lambda x: jax.nn.logsumexp(x.astype(jnp.float32))), half)
save("result", jax.jit(lambda x: x * jnp.ones(16)), half)
save("product", jax.jit(lambda x, w: (x @ w).astype("bfloat16")), half, wide)
save("spectrum", jax.jit(jnp.fft.fft), wide)
save("loop", jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, y: y * 2, x.astype("float32")).sum()), half)
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_values_that_are_narrowed_or_summed_again_do_not_stay_wide(lower):
    found = lower(CODE)
    stays = {
        name: any(u.wide_from is not None for u in analyze(text).upcasts)
        for name, text in found.texts.items()
    }
    assert not analyze(found.texts["spectrum"]).upcasts  # each part of a complex64 is a float32
    stays.pop("spectrum")
    assert stays == {"norm": False, "loss": False, "result": True, "product": True, "loop": True}
