"""Static values as text, without calling the program's own code."""

import collections
import dataclasses
import datetime
import enum
import functools
import pathlib
import types

import numpy as np
import pytest

from jaxscope.capture.calls.functions import Serials
from jaxscope.capture.calls.statics import MAX_BOUND, MAX_REPR, entries, shown, static
from jaxscope.schema.keys import Frame


class Mode(enum.Enum):
    FAST = "fast"


class Color(enum.IntEnum):
    RED = 1


class Asked(Exception):
    pass


class Talks:
    def __init__(self, n):
        self.n = n

    def __repr__(self):
        raise Asked


class Number(int):
    __repr__ = Talks.__repr__


class Slots:
    __slots__ = ("__dict__",)
    __repr__ = Talks.__repr__


@dataclasses.dataclass(frozen=True)
class Config:
    rate: float
    secret: str = dataclasses.field(repr=False, default="")
    more: object = None


Point = collections.namedtuple("Point", "x y")


class Titled(dict):
    pass


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "True"),
        (1.5, "1.5"),
        ("fast", "'fast'"),
        (None, "None"),
        (Number(3), "3"),
        (Mode.FAST, "<Mode.FAST: 'fast'>"),
        (Color.RED, "<Color.RED: 1>"),
        ((1,), "(1,)"),
        ((1, [2, {"a": {3}}]), "(1, [2, {'a': {3}}])"),
        (frozenset({2, 1}), "frozenset({1, 2})"),
        (set(), "set()"),
        (Point(1, Talks(2)), "Point(x=1, y=Talks(n=2))"),
        (collections.OrderedDict(a=1), "OrderedDict({'a': 1})"),
        (Titled(a=1), "Titled({'a': 1})"),
        (collections.deque([1]), "deque([1])"),
        (Talks((1, Talks(2))), "Talks(n=(1, Talks(n=2)))"),
        (Slots(), "<test_statics.Slots>"),
        (Config(0.1, "key", Talks(1)), "Config(rate=0.1, more=Talks(n=1))"),
        (functools.partial(Talks, 1, n=2), "functools.partial(<class test_statics.Talks>, 1, n=2)"),
        (types.SimpleNamespace(a=Talks(1)), "SimpleNamespace(a=Talks(n=1))"),
        (np.float32, "<class numpy.float32>"),
        (np.dtype("int8"), "dtype('int8')"),
        (np.zeros((2, 3)), "<ndarray float64[2, 3]>"),
        (Talks(np.zeros(2)), "Talks(n=<ndarray float64[2]>)"),
        (len, "<builtin_function_or_method len>"),
        (pathlib.PurePosixPath("a/b"), "PurePosixPath('a/b')"),
        (datetime.timedelta(1), "datetime.timedelta(days=1)"),
        (object(), "<builtins.object>"),
        (range(3), "range(0, 3)"),
        (slice(1, 2), "slice(1, 2, None)"),
    ],
    ids=lambda v: v if type(v) is str else "",  # pytest would ask for the repr
)
def test_values_are_reported_by_what_they_hold(value, text):
    assert shown(value) == text


def test_long_deep_and_circular_values_stay_short():
    assert shown(list(range(10**6))).endswith("99, ... (1,000,000 in all)]")
    assert len(shown("x" * 10**7)) <= MAX_REPR
    circle = []
    circle.append(circle)
    assert shown(circle) == "[[[[[[...]]]]]]"
    loop = Talks(None)
    loop.n = loop
    assert len(shown(loop)) <= MAX_REPR
    assert shown(Talks([Talks(list(range(50)))] * 50))[-1] == "…"


def relu(x):
    return x


class Holder:
    def method(self):
        pass


@dataclasses.dataclass(frozen=True)
class Loss:
    weight: float
    function: object


def both(before, after):
    serials = Serials()
    return static("s", before, serials), static("s", after, serials)


def test_a_value_that_is_cut_still_shows_its_end_or_its_length():
    assert shown("a" * 5000 + "x") != shown("a" * 5000 + "y")
    assert shown(tuple(range(1000))) != shown(tuple(range(1001)))


@pytest.mark.parametrize(
    ("before", "after", "compares"),
    [
        ((lambda x: x, 1), (lambda x: x, 1), "parts"),
        (Loss(1.0, Holder()), Loss(1.0, Holder()), "parts"),
        (Holder().method, Holder().method, "identity"),
        ({"f": [Holder()]}, {"f": [Holder()]}, "parts"),
    ],
)
def test_a_container_of_what_compares_by_identity_differs_from_another_by_its_newest_part(
    before, after, compares
):
    a, b = both(before, after)
    assert (a.compares, b.compares) == (compares, compares)
    assert a.serial is not None and b.serial is not None and a.serial != b.serial


@pytest.mark.parametrize("value", [(relu, 1), (relu, None), Loss(1.0, relu), Holder().method])
def test_the_same_parts_again_are_the_same(value):
    a, b = both(value, value)
    assert a.serial == b.serial is not None


def test_numbers_and_strings_compare_by_value_wherever_they_are():
    a, b = both((1, None, ("x", frozenset({2}))), (1, None, ("x", frozenset({3}))))
    assert a.compares == b.compares == "value" and a.serial is b.serial is None


def test_two_classes_of_one_name_are_numbered():
    def instance():
        @dataclasses.dataclass(frozen=True)
        class Cell:
            n: int = 1

        return Cell()

    a, b = both(instance(), instance())
    assert b.type == f"{a.type} (class #2)"


def test_each_value_that_a_partial_binds_has_a_path_also_in_a_dict():
    bound = functools.partial(max, 3, params={"seed": 1, "sizes": (8, 8)}, key=len, rest={})
    found = {s.path: s.repr for s in entries("partial", bound, Serials())}
    assert list(found) == [
        "partial",
        "partial.args[0]",
        "partial.keywords['params']['seed']",
        "partial.keywords['params']['sizes']",
        "partial.keywords['key']",
        "partial.keywords['rest']",
    ]
    assert found["partial.keywords['params']['seed']"] == "1"


def test_a_function_has_the_line_that_defines_it():
    def loss(x):
        return x

    code = loss.__code__
    assert static("f", loss, Serials()).defined == Frame(__file__, code.co_firstlineno, loss.__qualname__)
    assert static("f", functools.partial(loss, 1), Serials()).defined is None


def test_a_large_dict_that_a_partial_binds_is_one_value():
    bound = functools.partial(max, params=dict.fromkeys(range(MAX_BOUND + 1)))
    assert [s.path for s in entries("partial", bound, Serials())] == ["partial", "partial.keywords['params']"]
