# may: JX601
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def predict(params, x):
    return jax.nn.softmax(x @ params["w"] + params["b"])


def evaluate(params, x, y):
    confusion = jnp.zeros((10, 10), jnp.int32)
    bins = jnp.zeros(10)
    probabilities = predict(params, x)
    for i in range(len(y)):
        confusion = confusion.at[y[i], jnp.argmax(probabilities[i])].add(1)  # must: JX133|JX605 ~ of one iteration
        bins = bins.at[jnp.minimum((probabilities[i].max() * 10).astype(int), 9)].add(1.0)
    return np.asarray(confusion), np.asarray(bins)


rng = np.random.default_rng(0)
x, y = rng.normal(size=(300, 16)).astype("float32"), rng.integers(0, 10, 300).astype("int32")
params = {"w": rng.normal(size=(16, 10)).astype("float32"), "b": np.zeros(10, "float32")}
confusion, bins = evaluate(params, x, y)
print(confusion.sum(), bins.sum())
