# optax: a counter in the state of a line search starts as a weakly typed number
import jax
import jax.numpy as jnp
import optax


def fun(w):
    return jnp.sum(jnp.abs(w))


search = optax.scale_by_backtracking_linesearch(max_backtracking_steps=15, store_grad=True)
opt = optax.chain(optax.sgd(learning_rate=1.0), search)


@jax.jit
def step(w, state):
    v, g = optax.value_and_grad_from_state(fun)(w, state=state)
    u, state = opt.update(g, state, w, value=v, grad=g, value_fn=fun)
    return w + u, state


w = jax.random.normal(jax.random.key(0), (8,))
state = jax.jit(opt.init)(w)
for _ in range(6):
    w, state = step(w, state)  # must: JX103 first ~ convert the weakly typed arrays in state
print(fun(w))
