"""The loop around a call, what it passes, and what the loop sets anew are read from the source."""

import ast

import pytest

from jaxscope.analysis import loop_calls, numpy_draws

SOURCE = """
key = make()
for epoch in epochs:
    sub = split(key)
    for x, y in batches:
        state.params, loss = step(state.params, x, sub)
        if epoch:
            check(x)
    losses = [total(w, row) for row in rows(x)]
def f():
    return lambda x: inner(x)
while more(x):
    a = b = step(b)
"""


def found(line, name, column=None):
    return loop_calls.find(SOURCE, line, column, name)


def test_the_innermost_loop_that_repeats_a_call_is_found():
    step = found(6, "step")
    assert (step.loop.lineno, step.statement, step.always) == (5, 0, True)
    assert step.outer.lineno < step.loop.lineno
    assert step.targets == {"state", "loss"} and step.feeds_itself
    assert not found(8, "check").always
    total = found(9, "total")
    assert isinstance(total.loop, ast.ListComp) and total.outer and not total.feeds_itself


@pytest.mark.parametrize(
    ("line", "name"), [(2, "make"), (11, "inner"), (12, "more"), (6, "stop"), (99, "step")]
)
def test_what_no_loop_repeats_is_not_found(line, name):
    assert found(line, name) is None


def test_a_call_by_another_name_is_found_by_its_column():
    assert found(6, "train_step", column=29).call.lineno == 6
    assert found(6, "train_step") is None and loop_calls.find("for x in y: (", 1, None, "y") is None


def test_a_value_of_the_same_iteration_is_told_from_one_that_an_earlier_iteration_left():
    source = "for x in xs:\n    loss, w = step(\n        w, x)\n    if log:\n        print(loss.item())\n    kept = loss\n"
    assert loop_calls.set_in_same_iteration(source, 5, {2})
    assert not loop_calls.set_in_same_iteration(source, 5, {9})
    assert not loop_calls.set_in_same_iteration(source.replace("(loss.", "(kept."), 5, {2})
    assert not loop_calls.set_in_same_iteration("loss = step(w)\nprint(loss)", 2, {1})


NOW_AND_THEN = """def train(batches):
    for n, batch in enumerate(batches):
        step(batch)
        if n % 50 == 0:
            evaluate()
def step(batch):
    return 1
def evaluate():
    return 2
"""


def test_a_function_that_is_called_now_and_then_is_not_of_each_iteration():
    assert loop_calls.functions_called(NOW_AND_THEN, 2, 5) == [(6, 7)]


QUEUE = """def prefetch(batches):
    queue = collections.deque()
    for batch in batches:
        queue.append(jax.device_put(batch))
        if len(queue) == 2:
            yield queue.popleft()
"""
NEXT = """x = jax.device_put(next(batches))
for _ in range(100):
    state = step(state, x)
    x = jax.device_put(next(batches))
"""


@pytest.mark.parametrize(
    ("source", "ahead"),
    [
        (QUEUE, True),
        (QUEUE.replace("queue.popleft()", "queue.pop(0)"), True),
        (QUEUE.replace("queue.popleft()", "queue"), False),  # a list that is only filled
        (NEXT, True),
        (NEXT.replace("state, x)", "state, y)"), False),  # nothing read it before
        (NEXT.replace("next(batches)", "update(x)"), False),  # each iteration needs the copy
        ("for batch in batches:\n    y = 1\n    z = 2\n    step(jax.device_put(batch))", False),
        (None, False),
    ],
)
def test_an_array_for_a_later_iteration_is_put_ahead(source, ahead):
    assert loop_calls.is_put_ahead(source, 4) is ahead


def test_a_call_is_found_although_a_method_of_its_result_is_called():
    call = loop_calls.call_at("print(apply(w, x).sum())", 1, 6, "step")
    assert ast.unparse(call) == "apply(w, x)"
    assert loop_calls.call_at("make(w)(x)", 1, 0, "step") is None  # which of the two is unknown


