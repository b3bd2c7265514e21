# Mended: the same dropout mask in every step: a key captured as a constant; generate() jits anew and captures the weights
# applies: fix-define-once, fix-pass-key
import jax
import jax.numpy as jnp

key = jax.random.PRNGKey(0)


@jax.jit
def step(w, x, key):
    mask = jax.random.bernoulli(key, 0.8, x.shape)
    return w - 0.1 * jax.grad(lambda w: ((x * mask) @ w).sum())(w)


@jax.jit
def token(i, s, w):
    return s.at[i].set((s @ w)[i])


def generate(w, n):
    s = jnp.ones(64)
    for i in range(n):
        s = token(i, s, w)
    return s


w = jnp.ones((64, 64))
for n in range(3):
    w = step(w, jnp.ones((8, 64)), jax.random.fold_in(key, n))
print(generate(w, 5).sum())
print(generate(w * 2, 5).sum())
