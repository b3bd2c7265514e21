"""Calls that a loop repeats: with one key, for each row of an array, for work that another call has done."""

import pytest

from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules.registry import findings

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
import jaxscope
x, y, w = jnp.ones((16, 4)), jnp.ones((16, 2)), jnp.ones((4, 2))
other, w2 = 2 * x, 2 * w
rng = np.random.default_rng(0)

def forward(w, x): return jnp.tanh(x @ w)
def loss(w, x, y): return ((forward(w, x) - y) ** 2).mean()
def noise(key, w): return w + jax.random.normal(key, w.shape)

@jax.jit
def kept(w, key): return noise(key, w)
@jax.jit
def seeded(w, key): return noise(key, w)
@jax.jit
def of_epoch(w, k): return noise(k, w)
@jax.jit
def of_turn(w, key): return noise(key, w)
@jax.jit
def split(w, key): return noise(key, w)
@jax.jit
def folded(w, key, i): return noise(jax.random.fold_in(key, i), w)
@jax.jit
def compared(w, key): return noise(key, w)
@jax.jit
def carries_key(state): return noise(state[0], state[1])

key = jax.random.key(0)
for i in range(3):
    w = kept(w, key)
    w = seeded(w, jax.random.key(1))
    key2 = jax.random.fold_in(key, i)
    w = split(w, key2)
    w = folded(w, key, i)
    z = compared(w, key)
    w = carries_key((key, w))
for i, key3 in enumerate(jax.random.split(key, 3)):
    w = of_turn(w, key3)
for epoch in range(2):
    k = jax.random.key(epoch)
    for _ in range(2):
        w = of_epoch(w, k=k)

@jax.jit
def row(w, x): return jnp.tanh(x @ w).sum()
@jax.jit
def indexed(w, x): return jnp.tanh(x @ w).sum()
@jax.jit
def printed(w, x): return jnp.tanh(x @ w).sum()
@jax.jit
def few(w, x): return jnp.tanh(x @ w).sum()
@jax.jit
def once(w, x): return jnp.tanh(x @ w).sum()
@jaxscope.watch
@jax.jit
def micro(g, x): return g + x.sum()
@jaxscope.watch(step=True)
@jax.jit
def update(w): return w * 0.9

table = jnp.ones((8, 3, 4))
longer = jnp.ones((9, 3, 4))
one_time = [once(w, x) for x in jnp.ones((11, 3, 4))]
for _ in range(2):
    values = jnp.stack([row(w, r) for r in table])
    for i in range(8):
        values = indexed(w, table[i])
    for r in longer: printed(w, r); print(end="")
    a = [few(w, r) for r in table[:3]]
    g = 0.0 * w.sum()
    for b in [x] * 9: g = micro(g, b)
    w = update(w)

@jax.jit
def train(w, x, y): return w - 0.1 * jax.grad(loss)(w, x, y)
@jax.jit
def before(w, x): return forward(w, x).max()
@jax.jit
def after(w, x): return forward(w, x).min()
@jax.jit
def elsewhere(w, x): return forward(w, x).mean()
@jax.jit
def now_and_then(w, x): return forward(w, x).std()
@jax.jit
def needed(w, x): return forward(w, x) > 0
@jax.jit
def fit(w, x, chosen): return w - 0.1 * jax.grad(lambda w: (forward(w, x) * chosen).mean())(w)
@jax.jit
def target(w, x): return forward(w, x).sum()
@jax.jit
def learn(w, t, x, x2):
    return w - 0.1 * jax.grad(lambda w: ((forward(w, x) - forward(t, x2)) ** 2).mean())(w)

for i in range(4):
    goal = target(w2, x)  # learn computes it of w and x, and of w2 and other
    w = learn(w, w2, x, other)
for i in range(4):
    best = before(w, x)
    w = train(w, x, y)
    worst, mean = after(w, x), elsewhere(w, other)
    if i % 2: now_and_then(w, x)
for i in range(4):
    chosen = needed(w, x)
    w = fit(w, x, chosen)

@jax.jit
def numpy_noise(w): return w + np.random.normal(size=w.shape)
@jax.jit
def numpy_generator(w): return w + rng.normal(size=w.shape)
@jax.jit
def constant_projection(w): return w + np.random.RandomState(0).normal(size=w.shape)
for i in range(2): numpy_noise(w), numpy_generator(w), constant_projection(w)
"""


@pytest.mark.capture
@pytest.mark.subprocess
@pytest.mark.costly
def test_only_calls_that_repeat_what_they_need_not_are_found(record):
    codes = {"JX134", "JX135", "JX204", "JX205"}
    found = [f for f in findings(load(record(PROGRAM).run)) if f.code in codes]
    assert sorted((f.code, f.function.partition("@")[0], f.severity) for f in found) == [
        ("JX134", "numpy_generator", "warning"),
        ("JX134", "numpy_noise", "warning"),
        ("JX135", "kept", "warning"),
        ("JX135", "of_epoch", "warning"),
        ("JX135", "seeded", "warning"),
        ("JX204", "indexed", "warning"),
        ("JX204", "micro", "warning"),
        ("JX204", "row", "warning"),
        ("JX205", "after", "note"),
        ("JX205", "before", "warning"),
    ]
    texts = {f.function.partition("@")[0]: f"{words.title(f)} -> {words.fix_text(f)}" for f in found}
    assert "for each row of f32[8,3,4]" in texts["row"] and "jax.vmap(row)" in texts["row"]
    assert (
        "each step calls micro 9 times" in texts["micro"]
        and "jax.lax.scan whose body calls micro" in texts["micro"]
    )
    assert "k is the same each time" in texts["of_epoch"]
    assert texts["before"].endswith(
        "let train return the result of before, too, and remove the call of before. If this result is the"
        " loss, jax.value_and_grad already returns it. Return other results from the loss function as a second"
        " value, and use (value, extra), gradients = jax.value_and_grad(loss, has_aux=True)(...)"
    )
    assert texts["after"].endswith(
        ". The result is then computed with the parameters before the update: change nothing if you need it"
        " with the updated parameters"
    )
    assert all(f.source is not None for f in found)
