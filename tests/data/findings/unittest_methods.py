# 24 tests wrapped by a decorator of contextlib: each line is the user's
# never: case.py
import contextlib
import unittest

import jax.numpy as jnp


@contextlib.contextmanager
def setting():
    yield


class A(unittest.TestCase):
    @setting()
    def test_0(self):
        self.assertEqual(jnp.arange(5).shape, (5,))

    @setting()
    def test_1(self):
        self.assertEqual(jnp.arange(6).shape, (6,))

    @setting()
    def test_2(self):
        self.assertEqual(jnp.arange(7).shape, (7,))

    @setting()
    def test_3(self):
        self.assertEqual(jnp.arange(8).shape, (8,))

    @setting()
    def test_4(self):
        self.assertEqual(jnp.arange(9).shape, (9,))

    @setting()
    def test_5(self):
        self.assertEqual(jnp.arange(10).shape, (10,))

    @setting()
    def test_6(self):
        self.assertEqual(jnp.arange(11).shape, (11,))

    @setting()
    def test_7(self):
        self.assertEqual(jnp.arange(12).shape, (12,))

    @setting()
    def test_8(self):
        self.assertEqual(jnp.arange(13).shape, (13,))

    @setting()
    def test_9(self):
        self.assertEqual(jnp.arange(14).shape, (14,))

    @setting()
    def test_10(self):
        self.assertEqual(jnp.arange(15).shape, (15,))

    @setting()
    def test_11(self):
        self.assertEqual(jnp.arange(16).shape, (16,))

    @setting()
    def test_12(self):
        self.assertEqual(jnp.arange(17).shape, (17,))

    @setting()
    def test_13(self):
        self.assertEqual(jnp.arange(18).shape, (18,))

    @setting()
    def test_14(self):
        self.assertEqual(jnp.arange(19).shape, (19,))

    @setting()
    def test_15(self):
        self.assertEqual(jnp.arange(20).shape, (20,))

    @setting()
    def test_16(self):
        self.assertEqual(jnp.arange(21).shape, (21,))

    @setting()
    def test_17(self):
        self.assertEqual(jnp.arange(22).shape, (22,))

    @setting()
    def test_18(self):
        self.assertEqual(jnp.arange(23).shape, (23,))

    @setting()
    def test_19(self):
        self.assertEqual(jnp.arange(24).shape, (24,))

    @setting()
    def test_20(self):
        self.assertEqual(jnp.arange(25).shape, (25,))

    @setting()
    def test_21(self):
        self.assertEqual(jnp.arange(26).shape, (26,))

    @setting()
    def test_22(self):
        self.assertEqual(jnp.arange(27).shape, (27,))

    @setting()
    def test_23(self):
        self.assertEqual(jnp.arange(28).shape, (28,))


unittest.main()
