"""Work in a scan whose results are read for few iterations, in programs lowered by the JAX at hand."""

import pytest

from jaxscope.analysis.stablehlo.reading import analyze

CODE = """
def advance(x):
    return jnp.tanh(x @ w)  # advance

def measure(x):
    return jnp.sin(x @ x.T @ x), jnp.sum(x)  # measure

def thinned(x):
    body = lambda x, _: (advance(x), measure(x))
    x, (large, small) = jax.lax.scan(body, x, length=100)  # scan
    return x, large[9::10], small[9::10]  # read

def last(x):
    y, large = jax.lax.scan(lambda x, _: (advance(x), measure(x)[0]), x, length=100)
    return y, large[-1]

def all_of_one(x):
    x, (large, small) = jax.lax.scan(lambda x, _: (advance(x), measure(x)), x, length=100)
    return x, large, small[9::10]

def column(x):
    return jax.lax.scan(lambda x, _: (advance(x), measure(x)[0][0]), x, length=100)[1][:, 3]

def carried(x):
    def body(x, _):
        y = measure(x)[0]
        return advance(y), y
    x, large = jax.lax.scan(body, x, length=100)
    return x, large[9::10]

def in_branch(x):
    def body(x, i):
        return advance(x), jax.lax.cond(i % 10 == 9, lambda: measure(x)[0], lambda: x)
    x, large = jax.lax.scan(body, x, jnp.arange(100))
    return x, large[9::10]

def twice(x):
    def body(x, _):
        return advance(x), jax.jit(measure)(x)[0]
    x, large = jax.lax.scan(body, x, length=100)
    y = jax.lax.fori_loop(0, 10, lambda i, y: jax.jit(measure)(y)[0], x)
    return x, y, large[9::10]

def state(x):
    def body(x, _):
        x = advance(x)
        return x, x
    return jax.lax.scan(body, x, length=100)[1][9::10]

def mostly_needed(x):
    def body(x, _):
        return jax.lax.fori_loop(0, 50, lambda _, x: advance(x), x), measure(x)[0]
    x, large = jax.lax.scan(body, x, length=100)
    return x, large[9::10]

def differences(x):  # of three arrays of one type, all of the last one are read
    def body(x, _):
        y = measure(x)[0]
        return advance(x), (y, y + 1, y * 2)
    x, (a, b, c) = jax.lax.scan(body, x, length=100)
    return x, a[-1], b[-1], c[1:] - c[:-1]

def ended(x):  # the loop may end before its array is full
    def body(state):
        i, x, seen = state
        return i + 1, advance(x), seen.at[i].set(measure(x)[0])
    busy = lambda s: (s[0] < 100) & (jnp.sum(s[1]) > 1e-3)
    i, x, seen = jax.lax.while_loop(busy, body, (0, x, jnp.zeros((100, 64, 64))))
    return i, x, seen[:10]

w = jnp.eye(64)
for f in (
    thinned, last, all_of_one, column, carried, in_branch, twice, state, mostly_needed, differences, ended
):
    save(f.__name__, jax.jit(f), jnp.ones((64, 64)))
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_work_for_what_is_read_rarely_is_found_and_no_other(lower):
    lowered = lower(CODE)
    found = {name: analyze(text).unread_work for name, text in lowered.texts.items()}
    [thinned] = found["thinned"]
    assert (thinned.source.line, thinned.read_at.line) == (lowered.line("scan"), lowered.line("read"))
    assert [frame.line for frame in thinned.lines] == [lowered.line("measure")]
    product = 2 * 64**3
    assert 200 * product <= thinned.operations < 210 * product  # of the three products in the body
    assert thinned.read == 0.1 and 0.9 * 2 / 3 - 0.02 < thinned.share < 0.9 * 2 / 3 + 0.02
    [last] = found["last"]
    assert last.read == 0.01 and last.operations == thinned.operations - 100 * 64 * 64
    [twice] = found["twice"]  # the other loop calls the function, too
    assert 0.54 < twice.share < 0.58  # 200 of 320 products
    small = ("all_of_one", "column", "carried", "in_branch", "state", "mostly_needed", "differences", "ended")
    assert {name: found[name] for name in small} == dict.fromkeys(small, ())
