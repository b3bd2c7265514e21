# Mended: top_k finds the best items, and draws the negative ones
# applies: fix-top-k, fix-draw-few
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

USERS, ITEMS, DIM = 512, 3000, 16


def draw_negatives(key):
    return jax.lax.top_k(jax.random.uniform(key, (ITEMS,)), 16)[1]


def loss_fn(params, users, positives, key):
    negatives = jax.vmap(draw_negatives)(jax.random.split(key, len(users)))
    items = jnp.concatenate([positives[:, None], negatives], axis=1)
    logits = jnp.einsum("bd,bkd->bk", params["users"][users], params["items"][items])
    return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.zeros(len(users), int)).mean()


@functools.partial(jax.jit, donate_argnums=0)
def step(params, users, positives, key):
    loss, grads = jax.value_and_grad(loss_fn)(params, users, positives, key)
    return jax.tree.map(lambda p, g: p - 0.5 * g, params, grads), loss


@jax.jit
def recommend(params, users):
    scores = params["users"][users] @ params["items"].T
    return jax.lax.top_k(scores, 10)[1]


key = jax.random.key(0)
params = jax.jit(lambda key: {"users": jax.random.normal(key, (USERS, DIM)), "items": jnp.ones((ITEMS, DIM))})(key)
rng, losses = np.random.default_rng(0), []
for n in range(20):
    users, positives = rng.integers(0, USERS, 128), rng.integers(0, ITEMS, 128)
    params, loss = step(params, users, positives, jax.random.fold_in(key, n))
    losses.append(loss)
best = np.concatenate([recommend(params, np.arange(first, first + 256)) for first in (0, 256)])
print(f"{float(losses[-1]):.3f}", best.shape)
