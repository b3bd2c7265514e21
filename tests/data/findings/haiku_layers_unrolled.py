# haiku: the residual blocks of a network, each with parameters of its own, in a Python loop
# never: nnx|nn\.|jax\.lax
import haiku as hk
import jax
import jax.numpy as jnp


class Block(hk.Module):
    def __call__(self, x):
        h = jax.nn.gelu(hk.Linear(128)(hk.LayerNorm(-1, True, True)(x)))
        return x + hk.Linear(32)(h)


def forward(x):
    x = hk.Linear(32)(x)
    for _ in range(16):
        x = Block()(x)  # must: JX202 first ~ hk\.scan .*\(as hk\.layer_stack, if
    return hk.Linear(4)(x)


net = hk.without_apply_rng(hk.transform(forward))
xs = jax.random.normal(jax.random.key(0), (64, 8))
params = jax.jit(net.init)(jax.random.key(1), xs)


@jax.jit
def step(params, xs):
    value, gradient = jax.value_and_grad(lambda p: (net.apply(p, xs) ** 2).mean())(params)
    return jax.tree.map(lambda p, g: p - 0.001 * g, params, gradient), value


for _ in range(5):
    params, value = step(params, xs)
print(value)
