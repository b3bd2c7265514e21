"""The operations of a program by the arguments on which they depend, in programs lowered by the JAX at hand."""

import pytest

from jaxscope.analysis.stablehlo.reading import analyze

CODE = """
@jax.jit
def squared(x):
    return x * x

def predict(params, x, new):
    own = params["w"] @ params["w"]  # own
    chol = jnp.linalg.cholesky(x)
    fixed = jax.lax.fori_loop(0, 3, lambda _, y: y @ own, chol)
    return squared(new) @ fixed + squared(x).sum()

w, x = jnp.ones((32, 32)), jnp.eye(32)
save("predict", jax.jit(predict), {"w": w}, x, jnp.ones((4, 32)))
save("unnamed", jax.jit(lambda *a: a[0] + a[1]), x, x)
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_operations_belong_to_the_arguments_that_they_read_directly_or_not(lower):
    found = lower(CODE)
    work = {w.arguments: w for w in analyze(found.texts["predict"]).argument_work}
    assert work["params",].operations == 2 * 32**3 and not work["params",].in_loop
    assert [at.line for at in work["params",].lines] == [found.line("own")]
    assert 32**3 <= work["x",].operations <= 1.2 * 32**3  # the decomposition
    assert work["params", "x"].operations >= 2 * 32**3 and work["params", "x"].in_loop  # one iteration
    # squared() is one function of the program for each shape: its call on x does not read new
    assert {args for args in work if "new" in args} <= {("new",), ("params", "x", "new")}