def test_arguments_are_matched_with_the_parameters():
    (call,) = (n for n in ast.walk(ast.parse("self.step(a, b, c=d)")) if isinstance(n, ast.Call))
    assert ast.unparse(loop_calls.argument(call, "(self, w, x, c=None)", "x")) == "b"
    assert ast.unparse(loop_calls.argument(call, "(w, x, y, c=None)", "c")) == "d"
    assert ast.unparse(loop_calls.argument(call, "(w, x, y=<object a, b>)", "x")) == "b"
    assert ast.unparse(loop_calls.argument(call, "(self, *args: dict[str, int], c=<x>)", "args[1]")) == "b"
    assert loop_calls.argument(call, "(self, *args: dict[str, int], c=<x>)", "args[2]") is None
    assert loop_calls.argument(call, None, "x") is None


@pytest.mark.parametrize(
    ("expression", "body", "same"),
    [
        ("key", "w = step(w, key)", True),
        ("key", "key, sub = split(key)", False),
        ("key", "key = jax.random.key(0)", True),
        ("key", "key = jax.random.key(i)", False),
        ("key", "key = jax.random.key(0)\nkey += 1", False),
        ("key", "for key in keys: pass", False),
        ("state", "state.x += 1", False),
        ("state", "state['x'] = 1", False),
        ("jax.random.PRNGKey(3)", "pass", True),
        ("jax.random.PRNGKey(seed)", "pass", False),
        ("self.key", "self.key = 1", False),
        ("split(key)", "pass", False),
    ],
)
def test_a_value_is_the_same_in_all_turns_only_where_the_source_shows_it(expression, body, same):
    node = ast.parse(expression, mode="eval").body
    assert loop_calls.stays_the_same(node, ast.parse(body).body) is same


@pytest.mark.parametrize(
    ("source", "same"),
    [
        ("for key in keys:\n  w = step(w, key)", False),
        ("for i, key in enumerate(keys):\n  w = step(w, key)", False),
        ("while (key := more()) is not None:\n  w = step(w, key)", False),
        ("[0 for key in keys if\n  step(w, key)]", None),
        ("[\n  step(w, key) for key in keys]", False),
        ("for key in keys:\n  for x in data: w = step(w, key)", True),
        ("for x in data:\n  w = step(w, key)", True),
    ],
)
def test_what_the_loop_itself_sets_is_another_value_in_each_turn(source, same):
    call = loop_calls.find(source, 2, None, "step")
    key = ast.Name("key", ast.Load())
    assert (None if call is None else loop_calls.stays_the_same(key, call.repeats)) is same


HEAD = "import numpy as np, random\nfrom numpy import random as r\nrng = np.random.default_rng(0)\n\ndef f(x):\n    "


@pytest.mark.parametrize(
    ("body", "drawn"),
    [
        ("return x + np.random.normal(size=3)", (6, "np.random.normal")),
        ("def g(): return random.random()\n    return g", (6, "random.random")),
        ("return r.uniform() + rng.normal()", (6, "r.uniform")),
        ("return rng.normal()", (6, "rng.normal")),
        ("return np.random.RandomState(0).normal()", None),
        ("np.random.seed(0)", None),
        ("return jax.pure_callback(lambda: np.random.normal(), x)", None),
        ("return jax.random.normal(x)", None),
    ],
)
def test_numbers_that_numpy_draws_in_a_function_are_found(body, drawn):
    assert numpy_draws.find(HEAD + body, "f", 5) == (drawn and (*drawn, "f", ()))
    whole = HEAD + body + "\n\ndef step(x):\n    return jax.grad(f)(x)"
    assert numpy_draws.find(whole, "step", whole.count("\n")) == (drawn and (*drawn, "f", ()))
    twice = body.replace("return", "np.random.rand()\n    return", 1) if drawn else body
    if drawn is not None and twice != body and not body.startswith("def"):
        assert numpy_draws.find(HEAD + twice, "f", 5) == (6, "np.random.rand", "f", (7,))
    assert numpy_draws.find(HEAD + body, "f", 4) is None and numpy_draws.find(None, "f", 5) is None


