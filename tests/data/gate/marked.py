"""A suite of tests for the pytest plugin: what each becomes stands in tests/test_pytest_plugin.py."""

import asyncio

import numpy as np
import pytest

import jax

import jaxscope as scope


@scope.watch
@jax.jit
def step(x):
    return x * 2


@jax.jit
def plain(x):
    return x + 1


def x(n):
    return np.ones(n, "float32")


@pytest.mark.no_recompiles(after=1)
def test_late():
    for n in (3, 3, 4):
        step(x(n))


@pytest.mark.no_recompiles(after=1)
def test_on_time():
    for n in (3, 3, 3):
        step(x(n))


@pytest.mark.no_recompiles
def test_bare_mark():
    for n in (3, 41):
        step(x(n))


@pytest.mark.no_recompiles(after=1)
def test_own_failure():
    for n in (3, 3, 5):
        step(x(n))
    assert 1 == 2, "its own"


@pytest.mark.no_recompiles(after=0)
def test_known_from_an_earlier_test():
    step(x(6))


@pytest.mark.no_recompiles(after=1)
def test_no_steps():
    plain(x(3))


@pytest.mark.no_recompiles(after=1)
def test_no_steps_and_nothing_compiled():
    plain(x(3))


@pytest.mark.no_recompiles(after=1, functions="setp")
def test_function_with_a_typo():
    step(x(3))


@pytest.mark.no_recompiles(after=1)
@pytest.mark.parametrize("n", [3, 7])
def test_parametrised(n):
    for size in (3, n):
        step(x(size))


@pytest.mark.parametrize(
    "n", [pytest.param(8, marks=pytest.mark.no_recompiles(after=2)), pytest.param(9, marks=pytest.mark.no_recompiles(after=1))]
)
def test_mark_of_a_parameter(n):
    for size in (3, n):
        step(x(size))


@pytest.mark.no_recompiles(after=0)
class TestOfAClass:
    def test_takes_its_mark(self):
        plain(x(10))

    @pytest.mark.no_recompiles(after=0, functions="step")
    def test_has_marks_of_its_own_besides(self):
        step(x(3))


@pytest.mark.no_recompiles(after=0)
def test_fixtures_may_compile(made):
    plain(made)


@pytest.fixture
def made():
    return jax.device_get(plain(x(11)))


@pytest.mark.no_recompiles(after=0)
def test_skipped():
    pytest.skip("not today")


@pytest.mark.xfail
@pytest.mark.no_recompiles(after=0)
def test_expected_to_fail():
    plain(x(12))


@pytest.mark.no_recompiles(after=1)
async def test_async():
    for n in (3, 3, 13):
        step(x(n))
        await asyncio.sleep(0)


@pytest.mark.no_recompiles(after=0)
async def test_async_clean():
    await asyncio.sleep(0)
    step(x(3))


@pytest.mark.max_compilations(1)
def test_too_many():
    plain(x(14)), plain(x(15))


@pytest.mark.max_compilations(2)
def test_just_enough():
    plain(x(16)), plain(x(17))


@pytest.mark.max_compilations(0, function="step")
def test_of_another_function():
    plain(x(18))


@pytest.mark.max_compile_seconds(0)
def test_too_long():
    plain(x(19))


@pytest.mark.max_compile_seconds(1000)
def test_not_too_long():
    plain(x(20))


def gathered(n):
    mesh = jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    over = lambda *spec: jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))
    return jax.jit(lambda v: v * 2, in_shardings=over("data"), out_shardings=over()).lower(x(n)).compile()


@pytest.mark.max_collectives(kind="all-gather", count=0)
def test_communicates():
    gathered(8)


@pytest.mark.max_collectives(kind="all-gather@data", count=1, bytes="40 B")
def test_communicates_as_allowed():
    gathered(10)


@pytest.mark.max_collectives(bytes=4)
def test_communicates_too_much():
    gathered(12)


@pytest.mark.max_collectives(count=0)
def test_nothing_to_measure():
    pass


def test_fixture(jaxscope):
    step(x(3)), step(x(21))
    (found,) = jaxscope.compilations
    assert [c.kind for c in jaxscope.causes(found)] == ["shape"]
    assert jaxscope.path.is_dir() and jaxscope.read().functions
    jaxscope.step()  # jaxscope's own functions are there, too


def test_without_any_of_it():
    plain(x(22))


def test_a_recording_of_its_own(tmp_path):
    with scope.record(tmp_path / "mine") as run:
        plain(x(23))
    assert run.path == tmp_path / "mine" and scope.open_run(tmp_path / "mine").compilations


@pytest.mark.no_recompiles(after=0)
def test_after_that_recording():
    plain(x(24))


@pytest.mark.no_recompiles(after=0)
def test_a_recording_of_its_own_under_a_mark(tmp_path):
    with scope.record(tmp_path / "mine"):
        pass
