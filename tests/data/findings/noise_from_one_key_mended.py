# Mended: each draw has a key of its own
# applies: fix-split-key, fix-split-keys
import jax
import jax.numpy as jnp

LATENT, PIXELS = 16, 64


def flip(key, image):
    return jnp.where(jax.random.bernoulli(key), image[::-1], image)


def two_views(key, images):
    first, second = jax.random.split(key, (2, images.shape[0]))
    augment = jax.vmap(flip)
    return augment(first, images), augment(second, images)


@jax.jit
def critic_step(w, g, real, key):
    k_latent, k_noise, k_views = jax.random.split(key, 3)
    fake = jax.random.normal(k_latent, (real.shape[0], LATENT)) @ g
    first, second = two_views(k_views, real)
    first_key, second_key = jax.random.split(k_noise)
    real = (first + second) / 2 + 0.05 * jax.random.normal(first_key, real.shape)
    fake = fake + 0.05 * jax.random.normal(second_key, fake.shape)

    def loss(w):
        return jnp.mean((fake @ w - real @ w) ** 2)

    return w - 0.1 * jax.grad(loss)(w)


w, g = jnp.zeros(PIXELS), jnp.ones((LATENT, PIXELS))
for step in range(5):
    w = critic_step(w, g, jnp.ones((8, PIXELS)), jax.random.fold_in(jax.random.key(0), step))
print(w.sum())
