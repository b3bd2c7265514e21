# Mixed precision: a float32 table of positions makes all activations float32, and each product with them
import jax
import jax.numpy as jnp
import numpy as np

SEQ, DIM, LAYERS = 32, 64, 2


def positions(length, dim):
    angles = np.arange(length)[:, None] / 100.0 ** (np.arange(0, dim, 2) / dim)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def attention(x, p):
    q, k, v = x @ p["q"], x @ p["k"], x @ p["v"]
    weights = jax.nn.softmax((q @ k.swapaxes(-1, -2)).astype(jnp.float32) / DIM**0.5).astype(v.dtype)
    return (weights @ v) @ p["out"]


def forward(params, tokens):
    x = params["embed"][tokens] * DIM**0.5 + positions(SEQ, DIM)  # must: JX302 first ~ cast its float32 operand
    for p in params["layers"]:
        x = x + attention(x, p)
        x = x + jax.nn.gelu(x @ p["up"]) @ p["down"]
    return (x @ params["embed"].T).astype(jnp.float32)


def loss(params, tokens):
    half = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)  # float32 parameters, bfloat16 computation
    logits = jax.nn.log_softmax(forward(half, tokens[:, :-1]))
    return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1))


@jax.jit
def step(params, tokens):
    value, grads = jax.value_and_grad(loss)(params, tokens)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


rng = np.random.default_rng(0)
shapes = {"q": (DIM, DIM), "k": (DIM, DIM), "v": (DIM, DIM), "out": (DIM, DIM), "up": (DIM, 256), "down": (256, DIM)}
layers = [{n: rng.normal(size=s, scale=0.1).astype("float32") for n, s in shapes.items()} for _ in range(LAYERS)]
params = {"embed": rng.normal(size=(64, DIM)).astype("float32"), "layers": layers}
for _ in range(5):
    params, value = step(params, rng.integers(0, 64, (16, SEQ + 1)))
print(float(value))
