# may: JX112
# applies: fix-one-length
import atexit

import jax
import jax.numpy as jnp

f = jax.jit(lambda x: x * 2)
f(jnp.ones(3))
atexit._run_exitfuncs()  # as chex's own tests do
for n in range(4, 14):
    f(jnp.ones(3))
print("10 more compiled", f._cache_size())
