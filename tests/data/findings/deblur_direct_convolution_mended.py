# Mended: the convolutions are computed with Fourier transforms
# applies: fix-fftconvolve
import jax
import jax.numpy as jnp
import jax.scipy.signal as signal
import numpy as np
import scipy.signal

SIZE, WIDTH = 128, 33


def spread(width):
    ax = np.arange(width) - width // 2
    psf = np.exp(-(ax[:, None] ** 2 + ax[None] ** 2) / 18.0)
    return (psf / psf.sum()).astype(np.float32)


@jax.jit
def iterate(estimate, image, psf):
    blurred = signal.fftconvolve(estimate, psf, mode="same")
    ratio = image / jnp.maximum(blurred, 1e-6)
    return estimate * signal.fftconvolve(ratio, psf[::-1, ::-1], mode="same")


rng = np.random.default_rng(0)
psf = spread(WIDTH)
truth = (rng.uniform(size=(SIZE, SIZE)) > 0.995).astype(np.float32)
image = scipy.signal.fftconvolve(truth, psf, mode="same").astype(np.float32) + np.float32(0.01)
estimate = jnp.full((SIZE, SIZE), 0.5, jnp.float32)
for n in range(15):
    estimate = iterate(estimate, image, psf)
print(float(jnp.mean((estimate - truth) ** 2)))
