# Mended: a jitted function makes a trial, and jnp.where decides
# applies: fix-jit-step, fix-jit-iteration, fix-scan-loop
import jax
import jax.numpy as jnp

SIZE = 24


@jax.jit
def trial(spins, key, beta):
    key, row, column, level = jax.random.split(key, 4)
    i, j = jax.random.randint(row, (), 0, SIZE), jax.random.randint(column, (), 0, SIZE)
    near = spins[(i + 1) % SIZE, j] + spins[i - 1, j] + spins[i, (j + 1) % SIZE] + spins[i, j - 1]
    change = 2 * spins[i, j] * near
    flips = jax.random.uniform(level) < jnp.exp(-beta * change)
    return jnp.where(flips, spins.at[i, j].set(-spins[i, j]), spins), key


def sweep(spins, key, beta, trials):
    for _ in range(trials):
        spins, key = trial(spins, key, beta)
    return spins, key


spins, key = jnp.ones((SIZE, SIZE)), jax.random.key(0)
for beta in (0.2, 0.4):
    spins, key = sweep(spins, key, beta, 300)
    print(beta, abs(float(spins.mean())))
