"""Constant indices that are out of bounds, in programs lowered by the JAX at hand."""

import pytest

from jaxscope.analysis.stablehlo.reading import analyze

CODE = """
x = jnp.arange(12.0).reshape(3, 4)
save("row", jax.jit(lambda x: x[5]), x)
save("column", jax.jit(lambda x: x[:, 7]), x)
save("negative", jax.jit(lambda x: x[-5]), x)
save("second of two", jax.jit(lambda x: x[2, 4]), x)
save("beside an array", jax.jit(lambda x: x[jnp.arange(3), 7]), x)
save("under vmap", jax.jit(jax.vmap(lambda row: row[7])), x)
save("in a scan", jax.jit(lambda x: jax.lax.scan(lambda s, row: (s + row[7], None), 0.0, x)[0]), x)
save("set", jax.jit(lambda x: x.at[7].set(1.0)), x)
save("add", jax.jit(lambda x: x.at[0, 7].add(1.0)), x)
save("take", jax.jit(lambda x: jnp.take(x, 7, axis=1)), x)
save("static", jax.jit(lambda x, k: x[k], static_argnums=1), x, 3)
save("in bounds", jax.jit(lambda x: x[2] + x[-3] + x[:, -1].sum() + x.at[2, 3].set(0.0).sum()), x)
save("several", jax.jit(lambda x: x.at[1:-1].add(1.0)), x)
save("slice", jax.jit(lambda x: x[1:9]), x)
save("unknown", jax.jit(lambda x, k: x[k]), x, 9)
save("jnp", jax.jit(lambda x: jnp.roll(x, 1).sum() + jnp.interp(1.0, x[0], x[1]) + jnp.diff(x).sum()), x)
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_indices_for_which_numpy_would_raise_an_index_error(lower):
    found = {name: analyze(text).out_of_bounds for name, text in lower(CODE).texts.items()}
    indices = {name: [(one.index, one.size, one.use) for one in each] for name, each in found.items() if each}
    assert indices == {
        "row": [(5, 3, "read")],
        "column": [(7, 4, "read")],
        "negative": [(-5, 3, "read")],
        "second of two": [(4, 4, "read")],
        "beside an array": [(7, 4, "read")],
        "under vmap": [(7, 4, "read")],
        "in a scan": [(7, 4, "read")],
        "set": [(7, 3, "change")],
        "add": [(7, 4, "change")],
        "take": [(7, 4, "fill")],
        "static": [(3, 3, "read")],
    }
