"""The speed of a wave in a plate is fitted by the gradient through all time steps, kept in segments."""

# applies: fix-checkpoint-segments

import jax
import jax.numpy as jnp
import numpy as np

N, STEPS, DT = 160, 900, 0.4


def laplacian(u):
    return sum(jnp.roll(u, s, axis) for s in (-1, 1) for axis in (0, 1)) - 4 * u


def record(speed, source):
    def step(carry, amplitude):
        u, before = carry
        after = 2 * u - before + (DT * speed) ** 2 * laplacian(u)
        after = after.at[N // 2, N // 2].add(amplitude)
        return (after, u), after[N // 4, N // 4]

    @jax.checkpoint
    def segment(carry, amplitudes):
        return jax.lax.scan(step, carry, amplitudes)

    zero = jnp.zeros((N, N))
    return jax.lax.scan(segment, (zero, zero), source.reshape(30, -1))[1].reshape(-1)


def misfit(speed, source, seen):
    return jnp.mean((record(speed, source) - seen) ** 2)


@jax.jit
def update(speed, source, seen):
    loss, gradient = jax.value_and_grad(misfit)(speed, source, seen)
    return speed - 0.01 * gradient / (jnp.abs(gradient).max() + 1e-9), loss


source = np.sin(np.arange(STEPS) * 0.2).astype(np.float32) * (np.arange(STEPS) < 60)
seen = jax.jit(record)(np.full((N, N), 0.9, np.float32), source)
speed = np.full((N, N), 0.8, np.float32)
for _ in range(4):
    speed, loss = update(speed, source, seen)
print(f"loss {float(loss):.3e}")
