# a state that is replicated on eight devices is restored on one of them
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("data",))
rng = np.random.default_rng(0)


@jax.jit
def train_step(state, x):
    grads = jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w["w1"]) @ w["w2"]) ** 2))(state["w"])
    m = jax.tree.map(lambda m, g: 0.9 * m + g, state["m"], grads)
    return {"w": jax.tree.map(lambda w, m: w - 0.1 * m, state["w"], m), "m": m}


def run(state, n):
    for _ in range(n):
        x = jax.device_put(rng.normal(size=(32, 256)).astype("float32"), NamedSharding(mesh, P("data")))
        state = train_step(state, x)  # must: JX120 first
    return state


w = {"w1": np.ones((256, 128), "float32") / 64, "w2": np.ones((128, 8), "float32") / 64}
state = jax.device_put({"w": w, "m": jax.tree.map(np.zeros_like, w)}, NamedSharding(mesh, P()))
state = run(state, 10)
saved = jax.device_get(state)
state = run(jax.tree.map(jnp.asarray, saved), 10)
print(state["w"]["w2"].sum())
