# Mended: the pass is computed before the loop
# applies: fix-call-before-loop
import jax
import jax.numpy as jnp

SIZE = 400


@jax.jit
def backward(states, controls):
    value = controls
    for _ in range(4):
        value = jnp.tanh(value @ states)
    return value


@jax.jit
def forward(gains, step):
    return (gains * step).sum()


states = jax.random.normal(jax.random.key(0), (SIZE, SIZE)) / SIZE**0.5
controls = jnp.ones((SIZE, SIZE))
costs = []
gains = backward(states, controls)
for i in range(30):
    costs.append(forward(gains, 1.0 / (i + 1)))
print(float(costs[-1]))
