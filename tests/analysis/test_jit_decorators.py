"""How a call on a line is written under jit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis import jit_decorators, syntax
from jaxscope.analysis.jit_decorators import Jitted, advice, further_calls, later_method_calls


@pytest.mark.parametrize(
    ("line", "library", "wanted"),
    [
        ("p = f.init(key, x, True)", "haiku", Jitted("jax.jit(f.init, static_argnums=2)(...)")),
        (
            "p = f.init(key, (-1, 28, 1), 'train')",
            "haiku",
            Jitted("jax.jit(f.init, static_argnums=(1, 2))(...)"),
        ),
        ("p = f.init(key, (-1, 28 * 28))", "jax", Jitted("jax.jit(f.init, static_argnums=1)(...)")),
        ("p = f.init(key, x, train=True)", "flax", Jitted("jax.jit(f.init, static_argnames='train')(...)")),
        (
            "p = f.init(key, x, a=True, b=3)",
            "flax",
            Jitted("jax.jit(f.init, static_argnames=('a', 'b'))(...)"),
        ),
        ("p = State(f.init(key, x), opt)", "haiku", Jitted("jax.jit(f.init)(...)", statics_unknown=True)),
        ("print(opt.init(p))", "optax", Jitted("jax.jit(opt.init)(...)", statics_unknown=True)),
        (
            "import optax; s = s.replace(p=optax.incremental_update(p, q, 1))",
            "optax",
            Jitted("jax.jit(optax.incremental_update, static_argnums=2)(...)"),
        ),
        (
            "s = model.fit(p, optimizer=optax.sgd(0.1), steps=10)",
            "fitting",
            Jitted("jax.jit(model.fit, static_argnames='steps')(...)", statics_unknown=True),
        ),
        (
            "import jax; s = model.fit(jax.random.key(0), steps=10)",
            "fitting",
            Jitted("jax.jit(model.fit, static_argnames='steps')(...)"),
        ),
        ("s = opt.init(p)", "optax", Jitted("jax.jit(opt.init)(...)", statics_unknown=True)),
        ("m = eqx.nn.MLP(2, 2, 8, 2, key=key)", "equinox", Jitted("eqx.filter_jit(eqx.nn.MLP)(...)")),
        ("m = Model(rngs=nnx.Rngs(0))", "flax", Jitted("nnx.jit(lambda: Model(...))()")),
        ("y = model(x)", "flax", None),
        ("import jax.numpy as jnp; m = jax.tree.map(lambda *w: jnp.stack(w).mean(0), *saved)", "jax", None),
        (
            "import jax; p = {n: jax.random.normal(k, s) for k, (n, s) in zip(ks, shapes.items())}",
            "jax",
            None,
        ),
        ("import jax.numpy as jnp; rows.append(jnp.sin(x))", "jax", None),
        ("rows.append(fit(x))", "jax", Jitted("jax.jit(fit)(...)", statics_unknown=True)),
        ("g = eqx.filter_grad(f)(m, x)", "equinox", Jitted("eqx.filter_jit(eqx.filter_grad(f))(...)")),
        (
            "y = vmap(lambda s, k: predict(model, k, s, X_test, D_H, and_more_of_them))(*args)",
            "jax",
            Jitted("jax.jit(vmap(...))(...)"),
        ),
        ("g = jax.grad(f)(w, x)", "jax", Jitted("jax.jit(jax.grad(f))(...)")),
        ("from jax import lax; y = lax.psum(x, 'i')", "jax", None),
        ("import jax.numpy as jnp; y = jnp.sum(hessian(f)(x))", "jax", Jitted("jax.jit(hessian(f))(...)")),
        ("import equinox as eqx; y = net(model, t)", "jax", Jitted("eqx.filter_jit(net)(...)")),
        ("y = nn.apply(f, Net(8))({'params': p})", "flax", Jitted("jax.jit(nn.apply(f, Net(8)))(...)")),
        ("import equinox; y = grad(f)(model, t)", "jax", Jitted("eqx.filter_jit(grad(f))(...)")),
        (
            "from jax.test_util import check_grads; check_grads(loss, (w,), order=2)",
            "jax",
            Jitted("check_grads(jax.jit(loss), ...)", checked=True),
        ),
        (
            "v = draw(key, grid, 4)\ngrid = Grid(8)",
            "sim",
            Jitted("jax.jit(draw, static_argnums=2)(...)", statics_unknown=True),
        ),
        ("a, b = f.init(key), g.init(key)", "haiku", None),
        ("p = f.init(*args)", "haiku", None),
        ("import jax, numpy as np; w = jax.random.normal(k, (n, m)) / np.sqrt(n)", "jax", None),
        ("p = x + 1", "haiku", None),
        ("def (", "haiku", None),
    ],
)
def test_what_is_written_out_for_python_stays_static(line, library, wanted):
    assert advice(line, 1, library) == wanted


def test_what_a_library_around_equinox_makes_needs_filter_jit():
    jitted = advice("flow = make_flow(key, 4)", 1, "flows", of_equinox=True)
    assert jitted == Jitted("equinox.filter_jit(make_flow)(...)")


@pytest.mark.parametrize(
    ("expression", "jits"),
    [
        ("lib.fit( ...", True),
        ("lib.fit(key, x)", True),
        ("float(lib.fit(key, x))", False),
        ("x.item()", False),
    ],
)
def test_which_expression_is_the_call_to_jit(expression, jits):
    jitted = advice("w = lib.fit(key, steps=4)", 1, "lib")
    assert jitted is not None and jitted.jits(expression) == jits


def test_without_the_source_the_advice_is_general():
    assert advice(None, 1, "haiku") is None


def test_a_function_of_the_file_has_its_operations_on_its_own_lines():
    source = "def fit(x):\n    return x + 1\ny = fit(jnp.ones(3) * i)\n"
    assert advice(source, 3, None) is None and advice(source, 3, "jax") is None
    decorated = "@shard_map(mesh=mesh)\n" + source
    assert advice(decorated, 4, "jax") == Jitted("jax.jit(fit)(...)", statics_unknown=True)


def test_an_update_of_an_item_is_no_function_to_jit():
    assert advice("alpha = alpha.at[t, j].set(row[j])", 1, None) is None


@given(st.text(max_size=100))
def test_no_source_is_too_odd(source):
    assert isinstance(advice(source, 1, "haiku"), Jitted | None)


def test_a_source_is_parsed_once_for_all_its_lines(monkeypatch):
    source = "import jax\n" + "".join(f"x{n} = net.init(key, {n})\n" for n in range(300))
    parses = []
    parse = syntax.parsed
    monkeypatch.setattr(syntax, "parsed", lambda text: parses.append(text) or parse(text))
    advised = {advice(source, line, "flax") for line in range(2, 302)}
    assert len(parses) == 1 and len(advised) == 1


INITS = """def create(key, x):
    actor = Actor().init(key, x)
    critic = Critic().init(key, x)
    state = optimizer.init(actor)
