# the diagnostic is jitted
# applies: fix-jit-method, jitted-once, with-statics
import jax
from blackjax.diagnostics import effective_sample_size

samples = jax.random.normal(jax.random.key(0), (2, 2000))
print(jax.jit(effective_sample_size)(samples))
