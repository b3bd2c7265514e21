# The adjoint of a neural ODE: a Jacobian by all parameters, for each example, of which only a product is needed
import jax
import jax.numpy as jnp


def net(params, y):
    for w, b in params[:-1]:
        y = jnp.tanh(w @ y + b)
    w, b = params[-1]
    return w @ y + b


def rate(params, y, adjoint):
    jacobian = jax.jacfwd(net)(params, y)  # must: JX210 first ~ jax.jacrev
    return jax.tree.map(lambda x: jnp.einsum("j,j...->...", -adjoint, x), jacobian)


def integrate(params, y, steps):
    def step(_, gradient):
        return jax.tree.map(lambda g, r: g + 0.01 * r, gradient, rate(params, y, y))

    return jax.lax.fori_loop(0, steps, step, jax.tree.map(jnp.zeros_like, params))


@jax.jit
def train_step(params, ys, steps):
    gradients = jax.vmap(integrate, (None, 0, None))(params, ys, steps)
    return jax.tree.map(lambda p, g: p - 1e-3 * g.sum(0), params, gradients)


@jax.jit
def create(key):
    keys, sizes = jax.random.split(key, 3), [2, 32, 32, 2]
    pairs = zip(keys, sizes, sizes[1:], strict=False)
    return [(jax.random.normal(k, (m, n)) / n**0.5, jnp.zeros(m)) for k, n, m in pairs]


params, ys = create(jax.random.key(0)), jax.random.normal(jax.random.key(1), (64, 2))
for _ in range(60):
    params = train_step(params, ys, 20)
print(float(params[0][0].sum()))
