# only the adapters of a model are trained, by updates that are set to zero for the rest
import jax
import jax.numpy as jnp
import numpy as np
import optax

LAYERS, WIDTH, RANK = 4, 768, 4


def create(key):
    def layer(key):
        k1, k2 = jax.random.split(key)
        scale = WIDTH**-0.5
        return {
            "kernel": scale * jax.random.normal(k1, (WIDTH, WIDTH)),
            "down": scale * jax.random.normal(k2, (WIDTH, RANK)),
            "up": jnp.zeros((RANK, WIDTH)),
        }

    return [layer(k) for k in jax.random.split(key, LAYERS)]


def is_adapter(path):
    return path[-1].key in ("down", "up")


class Trainer:
    def __init__(self, params):
        self.mask = jax.tree_util.tree_map_with_path(lambda path, _: is_adapter(path), params)
        self.optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
        self.step = jax.jit(self._step, donate_argnums=(0, 1))

    def loss(self, params, x, y):
        for layer in params:
            x = jnp.tanh(x @ layer["kernel"] + x @ layer["down"] @ layer["up"])
        return jnp.mean((x - y) ** 2)

    def _step(self, params, state, x, y):
        value, grads = jax.value_and_grad(self.loss)(params, x, y)
        updates, state = self.optimizer.update(grads, state, params)
        updates = jax.tree.map(lambda u, m: u * m, updates, self.mask)
        return optax.apply_updates(params, updates), state, value


params = jax.jit(create)(jax.random.key(0))
trainer = Trainer(params)
state = jax.jit(trainer.optimizer.init)(params)
rng = np.random.default_rng(0)
for _ in range(15):
    x, y = rng.normal(size=(2, 64, WIDTH)).astype("float32")
    params, state, value = trainer.step(params, state, x, y)  # must: JX213 first ~ kernel
print(value)