def test_the_first_draw_of_some_lines_is_found_and_not_that_of_a_generator_made_there():
    source = """import numpy as np
class A:
    def __init__(self):
        self.rng = np.random.default_rng(0)
    def f(self, other):
        mine = np.random.default_rng(2)
        for i in range(9):
            new = np.random.default_rng(i)
            x = new.normal() + other.normal()
            y = mine.normal() + self.rng.normal()
"""
    first = source[: source.index("        for i")].count("\n") + 1
    assert numpy_draws.on_lines(source, first, first + 3) == (first + 3, "mine.normal")
    assert numpy_draws.on_lines(source, first, first + 2) is None and numpy_draws.on_lines(None, 1, 9) is None


ACTS = """
while not seen.last():
    out, memory = actor(params, seen, memory)
    action = int(out.actions)
    seen = world.step(action)
    data.append(seen)
for n in range(9):
    q = network(params, obs)
    a = q.argmax()
    a = device_get(a)
    after, rewards = worlds.step(a)
    obs = after
for batch in batches:
    state, loss = step(state, batch)
    value = float(loss)
    total = total + value
    self.last = float(loss)
for batch in batches:
    state, loss = step(state, batch, rate)
    rate = schedule(float(loss))
def run():
    return [world.step(int(actor(x))) for x in xs]
"""


@pytest.mark.parametrize(
    ("line", "through"),
    [(4, "seen"), (10, "obs"), (15, None), (16, None), (17, None), (20, "rate"), (22, None), (99, None)],
)
def test_a_value_that_the_next_iteration_needs_is_seen(line, through):
    assert loop_calls.reaches_next_iteration(ACTS, line) == through


@pytest.mark.parametrize(
    ("after", "used"),
    [
        ("costs.append(y)", True),
        ("costs.append(1)", False),
        ("y.block_until_ready()", False),
        ("t = time.perf_counter(); print(y)", False),
        ("update(x); costs.append(y)", False),  # it may change what x holds
        ("x.append(3); costs.append(y)", False),
    ],
)
def test_whether_a_loop_uses_the_result_of_a_call_whose_arguments_nothing_changes(after, used):
    call = loop_calls.find(f"for i in range(n):\n    y = step(x)\n    {after}\n", 2, 8, "step")
    assert loop_calls.uses_result(call, {"perf_counter", "block_until_ready"}) is used


STEPS = """
for i in range(n):
    action, rng = policy(state, obs, rng)
    obs, reward = env.step(np.array(action))
    seed = following(seed)
    batch = load(seed)
"""


@pytest.mark.parametrize(
    ("line", "jitted", "through"), [(4, "policy", "obs"), (4, "env", None), (5, "policy", None)]
)
def test_a_value_that_a_jitted_function_computes_for_the_next_iteration_is_seen(line, jitted, through):
    assert loop_calls.reaches_next_iteration(STEPS, line, {jitted}) == through


@pytest.mark.parametrize(
    ("source", "position", "function", "over_leaves"),
    [
        ("p = jax.tree.map(update, p, g)", (1, 4), None, True),
        ("p = tree_map(partial(update, n), p, g)", (1, 4), None, True),
        ("p = jax.tree.map(\n    lambda p, g: update(p, g),\n    p,\n)", (2, 17), None, True),
        ("p = jax.tree.map(leaf, p)", (1, None), "leaf", True),
        ("p = jax.tree.map(leaf, p)", (1, None), "other", False),
        ("p = step(jax.tree.map(np.asarray, p))", (1, 4), None, False),
        ("p = list(map(update, p))", (1, 9), None, False),
        ("p = executor.map(update, p)", (1, 4), None, False),
        ("p = (", (1, 4), None, False),
    ],
)
def test_a_function_that_is_called_for_each_leaf_of_a_tree_is_seen(source, position, function, over_leaves):
    assert loop_calls.maps_over_leaves(source, *position, function) is over_leaves


