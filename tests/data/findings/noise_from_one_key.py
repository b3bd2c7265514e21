# a GAN's critic: the noise of real and generated images comes from one key, and so do two augmentations of one image
import jax
import jax.numpy as jnp

LATENT, PIXELS = 16, 64


def flip(key, image):
    return jnp.where(jax.random.bernoulli(key), image[::-1], image)


def two_views(key, images):
    keys = jax.random.split(key, images.shape[0])
    augment = jax.vmap(flip)
    return augment(keys, images), augment(keys, images)  # must: JX137 ~ on line 15 \(augment\) draw from the same keys: .* equal


@jax.jit
def critic_step(w, g, real, key):
    k_latent, k_noise, k_views = jax.random.split(key, 3)
    fake = jax.random.normal(k_latent, (real.shape[0], LATENT)) @ g
    first, second = two_views(k_views, real)
    real = (first + second) / 2 + 0.05 * jax.random.normal(k_noise, real.shape)
    fake = fake + 0.05 * jax.random.normal(k_noise, fake.shape)  # must: JX137 ~ lines 23 and 24 \(jax.random.normal\) .* not independent

    def loss(w):
        return jnp.mean((fake @ w - real @ w) ** 2)

    return w - 0.1 * jax.grad(loss)(w)


w, g = jnp.zeros(PIXELS), jnp.ones((LATENT, PIXELS))
for step in range(5):
    w = critic_step(w, g, jnp.ones((8, PIXELS)), jax.random.fold_in(jax.random.key(0), step))
print(w.sum())
