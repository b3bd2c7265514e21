"""A Gumbel-softmax autoencoder whose trainer lowers its temperature after each epoch."""

# applies: fix-pass-on

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax


class Trainer:
    def __init__(self, size, codes):
        self.size, self.codes = size, codes
        self.tx = optax.adam(1e-2)

    @partial(jax.jit, static_argnums=0)
    def init(self, key):
        k1, k2 = jax.random.split(key)
        shape = (self.size, self.codes)
        params = {"enc": 0.1 * jax.random.normal(k1, shape), "dec": 0.1 * jax.random.normal(k2, shape[::-1])}
        return params, self.tx.init(params)

    def loss(self, params, x, key, temperature):
        noise = jax.random.gumbel(key, (x.shape[0], self.codes))
        z = jax.nn.softmax((x @ params["enc"] + noise) / temperature)
        return ((z @ params["dec"] - x) ** 2).mean()

    @partial(jax.jit, static_argnums=0)
    def update(self, params, opt_state, x, key, temperature):
        loss, grads = jax.value_and_grad(self.loss)(params, x, key, temperature)
        updates, opt_state = self.tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    def temperature(self, epoch):
        return np.float32(max(0.1, 2.0 * 0.8**epoch))


def main():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(512, 12)).astype(np.float32)
    trainer = Trainer(12, 8)
    params, opt_state = trainer.init(jax.random.key(0))
    for epoch in range(5):
        temperature = trainer.temperature(epoch)
        for i, key in enumerate(jax.random.split(jax.random.key(epoch), 4)):
            x = data[128 * i : 128 * (i + 1)]
            params, opt_state, loss = trainer.update(params, opt_state, x, key, temperature)
        print(f"epoch {epoch} loss {float(loss):.4f}")


if __name__ == "__main__":
    main()
