"""Functions with the same code that capture other functions are other functions."""

import functools

import pytest

from jaxscope.capture.calls.functions import describe, is_jitted_where_defined


def absolute(x):
    return abs(x)


def squared(x):
    return x * x


def make(*values):
    def update(x):
        return values, x

    return update


def make_loss(inner, rate):
    return lambda x: inner(x) * rate


class Agent:
    def step(self, x):
        return x


class Actor(Agent):
    pass


class Layer:
    def __call__(self, x):
        return x


class Evasive:
    """Raises from whatever is read of it."""

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __call__(self, x):
        return x


class Trainer:
    def __init__(self, loss):
        self.loss = loss
        self.step = self.step

    def step(self, x):
        return self.loss(x)


class Endless(tuple):
    def __iter__(self):
        while True:
            yield absolute


def other(one, another):
    return describe(one).function != describe(another).function


@pytest.mark.parametrize(
    ("one", "another"),
    [
        (make(absolute), make(squared)),
        (make((absolute, 1)), make((squared, 1))),
        (make(make_loss(absolute, 1)), make(make_loss(squared, 1))),
        (make(Layer()), make(Evasive())),
        (make(Layer), make(Agent)),
        (make(functools.partial(absolute)), make(functools.partial(squared))),
        (functools.partial(make, absolute), functools.partial(make, squared)),
        (functools.partial(make, loss=absolute), functools.partial(make, loss=squared)),
        (Agent().step, Actor().step),
        (Trainer(absolute).step, Trainer(squared).step),
        (Trainer((absolute, 1)).step, Trainer((squared, 1)).step),
    ],
)
def test_a_function_for_another_function_is_another(one, another):
    assert other(one, another)


@pytest.mark.parametrize(
    ("one", "another"),
    [
        (make(0.1), make(0.2)),
        (make(absolute, 1), make(absolute, 2)),
        (make(make_loss(absolute, 1)), make(make_loss(absolute, 2))),
        (make(Layer()), make(Layer())),
        (functools.partial(make, 1), functools.partial(make, 2)),
        (Actor().step, Actor().step),
        (Trainer(absolute).step, Trainer(absolute).step),
        (Trainer(1).step, Trainer(2).step),
    ],
)
def test_a_function_for_another_number_is_the_same_made_again(one, another):
    assert not other(one, another)


def test_lambdas_of_one_line_of_code_are_one_function():
    assert not other(*(make(lambda x: x) for _ in range(2)))


def test_a_jitted_function_counts_by_what_it_jits():
    import jax

    assert other(make(jax.jit(absolute)), make(jax.jit(squared)))
    assert not other(make(jax.jit(absolute)), make(jax.jit(absolute)))


def test_what_a_function_captures_is_named_without_running_the_program():
    recursive = [absolute]
    recursive.append(recursive)
    values = Evasive(), Endless((squared,)), recursive, 3.0

    def update(x):
        return values, loss, layer, x

    loss, layer = squared, Layer()
    seen = describe(update)
    assert seen.captures == ["layer=Layer", "loss=squared"]
    assert seen.function == describe(update).function


def test_a_network_of_haiku_has_the_name_of_the_users_function():
    hk = pytest.importorskip("haiku")

    def actor(x):
        return hk.Linear(4)(x)

    def critic(x):
        return hk.Linear(1)(x)

    nets = [hk.transform(actor), hk.without_apply_rng(hk.transform(actor)), hk.transform(critic)]
    seen = [describe(f) for net in nets for f in net]
    assert [s.name for s in seen] == ["actor"] * 4 + ["critic"] * 2
    assert [s.wrappers for s in seen[:4]] == [
        ["haiku.transform.init"],
        ["haiku.transform.apply"],
        ["haiku.transform.init"],
        ["haiku.without_apply_rng.apply"],
    ]
    assert [s.signature.partition(":")[0] for s in seen[:2]] == ["(rng", "(params"]
    assert len({s.function for s in seen}) == 5  # without_apply_rng keeps ``init``


def test_a_method_of_flax_has_the_name_of_the_users_class():
    nn = pytest.importorskip("flax.linen")

    class Critic(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(1)(x)

    critic = Critic()
    seen = describe(critic.apply)
    assert seen.qualname.endswith("<locals>.Critic.apply") and not seen.captures
    assert describe(nn.Dense(1).apply).qualname == "Module.apply"


def test_what_the_user_assigns_to_an_object_of_flax_is_not_jitted_by_flax():
    import jax

    nn = pytest.importorskip("flax.linen")

    class Critic(nn.Module):
        pass

    critic = Critic()
    apply = critic.apply
    critic.apply = jax.jit(apply)
    assert not is_jitted_where_defined(apply)
