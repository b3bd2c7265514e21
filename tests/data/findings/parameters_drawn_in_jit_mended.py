# Mended: the parameters are created without jit, so that JAX compiles each different draw once
# applies: fix-repeated-draws
import jax
import jax.numpy as jnp
import numpy as np
import optax

LAYERS, WIDTH, HEADS, CLASSES = 12, 32, 4, 10


def dense(key, rows, columns):
    return jax.random.normal(key, (rows, columns)) * 0.3 / jnp.sqrt(rows)


def layer(key):
    q, k, v, o, up, gate, down = jax.random.split(key, 7)
    return {
        "q": dense(q, WIDTH, WIDTH),
        "k": dense(k, WIDTH, WIDTH),
        "v": dense(v, WIDTH, WIDTH),
        "o": dense(o, WIDTH, WIDTH),
        "up": dense(up, WIDTH, 2 * WIDTH),
        "gate": dense(gate, WIDTH, 2 * WIDTH),
        "down": dense(down, 2 * WIDTH, WIDTH),
    }


def init(key):
    first, last, *keys = jax.random.split(key, LAYERS + 2)
    layers = [layer(k) for k in keys]
    return {
        "embed": dense(first, 16, WIDTH),
        "layers": jax.tree.map(lambda *x: jnp.stack(x), *layers),
        "head": dense(last, WIDTH, WIDTH)[:, :CLASSES],
    }


def attend(p, x):
    q, k, v = (jnp.reshape(x @ p[n], (*x.shape[:2], HEADS, -1)) for n in "qkv")
    weights = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k) / np.sqrt(WIDTH // HEADS))
    return jnp.einsum("bhts,bshd->bthd", weights, v).reshape(x.shape) @ p["o"]


def model(params, x):
    def block(x, p):
        x = x + attend(p, x)
        return x + (jax.nn.silu(x @ p["gate"]) * (x @ p["up"])) @ p["down"], None

    x, _ = jax.lax.scan(block, x @ params["embed"], params["layers"])
    return x.mean(1) @ params["head"]


optimizer = optax.sgd(0.01)


@jax.jit
def step(params, state, x, y):
    def loss(params):
        return optax.softmax_cross_entropy_with_integer_labels(model(params, x), y).mean()

    value, grads = jax.value_and_grad(loss)(params)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, value


rng = np.random.default_rng(0)
params = init(jax.random.key(0))
state = optimizer.init(params)
for _ in range(10):
    x = rng.normal(size=(8, 12, 16)).astype(np.float32)
    params, state, value = step(params, state, x, rng.integers(0, CLASSES, 8))
print(float(value))
