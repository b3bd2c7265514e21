# small batches of tokens are sharded over the axis that the scan over them goes along: each device computes all of them
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

ACCUMULATED, EXAMPLES, LENGTH, WORDS = 8, 16, 12, 40


class Reader(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        h = nn.Embed(WORDS, 32)(tokens).reshape(*tokens.shape[:-1], -1)
        return nn.Dense(WORDS)(nn.relu(nn.Dense(64)(h)))


model, optimizer = Reader(), optax.adam(1e-3)
mesh = Mesh(np.array(jax.devices()), ("batch",))
replicated = NamedSharding(mesh, P())


def loss(params, tokens):
    logits = model.apply(params, tokens[:, :-1])
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, -1]).mean()


@jax.jit
def train_step(params, state, tokens):
    def add(total, batch):
        return jax.tree.map(jnp.add, total, jax.grad(loss)(params, batch)), None

    zeros = jax.tree.map(jnp.zeros_like, params)
    grads, _ = jax.lax.scan(add, zeros, tokens)  # must: JX401 first ~ each of the 8 devices
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state


def sample(rng):
    tokens = rng.integers(0, WORDS, (ACCUMULATED, EXAMPLES, LENGTH + 1), dtype=np.int32)
    return jax.device_put(tokens, NamedSharding(mesh, P("batch")))


@jax.jit
def create(key):
    params = model.init(key, jnp.zeros((1, LENGTH), jnp.int32))
    return jax.lax.with_sharding_constraint((params, optimizer.init(params)), replicated)


params, state = create(jax.random.key(0))
rng = np.random.default_rng(0)
for _ in range(4):
    params, state = train_step(params, state, sample(rng))
print(float(jax.tree.leaves(params)[0].sum()))
