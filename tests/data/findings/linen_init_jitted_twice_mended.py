# Mended: the target is a copy of the parameters
# applies: fix-jit-library-method-once
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
    return jax.jit(model.init)(jax.random.key(0), x)


@jax.jit
def loss(params, target, x):
    return jnp.mean((Critic().apply(params, x) - Critic().apply(target, x)) ** 2)


x = jnp.ones((4, 8))
critic = Critic()
params = create(critic, x)
target = jax.tree.map(jnp.copy, params)
print(loss(params, target, x))