def other(key, x):
    return Actor().init(key, x)
"""


def test_further_calls_are_in_the_same_function_with_as_many_arguments():
    assert further_calls(INITS, 2, frozenset({"init"})) == ("3",)
    assert further_calls(INITS, 1, frozenset({"init"})) == ()
    assert further_calls(None, 2, frozenset({"init"})) == ()


TRANSFORMED = """step = jax.value_and_grad(loss)
value, grads = step(w)
value = jax.grad(loss)(w)
value = loss(w)
"""


@pytest.mark.parametrize(("line", "is_one"), [(1, True), (2, True), (3, True), (4, False), (5, False)])
def test_calls_of_transformed_functions_are_known_also_by_their_variable(line, is_one):
    names = frozenset({"grad", "value_and_grad"})
    assert jit_decorators.calls_transformed(TRANSFORMED, line, names) is is_one


TRAINED = """
def main():
    params = model.init(key, x)
    @jax.jit
    def loss(params):
        return model.apply(params, x)
    for i in range(9):
        y = model.apply(params, x)
"""


def test_later_calls_of_a_model_outside_jit_are_found():
    assert later_method_calls(TRAINED, 3, frozenset({"apply", "apply_fn"})) == ("8",)
    assert (
        later_method_calls(TRAINED, 8, frozenset({"apply"})) == ()
        and later_method_calls(None, 3, frozenset({"apply"})) == ()
    )


def test_the_call_to_jit_is_in_the_statement_that_compiled():
    line = "u, s = opt.update(g, s); p = lib.apply_updates(p, u)"
    assert advice(line, 1, None, column=7).function == "jax.jit(opt.update)"
    assert advice(line, 1, None, column=29).function == "jax.jit(lib.apply_updates)"


def test_a_function_of_the_standard_library_is_no_function_to_jit():
    assert advice("import time\nx, t = net(x), time.time()", 2, None).function == "jax.jit(net)"


@pytest.mark.parametrize(
    ("imports", "call", "jit"),
    [
        ("import equinox as eqx", "model(x)", "eqx.filter_jit"),
        ("from flax import nnx", "model(x)", "nnx.jit"),
        ("from flax import nnx", "jax.vmap(model)(x)", "nnx.jit"),
        ("from flax import nnx", "predict(model, x)", "nnx.jit"),
        ("from flax import nnx", "x.sum()", "jit"),
        ("from flax import linen as nn", "model(x)", "jit"),
        ("import jax", "model(x)", "jit"),
    ],
)
def test_a_function_that_gets_a_module_needs_the_jit_of_its_library(imports, call, jit):
    source = f"{imports}\n\ndef predict(m, x):\n    return m(x)\n\ndef loss(model, x):\n    return {call}\n"
    assert jit_decorators.jit_for(source, "loss") == jit


def test_an_object_of_jax_scipy_is_made_in_the_jitted_function():
    source = "from jax.scipy.stats import gaussian_kde\nz = gaussian_kde(xy)(grid)\n"
    found = jit_decorators.advice(source, 2, None)
    assert found.call == "jax.jit(lambda xy, grid: gaussian_kde(xy)(grid))(...)"


def test_parameters_and_keys_of_a_library_need_no_static_arguments():
    source = "updates, state = optimizer.update(actor_grads, self.opt_state, params)\ny = model.apply(params, mode)\n"
    assert not jit_decorators.advice(source, 1, "optax").statics_unknown
    assert jit_decorators.advice(source, 2, "flax").statics_unknown
