"""The losses are added up on the device, and one number is read every ten steps."""

import jax
import jax.numpy as jnp

import jaxscope


@jax.jit
def train_step(w, total, x):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - 0.1 * gradient, total + value


def main():
    w, x = jnp.ones(16), jnp.ones((64, 16))
    total, losses = jnp.float32(0), []
    for step in range(60):
        w, total = train_step(w, total, x)
        jaxscope.step()
        if step % 10 == 9:
            losses.append(float(total) / 10)
            total = jnp.zeros_like(total)
            jaxscope.snapshot()
    print(f"loss {losses[-1]:.3f}")


if __name__ == "__main__":
    main()
