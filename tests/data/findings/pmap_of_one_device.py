# pmap is passed parameters of one device, in two calls that begin from them
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp


def learner(params, keys):
    def turn(n, params):
        noise = jax.random.normal(jax.random.fold_in(keys, n), params.shape)
        return params - 0.1 * jax.lax.pmean(jnp.tanh(params + noise), "i")

    return jax.lax.fori_loop(0, 3, turn, params)


learn = jax.pmap(learner, axis_name="i")
params = jnp.broadcast_to(jnp.linspace(0.0, 1.0, 1 << 18), (4, 1 << 18))
keys = jax.random.split(jax.random.key(0), 4)
learn(params, keys)  # must: JX508 first ~ after params has got its first axis
new = learn(params, keys)
print(new.mean())
