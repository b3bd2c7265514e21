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
save("each fwd", jax.jit(jax.vmap(lambda z, q: jax.jacfwd(residuals)(z, q), (0, None))), jnp.ones((6, 5)), q)
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
        "each": [(40, 5)],  # for one element of the batch
        "each fwd": [(5, 40)],
        "hessian": [(5, 5)],
    }


SHIFTED = """
def value(p): return jnp.sum(jnp.sin(p) * jnp.cos(p.sum()))

def central(p, h=0.01):
    step = (h * jnp.eye(p.size)).reshape(p.size, *p.shape)
    upper = jax.vmap(lambda d: value(p + d))(step)  # upper
    return ((upper - jax.vmap(lambda d: value(p - d))(step)) / (2 * h)).reshape(p.shape)

def points(p):
    return jnp.concatenate([p + 0.1 * jnp.eye(p.size), p - 0.1 * jnp.eye(p.size)])

def search(p):
    tried = points(p)
    return tried[jnp.argmin(jax.vmap(value)(tried))]

def descend(p):
    return jax.lax.scan(lambda p, _: (p - 0.1 * central(p), None), p, length=5)[0]

p = jnp.ones((4, 6))
save("central", jax.jit(central), p)
save("in a scan", jax.jit(descend), p)
save("few parameters", jax.jit(central), p[:2, :3])
save("pattern search", jax.jit(search), p.ravel())
save("ridge", jax.jit(lambda k: jnp.linalg.inv(k + 0.1 * jnp.eye(24)) - jnp.linalg.inv(k - 0.1 * jnp.eye(24))), jnp.ones((24, 24)))
save("gradient", jax.jit(jax.grad(value)), p)
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_a_gradient_from_shifted_arguments_is_found_with_the_number_of_evaluations(lower):
    lowered = lower(SHIFTED)
    found = {name: analyze(text).shifted for name, text in lowered.texts.items()}
    assert {name for name, each in found.items() if each} == {"central", "in a scan"}
    [central] = found["central"]
    assert (central.evaluations, central.source.line) == (2 * 24, lowered.line("upper"))
