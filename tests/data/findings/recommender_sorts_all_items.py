# a recommender sorts the scores of all items for the best 10, and shuffles all items to draw 16 negative ones
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

USERS, ITEMS, DIM = 512, 3000, 16


def draw_negatives(key):
    return jax.random.choice(key, ITEMS, (16,), replace=False)  # must: JX209 ~ shuffles 128 rows of 3,000 elements


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
    return jnp.argsort(-scores, axis=1)[:, :10]  # must: JX209 ~ sorts 256 rows of 3,000 elements, .* only 10


key = jax.random.key(0)
params = jax.jit(lambda key: {"users": jax.random.normal(key, (USERS, DIM)), "items": jnp.ones((ITEMS, DIM))})(key)
rng, losses = np.random.default_rng(0), []
for n in range(20):
    users, positives = rng.integers(0, USERS, 128), rng.integers(0, ITEMS, 128)
    params, loss = step(params, users, positives, jax.random.fold_in(key, n))
    losses.append(loss)
best = np.concatenate([recommend(params, np.arange(first, first + 256)) for first in (0, 256)])
print(f"{float(losses[-1]):.3f}", best.shape)
