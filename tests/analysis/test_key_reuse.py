"""Two draws from one key are found only where both certainly happen with the same key."""

import textwrap

import pytest

from jaxscope.analysis.key_reuse import called_in, find, in_loops, in_python_loops, split_before

IMPORTS = "import jax, jax.random as jr\nfrom jax import random\nfrom jax.random import normal, split\n"


FUNCTIONS = """
def draw(x, key):
    return x * random.normal(key)
def may_draw(x, key):
    return random.normal(key) if x else x
def split_and_draw(x, key):
    key, part = random.split(key)
    return x * random.normal(part)
"""


def keys(body: str) -> list[tuple[str | int, ...]]:
    """Each key and the lines of its draws, counted from the line after ``def f``."""
    source = (
        IMPORTS + "def f(key, k, other, x, train):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ")
    )
    return [(r.key, *(line - 4 for line in r.lines)) for r in find(source + FUNCTIONS)]


@pytest.mark.parametrize(
    "body",
    [
        "a = jax.random.normal(key)\nb = jr.uniform(key)",
        "a = normal(key, (3,))\nb = random.bernoulli(key=key)",
        "ks = split(key)\na = normal(ks[0])\nb = random.uniform(ks[0])",
        "for n in range(3):\n    key = random.fold_in(k, n); a = normal(key)\n    b = random.uniform(key)",
        "if train: key = split(key)[0]\na = normal(key)\nb = random.uniform(key)",
        "a = normal(key) if train else 0\nb = random.uniform(key)",
        "if normal(key) > 0:\n    return random.uniform(key)",
        "return normal(key), random.uniform(key)",
        "_, sub = split(key)\na = normal(sub)\nks = split(key, num=3)\nb = random.uniform(ks[1])",
        "a = normal(split(key)[1])\nb = random.uniform(split(key, 4)[1])",
        "a = normal(key)\nb = draw(x, key)",
        "b = draw(x, key)\na = random.uniform(key)",
        "k1, k2 = split(key)\na = normal(k1)\nb = normal(k2)\nk3, k4 = split(key)\nc = random.uniform(k3)",
        "a = split_and_draw(x, key)\nkey, sub = split(key)\nb = normal(sub)",
        "key, sub = split(key)\na = split_and_draw(x, key)\nkey, sub = split(key)\nb = normal(sub)",
    ],
)
def test_two_draws_from_one_key_are_found(body):
    assert len(keys(body)) == 1


@pytest.mark.parametrize(
    "body",
    [
        "a = normal(key)\nkey = split(key)[0]\nb = normal(key)",
        "a = normal(key)\nkey, sub = split(key)\nb = normal(key)",
        "a = normal(key)\nif train: key = other\nb = normal(key)",
        "if train: a = normal(key)\nelse: a = random.uniform(key)",
        "if train: return normal(key)\nreturn random.uniform(key)",
        "for n in x:\n    if n:\n        normal(key)\n        break\n    random.uniform(key)",
        "a = normal(key) if train else random.uniform(key)",
        "try: a = normal(key)\nexcept ValueError: a = random.uniform(key)",
        "match x:\n    case 1: a = normal(key)\n    case 2: a = random.uniform(key)",
        "a = random.permutation(key, x)\nb = random.permutation(key, other)",
        "ks = split(key)\na = normal(ks[0])\nb = normal(ks[1])",
        "a = normal(key)\nb = random.fold_in(key, 1)\nc = split(key)",
        "a = normal(key)\nb = lambda key: normal(key)\nc = [normal(key) for key in x]",
        "a = x.random.normal(key)\nb = x.random.normal(key)",
        "a = normal(next(k))\nb = normal(next(k))",
        "a = normal(k())\nb = normal(k())",
        "key, sub = split(key)\na = normal(sub)\nkey, sub = split(key)\nb = normal(sub)",
        "a = draw(x, key)\nb = draw(x, key)",
        "a = normal(key)\nb = may_draw(x, key)",
        "a = normal(key)\nkey, sub = split(key)\nb = draw(x, key)",
        "ks = split(key, (2, 3))\na = normal(ks[0])\nk = split(key)\nb = normal(k[0])",
        "if x:\n    key, k = split(key)\n    a = normal(k)\nelse:\n    key, k = split(key)\n    a = normal(k)",
        "k1, k2 = split(key)\na = normal(k1)\nfirst, *others = split(key, 3)\nb = normal(first)",
        "a = split_and_draw(x, key)\nkey, other, sub = split(key, 3)\nb = normal(sub)",
        "key, sub = split(key)\na = split_and_draw(x, sub)\nkey, sub = split(key)\nb = normal(sub)",
        "key, sub = split(key)\na = split_and_draw(x, key)\nb = normal(sub)",
    ],
)
def test_draws_with_different_keys_or_in_different_branches_are_not_found(body):
    assert keys(body) == []


