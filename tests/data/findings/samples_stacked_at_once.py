# a random walk collects its samples in a list, and stacks all of them in one operation
# may: JX601 note, JX605, JX608
import jax
import jax.numpy as jnp


@jax.jit
def step(w, key, i):
    first, second = jax.random.split(jax.random.fold_in(key, i))
    proposed = w + 0.1 * jax.random.normal(first, w.shape)
    ratio = jnp.sum(w**2 - proposed**2) / 2
    return jnp.where(jnp.log(jax.random.uniform(second)) < ratio, proposed, w)


w = jnp.zeros(5)
samples = []
key = jax.random.key(0)
for i in range(2000):
    w = step(w, key, i)
    samples.append(w)
samples = jnp.stack(samples)  # must: JX133 first ~ np\.stack\(jax\.device_get\(samples\)\)
print(samples.mean(0))
