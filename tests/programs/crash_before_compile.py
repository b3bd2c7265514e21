"""Fails before anything is compiled."""

import jax


@jax.jit
def step(x):
    return x + 1


def load(path):
    raise FileNotFoundError(f"no such data: {path}")


if __name__ == "__main__":
    print("loading")
    print(step(load("data.npz")))