@pytest.mark.parametrize(
    ("source", "column", "array"),
    [
        ("for row in rows: f(row)", 11, "rows"),
        ("text = ''.join(list(map(decode, tokens)))", 15, "tokens"),
        ("text = ''.join(f(v) for v in self.x[0])", 15, "self.x[0]"),
        ("pairs = list(zip(a, b))", 8, None),
        ("for row in load(): f(row)", 11, None),
        ("a, b = rows", 0, None),
        ("for row in rows: f(row)", None, None),
    ],
)
def test_the_array_over_which_a_line_iterates_is_named(source, column, array):
    assert loop_calls.iterated(source, 1, column) == array


CALLS = """
def draw():
    while True:
        yield sample()
def sample():
    return normal(key)
@jit
def step(x):
    return sample()
def other():
    return sample()
g = draw()
for i in range(9):
    x = [next(g) for _ in range(3)]
    step(x)
"""


def test_the_functions_that_a_loop_calls_include_those_of_its_generators():
    assert sorted(loop_calls.functions_called(CALLS, 13, 15)) == [(3, 4), (5, 6)]
    assert loop_calls.functions_called("for (", 1, 1) == []


SCANNED = """\
import jax, jax.numpy as jnp, numpy as np
for i in {iterated}:
    key, sub = jax.random.split(key)
    state, info = step(sub, state)
    draws.append({{k: np.asarray(v) for k, v in state.items()}})
{more}
"""


@pytest.mark.parametrize(
    ("iterated", "more", "scan"),
    [
        ("range(n)", "", ()),
        ("tqdm(range(n))", "", ()),
        ("jax.random.split(key, n)", "", ()),
        ("range(n)", "    if i % 100 == 0: print(info)", ("i % 100 == 0",)),
        ("range(n)", "    if i % 100 == 0 and i: save(state)", ("i % 100 == 0 and i",)),
        (
            "range(n)",
            "    if i % 100 == 0: energy = total(state); print(energy)\n    if i % save_every == 0: save(state)",
            ("i % 100 == 0", "i % save_every == 0"),
        ),
        ("loader", "", None),
        ("range(n)", "    print(info)", None),
        ("range(n)", "    if info.done: break", None),
        ("range(n)", "    if i % 100 == 0 and done(info): break", None),
        ("range(n)", "    if i % 100 == 0: state = reset(state)", None),
        ("range(n)", "    if i % 100 == 0: print(info)\n    if i % 10 == 0: state = reset(state)", None),
        ("range(n)", "    if i % 2: print(i)\n    else: save(state)", None),
        ("range(n)", "    total += float(info)", None),
    ],
)
def test_a_scan_can_replace_a_loop_that_counts_and_only_computes(iterated, more, scan):
    source = SCANNED.format(iterated=iterated, more=more)
    call = loop_calls.find(source, 4, 18, "step")
    assert loop_calls.scan_of(call, {"step"}, {"jax", "jnp"}) == scan


def test_a_method_of_another_object_with_the_name_of_the_function_around_the_loop_is_not_that_function():
    source = """\
class Filter:
    def act(self, x):
        x = jnp.array(x)
        while self.wrong(x):
            x = self.solver.act(x)
        return x

    def wrong(self, x):
        return x > 0
"""
    assert loop_calls.functions_called(source, 4, 5) == [(8, 9)]


@pytest.mark.parametrize(
    ("call", "rows"),
    [
        ("features = embed(params, images[rows])", ["images"]),
        ("features = embed(params, images[order[i : i + 8]], mask=masks[rows])", ["images", "masks"]),
        (
            "features = embed(params, images[i : i + 8])",
            [],
        ),  # perhaps other rows in each iteration of the loop
        ("features = embed(params, images[rows], head)", []),  # the head changes
        ("features = embed(head, images[rows])", []),
        ("features = embed(params, noisy[rows])", []),
        ("features = embed(params, refilled[rows])", []),  # another call gets it, and may change it
        ("features = embed(params, shifted(images[rows]))", []),
        ("features = embed(params, batch)", []),
    ],
)
def test_calls_for_the_same_rows_in_each_iteration_of_the_outer_loop(call, rows):
    source = f"""
for epoch in range(9):
    noisy = augment(pictures)
    refill(refilled)
    order = rng.permutation(len(images))
    for i in range(0, 64, 8):
        rows = order[i : i + 8]
        batch = pictures[rows]
        {call}
        head = step(head, features)
        timed = embed(weights, photos[rows])
"""
    assert loop_calls.find(source, 9, None, "embed").takes_rows_again() == rows
    assert loop_calls.find(source, 11, None, "embed").takes_rows_again() == []