def test_an_imported_function_that_draws_from_the_key_counts():
    source = IMPORTS + "from nets import init as make\na = normal(key)\nb = make(3, key)"
    other = "import jax\ndef init(n, key):\n    return jax.random.normal(key, (n,))\n"
    asked = []
    (found,) = find(
        source, lambda module, name: asked.append((module, name)) or (other if name == "init" else None)
    )
    assert found.calls == ("normal", "make") and found.lines == (5, 6)
    assert ("nets", "init") in asked and find(source) == []


def test_all_draws_from_one_key_are_found_together():
    assert keys("a = normal(key)\nb = random.uniform(key)\nc = random.gamma(key)") == [("key", 1, 2, 3)]


def test_a_function_that_is_called_twice_with_a_key_is_found_in_one_statement_only():
    twice = "keys = split(key)\nreturn x(keys, other), x(keys, other)"
    assert keys(twice) == [("keys", 2, 2)]
    assert keys("keys = split(key)\nx(keys, other)\nx(keys, other)") == []  # the first call warms up
    assert keys("keys = split(key)\nreturn x(keys, other), x(keys, k)") == []
    assert keys("return x(k, other), x(k, other)") == []  # whether k is a key is unknown


def test_the_functions_that_a_function_may_call_are_found_by_their_names():
    source = "def a(): b(); c.d\ndef b(): pass\ndef d(): e\ndef e(): a()\ndef f(): a()\n"
    assert called_in(source, {"a", "<module>"}) == {"a", "b", "d", "e", "<module>"}


@pytest.mark.parametrize("source", [None, "", "def (random", "x = 1"])
def test_source_without_draws_has_none(source):
    assert find(source) == []


def test_how_an_array_of_keys_was_made_is_known():
    source = "keys = split(key, len(x))\na = draw(keys)\nb = draw(keys)"
    assert split_before(source, "keys", 2) == ("key", "len(x)")
    assert split_before(source.replace(", len(x)", ""), "keys", 2) is None
    assert split_before(source, "other", 2) is None
    assert split_before(None, "keys", 2) is None


LOOP = """from jax import lax, random

def sample(key, x):
    def body(i, x):
        return x + random.normal(key, x.shape)
    return lax.fori_loop(0, 9, body, x)
"""


CARRIED = """
from jax import lax, random

def move(key, shape):
    return random.normal(key, shape)

def shift(key, shape):
    return random.normal(random.fold_in(key, 1), shape)

def perhaps(key, shape):
    return random.normal(key, shape) if shape else 0

def each(key, shape):
    return vmap(lambda key: random.normal(key, shape))(random.split(key))

def sample(x, key):
    def body(carry, i):
        x, key = carry
        draw = random.split(key)[1]
        x = x + random.normal(draw, x.shape)
        return (x, key), x
    return lax.scan(body, (x, key), jnp.arange(9))
"""


IN_PLACE = """
from jax import lax, random

def sample(state):
    def body(state, i):
        x = random.normal(state["key"])
        state["key"] = random.split(state["key"])[0]
        return state, x
    return lax.scan(body, state, jnp.arange(9))
"""


