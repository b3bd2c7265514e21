# Mended: hk.dynamic_unroll, a scan
# applies: fix-scan-over, scan-stack-first
import haiku as hk
import jax
import jax.numpy as jnp


def forward(xs):
    core = hk.VanillaRNN(32)
    y, state = hk.dynamic_unroll(core, xs, core.initial_state(xs.shape[1]))
    return y[-1].mean()


net = hk.without_apply_rng(hk.transform(forward))
xs = jnp.ones((40, 8, 16))
params = jax.jit(net.init)(jax.random.PRNGKey(0), xs[:1])
step = jax.jit(lambda p, xs: jax.tree.map(lambda p, g: p - 0.1 * g, p, jax.grad(net.apply)(p, xs)))
for _ in range(5):
    params = step(params, xs)
