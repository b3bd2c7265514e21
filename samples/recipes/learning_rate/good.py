"""The number of the step is an argument of the jitted step, which computes the learning rate."""

import jax
import jax.numpy as jnp

STEPS = 2000


def learning_rate(step):
    warm_up = jnp.minimum(1.0, (step + 1) / 100)
    return 0.05 * warm_up * 0.5 * (1 + jnp.cos(jnp.pi * step / STEPS))


@jax.jit
def train_step(w, x, y, step):
    loss, slope = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    return w - learning_rate(step) * slope, loss


def main():
    x = jax.random.normal(jax.random.key(0), (64, 8))
    y = x.sum(1)
    w, loss_before, losses = jnp.zeros(8), jnp.zeros(()), []
    for step in range(STEPS):
        w, loss = train_step(w, x, y, step)
        losses.append(float(loss_before))  # of the step before, which is computed already
        loss_before = loss
    print(f"loss {losses[-1]:.4f}")


if __name__ == "__main__":
    main()
