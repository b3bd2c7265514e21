"""What happens on a line of the source: how often it runs, and what becomes of its value."""

import pytest

from jaxscope.analysis import source_lines


@pytest.mark.parametrize(
    ("source", "once"),
    [
        ("x = put(tree)", True),
        ("if True:\n    x = put(tree)", True),
        ("for t in trees:\n    x = put(t)", False),
        ("def f(t):\n    return put(t)", False),
        ("x = [put(t) for t in trees]", False),
        ("x = (", False),
    ],
)
def test_a_line_outside_loops_and_functions_is_run_once(source, once):
    assert source_lines.runs_once(source, len(source.splitlines())) is once


BRANCHES = """if setup:
    for i in range(n):
        step()
        if i % 10 == 0:
            show()
        elif i:
            save()
        rest()
    show()
"""


@pytest.mark.parametrize(
    ("line", "inside"), [(3, False), (4, False), (5, True), (7, True), (8, False), (9, False)]
)
def test_a_line_below_an_if_of_its_loop_need_not_run_in_each_iteration(line, inside):
    assert source_lines.depends_on_a_condition(BRANCHES, line) is inside


def test_of_a_condition_and_its_block_on_one_line_the_expression_decides():
    source = "for i in range(n):\n    late.append(m)\n    if len(late) == k: save(get(late)); late = []\n"
    for decides in (source_lines.depends_on_a_condition, source_lines.reached_now_and_then):
        assert decides(source, 3, "get(late)")
        assert not decides(source, 3, "len(late)") and not decides(source, 3)


def test_a_line_that_asks_for_a_dtype_differs_from_one_that_promotes():
    source = "y = x @ w\ny = (x @ w).astype(jnp.float32)\ny = jnp.asarray(x, f)\ny = jnp.zeros(3, dtype=f)\ny = g(x) * w"
    assert [source_lines.widens(source, line) for line in range(1, 6)] == [False, True, True, True, False]
    assert not source_lines.widens(None, 1) and not source_lines.widens("no python(", 1)


def test_a_cast_to_half_precision_is_not_meant_to_widen():
    source = "y = (x @ w.astype(jnp.bfloat16)) * scale\ny = jnp.asarray(x, dtype='float16')"
    assert [source_lines.widens(source, line) for line in (1, 2)] == [False, False]


@pytest.mark.parametrize(
    ("source", "created", "called", "for_each_call"),
    [
        ("for x in xs:\n    f = jit(g)\n    f(x)", 2, 3, True),
        ("def h(x):\n    f = jit(lambda x: x)\n    return f(x)", 2, 3, True),
        ("def h(x):\n    def f(x):\n        return x\n    return jit(f)(x)", 2, 4, True),
        ("for n in sizes:\n    f = jit(g)\n    for x in xs:\n        f(x)", 2, 4, False),
        ("def h(xs):\n    f = jit(g)\n    return [f(x) for x in xs]", 2, 3, False),
        ("def make():\n    return jit(g)\nfor x in xs:\n    make()(x)", 2, 4, True),
        ("def make():\n    return jit(g)\nf = make()\nfor x in xs:\n    f(x)", 2, 5, False),
        ("def make():\n    return jit(g)\ndef h(f, x):\n    return f(x)", 2, 4, False),
        (None, 1, 1, False),
        ("for (", 1, 1, False),
    ],
)
def test_a_function_is_created_for_each_call_where_no_loop_is_between_them(
    source, created, called, for_each_call
):
    assert source_lines.creates_for_each_call(source, created, called) is for_each_call


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("history[i + 1] = loss", True),
        ("losses.append(float(loss))", True),
        ("losses.append(\n    float(loss)\n)", True),
        ("total += float(loss)", False),
        ("print(float(loss))", False),
        ("best = float(loss)", False),
    ],
)
def test_a_value_that_is_written_into_a_container_is_kept(statement, kept):
    source = f"for x in data:\n    loss = step(x)\n    {statement}"
    assert source_lines.keeps_its_value(source, 3) is kept
    assert not source_lines.keeps_its_value(source, 2)


@pytest.mark.parametrize(
    ("head", "same"),
    [
        ("for _ in range(4):", True),
        ("for i in range(4):", True),
        ("for step in range(4):", False),
        ("for x in xs:", False),
        ("while True:", False),
    ],
)
def test_a_loop_that_only_counts_does_not_read_its_variable(head, same):
    source = f"def f(y, xs, step):\n    {head}\n        y = g(y, step)\n    return y\n"
    assert source_lines.counts_only(source, 3) is same


def test_a_loop_that_appends_to_a_list_is_seen():
    source = "def f(x):\n    found = []\n    for _ in range(9):\n        x = x + 1\n{}    return found\n"
    assert source_lines.appended(source.format("        found.append(x)\n"), 4) == ["found"]
    assert source_lines.appended(source.format("    found.append(x)\n"), 4) == []


@pytest.mark.parametrize(
    ("begins", "empty"),
    [("[]", True), ("[x]", False), ("list(x)", False), ("[]\n    found.append(x)", False)],
)
def test_a_list_that_is_filled_before_the_loop_does_not_begin_empty(begins, empty):
    source = f"def f(x):\n    found = {begins}\n    for _ in range(9):\n        found.append(x)\n    return found\n"
    at = source[: source.index("        found")].count("\n") + 1
    assert source_lines.begin_empty(source, at) is empty


