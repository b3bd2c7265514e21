# haiku: each epoch transforms and jits the same network again
import haiku as hk
import jax
import jax.numpy as jnp


def forward(x):
    return hk.nets.MLP([32, 32, 4])(x)


x = jnp.ones((8, 16))
params = jax.jit(hk.transform(forward).init)(jax.random.PRNGKey(0), x)


def evaluate(params, x):
    net = hk.without_apply_rng(hk.transform(forward))
    apply = jax.jit(net.apply)
    return apply(params, x).mean()  # must: JX110 first


for epoch in range(5):
    print(evaluate(params, x))
