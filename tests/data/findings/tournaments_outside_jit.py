# A genetic algorithm: each child is made operation by operation, and a tournament reads who is fitter
# may: JX133 note
import jax
import jax.numpy as jnp


def tournament(key, population, fitness):
    a, b = jax.random.randint(key, (2,), 0, len(population))
    return population[a] if fitness[a] > fitness[b] else population[b]  # must: JX605|JX133 first ~ Python's if cannot test an array


def child(key, population, fitness):
    first, second, mask, noise = jax.random.split(key, 4)
    one, other = tournament(first, population, fitness), tournament(second, population, fitness)
    mixed = jnp.where(jax.random.bernoulli(mask, 0.5, one.shape), one, other)
    return mixed + 0.1 * jax.random.normal(noise, mixed.shape)


key = jax.random.key(0)
population = jax.random.normal(key, (40, 8))
for _ in range(12):
    fitness = -jnp.sum(population**2, axis=1)
    key, sub = jax.random.split(key)
    population = jnp.stack([child(k, population, fitness) for k in jax.random.split(sub, 40)])
print(fitness.max())
