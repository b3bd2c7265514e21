# the prices are jitted, and the steps are a scan
# applies: fix-inner-loop, fix-jit-step-function, python-values-static, fix-loop-by-scan
import jax
import jax.numpy as jnp


def simulate(key, start, steps=100, paths=2000):
    def step(s, sub):
        return s * jnp.exp(0.0004 + 0.02 * jax.random.normal(sub, (paths,))), None

    s, _ = jax.lax.scan(step, jnp.ones(paths) * start, jax.random.split(key, steps))
    return s


@jax.jit
def price(key, strike, start):
    return jnp.mean(jnp.maximum(simulate(key, start) - strike, 0))


key = jax.random.key(0)
for strike in range(80, 120, 2):
    p, slope = price(key, float(strike), 100.0), jax.grad(price, 2)(key, float(strike), 100.0)  # may: JX133
    print(strike, p, slope)  # may: JX601
