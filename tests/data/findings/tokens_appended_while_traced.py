# A jitted function appends tokens in a Python loop: each of the twelve passes is part of the program
import jax
import jax.numpy as jnp
import numpy as np

DIM, NEW = 16, 12


def logits(params, x, mask=None):
    for p in params["layers"]:
        q, k, v = x @ p["q"], x @ p["k"], x @ p["v"]
        scores = q @ k.T if mask is None else jnp.where(mask, q @ k.T, -1e9)
        x = x + jax.nn.softmax(scores) @ v
    return x @ params["embed"].T


@jax.jit
def generate(params, tokens):
    for _ in range(NEW):
        new = jnp.argmax(logits(params, params["embed"][tokens])[-1])  # must: JX202 first ~ with longer arrays
        tokens = jnp.concatenate([tokens, new[None].astype(tokens.dtype)])
    return tokens


rng = np.random.default_rng(0)
layers = [{n: rng.normal(size=(DIM, DIM)).astype("float32") for n in "qkv"} for _ in range(2)]
params = {"embed": rng.normal(size=(32, DIM)).astype("float32"), "layers": layers}
print(generate(params, np.arange(4, dtype="int32")))
