# a training step under a mesh, and once more outside of it, after each epoch
import jax
import jax.numpy as jnp

mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Explicit,))


@jax.jit
def train_step(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)


with jax.set_mesh(mesh):
    w, x = jnp.ones((16, 4)), jnp.ones((8, 16))
for epoch in range(2):
    for _ in range(3):
        with jax.set_mesh(mesh):
            w = train_step(w, x)
    w = train_step(w, x)  # must: JX120 first
print(w.sum())
