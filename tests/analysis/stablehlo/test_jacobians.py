"""Jacobians of jacrev and jacfwd and their sizes, in programs lowered by the JAX at hand."""

import pytest

from jaxscope.analysis.stablehlo.reading import analyze

CODE = """
def residuals(z, q): return jnp.exp(-z[0] * q) * z[1] + z[2]
def of_tree(p, q): return {"a": p["u"] @ q, "b": p["v"] * q[:3]}

z, q = jnp.ones(5), jnp.ones(40)
tree = {"u": jnp.ones((7, 40)), "v": jnp.ones(3)}
save("rev", jax.jit(lambda z, q: jax.jacrev(residuals)(z, q)), z, q)
save("fwd", jax.jit(lambda z, q: jax.jacfwd(residuals)(z, q)), z, q)
save("wide", jax.jit(lambda z, q: jax.jacfwd(residuals, argnums=1)(z, q)), z, q)
save("both", jax.jit(lambda z, q: jax.jacrev(residuals, argnums=(0, 1))(z, q)), z, q)
save("tree", jax.jit(lambda p, q: jax.jacrev(of_tree)(p, q)), tree, q)
save("gradient", jax.jit(lambda z, q: jax.grad(lambda z: residuals(z, q).sum())(z)), z, q)
save("each", jax.jit(jax.vmap(lambda z, q: jax.jacrev(residuals)(z, q), (0, None))), jnp.ones((6, 5)), q)
save("hessian", jax.jit(lambda z, q: jax.hessian(lambda z: residuals(z, q).sum())(z)), z, q)
save("identity", jax.jit(lambda z, q: jnp.eye(40) @ q), z, q)
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_the_sizes_of_a_jacobian_follow_from_the_identity_matrix_and_the_parts(lower):
    found = {name: analyze(text).jacobians for name, text in lower(CODE).texts.items()}
    assert {name: [(j.passes, j.others) for j in each] for name, each in found.items() if each} == {
        "rev": [(40, 5)],
        "fwd": [(5, 40)],
        "wide": [(40, 40)],
        "both": [(40, 45)],
        "tree": [(10, 283)],
        "hessian": [(5, 5)],
    }
