# Mended: the user jits a method of a library's object: whose function is it
# applies: fix-pad-odd-batch
import flax.linen as nn
import jax
import jax.numpy as jnp

net = nn.Dense(128)
x = jnp.ones((4, 64))
p = jax.jit(net.init)(jax.random.key(0), x)
net_apply = jax.jit(net.apply)
for n in (4, 4, 4):
    print(net_apply(p, x[:n]).sum())
