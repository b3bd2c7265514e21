"""How often the operations of a program run, in programs lowered by the JAX at hand."""

import pytest

from jaxscope.analysis.stablehlo import reader
from jaxscope.analysis.stablehlo.executions import Executions
from jaxscope.analysis.stablehlo.sources import Sources

CODE = """
@jax.jit
def product(w, x):
    return x @ w

def counted(w, x):
    for _ in range(2):
        x = product(w, x)
    x = jax.lax.scan(lambda x, _: (product(w, x), None), x, None, 5)[0]
    return jax.lax.fori_loop(2, 8, lambda i, x: x @ w, x)

def nested(w, x):
    inner = lambda x: jax.lax.scan(lambda x, _: (x @ w, None), x, None, 3)[0]
    return jax.lax.scan(lambda x, _: (inner(x), None), x, None, 4)[0]

def until(w, x):
    return jax.lax.while_loop(lambda x: x.sum() < 1, lambda x: x @ w, x)

def up_to(w, x, n):
    return jax.lax.fori_loop(0, n, lambda i, x: x @ w, x)

def branch(w, x, flag):
    return jax.lax.cond(flag, lambda x: x @ w, lambda x: x, x)

w = x = jnp.ones((4, 4))
for f in (counted, nested, until):
    save(f.__name__, jax.jit(f), w, x)
save("up_to", jax.jit(up_to), w, x, 5)
save("branch", jax.jit(branch), w, x, True)
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_products_are_counted_in_loops_between_constants_and_unknown_elsewhere(lower):
    assert {name: products(text) for name, text in lower(CODE).texts.items()} == {
        "counted": [6, 2 + 5],  # fori_loop; product, called twice and in five iterations
        "nested": [12],
        "until": [None],
        "up_to": [None],
        "branch": [None],
    }


def products(text):
    """How often each matrix product runs, in increasing order."""
    module = reader.read(text)
    executions = Executions(module, Sources(module))
    return sorted(executions.of(i) for i, op in enumerate(module.ops) if op.name == "stablehlo.dot_general")
