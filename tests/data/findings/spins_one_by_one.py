# The Ising model: each trial reads two indices and decides in Python whether a spin is flipped
import jax
import jax.numpy as jnp

SIZE = 24


def sweep(spins, key, beta, trials):
    for _ in range(trials):
        key, row, column, level = jax.random.split(key, 4)
        i, j = jax.random.randint(row, (), 0, SIZE), jax.random.randint(column, (), 0, SIZE)
        near = spins[(i + 1) % SIZE, j] + spins[i - 1, j] + spins[i, (j + 1) % SIZE] + spins[i, j - 1]  # must: JX605|JX133 first ~ Python's if cannot test an array
        change = 2 * spins[i, j] * near
        if jax.random.uniform(level) < jnp.exp(-beta * change):
            spins = spins.at[i, j].set(-spins[i, j])
    return spins, key


spins, key = jnp.ones((SIZE, SIZE)), jax.random.key(0)
for beta in (0.2, 0.4):
    spins, key = sweep(spins, key, beta, 300)
    print(beta, abs(float(spins.mean())))
