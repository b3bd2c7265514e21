"""A training step on eight devices, for tests that change one thing in it: data and model parallel, donated
state, a scan over layers, a constraint, a captured small table, a static mode."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import jaxscope

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
LAYERS, WIDTH, HIDDEN, BATCH, STEPS = 6, 64, 256, 64, 6
TABLE = jnp.asarray(np.linspace(0, 1, 512 * 64, dtype="float32").reshape(512, 64))


def put(x, *spec):
    return jax.device_put(x, NamedSharding(mesh, P(*spec)))


def init():
    rng = np.random.default_rng(0)

    def normal(*shape):
        return rng.normal(size=shape).astype("float32") / shape[-2] ** 0.5

    params = {
        "layers": put(normal(LAYERS, WIDTH, WIDTH), None, "model"),
        "up": put(normal(WIDTH, HIDDEN), None, "model"),
        "down": put(normal(HIDDEN, WIDTH), "model"),
    }
    return {"params": params, "count": put(np.int32(0))}


def layer(h, w):
    return jnp.tanh(h @ w), None


def forward(params, x):
    h, _ = jax.lax.scan(layer, x, params["layers"])
    h = jax.nn.relu(h @ params["up"])
    return h @ params["down"]


def loss_fn(params, batch, mode):
    error = (forward(params, batch["x"]) - batch["y"]) @ batch["codes"]
    error = jax.lax.with_sharding_constraint(jnp.sin(error), NamedSharding(mesh, P("data", "model")))
    return jnp.mean(error**2) if mode == "square" else jnp.mean(jnp.abs(error))


def update(p, g):
    return p - 0.1 * g


@functools.partial(jax.jit, donate_argnames="state", static_argnames="mode")
def train_step(state, batch, mode):
    loss, grads = jax.value_and_grad(loss_fn)(state["params"], batch, mode)
    params = jax.tree.map(update, state["params"], grads)
    return {"params": params, "count": state["count"] + jnp.int32(1)}, loss


def halve(x):
    return x * 0.5


scale = jax.jit(halve)


def batches():
    rng = np.random.default_rng(1)
    codes = put(rng.normal(size=(WIDTH, 512)).astype("float32"))
    for i in range(STEPS):
        size = BATCH
        x = rng.normal(size=(size, WIDTH)).astype("float32")
        yield i, {"x": put(x, "data"), "y": put(x[:, ::-1].copy(), "data"), "codes": codes}


def main():
    state = init()
    losses = []
    for i, batch in batches():
        batch = {**batch, "x": scale(batch["x"])}
        state, loss = train_step(state, batch, mode="square")
        losses.append(loss)
        jaxscope.step()
    print(f"loss {float(losses[-1]):.3f}")


main()
