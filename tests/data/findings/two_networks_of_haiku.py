# haiku: an actor and a critic; each of the four jitted functions is compiled once
import haiku as hk
import jax
import jax.numpy as jnp


def actor(x):
    return hk.nets.MLP([64, 4])(x)


def critic(x):
    return hk.nets.MLP([64, 64, 1])(x)


policy = hk.without_apply_rng(hk.transform(actor))
value = hk.without_apply_rng(hk.transform(critic))
x = jnp.ones((8, 16))
policy_params = jax.jit(policy.init)(jax.random.key(0), x)
value_params = jax.jit(value.init)(jax.random.key(1), x)
act, estimate = jax.jit(policy.apply), jax.jit(value.apply)
for step in range(6):
    action, baseline = act(policy_params, x), estimate(value_params, x)
print(action.shape, baseline.shape)
