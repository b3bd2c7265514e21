# Mended: the last batch is padded to the size of the others, and the padding is masked
# applies: fix-pad-odd-batch
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

xs = np.random.RandomState(0).normal(size=(168, 16)).astype("float32")
model = eqx.filter_jit(eqx.nn.MLP)(16, 4, 32, 2, key=jax.random.key(0))


@eqx.filter_jit
def loss(model, x, mask):
    return jnp.sum(jnp.mean(jax.vmap(model)(x) ** 2, axis=1) * mask) / mask.sum()


@eqx.filter_jit
def accuracy(model, x, mask):
    return jnp.sum((jnp.argmax(jax.vmap(model)(x), axis=1) == 0) * mask) / mask.sum()


total = [0.0, 0.0]
for at in range(0, len(xs), 64):
    x = xs[at : at + 64]
    mask = np.arange(64) < len(x)
    x = np.concatenate([x, np.zeros((64 - len(x), 16), "float32")])
    total[0] += loss(model, x, mask.astype("float32"))
    total[1] += accuracy(model, x, mask.astype("float32"))
print(float(total[0]), float(total[1]))
