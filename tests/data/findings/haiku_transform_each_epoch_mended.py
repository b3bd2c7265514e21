# Mended: transformed and jitted once
# applies: fix-wrap-once
import haiku as hk
import jax
import jax.numpy as jnp


def forward(x):
    return hk.nets.MLP([32, 32, 4])(x)


x = jnp.ones((8, 16))
params = jax.jit(hk.transform(forward).init)(jax.random.PRNGKey(0), x)
apply = jax.jit(hk.without_apply_rng(hk.transform(forward)).apply)


def evaluate(params, x):
    return apply(params, x).mean()


for epoch in range(5):
    print(evaluate(params, x))
