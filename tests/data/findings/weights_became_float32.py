# a bfloat16 model whose weights are float32, because the initialization divides by a float32 array
import jax, jax.numpy as jnp

C = 128


def init(key):
    def matrix(k):
        return jax.random.normal(k, (C, C), jnp.bfloat16) / jnp.sqrt(jnp.array(C, jnp.float32))

    return [matrix(k) for k in jax.random.split(key, 4)]


def layer(x, p):
    a = x @ p[0]  # must: JX302 first ~ matrices in the arguments ps are float32 .* create them with this dtype
    b = a @ p[1]
    w = jax.nn.softmax(b @ b.T).astype(x.dtype)
    y = w @ a
    y = y @ p[2]
    x = x + y.astype(x.dtype)
    h = jax.nn.gelu(x @ p[3])
    return x + h.astype(x.dtype)


@jax.jit
def step(ps, x):
    def loss(ps):
        y = x
        for p in ps:
            y = layer(y, p)
        return jnp.mean(y.astype(jnp.float32) ** 2)

    g = jax.grad(loss)(ps)
    return jax.tree.map(lambda a, b: a - 0.1 * b, ps, g)


ps = [init(k) for k in jax.random.split(jax.random.key(0), 2)]
x = jnp.ones((64, C), jnp.bfloat16)
for i in range(20):
    ps = step(ps, x)
print(float(ps[0][0].sum()))
