# a graph network in the style of the first JAX GCNs: the nodes of each split are Python lists in the batch
import jax
import jax.numpy as jnp
import numpy as np
from jax.example_libraries import optimizers, stax


def normalized(edges, n):
    a = np.eye(n, dtype=np.float32)
    a[edges[:, 0], edges[:, 1]] = a[edges[:, 1], edges[:, 0]] = 1
    return a / a.sum(1, keepdims=True)


init, dense = stax.serial(stax.Dense(32), stax.Relu, stax.Dense(7))


def forward(params, batch):
    features, adjacency, _, _ = batch
    return jax.nn.log_softmax(adjacency @ dense(params, features))


def loss(params, batch):
    labels, nodes = jnp.array(batch[2]), jnp.array(batch[3])
    return -jnp.mean(forward(params, batch)[nodes, labels])


@jax.jit
def update(i, state, batch):
    return step_of(i, jax.grad(loss)(params_of(state), batch), state)  # may: JX506


@jax.jit
def accuracy(state, batch):
    return jnp.mean(forward(params_of(state), batch)[jnp.array(batch[3])].argmax(1) == jnp.array(batch[2]))


rng, n = np.random.default_rng(0), 1000
features = jax.device_put(rng.normal(size=(n, 64)).astype(np.float32))
adjacency = jax.device_put(normalized(rng.integers(0, n, (4000, 2)), n))
labels = rng.integers(0, 7, n).tolist()
train = (features, adjacency, labels[:140], list(range(140)))
test = (features, adjacency, labels[500:], list(range(500, 1000)))
start, step_of, params_of = optimizers.adam(1e-2)
state = start(jax.jit(init, static_argnums=1)(jax.random.key(0), (-1, 64))[1])
for i in range(40):
    state = update(i, state, train)
print(accuracy(state, test))  # must: JX127 first ~ batch\[2\] is a list of 500 numbers\. .* of accuracy: .* The same is true of batch\[3\] of accuracy, batch\[2\] of update
