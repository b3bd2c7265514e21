# a sampler that was searched for NaN: the checks are still on, and each operation outside jit waits for its result
# may: JX133
import jax
import jax.numpy as jnp

jax.config.update("jax_debug_nans", True)  # must: JX609 ~ jax_debug_nans off


class Target:
    def __init__(self, scales):
        self.scales = jnp.asarray(scales)

    def log_density(self, x):
        return -0.5 * jnp.sum((x / self.scales) ** 2) - jnp.sum(jnp.log(self.scales))  # must: JX605


def sample(target, key, x, length):
    accepted = 0
    for i in range(length):
        key, move, level = jax.random.split(key, 3)
        proposal = x + 0.5 * jax.random.normal(move, x.shape)
        ratio = target.log_density(proposal) - target.log_density(x)
        if jnp.log(jax.random.uniform(level)) < ratio:
            x, accepted = proposal, accepted + 1
    return x, accepted / length


x, rate = sample(Target([1.0, 2.0, 4.0]), jax.random.key(0), jnp.zeros(3), 2000)
print(f"{rate:.2f}")
