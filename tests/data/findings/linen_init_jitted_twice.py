# linen: two critics begin with the same parameters, and the second init is compiled again for another bound method
import flax.linen as nn
import jax
import jax.numpy as jnp


class Critic(nn.Module):
    @nn.compact
    def __call__(self, x):
        for _ in range(3):
            x = nn.relu(nn.Dense(64, kernel_init=nn.initializers.orthogonal())(x))
        return nn.Dense(1)(x)


def create(model, x):
    return jax.jit(model.init)(jax.random.key(0), x)  # must: JX110 first ~ a bound method was created again.* jax.jit\(critic.init\).* jax.tree.map\(jnp.copy, result\)


@jax.jit
def loss(params, target, x):
    return jnp.mean((Critic().apply(params, x) - Critic().apply(target, x)) ** 2)


x = jnp.ones((4, 8))
critic = Critic()
params = create(critic, x)
target = create(critic, x)
print(loss(params, target, x))
