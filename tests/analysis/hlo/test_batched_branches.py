"""Conditionals under vmap in programs that the JAX at hand compiles: which remain, and what their branches cost."""

import pytest

from jaxscope.analysis.hlo.program import analyze

CODE = """
def costly(x):
    return jax.lax.fori_loop(0, 50, lambda _, x: jnp.cos(x) * jnp.tanh(x), x)

def step(x, a):
    x = x + a
    return jax.lax.cond(x.sum() > 3, costly, lambda x: x, x)  # cond

def common(x, late):
    return jax.lax.cond(late, costly, lambda x: x, x)

def chosen(x):
    return jnp.where(x > 0, x, 0.0)  # where

def until(x):
    return jax.lax.while_loop(lambda x: x.sum() < 3, lambda x: x + costly(x), x)

def unknown(x):
    return jax.lax.cond(x.sum() > 3, until, lambda x: x, x)

W = jnp.eye(16)

def product(x):  # XLA rewrites the product of a vector, and drops its line
    return jax.lax.fori_loop(0, 50, lambda _, x: jnp.tanh(x @ W), x)

def rarely(x):
    return jax.lax.cond(x.sum() > 3, product, lambda x: x, x)

x = jnp.ones((4, 16))
for name, f, args in [
    ("batched", jax.vmap(step), (x, jnp.ones(4))),
    ("jitted", jax.vmap(jax.jit(step)), (x, jnp.ones(4))),
    ("scalar", jax.vmap(common, in_axes=(0, None)), (x, True)),
    ("where", jax.vmap(chosen), (x,)),
    ("unknown", jax.vmap(unknown), (x,)),
    ("product", jax.vmap(rarely), (x,)),
]:
    TEXTS[name] = jax.jit(f).lower(*args).compile().as_text()
"""


@pytest.mark.capture
@pytest.mark.subprocess
def test_a_conditional_with_a_predicate_for_each_element_is_a_selection(lower):
    found = lower(CODE)
    batched = analyze(found.texts["batched"]).batched_branches
    assert found.line("cond") in [frame.line for frame in batched.lines]
    work = {w.function: w for w in batched.functions}
    # 50 iterations of a cosine (as 10 additions), a tanh (as 3) and a product, for 4 x 16 elements
    assert 50 * 14 * 64 <= work["costly"].operations <= 1.1 * 50 * 14 * 64
    assert batched.operations - work["costly"].operations <= 10 * 64 and batched.unknown == 0
    jitted = analyze(found.texts["jitted"]).batched_branches  # its names do not contain vmap
    assert found.line("cond") in [frame.line for frame in jitted.lines]
    assert analyze(found.texts["scalar"]).batched_branches is None
    lines = analyze(found.texts["where"]).batched_branches
    assert lines is None or [frame.line for frame in lines.lines] == [found.line("where")]
    assert analyze(found.texts["unknown"]).batched_branches.unknown > 0
    products = analyze(found.texts["product"]).batched_branches
    work = {w.function: w.operations for w in products.functions}
    assert work["product"] >= 0.9 * products.operations >= 0.9 * 50 * 2 * 4 * 16 * 16
