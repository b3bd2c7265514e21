# several prints in one function, and in one loop body: each function is one finding, with its lines
import jax
import jax.numpy as jnp


def show(w):
    print(w.sum())


@jax.jit
def step(w):  # the loop body is a function of its own
    def body(i, w):
        jax.debug.print("i {i}", i=i)
        jax.debug.callback(show, w)  # must: JX301 ~ in each iteration of a loop, from lines 13 and 14
        return w * 0.9

    w = jax.lax.fori_loop(0, 2, body, w)
    jax.debug.print("w {w}", w=w[0])  # must: JX301 ~ calls back into Python 3 times, from lines 18, 19 and 20
    jax.debug.print("norm {n}", n=jnp.linalg.norm(w))
    jax.debug.callback(show, w)
    return w


print(step(jnp.ones(8)).sum())
