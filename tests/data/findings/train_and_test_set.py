# one function for the whole train set and the whole test set: two sizes, each once, by intent
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def accuracy(w, batch):
    return (jnp.argmax(batch[0] @ w, 1) == batch[1]).mean()


w = jnp.ones((784, 10))
tr = np.ones((2000, 784), "f4"), np.zeros(2000, "i4")
te = np.ones((400, 784), "f4"), np.zeros(400, "i4")
for _ in range(5):
    print(accuracy(w, tr), accuracy(w, te))
