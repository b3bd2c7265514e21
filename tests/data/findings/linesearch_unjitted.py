# optax: a line search whose gradient and update run outside jit: two lines of one loop, one step to jit
import jax
import jax.numpy as jnp
import optax


def fun(w):
    return jnp.sum(jnp.abs(w))


search = optax.scale_by_backtracking_linesearch(max_backtracking_steps=15, store_grad=True)
opt = optax.chain(optax.sgd(learning_rate=1.0), search)
w = jax.random.normal(jax.random.key(0), (8,))
state = opt.init(w)
for _ in range(6):
    v, g = optax.value_and_grad_from_state(fun)(w, state=state)
    u, state = opt.update(g, state, w, value=v, grad=g, value_fn=fun)  # must: JX133 first ~ lines 16 to 18 in the loop
    w = w + u
print(fun(w))
