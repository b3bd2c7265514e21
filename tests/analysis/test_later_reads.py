"""A variable that a call is passed, and that the source reads again after the call."""

from textwrap import dedent

import pytest

from jaxscope.analysis.later_reads import read_after

READ = [
    "out = f(w)\ndel out\nw = f(w)",
    "out = f(w)\nprint(w)",
    "for x in xs:\n    out = f(w)",
    "for x in xs:\n    if x:\n        out = f(w)\nw = 2",
    "for x in xs:\n    out = f(w)\n    print(w.sum())",
    "def main(w):\n    with timer():\n        f(w)\n    return w",
    "if f(w) > 1:\n    w = w + 1",
    "out = f(state.params)\nstate = replace(state, step=1)",
    "out = f(state['params'])\nprint(state['params']['w'])",
    "def show():\n    return g(w)\nout = f(w)",
    "def main(w):\n    w = f(w)\ndef measure(w):\n    f(w)\n    f(w)",
    "try:\n    out = f(w)\nfinally:\n    save(w)",
    "out = f(w)\nif late:\n    w = 1\nelse:\n    g(w)",
    "while True:\n    out = f(w)\n    if out > 1:\n        break",
]  # fmt: skip
NOT_READ = [
    "for x in xs:\n    w = f(w)\nprint(w)",
    "for x in xs:\n    w, loss = f(w)\n    print(loss)\nprint(w)",
    "self.w = f(self.w)\nprint(self.w)",
    "state.params = f(state.params)\nprint(state.params)",
    "out = f(w)\nprint(w.shape, out)",
    "out = f(w)\nw = out\nprint(w)",
    "out = f(w)\ndel w",
    "for x in xs:\n    w = load(x)\n    out = f(w)",
    "for w in xs:\n    out = f(w)",
    "out = f(make())\nprint(w)",
    "out = f(state.params)\nprint(state.step)",
    "def main(w):\n    return f(w)\nprint(w)",
    "outs = [f(w) for w in xs]\nprint(w)",
    "out = f(w)\nif late:\n    w = 1\nelse:\n    w = 2\nprint(w)",
    "def show(w):\n    return g(w)\nout = f(w)",
    "def main():\n    f = jit(g)\n    w = f(w)\ndef other():\n    f = jit(h)\n    f(w)\n    print(w)",
    "while True:\n    out = f(w)\n    break",
]  # fmt: skip


def of(text):
    """What is true of the first line of ``text`` that has a call of ``f``."""
    source = dedent(text)
    line = next(n for n, row in enumerate(source.splitlines(), 1) if "f(" in row and "def " not in row)
    return read_after(source, line, None, "f", "(w, x=None)", "w")


@pytest.mark.parametrize("source", READ)
def test_what_is_read_after_the_call(source):
    assert of(source)


@pytest.mark.parametrize("source", NOT_READ)
def test_what_the_call_replaces_or_nothing_reads(source):
    assert not of(source)


@pytest.mark.parametrize("source", [None, "def", "print(w)", "f(w)"])
def test_nothing_is_said_of_a_source_that_does_not_show_it(source):
    assert not read_after(source, 1, None, "f", None, "w")
