# a particle that leaves the box is set up again, which is rare: under vmap, the set-up runs for all of them in each step
import jax
import jax.numpy as jnp

PARTICLES = 256


def energy(sites):
    distances = jnp.sum((sites[:, None] - sites[None]) ** 2, axis=-1)
    return jnp.sum(jnp.exp(-distances)) + 0.1 * jnp.sum(sites**2)


def set_up(state):
    """New sites of the molecule, relaxed by gradient descent."""
    key, new = jax.random.split(state["key"])
    sites = jax.random.normal(new, (8, 2))
    sites = jax.lax.fori_loop(0, 40, lambda _, s: s - 0.05 * jax.grad(energy)(s), sites)
    return {"key": key, "sites": sites, "centre": jnp.zeros(2)}


def move(state, kick):
    centre = state["centre"] + 0.1 * kick + 0.01 * jnp.tanh(state["sites"].mean(0))
    state = {**state, "centre": centre}
    outside = jnp.max(jnp.abs(centre)) > 3.0
    return jax.lax.cond(outside, set_up, lambda s: s, state)  # must: JX206 first ~ set_up has .* operations


@jax.jit
def advance(states, key):
    def step(states, key):
        return jax.vmap(move)(states, jax.random.normal(key, (PARTICLES, 2))), None

    return jax.lax.scan(step, states, jax.random.split(key, 20))[0]


def start(key):
    return set_up({"key": key})


states = jax.jit(jax.vmap(start))(jax.random.split(jax.random.key(0), PARTICLES))
for n in range(8):
    states = advance(states, jax.random.fold_in(jax.random.key(1), n))
print(float(jnp.abs(states["centre"]).max()))
