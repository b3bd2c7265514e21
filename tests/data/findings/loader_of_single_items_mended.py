# one call of jax.random draws the positions of all crops, and NumPy reads them
# applies: fix-draw-on-host
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Loader:
    def __init__(self, images, labels, batch, key):
        self.images, self.labels, self.batch, self.key = images, labels, batch, key

    def __len__(self):
        return len(self.images) // self.batch

    def __iter__(self):
        starts = np.asarray(jax.random.randint(self.key, (len(self.images), 2), 0, 4))
        for n in range(len(self)):
            rows = range(n * self.batch, (n + 1) * self.batch)
            crops = []
            for i in rows:
                top, left = starts[i]
                crops.append(self.images[i, top : top + 28, left : left + 28])
            yield np.stack(crops), self.labels[n * self.batch : (n + 1) * self.batch]


def loss_fn(params, x, y):
    h = jax.nn.relu(x.reshape(len(x), -1) @ params["w1"])
    return optax.softmax_cross_entropy_with_integer_labels(h @ params["w2"], y).mean()


optimizer = optax.sgd(1e-2)


@jax.jit
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


rng = np.random.default_rng(0)
images = rng.normal(size=(2048, 32, 32)).astype(np.float32)
labels = rng.integers(0, 10, 2048)
params = {"w1": jnp.asarray(rng.normal(size=(784, 64)) * 0.03, jnp.float32), "w2": jnp.zeros((64, 10))}
opt_state = optimizer.init(params)
losses = []
for x, y in Loader(images, labels, 64, jax.random.key(0)):
    params, opt_state, loss = train_step(params, opt_state, x, y)
    losses.append(loss)
print(f"{float(losses[-1]):.3f}")
