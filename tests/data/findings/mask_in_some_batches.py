# some batches have a mask, and some have not
import jax
import jax.numpy as jnp


@jax.jit
def loss(w, batch):
    out = (batch["x"] @ w) ** 2
    return (out * batch["mask"]).mean() if "mask" in batch else out.mean()


w = jnp.ones(8)
x, mask = jnp.ones((4, 8)), jnp.ones(4)
for i in range(6):
    print(loss(w, {"x": x, "mask": mask} if i % 2 else {"x": x}))  # must: JX105 first