@pytest.mark.parametrize(
    ("source", "keys"),
    [
        (LOOP, ["key"]),
        (LOOP.replace("random.normal(key", "random.normal(random.fold_in(key, i)"), []),
        (LOOP.replace("(i, x)", "(key, x)"), []),  # the body gets the key
        (LOOP.replace("        return x +", "        key = make(i)\n        return x +"), []),
        (
            LOOP.replace(
                "fori_loop(0, 9, body, x)", "scan(lambda x, _: (random.normal(key), x), x, None, 9)"
            ),
            ["key"],
        ),
        (LOOP.replace("lax.fori_loop", "repeat"), []),
        (LOOP.replace("random.normal(key", "vmap(lambda k: random.normal(k))(keys(i)"), []),
        (CARRIED, ["draw"]),  # the carry keeps the key from which the body splits
        (CARRIED.replace("draw = random.split(key)[1]", "key, draw = random.split(key)"), []),
        (CARRIED.replace("random.split(key)[1]", "random.fold_in(key, i)"), []),
        (CARRIED.replace("return (x, key), x", "return (x, draw), x"), []),
        (CARRIED.replace("x, key = carry", "x, key = carry\n        if x:\n            return carry, x"), []),
        (CARRIED.replace("random.normal(draw", "move(draw"), ["draw"]),
        (CARRIED.replace("random.normal(draw", "shift(draw"), []),
        (CARRIED.replace("x, key = carry", "x, key = other(carry)"), []),
        (CARRIED.replace("[1]", "[i]"), []),  # another key in each iteration
        (CARRIED.replace("random.normal(draw, x.shape)", "vmap(lambda draw: random.normal(draw))(keys)"), []),
        (CARRIED.replace("random.normal(draw, x.shape)", "random.normal(draw, (9,))[i]"), []),
        (CARRIED.replace("random.normal(draw, x.shape)", "random.permutation(draw, 9)"), []),
        (CARRIED.replace("random.normal(draw, x.shape)", "jnp.where(i == 0, random.normal(draw), 0)"), []),
        (CARRIED.replace("random.normal(draw", "perhaps(draw"), []),  # it may not draw
        (CARRIED.replace("random.normal(draw", "each(draw"), []),
        (CARRIED.replace("    def body", "    @with_keys\n    def body"), []),
        (CARRIED.replace("return lax", "body = with_keys(body)\n    return lax"), []),
        (IN_PLACE, []),
        (None, []),
    ],
)
def test_a_draw_from_one_key_in_each_iteration_is_found(source, keys):
    assert [(one.function, one.key) for one in in_loops(source)] == [("sample", key) for key in keys]


WALK = """
import jax


def walk(w):
    start, end = jax.random.PRNGKey(1), 2
    key = jax.random.PRNGKey(1)
    return w + jax.random.normal(key, w.shape)


def make_walk(w):
    return w + jax.random.normal(jax.random.key(0), w.shape)
"""

PYTHON_LOOP = """
import jax


def train(key, w, batches):
    for i in range(10):
        w = w + jax.random.normal(key, w.shape)
    return w
"""


