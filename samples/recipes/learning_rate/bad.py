"""The learning rate of each step is computed with jax.numpy outside jit: the host starts ten small programs
to get one number.
"""

import jax
import jax.numpy as jnp

STEPS = 2000


def learning_rate(step):
    warm_up = jnp.minimum(1.0, (step + 1) / 100)
    return 0.05 * warm_up * 0.5 * (1 + jnp.cos(jnp.pi * step / STEPS))  # JX605


@jax.jit
def train_step(w, x, y, rate):
    loss, slope = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    return w - rate * slope, loss


def main():
    x = jax.random.normal(jax.random.key(0), (64, 8))
    y = x.sum(1)
    w, loss_before, losses = jnp.zeros(8), jnp.zeros(()), []
    for step in range(STEPS):
        rate = learning_rate(step)
        w, loss = train_step(w, x, y, rate)
        losses.append(float(loss_before))  # of the step before, which is computed already
        loss_before = loss
    print(f"loss {losses[-1]:.4f}")


if __name__ == "__main__":
    main()
