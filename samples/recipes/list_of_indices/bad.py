"""The indices of the training nodes are a list: each of them is an argument of the jitted step."""

import jax
import jax.numpy as jnp


@jax.jit
def train_step(w, x, y, nodes):
    def loss(w):
        return jnp.mean((jnp.tanh(x @ w) - y)[jnp.array(nodes)] ** 2)

    return w - 0.1 * jax.grad(loss)(w)


def main():
    w, x, y = jnp.zeros((32, 4)), jnp.ones((1000, 32)), jnp.ones((1000, 4))
    nodes = [node for node in range(1000) if node % 3 == 0]
    for _ in range(20):
        w = train_step(w, x, y, nodes)  # JX127
    print(f"mean {w.mean():.3f}")


if __name__ == "__main__":
    main()
