"""Arrays that a scan stacks and of which the program reads little, in programs lowered by the JAX at hand."""

import pytest

from jaxscope.analysis.stablehlo.reading import analyze

CODE = """
def stack(x, n=100):
    return jax.lax.scan(lambda c, _: (c * 1.1,) * 2, x, length=n)[1]  # scan

def sparse(x):
    ys = stack(x)
    return ys[::25], ys[-1].sum()  # read

def by_index(x, k):
    return stack(x)[jnp.array([1, 50])], stack(x)[k]

def one_column(x):
    return stack(x)[:, 3]

def returned(x):
    ys = stack(x)
    return ys[::25], ys

def summed(x):
    ys = stack(x)
    return ys[::25], ys.mean()

def spread(x):
    ys = stack(x)
    return ys[::25], (ys - ys.mean()).sum()

def half(x):
    return stack(x)[::2]

def carried(u):
    return jax.lax.fori_loop(0, 10, lambda i, u: u + jnp.roll(u, 1, 0), u)[-1]

def gradient(w):
    def loss(w):
        return jax.lax.scan(lambda h, _: ((jnp.tanh(h @ w),) * 2), jnp.ones((8, 64)), length=40)[1][-1].sum()
    return jax.grad(loss)(w)

def best(x):
    ys = stack(x)
    return ys[jnp.argmin(ys[:, 0])], ys[0]

def history(x):
    def step(i, h):
        before = jax.lax.cond(i > 40, lambda: h[i - 40], lambda: x)
        return h.at[i].set(before * 1.1)
    return jax.lax.fori_loop(0, 100, step, jnp.zeros((100, 64)))[-1]

def given(x, buffer):
    write = lambda c, i: (c.at[i].set(x * i), None)
    return jax.lax.scan(write, buffer, jnp.arange(10))[0][3]

@jax.jit
def inner(x):
    return stack(x)

def taken(x):
    return jnp.take(inner(x), jnp.array([1, 50]), axis=0)

def batched(xs):
    return jax.vmap(inner)(xs)[:, -1]

def filled(x):
    return jax.lax.fori_loop(0, 100, lambda i, h: h.at[i].set(x * i), jnp.zeros((100, 64)))[-1]

def added(x):
    return jax.lax.fori_loop(0, 100, lambda i, h: h.at[i % 7].add(x * i), jnp.zeros((100, 64)))[-1]

def best_of_inner(x):
    ys = inner(x)
    return jnp.take(ys, jnp.argmin(ys[:, 0]), axis=0), jnp.take(ys, 0, axis=0)

def twice(x):
    return inner(inner(x)[-1])[-1]

x = jnp.ones(64)
for f in (taken, filled, added, best_of_inner, twice):
    save(f.__name__, jax.jit(f), x)
save("batched", jax.jit(batched), jnp.ones((3, 64)))
save("given", jax.jit(given), x, jnp.ones((100, 64)))
for f in (sparse, one_column, returned, summed, spread, half, best, history):
    save(f.__name__, jax.jit(f), x)
save("by_index", jax.jit(by_index), x, 3)
save("carried", jax.jit(carried), jnp.ones((100, 64)))
save("gradient", jax.jit(gradient), jnp.ones((64, 64)))
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_a_stack_of_which_slices_are_read_is_found_and_no_other(lower):
    found = lower(CODE)
    stacked = {name: analyze(text).stacked for name, text in found.texts.items()}
    [sparse] = stacked["sparse"]
    assert (sparse.shape, sparse.arrays, sparse.bytes) == ((100, 64), 1, (100 - 5) * 64 * 4)
    assert (sparse.source.line, sparse.read_at.line) == (found.line("scan"), found.line("read"))
    assert [s.share for s in stacked["one_column"]] == [1 / 64]
    assert sorted(s.share for s in stacked["by_index"]) == [0.01, 0.02]  # stack is lowered twice
    [summed] = stacked["summed"]
    assert (summed.reduced, summed.whole, sparse.reduced, sparse.whole) == (True, False, False, True)
    # Through the functions that return and read them, and where a transpose puts the iterations
    assert [(s.share, s.whole) for s in stacked["taken"]] == [(0.02, True)]
    assert [(s.shape, s.share, s.whole) for s in stacked["batched"]] == [((100, 3, 64), 0.01, True)]
    assert [(s.share, s.whole) for s in stacked["filled"]] == [(0.01, True)]
    rest = (
        "added",
        "best_of_inner",
        "twice",
        "returned",
        "spread",
        "half",
        "carried",
        "gradient",
        "best",
        "history",
        "given",
    )
    assert {name: stacked[name] for name in rest} == dict.fromkeys(rest, ())