@pytest.mark.parametrize(
    ("body", "chunks"),
    [
        ("out.append(f(x[i : i + n]))", True),
        ("out.append(f(x[i : i + n, 0], y[i : i + n]))", True),
        ("out.append(f(x[:, i : i + n]))", False),  # columns
        ("out.append(jax.grad(loss)(w, x[i : i + n]))", False),  # gradients of microbatches
        ("h = f(h, x[i : i + n])", False),  # each chunk depends on the one before
        ("out.append(f(x[i]))", False),
    ],
)
def test_a_loop_over_chunks_of_rows_is_recognized(body, chunks):
    source = f"for i in range(0, len(x), n):\n    {body}\n"
    assert loop_calls.takes_chunks(source, 2) is chunks
    assert loop_calls.takes_chunks(source.replace("range(0, len(x), n)", "range(9)"), 2) is False


def test_the_object_of_a_method_is_an_argument_however_it_is_called():
    import ast

    call = ast.parse("t.step(p, x)").body[0].value
    values = {
        name: value and ast.unparse(value)
        for name in ("s", "p", "x")
        for value in [loop_calls.argument(call, "(s, p, x)", name, of_class=True)]
    }
    assert values == {"s": "t", "p": "p", "x": "x"}
    static = loop_calls.argument(ast.parse("T.step(s, p, x)").body[0].value, "(s, p, x)", "p", of_class=True)
    assert ast.unparse(static) == "p"


LOOPS = """
import jax

def f(xs, layers, points, n):
    for x in xs:
        h = cell(x, h)
    for t in range(len(xs)):
        h = cell(xs[t], h)
    for t in range(n):
        h = cell(xs[:, t], h)
    for t in range(n):
        h = cell(xs[t], t)
    for layer in layers:
        h = layer(h)
    for w, b in layers[:-1]:
        h = h @ w + b
    for i in range(n):
        found.append(project(points[i]))
    for x, y in batches:
        params = sgd(params, jax.grad(loss)(params, x, y))

def rollout(state, steps):
    for _ in range(steps):
        state = step(state)
    return state

def loss(params, count):
    return rollout(params, steps=count)

def update(params, n):
    return jax.grad(loss)(params, n)

def write(xs, h):
    for t in range(3):
        h = cell(xs[t, :], h)
        out = out.at[t].set(h)
"""


@pytest.mark.parametrize(
    ("line", "array"),
    [
        (35, "xs"),
        (6, "xs"),
        (8, "xs"),
        (10, "jnp.swapaxes(xs, 0, 1)"),
        (12, None),
        (14, None),
        (16, None),
        (3, None),
    ],
)
def test_the_array_that_a_scan_would_take_is_found(line, array):
    found = loop_calls.arrays_iterated(LOOPS, line)
    assert (found.arrays[0] if found is not None else None) == array
    assert loop_calls.arrays_iterated(None, line) is None
    assert loop_calls.writes_elements(LOOPS, line) == (line == 35)


def test_a_scan_takes_several_arrays_also_shifted_and_from_the_end():
    source = """def backward(A, B, x, scales):
    for t in range(len(x) - 2, -1, -1):
        betas.insert(0, A @ (B[:, x[t + 1]] * betas[0]) / scales[t + 1])
    for t in reversed(range(n)):
        last = gamma * last * (1 - dones[t]) + rewards[t]
    for i in range(1, n):
        c = c.at[i].set(d[i] / (b[i] - c[i - 1]))
"""
    assert loop_calls.arrays_iterated(source, 3) == (("x", "scales"), "x[t + 1]", True)
    assert loop_calls.arrays_iterated(source, 5) == (("dones", "rewards"), None, True)
    assert loop_calls.arrays_iterated(source, 7) is None  # the loop reads what it wrote


