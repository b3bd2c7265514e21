# Mended: the transform of the kernel is computed once, before the loop
# applies: fix-function-before-loop
import jax
import jax.numpy as jnp
import numpy as np

SIZE = 128


@jax.jit
def kernel_of(angle):
    """The frequencies of a long, thin kernel at an angle, a sum of many points."""
    grid = jnp.arange(SIZE) - SIZE // 2
    rows, columns = jnp.meshgrid(grid, grid, indexing="ij")
    steps = jnp.linspace(-20.0, 20.0, 200)
    points = jnp.stack([steps * jnp.cos(angle), steps * jnp.sin(angle)])
    apart = (rows[..., None] - points[0]) ** 2 + (columns[..., None] - points[1]) ** 2
    return jnp.fft.rfft2(jnp.fft.ifftshift(jnp.exp(-apart / 2.0).sum(-1)))


@jax.jit
def blur(images, kernel):
    return jnp.fft.irfft2(jnp.fft.rfft2(images) * kernel, (SIZE, SIZE))


rng = np.random.default_rng(0)
kernel = kernel_of(jnp.float32(0.3))
for n in range(30):
    images = rng.normal(size=(4, SIZE, SIZE)).astype(np.float32)
    blurred = blur(images, kernel)
print(float(blurred.std()))
