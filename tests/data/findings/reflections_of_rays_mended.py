# applies: fix-branch-outside-vmap
# may: JX514 note
import jax
import jax.numpy as jnp


def moved(y):
    position, angle = y
    return jnp.stack([position + jnp.sin(angle) * 0.01, angle])


def wall(angle):
    return 1.0 + 0.1 * jnp.sum(jnp.sin(jnp.arange(1.0, 60.0) * angle))


def reflected(y):
    slope = jax.grad(wall)(y[1])
    return jnp.stack([2 * wall(y[1]) - y[0], -y[1] + 2 * jnp.arctan(slope)])


def step(batch, _):
    new = jax.vmap(moved)(batch)
    hit = new[:, 0] > 3.0

    def some(new):
        return jnp.where(hit[:, None], jax.vmap(reflected)(new), new)

    new = jax.lax.cond(jnp.any(hit), some, lambda new: new, new)
    return new, new


@jax.jit
def trace(starts):
    return jax.lax.scan(step, starts, None, length=40_000)[1]


starts = jnp.stack([jnp.zeros(20), jnp.linspace(-1.0, 1.0, 20)], axis=1)
print(trace(starts).sum())
