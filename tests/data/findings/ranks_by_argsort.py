# a recommender: the rank of each user's held-out item is read from the sorted catalog
import jax
import jax.numpy as jnp
import numpy as np
import optax

USERS, ITEMS, DIM = 600, 4000, 16


@jax.jit
def train_step(params, state, users, items):
    def loss(params):
        scores = params["users"][users] @ params["items"].T
        return optax.softmax_cross_entropy_with_integer_labels(scores, items).mean()

    value, grads = jax.value_and_grad(loss)(params)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, value  # may: JX506


@jax.jit
def ranks(params, target):
    scores = params["users"] @ params["items"].T
    order = jnp.argsort(-scores, axis=1)  # must: JX209 first ~ uses the order only to find the positions
    return jnp.argmax(order == target[:, None], axis=1)


rng, optimizer = np.random.default_rng(0), optax.sgd(0.5)
params = jax.device_put(
    {
        "users": rng.normal(size=(USERS, DIM)).astype(np.float32) / 4,
        "items": rng.normal(size=(ITEMS, DIM)).astype(np.float32) / 4,
    }
)
state, held_out = jax.jit(optimizer.init)(params), jnp.asarray(rng.integers(0, ITEMS, USERS))
for epoch in range(8):
    for _ in range(3):
        users = rng.integers(0, USERS, 64)
        params, state, value = train_step(params, state, users, (users * 7) % ITEMS)
    print(f"mean rank {ranks(params, held_out).mean():.1f}")  # may: JX601
