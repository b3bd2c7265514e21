# each learning rate of a search has an optimizer and a jitted step of its own
import jax
import jax.numpy as jnp
import optax

x, y = jnp.ones((32, 8)), jnp.ones(32)


def train(lr):
    tx = optax.sgd(lr)

    @jax.jit
    def step(w, opt_state):
        loss, grads = jax.value_and_grad(lambda w: ((x @ w - y) ** 2).mean())(w)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(w, updates), opt_state, loss

    w = jnp.zeros(8)
    opt_state = tx.init(w)
    for _ in range(10):
        w, opt_state, loss = step(w, opt_state)  # must: JX110 first
    return loss


for lr in (0.1, 0.03, 0.01, 0.003):
    print(lr, train(lr))
