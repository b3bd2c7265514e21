"""The step that waits for its own loss: ``float(loss)`` in a training loop, and the loop without it.

    jaxscope run samples/float_per_step.py            # the program stands waiting in every step
    jaxscope run samples/float_per_step.py --fixed    # it reads the loss every 50th step

An autoencoder of the digits in ``digits.npz``. JAX queues a step and returns at once, so that the next one can
be prepared meanwhile; ``float(loss)`` waits until the device has computed it.
"""

import argparse
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxscope

SIZES = (64, 512, 512, 16, 512, 512, 64)
STEPS, BATCH, EVERY = 200, 128, 50


def init(key):
    keys = jax.random.split(key, len(SIZES) - 1)
    return [
        {"w": jax.random.normal(k, (a, b)) / np.sqrt(a), "b": jnp.zeros(b)}
        for k, a, b in zip(keys, SIZES, SIZES[1:], strict=False)
    ]


def loss_of(params, x):
    y = x
    for layer in params[:-1]:
        y = jnp.tanh(y @ layer["w"] + layer["b"])
    return jnp.mean((y @ params[-1]["w"] + params[-1]["b"] - x) ** 2)


@jaxscope.watch(step=True)
@partial(jax.jit, donate_argnames="params")
def train_step(params, images, step):
    x = jax.lax.dynamic_slice_in_dim(images, step * BATCH % (len(images) - BATCH), BATCH)
    loss, gradients = jax.value_and_grad(loss_of)(params, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), loss


def train(images, *, fixed: bool):
    params = init(jax.random.key(0))
    losses = []
    for step in range(STEPS):
        params, loss = train_step(params, images, step)
        if not fixed or step % EVERY == EVERY - 1:
            losses.append(float(loss))
    return params, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fixed", action="store_true", help="read the loss every 50th step")
    fixed = parser.parse_args().fixed
    images = np.load(Path(__file__).parent / "digits.npz")["images"]
    images = jax.device_put(images.reshape(len(images), 64).astype("float32") / 16)
    began = time.perf_counter()
    params, losses = train(images, fixed=fixed)
    jax.block_until_ready(params)
    print(f"loss {losses[-1]:.4f} after {STEPS} steps in {time.perf_counter() - began:.2f} s")


if __name__ == "__main__":
    main()
