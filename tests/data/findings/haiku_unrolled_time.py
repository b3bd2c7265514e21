# haiku: a recurrent network goes through time in a Python loop
# never: nnx|nn\.|jax\.lax
import haiku as hk
import jax
import jax.numpy as jnp


def forward(xs):
    core = hk.VanillaRNN(32)
    state = core.initial_state(xs.shape[1])
    for t in range(xs.shape[0]):
        y, state = core(xs[t], state)  # must: JX202 first ~ hk\.scan
    return y.mean()


net = hk.without_apply_rng(hk.transform(forward))
xs = jnp.ones((40, 8, 16))
params = jax.jit(net.init)(jax.random.PRNGKey(0), xs[:1])
step = jax.jit(lambda p, xs: jax.tree.map(lambda p, g: p - 0.1 * g, p, jax.grad(net.apply)(p, xs)))
for _ in range(5):
    params = step(params, xs)
