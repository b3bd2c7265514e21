# init outside jit compiles one random draw for each shape; in a jitted function, it would compile one for each of the
# 48 parameters, which takes as long
# may: JX202
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = x + nn.SelfAttention(4)(nn.LayerNorm()(x))
        return x + nn.Dense(64)(nn.gelu(nn.Dense(256)(nn.LayerNorm()(x))))


class Model(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(100, 64)(tokens)
        for _ in range(6):
            x = Block()(x)
        return nn.Dense(100)(x)


model, optimizer = Model(), optax.sgd(0.1)
tokens = jnp.ones((4, 16), int)
params = model.init(jax.random.key(0), tokens)


@jax.jit
def step(params, state, tokens):
    def loss(params):
        logits = model.apply(params, tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens).mean()

    grads = jax.grad(loss)(params)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state


state = jax.jit(optimizer.init)(params)
for _ in range(3):
    params, state = step(params, state, tokens)
