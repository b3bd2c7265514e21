"""A list grows in a loop only if the source shows that each iteration adds to it and nothing removes."""

import textwrap

import pytest

from jaxscope.analysis import growing_lists
from jaxscope.analysis.growing_lists import find

LOOP = """
    history, n = [], 0
    for i in range(9):
        w = step(w)
        history.append(w)
    print(history[-1], len(history))
"""


def changed(old: str, new: str) -> str:
    assert old in LOOP
    return textwrap.dedent(LOOP.replace(old, new))


def test_a_list_to_which_a_loop_of_calls_appends_is_found():
    assert find(textwrap.dedent(LOOP), "history", {4}) == (3, 5)
    inside = "def main(w):\n" + textwrap.indent(textwrap.dedent(LOOP), "    ")
    assert find(inside, "history", {5}) == (4, 6)


@pytest.mark.parametrize(
    "source",
    [
        changed("history, n = [], 0", "history, n = deque(maxlen=9), 0"),
        changed("history.append(w)", "history.append(w)\n        history.pop(0)"),
        changed("history.append(w)", "history.append(w)\n        history = history[-9:]"),
        changed("history.append(w)", "history.append(w)\n        del history[0]"),
        changed("history.append(w)", "history.append(w)\n        history[i % 3] = w"),
        changed("history.append(w)", "history = history + [w]"),
        "for k in ks:\n" + textwrap.indent(textwrap.dedent(LOOP), "    "),  # begins anew in each iteration
    ],
)
def test_a_list_that_is_bounded_or_begins_anew_is_not_found(source):
    assert find(source, "history", {4, 5}) is None


def test_a_loop_that_calls_nothing_of_the_user_is_not_found():
    assert find(textwrap.dedent(LOOP), "history", {6}) is None  # such as the reading of a data set
    assert find(textwrap.dedent(LOOP), "other", {4}) is find(None, "history", {4}) is None


AVERAGER = """class Averager:
    def __init__(self):
        self.kept = []
    def add(self, step, params):
        if step % 2 == 0:
            self.kept.append(params)
    def mean(self):
        return sum(self.kept) / len(self.kept)
averager = Averager()
for step in range(100):
    params = train(params)
    averager.add(step, params)
"""


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (("", ""), (10, 6)),
        (("        return sum", "        self.kept.pop(0)\n        return sum"), None),
        (("        return sum", "        self.kept = []\n        return sum"), None),
        (("    averager.add(step", "    other.add(step"), None),
        (("    params = train(params)", "    pass"), (10, 6)),  # the line of the call counts, not its text
    ],
)
def test_a_method_that_only_adds_to_a_list_of_its_object_is_found(change, found):
    assert growing_lists.find_attribute(AVERAGER.replace(*change), "averager.kept", {11}) == found


def test_a_list_whose_class_is_unknown_is_not_found():
    assert growing_lists.find_attribute(None, "averager.kept", {11}) is None
    assert growing_lists.find_attribute("for x in y:\n    averager.add(x)", "averager.kept", {1}) is None


APPENDED = """losses = jnp.array([])
for step in range(100):
    params, loss = train(params)
    losses = jnp.append(losses, loss)
print(losses)
"""


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (("", ""), ("losses", "loss", "jnp.concatenate([jnp.ravel(v) for v in losses])")),
        (
            ("append(losses, loss)", "concatenate([losses, loss[None]])"),
            ("losses", "loss[None]", "jnp.concatenate(losses)"),
        ),
        (("append(losses, loss)", "vstack((losses, loss))"), ("losses", "loss", "jnp.vstack(losses)")),
        (("jnp.append(losses, loss)", "jnp.append(losses, loss); print(len(losses))"), None),
        (("append(losses, loss)", "append(loss, losses)"), None),
        (("append(losses, loss)", "append(losses, loss, axis=0)"), None),
        (("for step in range(100):", "if True:"), None),
        (("jnp.array([])", "jnp.array([first])"), None),
        (
            ("jnp.array([])", "jnp.zeros((0, 8))"),
            ("losses", "loss", "jnp.concatenate([jnp.ravel(v) for v in losses])"),
        ),
        (("print(losses)", "def mean(): return losses.mean()"), None),
        (("for step", "for epoch in range(9):\n  print(losses)\n  for step"), None),
    ],
)
def test_an_array_that_its_loop_only_makes_longer_is_found(change, found):
    assert growing_lists.only_joined(APPENDED.replace(*change), 4) == found


@pytest.mark.parametrize(
    ("code", "limited"),
    [
        ("if len(self.items) < self.cap:\n    self.items.append(x)\nelse:\n    self.items[k] = x", True),
        ("items.append(x)\nif len(items) > 100:\n    items.pop(0)", True),
        ("items.append(x)\nwhile len(items) >= n:\n    del items[0]", True),
        ("items.append(x)\nif len(items) == 32:\n    flush(items)\n    items = []", True),
        ("items.append(x)\nif len(items) > 100:\n    print(items[-1])", False),
        ("items.append(x)\nif len(others) > 100:\n    others.pop()", False),
        ("items.append(x)", False),
    ],
)
def test_a_list_whose_length_is_compared_before_it_changes_is_limited(code, limited):
    assert growing_lists.is_limited(code, "items") is limited


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("tokens = one_token(w, tokens)", "tokens"),
        ("xs = jnp.append(xs, y)", "xs"),
        ("xs = jnp.concatenate([xs[1:], y])", None),
        ("xs = jnp.concatenate([y, y])", None),
        ("ys = one_token(w, tokens)", None),
    ],
)
def test_a_variable_that_a_loop_makes_longer_is_found(body, name):
    function = "def one_token(w, old):\n    return jnp.concatenate([old, w], axis=1)\n"
    assert growing_lists.lengthened_by(f"{function}for i in range(9):\n    {body}\n", 4) == name
    assert growing_lists.lengthened_by(None, 4) is None
