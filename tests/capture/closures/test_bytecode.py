"""What a function's code reads without being passed it, from the code alone."""

import pytest

from jaxscope.capture.closures import bytecode, dependencies
from jaxscope.capture.closures.bytecode import ATTRIBUTE, CLOSURE, GLOBAL, ITEM, PARAMETER, Name


def told(source: str, name: str = "f") -> bytecode.Reads:
    space: dict = {}
    exec(source, space)
    return bytecode.of_code(space[name].__code__)


def texts(found) -> set[str]:
    """``config.width`` for a name with its steps."""
    return {
        n.name + "".join(f".{k}" if how == ATTRIBUTE else f"[{k!r}]" for how, k in n.steps)
        for n in found
        if n.kind != PARAMETER
    }


@pytest.mark.parametrize(
    ("body", "read", "written"),
    [
        ("return x * rate", {"rate"}, set()),
        ("return x * config.model.width", {"config.model.width"}, set()),
        ("return table['lr'] * rows[0][1]", {"table['lr']", "rows[0][1]"}, set()),
        ("return table[x]", {"table"}, set()),
        ("return sum(v * rate for v in rows)", {"sum", "rate", "rows"}, set()),
        ("return [rows[i] for i in x]", {"rows"}, set()),
        ("layer = config.layer\n return x @ layer.kernel + layer.bias", {"config.layer.kernel", "config.layer.bias"}, set()),
        ("def g(v): return v * rate\n return g(x)", {"rate"}, set()),
        ("g = lambda v: v * config.lr\n return g(x)", {"config.lr"}, set()),
        ("counts['n'] += 1\n return x", {"counts['n']"}, {"counts['n']"}),
        ("cache[x.shape] = 1\n return x", set(), {"cache"}),
        ("config.seen = 1\n return x", set(), {"config.seen"}),
        ("global total\n total = total + 1\n return x", {"total"}, {"total"}),
        ("log.append(x)\n return x", {"log.append"}, set()),
        ("if x: y = rate\n else: y = other\n return y", {"rate", "other"}, set()),
        ("for x in rows: x = rate\n return x", {"rows", "rate"}, set()),
        ("with scope(): y = x * rate\n return y", {"scope", "rate"}, set()),
        ("try: return x * rate\n except ValueError: return other", {"rate", "other", "ValueError"}, set()),
        ("return f'{rate:.2f} {config.name!r}'", {"rate", "config.name"}, set()),
        ("return call(*rows, **table)", {"call", "rows", "table"}, set()),
        ("return call(x, a=rate, b=config.b)", {"call", "rate", "config.b"}, set()),
        ("return (rate if x else other) * rows[1:2]", {"rate", "other", "rows"}, set()),
        ("match x:\n  case 1: return rate\n  case _: return other", {"rate", "other"}, set()),
        ("x = x + rate\n return x", {"rate"}, set()),
        ("import math\n return math.pi * rate", {"rate"}, set()),
        ("a, b = rows\n return a.w * b", {"rows"}, set()),
        ("return {**table, 'k': rate}", {"table", "rate"}, set()),
        ("while x: x = x - rate\n return x", {"rate"}, set()),
    ],
)  # fmt: skip
def test_reading_and_writing_are_distinguished(body, read, written):
    found = told(f"def f(x):\n {body}\n")
    assert texts(found.read) == read and texts(found.written) == written


def test_a_line_that_every_run_comes_past_differs_from_one_behind_a_branch():
    found = told("def f(x):\n a = x * rate\n if x:\n  a = a * other\n return a * late\n")
    lines = {n.name: told for n, told in found.read.items()}
    assert lines == {"rate": (2, True), "other": (4, False), "late": (5, False)}


def test_attributes_of_parameters_are_reads_and_parameters_are_not():
    found = told("def f(self, x):\n def g(v): return v * self.inner.k\n return g(x) * self.scale + h(self)\n")
    assert {n for n in found.read if n.kind == PARAMETER} == {
        Name(PARAMETER, "self", ((ATTRIBUTE, "scale"),)),
        Name(PARAMETER, "self", ((ATTRIBUTE, "inner"), (ATTRIBUTE, "k"))),
    }
    assert {n.name for n in found.read if n.kind == GLOBAL} == {"h"}


def test_closure_cells_are_distinguished_from_globals():
    space: dict = {}
    exec(
        "def make(a, b):\n def f(x): return (lambda v: v * a['k'] * c)(x) + b\n return f\nf = make({}, 1)",
        space,
    )
    found = bytecode.of_code(space["f"].__code__)
    assert {(n.kind, n.name, n.steps) for n in found.read} == {
        (CLOSURE, "a", ((ITEM, "k"),)),
        (GLOBAL, "c", ()),
        (CLOSURE, "b", ()),
    }


def test_the_walk_follows_the_users_functions_and_ends_at_libraries():
    space = {"__name__": "train", "np": __import__("numpy"), "math": __import__("math")}
    exec(
        "def helper(v): return deep(v) * rate\n"
        "def deep(v): return helper(v) * np.pi * math.pi * table['a'] if v else np.sum(rows)\n"
        "rate, table, rows = 2.0, {'a': 1, 'b': 2}, [1, [2, {'k': 3}]]\n"
        "def f(x): return helper(x)\n",
        space,
    )
    found = {p.name: (p.where, p.reader, p.value) for p in dependencies.values_read(space["f"], {})}
    assert {n for n in found if n not in ("helper", "deep")} == {
        "rate", "table['a']", "rows", "rows[0]", "rows[1]", "rows[1][0]", "rows[1][1]", "rows[1][1]['k']",
    }  # fmt: skip
    assert found["rate"] == ("global", "helper", 2.0)


def test_a_web_of_references_and_a_large_container_are_cut():
    ring: list = []
    ring += [ring] * 3 + [{"k": ring} for _ in range(100_000)]
    space = {"__name__": "train", "ring": ring}
    exec("def f(x): return g(ring)\ndef g(v): return v", space)
    assert len(dependencies.values_read(space["f"], {})) <= dependencies.MAX_FOUND
