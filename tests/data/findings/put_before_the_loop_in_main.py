# large arrays are put on the device in a function that is called once, before the loop
import jax
import jax.numpy as jnp
import numpy as np


def load():
    data = {name: np.ones((1500, 2000), "float32") for name in "abcdef"}
    return jax.device_put(data)


@jax.jit
def step(w, data, i):
    return w + sum(x[i].mean() for x in data.values())


def main():
    data = load()
    w = jnp.zeros(())
    for i in range(20):
        w = step(w, data, i)
    print(w)


if __name__ == "__main__":
    main()
