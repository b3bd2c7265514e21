"""Which classes' objects a program changes after it has made them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis.mutation import assigns_while_created, changed

MADE = "class A:\n    def __init__(self, w):\n        self.w = w\n"


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (MADE, False),
        (MADE + "    def fit(self):\n        self.w = 2\n", True),
        (MADE + "    def fit(this):\n        this.n, m = 2, 3\n", True),
        (MADE + "    def fit(self):\n        self.w += 1\n", True),
        (MADE + "    def fit(self):\n        setattr(self, 'w', 1)\n", True),
        (MADE + "    def fit(self):\n        w = self.w\n", False),
        (MADE + "a = A(1)\na.w = 2\n", True),
        (MADE + "a = A(1)\na.other = 2\n", False),
        (MADE + "class B:\n    def fit(self):\n        self.n = 1\n", False),
        ("class A:\n    w: int\na = A()\na.w = 2\n", True),
        ("class B:\n    pass\n", None),
        ("class (", None),
    ],
)
def test_a_class_is_changed_where_an_attribute_is_assigned_outside_of_its_making(source, wanted):
    assert changed(source, "A") is wanted


def test_a_class_with_an_init_of_its_own_cannot_be_frozen_as_it_is():
    assert assigns_while_created(MADE, "A")
    assert not assigns_while_created("class A:\n    w: int\n", "A")


@given(st.text(max_size=100))
def test_no_source_is_too_odd(source):
    changed(source, "A")
    assigns_while_created(source, "A")
