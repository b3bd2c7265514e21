"""Donation is proposed for arguments without a live reference after the call, with the condition."""

import pytest

from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules.registry import findings
from jaxscope.schema.findings import fix_of

pytestmark = pytest.mark.capture

PROGRAM = """
    import jax, jax.numpy as jnp

    @jax.jit
    def plain(w): return w * 0.9

    @jax.jit
    def listed(w): return w * 0.8

    @jax.jit
    def alias(w): return w * 0.7

    @jax.jit
    def follow(w, target): return w * 0.6, target * 0.99 + w * 0.01

    @jax.jit
    def many(a, b, c, d, e, f, g, h, i, j, k):
        return [x * 0.5 for x in (a, b, c, d, e, f, g, h, i, j, k)]

    def fresh(): return jnp.ones((600, 600))

    def loop(f, history):
        w = fresh()
        for _ in range(3):
            w = f(w)
            history.append(w)
            del history[:-3]
        return w

    def aliased():
        w = fresh()
        best = w
        w = alias(w)
        return best + w

    def followed():
        w = target = fresh()  # the first call is passed one array twice
        for _ in range(3):
            w, target = follow(w, target)
        return w

    loop(plain, [])
    followed()
    ws = many(*[jnp.ones((300, 300)) + n for n in range(11)])
    kept = []
    first = fresh()
    kept.append(first)
    for _ in range(2):
        kept.append(listed(kept[-1]))
    aliased()
    plain(jnp.ones((600, 300))), listed(jnp.ones((600, 300)))  # we look
"""


def test_what_a_call_was_seen_to_keep_is_not_to_be_donated_and_the_rest_on_a_condition(record):
    found = {
        words.title(f).split(" of ")[1].split(" ")[0]: f
        for f in findings(load(record(PROGRAM).run))
        if f.code == "JX506"
    }
    assert "listed" not in found and "follow" not in found
    assert "plain" in found
    assert fix_of(found.pop("many")).arguments["donate_argnames"] == list("abcdefghijk")
    for f in found.values():
        assert f.severity == "note" and f.certainty == "likely"
        assert "no live reference was found" in words.title(f)
        assert "if your code does not read w after the call, not even under another name" in (
            words.fix_text(f) or ""
        )
