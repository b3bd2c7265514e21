# Mended: The histogram of all pairs is computed once in 40 iterations
# applies: fix-compute-what-is-read
import jax
import jax.numpy as jnp

N, STEPS, EVERY = 200, 2400, 40


def differences(position):
    return position[:, None] - position[None]


def force(position):
    d = differences(position)
    distance = jnp.sum(d * d, -1, keepdims=True) + 0.1
    return jnp.sum(d / distance**2, 1) - position


def observe(position, velocity):
    r = jnp.sqrt(jnp.sum(differences(position) ** 2, -1) + 1e-9)
    pairs, _ = jnp.histogram(r.reshape(-1), bins=jnp.linspace(0.0, 4.0, 64))
    return {"pairs": pairs, "kinetic": 0.5 * jnp.sum(velocity**2)}


@jax.jit
def simulate(position, velocity):
    def advance(_, state):
        position, velocity = state
        velocity = velocity + 0.01 * force(position)
        position = position + 0.01 * velocity
        return position, velocity

    def body(state, _):
        state = jax.lax.fori_loop(0, EVERY, advance, state)
        return state, observe(*state)

    return jax.lax.scan(body, (position, velocity), length=STEPS // EVERY)


key = jax.random.key(0)
state, trace = simulate(jax.random.normal(key, (N, 3)), jnp.zeros((N, 3)))
print(jax.tree.map(lambda a: (a.shape, float(a.sum())), trace), float(state[0].sum()))
