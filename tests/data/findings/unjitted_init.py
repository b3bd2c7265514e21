# parameters made op by op: most of the seconds are random draws, which one program would compile, too
import jax
import jax.numpy as jnp
from jax.example_libraries import stax

init, predict = stax.serial(
    stax.Conv(16, (8, 8), padding="SAME"),
    stax.Relu,
    stax.Conv(32, (4, 4)),
    stax.Relu,
    stax.Flatten,
    stax.Dense(32),
    stax.Relu,
    stax.Dense(10),
)
_, params = init(jax.random.key(0), (-1, 28, 28, 1))


@jax.jit
def step(p, x):
    return jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(lambda p: (predict(p, x) ** 2).mean())(p))


for _ in range(3):
    params = step(params, jnp.ones((8, 28, 28, 1)))
