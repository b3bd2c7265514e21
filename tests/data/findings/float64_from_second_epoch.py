# parameters begin as float32, and the first update makes them float64: four functions compile twice
# may: JX303
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
grid = np.linspace(-4.0, 4.0, 200, dtype=np.float32)


@jax.jit
def basis(widths):
    return jnp.exp(-widths[:, None] * grid**2)


@jax.jit
def overlap(b):
    return jnp.linalg.cholesky(b @ b.T + jnp.eye(b.shape[0], dtype=b.dtype))


@jax.jit
def kinetic(b):
    return jnp.gradient(b, axis=1) @ jnp.gradient(b, axis=1).T


@jax.jit
def energy(s, t):
    return jnp.linalg.eigvalsh(jax.scipy.linalg.solve_triangular(s, t, lower=True) + t)[0]


widths = jnp.asarray([0.3, 0.7, 1.1], jnp.float32)
for epoch in range(3):
    b = basis(widths)  # must: JX102 first ~ the same change also recompiled .*convert it to float32
    s = overlap(b)
    t = kinetic(b)
    print(energy(s, t))
    widths = widths - np.linspace(0.01, 0.03, 3)
