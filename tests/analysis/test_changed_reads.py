"""Variables that a jitted function reads from outside, and that the loop around its calls changes."""

import textwrap

import pytest

from jaxscope.analysis import changed_reads


def found(source, name="step", call="step("):
    """(variable, line that reads it, line that changes it) for the function ``name``."""
    text = textwrap.dedent(source).strip() + "\n"
    lines = text.splitlines()
    begins = next(n for n, line in enumerate(lines, 1) if f"def {name}(" in line)
    while begins > 1 and lines[begins - 2].lstrip().startswith("@"):
        begins -= 1
    calls = {n for n, line in enumerate(lines, 1) if call in line and "def " not in line}
    assert calls
    return [tuple(c) for c in changed_reads.find(text, name, begins, calls)]


CLOSURE = """
def main(data):
    rate = 0.1
    {place}
    @jit
    def step(w, x):
        return w - rate * x
    for i, x in enumerate(data):
        {change}
        w = step(w, x)
"""


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ("rate = rate * 0.9", True),
        ("rate *= 0.9", True),
        ("rate = schedule(i)", True),
        ("rate, other = x.rate, 1", True),
        ("rate = 0.1", False),  # the same value each time
        ("rate = default", False),
        ("other = i", False),
        ("def rate(): return i", False),
    ],
)
def test_a_variable_of_the_function_around_is_found_if_its_new_value_differs(change, changed):
    assert found(CLOSURE.format(change=change, place="pass")) == ([("rate", 6, 8)] if changed else [])


def test_a_function_that_the_loop_defines_again_is_traced_again():
    source = """
    def main(data):
        for rate in (0.1, 0.2):
            @jit
            def step(w, x):
                return w - rate * x
            w = step(w, 1)
    """
    assert found(source) == []


def test_a_parameter_hides_the_variable_and_another_functions_variable_is_not_meant():
    assert found(CLOSURE.format(change="rate *= 2", place="pass").replace("(w, x):", "(w, x, rate):")) == []
    other = """
    rate = 0.1
    @jit
    def step(w):
        return w - rate
    def main():
        rate = 0.1
        for i in range(9):
            rate = rate / 2
            w = step(w)
    """
    assert found(other) == []
    assert found(textwrap.dedent(other).replace("def main():", "def main():\n    global rate")) == [
        ("rate", 4, 9)
    ]


def test_a_variable_of_the_module_is_found_also_where_a_function_inside_reads_it():
    source = """
    for epoch in range(3):
        pass
    @jit
    def step(w):
        def loss(w):
            return w * scale
        return grad(loss)(w)
    for epoch in range(3):
        scale = 1.0 / (epoch + 1)
        w = step(w)
    """
    assert found(source) == [("scale", 6, 9)]


TRAINER = """
class Trainer:
    def __init__(self):
        self.beta = self.rate = 0.0

    def loss(self, w):
        return w * self.beta

    @partial(jax.jit, static_argnums=0)
    def update(self, w):
        return w - grad(self.loss)(w) * self.rate

    def set_epoch(self, epoch):
        self.beta = epoch / 10

    def reset(self):
        self.rate = 0.0

    def fit(self, w):
        for epoch in range(3):
            {change}
            w = self.update(w)
"""


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("self.set_epoch(epoch)", [("self.beta", 6, 13)]),
        ("self.rate = 0.9 * self.rate", [("self.rate", 10, 20)]),
        ("self.set_epoch(1)", []),
        ("self.reset()", []),
        ("self.count = epoch", []),
        ("other.rate = epoch", []),
    ],
)
def test_an_attribute_of_self_is_found_if_the_loop_or_a_method_that_it_calls_changes_it(change, what):
    assert found(TRAINER.format(change=change), "update", "self.update(") == what


def test_an_attribute_is_found_where_another_function_has_the_loop():
    source = TRAINER.format(change="pass") + (
        "\ndef main():\n    t = Trainer()\n    for i in range(9):\n        t.rate = 1 / i\n        w = t.update(w)\n"
    )
    assert found(source, "update", "t.update(") == [("self.rate", 10, 26)]


def test_what_is_no_python_has_no_variables():
    assert changed_reads.find("def step(:", "step", 1, {1}) == []
    assert changed_reads.find(None, "step", 1, {1}) == []


AGENT = """class Agent:
    def __init__(self):
        self.params = self.target = 1
    @partial(jit, static_argnums=0)
    def update(self, params):
        return params + self.target
    def learn(self):
        self.params = self.update(self.params)
        self.target = self.params
agent = Agent()
for _ in range(9):
    agent.learn()
"""


def test_an_attribute_that_gets_another_one_that_changes_is_changed():
    assert changed_reads.find(AGENT, "update", 4, {8, 12}) == [changed_reads.Changed("self.target", 6, 9)]
    constant = AGENT.replace("self.target = self.params", "self.target = self.start")
    assert changed_reads.find(constant, "update", 4, {8, 12}) == []
