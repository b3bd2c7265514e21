"""An argument could be donated only where nobody else holds it when the call returns."""

import pytest

from jaxscope.model.load import load
from jaxscope.rules.registry import findings

pytestmark = pytest.mark.capture

PROGRAM = """
    import functools, jax, jax.numpy as jnp

    def named(name, parameters, body):
        exec(f"def {name}({parameters}): return {body}", globals())
        return jax.jit(globals()[name])

    def fresh(): return jnp.ones((600, 600))
    def one(name): return named(name, "w", "w * 0.9")
    (plain, best, listed, attribute, item, rollback, old, handed_on, looked_at, temporary, global_, eval_too) = map(
        one, "plain best listed attribute item rollback old handed_on looked_at temporary global_ eval_too".split()
    )
    momentum = named("momentum", "w, v", "w * 0.9 + v")
    tree = named("tree", "p", "({'a': p['a'] * 2}, 1.0)")
    tree_alias = named("tree_alias", "p", "({'a': p['a'] * 2}, 1.0)")

    def hand_on(w): return handed_on(w)
    def look_at(w):
        new = looked_at(w)
        w.sum()
        return new

    class Trainer:
        def __init__(self):
            self.w, self.v, self.state = fresh(), fresh(), {"k": [fresh()]}
            self.history = [self.w]
        def run(self):
            for _ in range(3):
                self.w = listed(self.w)
                self.history.append(self.w)
                self.v = attribute(self.v)
                self.state["k"][0] = item(self.state["k"][0])

    def main():
        a, b, c, d, e, f = (fresh() for _ in range(6))
        last, g, h, p, q = fresh(), fresh(), fresh(), {"a": fresh()}, {"a": fresh()}
        k = fresh()
        for _ in range(3):
            a = plain(a)
            kept = b
            b = best(b)
            new = rollback(c)
            if float(new[0, 0]) > 0.5:
                c = new
            before, d = d, old(d)
            (before - d).sum()
            e = hand_on(e)
            f = look_at(f)
            last, g = g, momentum(g, last)
            p, _ = tree(p)
            spare = q
            q, _ = tree_alias(q)
            k = eval_too(k)
        small = fresh()[:500]
        eval_too(small)
        temporary(fresh())
        return kept, spare, small

    Trainer().run()
    main()
    m = fresh()
    for _ in range(2):
        m = global_(m)
"""


@pytest.fixture(scope="module")
def recorded(record_module):
    return record_module(PROGRAM)


def at_once(run, name):
    [function] = {f.id: f for f in run.functions.values() if f.name == name}.values()
    return [c.fate.at_once for c in function.compilations if c.fate is not None]


@pytest.mark.parametrize("name", ["plain", "attribute", "item", "handed_on", "temporary", "global_"])
def test_an_array_whose_only_name_takes_the_result_was_let_go_at_once(recorded, name):
    assert at_once(load(recorded.run), name)[0] == ["w"]


def test_a_tree_whose_only_name_takes_the_result_was_let_go_at_once(recorded):
    assert at_once(load(recorded.run), "tree")[0] == ["p['a']"]


@pytest.mark.parametrize("name", ["best", "listed", "rollback", "old", "looked_at", "momentum", "tree_alias"])
def test_an_array_that_anything_else_held_or_used_was_not_let_go_at_once(recorded, name):
    assert at_once(load(recorded.run), name)[0] == []


def test_only_what_no_call_of_the_function_kept_could_be_donated(recorded):
    titles = [f.title for f in findings(load(recorded.run)) if f.code == "JX506"]
    told = {t.partition(":")[0].rpartition(".")[2] for t in titles}
    assert told == {"plain", "attribute", "item", "handed_on", "temporary", "global_", "tree"}
