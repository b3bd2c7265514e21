# stiffness_assembled_with_tuples, with NumPy arrays
# applies: fix-convert-indices
import jax
import jax.numpy as jnp
import numpy as np

ELEMENTS, DOFS = 400, 500
rng = np.random.default_rng(0)
of_element = rng.integers(0, DOFS, (ELEMENTS, 8))
rows = np.array(np.kron(of_element, np.ones((1, 8), int)).ravel())
columns = np.array(np.kron(of_element, np.ones((8, 1), int)).ravel())
template = rng.normal(size=64)
template = jnp.asarray(template @ template / 64 * np.eye(8).ravel())


@jax.jit
def compliance(density, load):
    entries = (density[:, None] ** 3 * template).ravel()
    stiffness = 0.01 * jnp.eye(DOFS)
    stiffness = stiffness.at[rows, columns].add(entries)
    return load @ jnp.linalg.solve(stiffness, load)


density, load = jnp.full(ELEMENTS, 0.5, jnp.float32), np.zeros(DOFS, np.float32)
load[DOFS // 2] = 1.0
step = jax.jit(jax.value_and_grad(compliance))
for _ in range(10):
    value, gradient = step(density, load)
    density = jnp.clip(density - 0.01 * jnp.sign(gradient), 0.1, 1.0)  # may: JX605
print(f"{value:.3f}")
