# boolean mask in a debug callback: another result length each time, eager compilations in the callback
# may: JX301
import jax
import jax.numpy as jnp


def show(info):
    r = info["ret"][info["done"]]  # must: JX133 first ~ lines 8, 9 and 11 of show.*use NumPy in show
    t = info["t"][info["done"]] * 4
    for i in range(len(t)):
        print(t[i], r[i])


@jax.jit
def train(key):
    def turn(k, _):
        k, a = jax.random.split(k)
        done = jax.random.bernoulli(jax.random.fold_in(a, 1), 0.2, (40,))
        jax.debug.callback(show, {"ret": jax.random.normal(a, (40,)), "done": done, "t": jnp.arange(40)})
        return k, done.sum()

    return jax.lax.scan(turn, key, None, length=30)


print(train(jax.random.PRNGKey(0))[1].sum())
