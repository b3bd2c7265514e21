# Mended: each batch has a mask
# applies: fix-always-or-never
import jax
import jax.numpy as jnp


@jax.jit
def loss(w, batch):
    return ((batch["x"] @ w) ** 2 * batch["mask"]).mean()


w = jnp.ones(8)
x, mask = jnp.ones((4, 8)), jnp.ones(4)
for i in range(6):
    print(loss(w, {"x": x, "mask": mask}))
