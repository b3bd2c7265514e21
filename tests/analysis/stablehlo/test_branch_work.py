"""Work before a conditional that only one branch uses, in programs lowered by the JAX at hand."""

import pytest

from jaxscope.analysis.stablehlo.reading import analyze

N = 300
CODE = """
import jax, jax.numpy as jnp
cond = jax.lax.cond
a, key = jnp.ones((300, 300)), jax.random.key(0)

def both(a, p):
    b = a @ a
    return cond(p, lambda: b, lambda: b + 1)

def after(a, p):
    b = a @ a
    return cond(p, lambda: b, lambda: a) + b

def nested(a, p):
    b = a @ a
    return cond(p, lambda: cond(p, lambda: b, lambda: a), lambda: a)

def drawn(a, p):
    keep = jax.random.bernoulli(key, 0.5, a.shape)
    return cond(p, lambda: jnp.where(keep, a, 0), lambda: a)

def in_scan(a, p):
    def body(x, _):
        b = jnp.tanh(x @ x)
        return cond(x[0, 0] > 0, lambda: b, lambda: x), None
    return jax.lax.scan(body, a, None, 5)[0]

def guarded(a, p):
    value, grad = jax.value_and_grad(lambda a: jnp.tanh(a @ a).sum())(a)
    return cond(value > 0, lambda: grad, lambda: a)

def chain(a, p):
    b = jnp.tanh(a @ a) @ a
    return cond(p, lambda: b, lambda: a)

def switched(a, p):
    b, c = a @ a, jnp.sin(a)
    return jax.lax.switch(p.astype(int), [lambda: a, lambda: b, lambda: c])
"""
CASES = {
    # name: operations for one branch alone
    "cond(p, lambda: a @ a, lambda: a)": None,
    "both": None,
    "cond(True, lambda: b2, lambda: a) if (b2 := a @ a) is not None else a": None,  # one branch only
    "guarded": None,
    "after": None,
    "chain": 4 * N**3 + N**2,
    "nested": 2 * N**3,
    "in_scan": 2 * N**3 + N**2,
    "switched": 2 * N**3,
}


@pytest.mark.capture
@pytest.mark.subprocess
def test_work_that_only_one_branch_uses_is_found(lower):
    code = CODE + "\n".join(
        f"save({name!r}, jax.jit({name if name.isidentifier() else 'lambda a, p: ' + name}), a, True)"
        for name in (*CASES, "drawn")
    )
    found = {name: analyze(text).branch_work for name, text in lower(code).texts.items()}
    assert {n: [w.operations for w in found[n]] for n in CASES} == {
        n: [] if most is None else [most] for n, most in CASES.items()
    }
    (drawn,) = found["drawn"]
    assert drawn.share > 0.9 and drawn.operations > 20 * N**2  # Threefry takes many operations for a number
