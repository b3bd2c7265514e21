# a diagnostic of blackjax runs operation by operation on the samples
import jax
from blackjax.diagnostics import effective_sample_size

samples = jax.random.normal(jax.random.key(0), (2, 2000))
print(effective_sample_size(samples))  # must: JX133 first ~ jax.jit\(effective_sample_size\)
