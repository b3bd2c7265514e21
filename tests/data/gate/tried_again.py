"""Tests that are tried again (``--reruns 1``) or repeated: what each becomes stands in tests/test_pytest_plugin.py."""

import unittest

import numpy as np
import pytest

import jax

import jaxscope as scope

TRIES = {}


def fails_first(name):
    TRIES[name] = TRIES.get(name, 0) + 1
    assert TRIES[name] > 1, "its own"


def made():
    return scope.watch(step=True)(jax.jit(lambda x: x * 2))


def x(n):
    return np.ones(n, "float32")


late, late_and_flaky, repeated, flaky = made(), made(), made(), made()
measured, measured_twice = jax.jit(lambda x: x + 1), jax.jit(lambda x: x + 2)


@pytest.mark.no_recompiles(after=1)
def test_late():
    for n in (64, 64, 29):
        late(x(n))


@pytest.mark.no_recompiles(after=1)
def test_late_and_flaky():
    for n in (64, 64, 29):
        late_and_flaky(x(n))
    fails_first("late")


@pytest.mark.no_recompiles(after=1)
def test_flaky():
    for _ in range(3):
        flaky(x(64))
        fails_first("flaky")


@pytest.mark.max_collectives(count=0)
def test_measured_in_the_first_try():
    measured(x(4))
    fails_first("measured")


@pytest.mark.repeat(2)
@pytest.mark.no_recompiles(after=1)
@pytest.mark.parametrize("last", [64, 29])
def test_repeated(last):
    for n in (64, 64, last):
        repeated(x(n))


@pytest.mark.repeat(2)
@pytest.mark.max_collectives(count=0)
def test_measured_once():
    measured_twice(x(4))


@pytest.mark.no_recompiles(after=0)
class TestCase(unittest.TestCase):
    def setUp(self):
        self.double = jax.jit(lambda x: x * 2)
        self.double(x(3))

    def tearDown(self):
        self.double(x(5))

    def test_set_up_may_compile(self):
        self.double(x(3))

    def test_the_method_may_not(self):
        self.double(x(4))


@pytest.mark.no_recompiles(after=0)
class AsyncCase(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.double = jax.jit(lambda x: x * 2)
        self.double(x(3))

    async def test_async_set_up_may_compile(self):
        self.double(x(3))

    async def test_the_async_method_may_not(self):
        self.double(x(4))
