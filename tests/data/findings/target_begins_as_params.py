# self-distillation: a teacher that is a moving average of the student, and begins as the student's own arrays
# never: nnx
import jax
import jax.numpy as jnp
import numpy as np
import optax

tx = optax.adam(1e-3)


def apply(params, x):
    return jnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"]


@jax.jit
def init(key):
    k1, k2 = jax.random.split(key)
    params = {
        "w1": jax.random.normal(k1, (512, 2048)) * 0.05,
        "b1": jnp.zeros(2048),
        "w2": jax.random.normal(k2, (2048, 512)) * 0.05,
    }
    return params, tx.init(params)


@jax.jit
def train_step(params, teacher, opt_state, x, key):
    def loss_fn(params):
        noisy = x + 0.1 * jax.random.normal(key, x.shape)
        return jnp.mean((apply(params, noisy) - apply(teacher, x)) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, opt_state = tx.update(grads, opt_state)
    params = optax.apply_updates(params, updates)
    teacher = jax.tree.map(lambda t, p: 0.99 * t + 0.01 * p, teacher, params)
    return params, teacher, opt_state, loss


def main():
    params, opt_state = init(jax.random.key(0))
    teacher = params
    xs = jax.random.normal(jax.random.key(1), (64, 512))
    for i in range(5):
        key = jax.random.key(i)
        params, teacher, opt_state, loss = train_step(params, teacher, opt_state, xs, key)  # must: JX506 first ~ copy
    print(loss, sum(np.abs(leaf).sum() for leaf in jax.tree.leaves((params, teacher))))


main()
