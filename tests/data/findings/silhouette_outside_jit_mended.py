# Mended: the gradient is jitted, the mask is a jnp.where, and the shapes are combined by a scan
# applies: fix-mask-index, fix-jit-this-call
import jax
import jax.numpy as jnp
import numpy as np

SIZE = 24
grid = jnp.stack(jnp.meshgrid(jnp.linspace(-1, 1, SIZE), jnp.linspace(-1, 1, SIZE)), -1)


def coverage(centers, radius):
    inside = radius**2 - ((grid[None] - centers[:, None, None]) ** 2).sum(-1)
    soft = jax.nn.sigmoid(inside * 40.0)
    return jnp.where(inside < -1.0, 0.0, soft)


def union(shapes):
    return jax.lax.scan(lambda image, shape: (image + shape - image * shape, None), shapes[0], shapes[1:])[0]


def loss(centers, radius, target):
    return ((union(coverage(centers, radius)) - target) ** 2).mean()


rng = np.random.default_rng(0)
target = jax.jit(lambda c: union(coverage(c, 0.3)))(jnp.asarray(rng.uniform(-0.6, 0.6, (10, 2)).astype("f4")))
centers = jnp.asarray(rng.uniform(-0.6, 0.6, (10, 2)).astype("f4"))
gradient = jax.jit(jax.value_and_grad(loss))
for _ in range(15):
    value, grads = gradient(centers, 0.3, target)
    centers = centers - 2.0 * grads
print(f"{value:.4f}")
