# the gradients are averaged over the devices, as the metrics are
# applies: fix-mean-over-devices
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
import optax
from jax.experimental import mesh_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(mesh_utils.create_device_mesh((4,)), ("batch",))
optimizer = optax.adam(1e-2)


def forward(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss_fn(params, x, y):
    logits = forward(params, x)
    accuracy = jnp.mean(jnp.argmax(logits, -1) == y)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), accuracy


def per_device(params, opt_state, x, y):
    (loss, accuracy), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, x, y)
    grads = jax.lax.pmean(grads, "batch")
    metrics = jax.lax.pmean({"loss": loss, "accuracy": accuracy}, "batch")
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, metrics


train_step = jax.jit(
    jax.shard_map(
        per_device, mesh=mesh, in_specs=(P(), P(), P("batch"), P("batch")), out_specs=(P(), P(), P()), check_vma=False
    ),
    donate_argnums=(0, 1),
)


def init(key, sizes=(16, 64, 64, 10)):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (m, n)) / m**0.5, jnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:])]


if __name__ == "__main__":
    key = jax.random.key(0)
    params = jax.jit(init)(key)
    opt_state = jax.jit(optimizer.init)(params)
    replicated, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("batch"))
    params, opt_state = jax.device_put((params, opt_state), replicated)
    x = jax.device_put(jax.random.normal(jax.random.key(1), (512, 16)), split)
    y = jax.device_put(jax.random.randint(jax.random.key(2), (512,), 0, 10), split)
    for step in range(30):
        params, opt_state, metrics = train_step(params, opt_state, x, y)
    print({name: float(value) for name, value in metrics.items()})
