# applies: fix-train-some
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


def divided(params):
    adapters = [{k: layer[k] for k in ("down", "up")} for layer in params]
    return adapters, [{"kernel": layer["kernel"]} for layer in params]


class Trainer:
    def __init__(self):
        self.optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
        self.step = jax.jit(self._step, donate_argnums=(0, 1))

    def loss(self, adapters, base, x, y):
        for layer in ({**a, **b} for a, b in zip(adapters, base, strict=True)):
            x = jnp.tanh(x @ layer["kernel"] + x @ layer["down"] @ layer["up"])
        return jnp.mean((x - y) ** 2)

    def _step(self, adapters, state, base, x, y):
        value, grads = jax.value_and_grad(self.loss)(adapters, base, x, y)
        updates, state = self.optimizer.update(grads, state, adapters)
        return optax.apply_updates(adapters, updates), state, value


adapters, base = divided(jax.jit(create)(jax.random.key(0)))
trainer = Trainer()
state = jax.jit(trainer.optimizer.init)(adapters)
rng = np.random.default_rng(0)
for _ in range(15):
    x, y = rng.normal(size=(2, 64, WIDTH)).astype("float32")
    adapters, state, value = trainer.step(adapters, state, base, x, y)
print(value)
