# two models of other sizes, layers, dtypes and activations are trained by one function: each needs a program of its own
# may: JX133 note
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

rng = np.random.default_rng(0)


def init(sizes, dtype):
    return [(jnp.asarray(rng.normal(size=s), dtype), jnp.zeros(s[1], dtype)) for s in zip(sizes, sizes[1:])]


@jax.jit
def step(params, x):
    def loss(params):
        h = x
        for w, b in params:
            h = jnp.tanh(h @ w + b)
        return (h**2).mean()

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


@jax.jit
def descend(w, x):
    return w - 0.1 * x.T @ (x @ w)


class Model(eqx.Module):
    w: jax.Array
    activation: object = eqx.field(static=True)

    def __call__(self, x):
        return self.activation(x @ self.w)


@eqx.filter_jit
def update(model, state, opt, x):
    grads = eqx.filter_grad(lambda m: (m(x) ** 2).mean())(model)
    updates, state = opt.update(grads, state)
    return eqx.apply_updates(model, updates), state


def start(activation):
    opt = optax.sgd(0.1)
    model = Model(jnp.asarray(rng.normal(size=(16, 4)), jnp.float32), activation)
    return model, opt.init(model), opt


x = jnp.asarray(rng.normal(size=(8, 16)), jnp.float32)
half = x.astype(jnp.bfloat16)
actor, critic = init([16, 32, 4], jnp.float32), init([16, 32, 32, 1], jnp.float32)
large, small = jnp.zeros((16, 4), jnp.float32), jnp.zeros((16, 4), jnp.bfloat16)
one, one_state, one_opt = start(jnp.tanh)
two, two_state, two_opt = start(jax.nn.relu)
for i in range(6):
    actor = step(actor, x)
    critic = step(critic, x)
    large = descend(large, x)
    small = descend(small, half)
    one, one_state = update(one, one_state, one_opt, x)
    two, two_state = update(two, two_state, two_opt, x)
