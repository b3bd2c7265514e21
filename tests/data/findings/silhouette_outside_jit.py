# a silhouette is fitted outside jit: NumPy cannot read the shapes under the gradient, and jit needs jnp.where for the mask
import jax
import jax.numpy as jnp
import numpy as np

SIZE = 24
grid = jnp.stack(jnp.meshgrid(jnp.linspace(-1, 1, SIZE), jnp.linspace(-1, 1, SIZE)), -1)


def coverage(centers, radius):
    inside = radius**2 - ((grid[None] - centers[:, None, None]) ** 2).sum(-1)
    soft = jax.nn.sigmoid(inside * 40.0)
    return soft.at[inside < -1.0].set(0.0)


def union(shapes):
    image = shapes[0]
    for shape in shapes[1:]:  # may: JX133 note
        image = image + shape - image * shape
    return image


def loss(centers, radius, target):
    return ((union(coverage(centers, radius)) - target) ** 2).mean()


rng = np.random.default_rng(0)
target = union(coverage(jnp.asarray(rng.uniform(-0.6, 0.6, (10, 2)).astype("f4")), 0.3))  # may: JX133 note
centers = jnp.asarray(rng.uniform(-0.6, 0.6, (10, 2)).astype("f4"))
gradient = jax.value_and_grad(loss)
for _ in range(15):
    value, grads = gradient(centers, 0.3, target)  # must: JX133 first ~ condition as an index \(inside < -1.0
    centers = centers - 2.0 * grads
print(f"{value:.4f}")