@pytest.mark.parametrize(
    "source, keys",
    [
        (PYTHON_LOOP, ["key"]),
        (PYTHON_LOOP.replace("for i in range(10)", "while w.sum() < 3"), ["key"]),
        (PYTHON_LOOP.replace("key, w.shape", "keys[1], w.shape"), ["keys[1]"]),
        (PYTHON_LOOP.replace("        w =", "        key, _ = jax.random.split(key)\n        w ="), []),
        (PYTHON_LOOP.replace("key, w.shape", "keys[i], w.shape"), []),
        (PYTHON_LOOP.replace("key, w.shape", "jax.random.fold_in(key, i), w.shape"), []),
        (PYTHON_LOOP.replace("key, w.shape", "key, (i,)"), []),  # other shapes, other numbers
        (PYTHON_LOOP.replace("w = w +", "x = 1 +"), []),  # several settings with the same numbers
        (PYTHON_LOOP.replace("w = w +", "if i > 3: w = w +"), []),
        (PYTHON_LOOP.replace("key", "eval_key"), []),
        (PYTHON_LOOP.replace("w = w + jax.random.normal", "w = w * jax.random.split"), []),
        (PYTHON_LOOP.replace("w = w +", "f = lambda: w +"), []),
        (PYTHON_LOOP.replace("range(10)", "(1, 2)"), []),
        (
            PYTHON_LOOP.replace("w = w +", "w +=").replace("w.shape", "(3,)"),
            [],
        ),  # a sum is not used by the next iteration
        (PYTHON_LOOP.replace("        w =", "        n = 2 * i\n        w =").replace("w.shape", "(n,)"), []),
        (PYTHON_LOOP.replace("normal(key", "normal(jax.random.key(0)"), ["jax.random.key(0)"]),
        (PYTHON_LOOP.replace("normal(key", "normal(jax.random.key(i)"), []),
        (
            PYTHON_LOOP.replace("        w =", "        key = jax.random.key(0)\n        w ="),
            ["jax.random.key(0)"],
        ),
        (PYTHON_LOOP.replace("        w =", "        key = jax.random.key(i)\n        w ="), []),
        (
            WALK + PYTHON_LOOP.replace("w + jax.random.normal(key, w.shape)", "walk(w)"),
            ["jax.random.PRNGKey(1)"],
        ),
        (WALK + PYTHON_LOOP.replace("w + jax.random.normal(key, w.shape)", "make_walk(w)"), []),
        (
            WALK.replace("(1)", "(len(w))")
            + PYTHON_LOOP.replace("w + jax.random.normal(key, w.shape)", "walk(w)"),
            [],
        ),
        (PYTHON_LOOP.replace("def train", "def renew():\n    global key\n    key = 1\n\n\ndef train"), []),
        (None, []),
    ],
)
def test_a_draw_from_one_key_in_each_iteration_of_a_python_loop_is_found(source, keys):
    assert [(one.function, one.key) for one in in_python_loops(source)] == [("train", key) for key in keys]


MODULES = """
class Net:
    def __call__(self, x):
        return helper(x)
def helper(x): ...
def main(x):
    return Net()(x)
"""


def test_the_methods_of_a_class_that_is_used_may_run():
    assert called_in(MODULES, {"main"}) == {"main", "Net", "__call__", "helper"}
    assert called_in(MODULES, {"helper"}) == {"helper"}


CALLS = """
def main(state):
    step(state)
    if state:
        rare(state)
    try:
        risky(state)
    except ValueError:
        recover(state)
    return {"stop": stop}
    after(state)
def step(x): ...
def rare(x): ...
def risky(x): ...
def recover(x): ...
def stop(x): ...
def after(x): ...
"""


def test_code_that_may_not_run_is_told_from_code_that_surely_runs():
    every = {"main", "step", "rare", "risky", "recover", "stop", "after"}
    assert called_in(CALLS, {"main"}) == every
    assert called_in(CALLS, {"main"}, surely=True) == {"main", "step", "risky"}


@pytest.mark.parametrize(
    ("body", "same"),
    [
        ("    _, sub = jax.random.split(key)\n    x = step(x, sub)\n", True),
        ("    key, sub = jax.random.split(key)\n    x = step(x, sub)\n", False),
        ("    _, sub = jax.random.split(key)\n    x = step(x, jax.random.fold_in(sub, i))\n", False),
        ("    _, sub = jax.random.split(key)\n    x = step(x, sub, i)\n", False),
        ("    _, sub = jax.random.split(keys[i])\n    x = step(x, sub)\n", False),
    ],
)
def test_a_loop_that_splits_one_key_again_gets_the_same_keys(body, same):
    source = "import jax\nfor i in range(9):\n" + body
    found = in_python_loops(source)
    assert [(one.key, one.call, one.line) for one in found] == [("key", "jax.random.split", 3)] * same
