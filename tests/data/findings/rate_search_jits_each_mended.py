# Mended: one step, the rate is part of the optimizer's state
# applies: fix-define-once
import jax
import jax.numpy as jnp
import optax

x, y = jnp.ones((32, 8)), jnp.ones(32)


@jax.jit
def step(w, lr):
    loss, grads = jax.value_and_grad(lambda w: ((x @ w - y) ** 2).mean())(w)
    updates, _ = optax.sgd(lr).update(grads, optax.sgd(lr).init(w))
    return optax.apply_updates(w, updates), loss


def train(lr):
    w = jnp.zeros(8)
    for _ in range(10):
        w, loss = step(w, lr)
    return loss


for lr in (0.1, 0.03, 0.01, 0.003):
    print(lr, train(lr))
