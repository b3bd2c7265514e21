# applies: fix-no-negative-indices
# The edges of small graphs are padded with -1 to one length
import jax
import jax.numpy as jnp
import numpy as np

ROOM = 160


def edges(points):
    near = np.linalg.norm(points[:, None] - points[None], axis=-1) < 0.4
    senders, receivers = np.nonzero(near & ~np.eye(len(points), dtype=bool))
    senders, receivers = senders[:ROOM], receivers[:ROOM]
    pad = (0, ROOM - len(senders))
    return np.pad(senders, pad, constant_values=-1), np.pad(receivers, pad, constant_values=-1)


@jax.jit
def spread(charges, senders, receivers):
    moved = jnp.tanh(charges[senders])
    return charges + jnp.zeros_like(charges).at[receivers].add(moved, mode="drop", wrap_negative_indices=False)


rng = np.random.default_rng(0)
for _ in range(6):
    points = rng.random((20, 2))
    senders, receivers = edges(points)
    charges = spread(jnp.asarray(rng.random(20), jnp.float32), senders, receivers)
    print(f"{charges.sum():.3f}")