def test_a_condition_ends_the_loop_if_its_body_leaves_it():
    source = "def f(x):\n    while x > 0:\n        if x > 9:\n            break\n        if x > 5:\n            x = g(x)\n"
    assert [source_lines.ends_the_loop(source, line) for line in (2, 3, 5, 6)] == [True, True, False, False]
    assert not source_lines.ends_the_loop("if x > 0:\n    raise SystemExit\n", 1)


@pytest.mark.parametrize(
    ("loop", "waits"),
    [
        ("    y = f(x).block_until_ready()\n    print(float(y))\n", True),
        ("    jax.block_until_ready(y := f(x))\n    print(float(y))\n", True),
        ("    print(float(f(x)))\n    y.block_until_ready()\n", False),
        ("    y = f(x)\n    print(float(y))\n", False),
    ],
)
def test_a_loop_that_waits_on_purpose_before_it_reads_a_value(loop, waits):
    source = "y = f(x).block_until_ready()\nfor x in data:\n" + loop
    line = next(n for n, text in enumerate(source.split("\n"), 1) if "float" in text)
    assert source_lines.waits_before(source, line) is waits


@pytest.mark.parametrize(
    ("line", "handed_over"),
    [
        ("list(map(fit, xs))", True),
        ("np.vectorize(fit)(xs)", True),
        ("pool.map(f=fit, xs=xs)", True),
        ("fit(xs)", False),
        ("run(fit, fit(xs))", False),  # it is called, too
        ("print(xs)", False),
    ],
)
def test_a_function_that_is_passed_on_may_run_many_times(line, handed_over):
    assert source_lines.passes_function(f"x = 1\n{line}\n", 2, "fit") is handed_over


def test_a_coroutine_that_its_caller_does_not_call_is_a_task():
    source = "async def fit():\n    return 1\nasync def main():\n    await fit()\nasyncio.run(main())\n"
    assert source_lines.runs_as_task(source, 2, "fit", source, 5)
    assert not source_lines.runs_as_task(source, 2, "fit", source, 4)
    assert not source_lines.runs_as_task(source.replace("async ", ""), 2, "fit", source, 5)


def test_a_loop_that_runs_once_is_told_from_one_that_is_called_often():
    source = "def restore(c):\n    for w in c:\n        put(w)\np = restore(c)\nq = [put(w) for w in c]\n"
    assert source_lines.runs_once(source, 3, in_loop=True)
    assert source_lines.runs_once(source, 5, in_loop=True)
    assert not source_lines.runs_once(source, 3)
    twice = source + "restore(d)\n"
    assert not source_lines.runs_once(twice, 3, in_loop=True)
    nested = "for e in range(3):\n    for w in c:\n        put(w)\n"
    assert not source_lines.runs_once(nested, 3, in_loop=True)


def test_conditions_on_the_variable_of_a_loop_are_found():
    source = "for i, x in enumerate(xs):\n    y = x if i else 0\n    if y > 1 and i < n - 1:\n        z = x\n    if y: z = y\n"
    assert source_lines.tests_of_target(source, 4) == [(2, "i", True), (3, "y > 1 and i < n - 1", None)]
    last = "for i in range(n):\n    y = x if i < n - 1 else 0\n    if i == 0: z = y\n"
    assert [t.first for t in source_lines.tests_of_target(last, 2)] == [False, True]
    assert source_lines.tests_of_target("while n:\n    if n: pass\n", 2) == []


@pytest.mark.parametrize("head, loops", [
    ("for i in range(1):", 0), ("for i in range(N):", 0), ("for i in tqdm(range(N)):", 0), ("for x in [a]:", 0),
    ("for i in range(2):", 1), ("for i in range(M):", 1), ("for i in range(K):", 1), ("for x in [*a]:", 1),
    ("for x in (a, b):", 1), ("for x in a:", 1), ("for i in range(1, n):", 1), ("while True:", 1),
])  # fmt: skip
def test_a_loop_with_one_iteration_is_no_loop(head, loops):
    """K is a parameter, so it may be another number than its default of 1."""
    source = f"N = 1\nM = 1\nM = 2\ndef f(a, K=1):\n    {head}\n        g(a)\nK = 1\n"
    assert len(source_lines.loops_around(source, 6)) == loops


def test_an_attribute_that_is_set_after_it_is_read_is_of_the_call_before():
    source = "def advance(self):\n    if self.old:\n        float(self.old)\n    self.old = new\n    float(self.old)\n"
    assert source_lines.kept_from_iteration_before(source, 3)
    assert not source_lines.kept_from_iteration_before(source, 5)


@pytest.mark.parametrize("end", ["break", "raise SystemExit", "sys.exit()"])
def test_a_block_that_ends_the_loop_is_reached_once(end):
    source = f"while True:\n    step()\n    if n > 9:\n        show()\n        {end}\n"
    assert source_lines.reached_now_and_then(source, 4)
    assert not source_lines.reached_now_and_then(source, 2)
