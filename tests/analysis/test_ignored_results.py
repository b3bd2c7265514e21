"""Statements that do not use the result of a function without side effects."""

import pytest

from jaxscope.analysis.ignored_results import find

HEAD = "import jax, jax.numpy as jnp, optax, equinox as eqx, os\nfrom pathlib import Path\n"
CHANGED_COPIES = [
    ("x.at[i, 2:].set(jnp.zeros(3))", "x.at[...].set(...)", "x"),
    ("self.grid.at[i].add(1)", "self.grid.at[...].add(...)", "self.grid"),
    ("state.replace(step=1)", "state.replace(...)", "state"),
    ("state._replace(key=key)", "state._replace(...)", "state"),
    ("self.state.apply_gradients(grads=g)", "self.state.apply_gradients(...)", "self.state"),
    ("optax.apply_updates(params['w'], updates)", "optax.apply_updates(...)", "params['w']"),
    ("optax.apply_updates(model.weights(), updates)", "optax.apply_updates(...)", None),
    ("eqx.tree_at(lambda m: m.w, model, w)", "eqx.tree_at(...)", "model"),
    ("jax.lax.with_sharding_constraint(x, s)", "jax.lax.with_sharding_constraint(...)", "x"),
    ("jnp.append(xs, x)", "jnp.append(...)", "xs"),
]


def found(statement, head=HEAD, after="return 0"):
    return find(f"{head}def f(x):\n    {statement}\n    {after}\n")


@pytest.mark.parametrize("statement, call, target", CHANGED_COPIES)
def test_a_changed_copy_that_nothing_uses_is_found(statement, call, target):
    (one,) = found(statement)
    assert (one.function, one.line, one.call, one.kind, one.target) == ("f", 4, call, "copy", target)


@pytest.mark.parametrize(
    "statement, kind, target",
    [
        ("jax.jit(step)", "wrap", "step"),
        ("jax.random.split(key)", "key", "key"),
        ("jax.random.fold_in(self.key, 3)", "key", "self.key"),
        ("jax.default_matmul_precision('highest')", "context", None),
        ("jax.debug_nans(True)", "context", None),
    ],
)
def test_new_functions_keys_and_contexts_that_nothing_uses_are_found(statement, kind, target):
    (one,) = found(statement)
    assert (one.kind, one.target, one.certain) == (kind, target, True)


@pytest.mark.parametrize(
    "statement",
    [
        "y = x.at[0].set(1)",
        "return x.at[0].set(1)",
        "call(x.at[0].set(1))",
        "os.replace('a', 'b')",
        "Path('a').replace('b')",  # renames a file
        "path.replace(target)",
        "table.replace(to='b', inplace=True)",  # changes a pandas table
        "state.replace(**changes)",
        "optimizer.apply_gradients(zip(grads, variables))",  # Keras changes the variables
        "optimizer.update(model, grads)",  # flax.nnx changes the model
        "jnp.dot(x, x)",  # may be there to compile it before a measurement
        "jax.jit(step)(x)",
        "jax.config.update('jax_debug_nans', True)",
        "frame.at[0].append(1)",
        "jax.random.split",
    ],
)
def test_statements_with_an_effect_or_a_use_are_not_found(statement):
    assert found(statement) == []


@pytest.mark.parametrize(
    "source",
    [
        "with pytest.raises(TypeError):\n    x.at[0].set(1)\nprint(x)",
        "try:\n    x.at[0].set(1)\nexcept TypeError:\n    pass\nprint(x)",
        "x.at[0].set(1)",  # the last statement of a notebook cell: its value is shown
        "class State:\n    def replace(self, **kw):\n        self.kw = kw\nstate.replace(step=1)\nprint(state)",
        "x.at[0].set(",  # no Python
        "for _ in range(3):\n    x.at[0].set(1)\n    jax.random.split(key)\nprint(x)",  # measures the time
        "ref = jax.new_ref(x)\nref.at[0].set(1)\nprint(x)",  # writes into a Ref
        "p.replace(target=q)\nprint(p)",  # pathlib
    ],
)
def test_statements_that_may_be_meant_are_not_found(source):
    assert find(HEAD + source) == []


def test_nested_statements_are_found_with_their_function():
    body = (
        "    for _ in range(3):\n        if x:\n            with mesh:\n                state.replace(step=1)"
    )
    (one,) = find(f"{HEAD}class Trainer:\n  def run(self):\n{body}\nprint(1)")
    assert (one.function, one.line, one.certain) == ("run", 8, False)


def test_a_name_that_is_not_of_jax_is_not_found():
    assert found("split(key)", head="from mine import split\n") == []
    assert len(found("split(key)", head="from jax.random import split\n")) == 1


def test_unknown_source_has_no_statements():
    assert find(None) == []


LOST = """
def train(state, x):
    def loss(params):
        y, updates = state.apply_fn({"params": params}, x, mutable=["batch_stats"])
        return y.sum(), updates
    (value, updates), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads){used}, value

def direct(model, variables, x):
    y, {name} = model.apply(variables, x, mutable={mutable})
    return y
"""


@pytest.mark.parametrize(
    ("used", "name", "mutable", "lines"),
    [
        ("", "new", "['batch_stats']", [4, 10]),
        (
            ".replace(batch_stats=updates['batch_stats'])",
            "new",
            "('batch_stats', 'losses')",
            [],
        ),  # one pass keeps them
        ("", "_", "['batch_stats']", [4]),
        ("", "new", "['intermediates']", [4]),
    ],
)
def test_batch_statistics_that_nothing_reads_are_found(used, name, mutable, lines):
    source = LOST.replace("{used}", used).replace("{name}", name).replace("{mutable}", mutable)
    assert sorted(i.line for i in find(source) if i.kind == "statistics") == lines


def test_batch_statistics_that_no_call_uses_are_not_lost():
    source = LOST.replace("{used}", "").replace("{name}", "new").replace("{mutable}", "['batch_stats']")
    for given, lines in (("False", []), ("not train", [4, 10])):
        text = source + f"\nnorm = nn.BatchNorm(use_running_average={given})\n"
        assert sorted(i.line for i in find(text) if i.kind == "statistics") == lines


def test_batch_statistics_that_are_returned_are_not_lost():
    source = "def f(m, v, x):\n  y, new = m.apply(v, x, mutable=['batch_stats'])\n  return y, new\n"
    assert not find(source)