@pytest.mark.parametrize(("line", "layers"), [(6, False), (8, False), (14, True), (16, True), (20, False)])
def test_layers_are_told_from_arrays_and_batches(line, layers):
    assert loop_calls.goes_through_layers(LOOPS, line) is layers


@pytest.mark.parametrize(("line", "elements"), [(5, False), (7, False), (17, True)])
def test_iterations_that_could_be_mapped_index_arrays_and_pass_nothing_on(line, elements):
    assert loop_calls.takes_elements(loop_calls.loop_from(LOOPS, line)) is elements


@pytest.mark.parametrize(
    ("function", "parameter", "line"),
    [
        ("rollout", "steps", 23),
        ("loss", "count", 23),
        ("update", "n", 23),
        ("update", "params", None),
        ("g", "n", None),
    ],
)
def test_the_loop_that_a_parameter_counts_is_found_through_calls(function, parameter, line):
    assert loop_calls.loop_counted(LOOPS, function, parameter) == line


@pytest.mark.parametrize(
    ("body", "carried"),
    [
        ("y = f(y)", True),
        ("total += f(x)", False),
        ("y = x\n    z = f(y)", False),
        ("z = f(y)\n    y = x", True),
        ("states.append(f(states[-1]))", True),
        ("states.append(f(x))", False),
        ("beta.insert(0, f(beta[0]))", True),
        ("s = x\n    for a in x:\n        s = f(s, a)", False),  # the inner loop begins anew
        ("z = [f(a) for a in x]", False),
        ("a = 1\n    z = [f(a) for a in x]", False),
        ("def g(y):\n        z = y\n        return z\n    w = g(x)", False),
        ("params[x] = f(params[x])", True),
    ],
)
def test_a_loop_is_known_to_pass_a_variable_to_its_next_iteration(body, carried):
    loop = loop_calls.loop_from(f"for x in xs:\n    {body}\n", 1)
    assert loop is not None and loop_calls.carries(loop) is carried


@pytest.mark.parametrize(
    ("body", "carried", "items"),
    [
        ("new[i] = f(old[i])\n    total[i] = g(new[i])", False, ()),  # both are results
        ("params[i] = f(params[i])", False, ("params",)),
        ("new[i] = f(params[i])\n    params[i] = g(new[i])", False, ("params",)),
        ("params[i] = f(\n        params[i]\n    )", False, ("params",)),
        ("new[i] = f(new[i - 1])", True, ()),
        ("new[i] = f(params[i])\n    s = g(s)", True, ()),
    ],
)
def test_items_of_the_loops_own_index_do_not_reach_the_next_iteration(body, carried, items):
    loop = loop_calls.loop_from(f"for i in range(9):\n    {body}\n", 1)
    assert loop is not None and loop_calls.carries(loop) is carried
    assert loop_calls.items_of_iterations(loop) == items


def test_a_method_that_computes_the_value_read_is_not_the_one_that_needs_it():
    source = """\
for step in range(100):
    action = int(agent.select(params, next(keys), state))
    state, reward = env.step(action)
"""
    assert loop_calls.given_to_object(source, 2) == "env.step"
    nested = "for _ in range(9):\n    state = env.step(np.array(agent.act(next(keys))))\n"
    assert loop_calls.given_to_object(nested, 2) == "env.step"


def test_a_method_that_is_called_on_its_class_gets_the_object_as_an_argument():
    unbound = ast.parse("step(model, x)").body[0].value
    assert ast.unparse(loop_calls.argument(unbound, "(self, x)", "x")) == "x"
    assert ast.unparse(loop_calls.argument(unbound, "(self, x)", "self")) == "model"
    bound = ast.parse("model.step(x)").body[0].value
    assert ast.unparse(loop_calls.argument(bound, "(self, x)", "self")) == "model"
    assert ast.unparse(loop_calls.argument(bound, "(self, x)", "x")) == "x"
