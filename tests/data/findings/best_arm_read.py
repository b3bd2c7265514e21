# a bandit: the index of the best arm is read on the host, only to be passed to the next jitted function
import jax
import jax.numpy as jnp


@jax.jit
def estimate(weights, reward):
    return jnp.tanh(weights @ weights / 200 + reward)


@jax.jit
def choose(key, best):
    key, sub = jax.random.split(key)
    explore = jax.random.uniform(sub) < 0.1
    return jnp.where(explore, 1 - best, best).astype("float32"), key


weights, key, reward = jnp.ones((200, 200)), jax.random.key(0), jnp.float32(0)
best = jax.jit(lambda w: jnp.argmax(w[0, :2]))
for step in range(400):
    weights = estimate(weights, reward)
    arm = int(best(weights))  # must: JX601 first ~ pass the array itself, without int\(\)
    reward, key = choose(key, arm)
print(weights.sum())
