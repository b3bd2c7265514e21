# the initial parameters of eight equal layers are drawn in a Python loop, inside jit, once
import jax
import jax.numpy as jnp


@jax.jit
def create(key):
    layers = []
    for k in jax.random.split(key, 8):
        k_in, k_out, k_scale = jax.random.split(k, 3)
        layers.append(
            {
                "in": jax.random.truncated_normal(k_in, -2, 2, (16, 64)) * 0.1,
                "out": jax.random.truncated_normal(k_out, -2, 2, (64, 16)) * 0.1,
                "scale": 1 + 0.01 * jax.random.normal(k_scale, (16,)),
            }
        )
    return jax.tree.map(lambda *x: jnp.stack(x), *layers)


@jax.jit
def forward(layers, x):
    def layer(x, p):
        return p["scale"] * (x + jnp.tanh(x @ p["in"]) @ p["out"]), None

    return jax.lax.scan(layer, x, layers)[0]


layers = create(jax.random.key(0))
print(forward(layers, jnp.ones((4, 16))).sum())
