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

    def fresh(): return jnp.ones((2100, 2100))

    @jax.jit
    def repeated(w): return w * 0.4

    @jax.jit
    def partly(state): return {name: w * 0.3 for name, w in state.items()}

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

    @jax.jit
    def tied(w, target): return {"in": w["in"] * 0.6, "out": w["out"] * 0.6}, {"in": target["in"] + w["in"], "out": target["out"]}

    @jax.jit
    def autoencoder(w, x, y): return w * (x - y).mean(), x * 0.5, y * 0.5

    @jax.jit
    def once(w, target): return w * 0.6, target * 0.9

    def tied_weights():
        table = fresh()
        w = target = {"in": table, "out": table}
        for _ in range(3):
            w, target = tied(w, target)

    def one_batch_twice():
        w = fresh()
        for _ in range(3):
            x = fresh()
            w, a, b = autoencoder(w, x, x)
            del x

    def no_loop():
        w = target = fresh()
        w, target = once(w, target)

    def measured():
        w = fresh()
        del_me = repeated(w)
        del del_me
        w = repeated(w)  # is not recorded, and reads the array again

    def one_kept():
        a = fresh()
        state = {"a": a, "b": fresh()}
        state = partly(state)
        plain(jnp.ones(7))  # we look
        return a, state

    measured()
    one_kept()
    loop(plain, [])
    followed()
    tied_weights()
    one_batch_twice()
    no_loop()
    ws = many(*[jnp.ones((640, 640)) + n for n in range(11)])
    kept = []
    first = fresh()
    kept.append(first)
    for _ in range(2):
        kept.append(listed(kept[-1]))
    aliased()
    plain(jnp.ones((600, 300))), listed(jnp.ones((600, 300)))  # we look
"""


@pytest.mark.costly
def test_what_a_call_was_seen_to_keep_is_not_to_be_donated_and_the_rest_on_a_condition(record):
    found = {
        words.title(f).split(" could donate ")[0]: f
        for f in findings(load(record(PROGRAM).run))
        if f.code == "JX506"
    }
    assert not found.keys() & {"listed", "tied", "once", "repeated", "partly"}
    assert fix_of(found.pop("autoencoder")).arguments == {"donate_argnames": ["w"]}
    assert fix_of(found["follow"]).arguments == {
        "donate_argnames": ["w", "target"],
        "copy": "target",
        "copy_of": "w",
    }
    assert "plain" in found
    assert fix_of(found.pop("many")).arguments["donate_argnames"] == list("abcdefghijk")
    for f in found.values():
        assert f.severity == "note" and f.certainty == "likely"
        assert "so that XLA reuses the memory: " in words.title(f)
        names = "w and target" if f is found.get("follow") else "w"
        assert f"A call then deletes the arrays that it receives as {names}: donate " in words.fix_text(f)


FILTERED = """
    import equinox as eqx, jax.numpy as jnp

    @eqx.filter_jit
    def every(model): return {name: w * 0.5 for name, w in model.items()}

    @eqx.filter_jit
    def first(x, model, small): return model * x.sum(), small * 0.5

    @eqx.filter_jit
    def second(model, x): return model * x.sum()

    @eqx.filter_jit
    def third(model, x, key): return model * x.sum() + key

    @eqx.filter_jit(donate="all-except-first")
    def fourth(model, x): return model * x.sum(), x * 0.5

    model = {"w": jnp.ones((2100, 2100))}
    a = b = None
    x, key, small = jnp.ones(8), jnp.ones(1), jnp.ones(64)
    for _ in range(3): model = every(model)
    w = model.pop("w")
    for _ in range(3): w, small = first(x, w, small)
    for _ in range(3): w = second(w, x)
    for _ in range(3): w = third(w, x, key)
    for _ in range(3): w, x = fourth(w, x)
"""


@pytest.mark.costly
def test_filter_jit_is_told_which_argument_stays_and_which_are_deleted(record):
    pytest.importorskip("equinox")
    found = {words.title(f).split()[0]: words.fix_text(f) for f in findings(load(record(FILTERED).run))}
    assert found["every"].startswith(
        'use eqx.filter_jit(donate="all"). A call then deletes the arrays of model: '
    )
    use = 'use eqx.filter_jit(donate="all-except-first"), which donates all arguments except the first'
    assert found["first"].startswith(f"{use}, x. A call then deletes the arrays of model and small:")
    assert found["second"].startswith(
        f"{use}: make x the first parameter, here and in the calls. A call then deletes the arrays of "
    )
    assert found["third"].startswith(
        f"{use}: pass x and key together, as one tuple, as the first argument. A call then deletes the arrays of model:"
    )
    # What is donated already stays donated.
    assert found["fourth"].startswith(
        'use eqx.filter_jit(donate="all"). A call then deletes the arrays of model: '
    )


TARGET = """
    import functools
    import jax, jax.numpy as jnp

    JIT
    def learn(agent, x):
        def loss(w):
            return ((x @ w["w"] + w["b"] - x @ agent["target"]["w"]) ** 2).mean()
        w = jax.tree.map(lambda w, g: w - 0.1 * g, agent["params"], jax.grad(loss)(agent["params"]))
        target = jax.tree.map(lambda t, w: 0.9 * t + 0.1 * w, agent["target"], w)
        return {"params": w, "target": target, "steps": agent["steps"] + 1}

    def main():
        params = {"w": jnp.ones((2100, 2100)), "b": jnp.ones(2100)}
        state = {"params": params, "target": TARGET, "steps": jnp.zeros((), jnp.int32)}
        del params
        for n in range(6):
            if n == 3: state["target"] = jax.tree.map(jnp.copy, state["params"])
            state = learn(state, jnp.ones((8, 2100)) + n)
        print([float(leaf.sum()) for leaf in jax.tree.leaves(state)])

    main()
"""


@pytest.mark.costly
def test_a_target_that_begins_as_the_model_is_copied_and_then_donated(record):
    case = record(TARGET.replace("JIT", "@jax.jit").replace("TARGET", "params"))
    (f,) = [f for f in findings(load(case.run)) if f.code == "JX506"]
    arguments = fix_of(f).arguments
    assert (arguments["copy"], arguments["copy_of"]) == ("state['target']", "state['params']")
    jit = f"@functools.partial(jax.jit, donate_argnames={arguments['donate_argnames']})"
    copied = record(TARGET.replace("JIT", jit).replace("TARGET", "jax.tree.map(jnp.copy, params)"))
    assert copied.code == 0, copied.err
    assert copied.out == case.out
    assert [f.code for f in findings(load(copied.run)) if f.code in ("JX505", "JX506")] == []
    alone = record(TARGET.replace("JIT", jit).replace("TARGET", "params"), check=False)
    assert alone.code and "donate the same buffer twice" in alone.err
