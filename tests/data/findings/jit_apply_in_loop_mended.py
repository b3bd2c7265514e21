# Mended: jax.jit(net.apply), jax.jit(opt.update), jax.jit(net.init): the user's jits of library methods, recompiled in a loop
# applies: fix-one-length
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

net = nn.Dense(128)
x = jnp.ones((40, 64))
p = jax.jit(net.init)(jax.random.key(0), x)
opt = optax.adam(1e-3)
st = opt.init(p)
upd = jax.jit(opt.update)
app = jax.jit(net.apply)
for n in range(12):
    app(p, x)
    u, st = upd(jax.tree.map(jnp.ones_like, p), st)
print(u["params"]["kernel"].sum())
