"""Attributes of the program's objects are read without its code."""

from types import SimpleNamespace

from jaxscope.capture import paths
from jaxscope.capture.attributes import MISSING, attribute, dictionary


def test_an_attribute_is_found_without_running_code():
    class Base:
        shared = 1
        __slots__ = ("slot",)

    class Odd(Base):
        def __init__(self):
            self.own, self.slot = 2, 3

        @property
        def computed(self):
            raise AssertionError

        def __getattr__(self, name):
            raise AssertionError

        def __getattribute__(self, name):
            raise AssertionError

    odd = object.__new__(Odd)
    object.__setattr__(odd, "own", 2)
    Base.slot.__set__(odd, 3)
    assert [attribute(odd, n) for n in ("own", "slot", "shared")] == [2, 3, 1]
    assert [attribute(odd, n) for n in ("computed", "nothing")] == [MISSING] * 2
    object.__setattr__(odd, "shared", 5)
    assert attribute(odd, "shared") == 5, "its own stands before its class's"


def test_a_dictionary_that_the_class_computes_is_not_read():
    class Odd:
        @property
        def __dict__(self):
            raise AssertionError

    assert dictionary(Odd()) is None and paths.children(Odd()) is None
    assert dictionary(ValueError()) == {} and dictionary(3) is None
    assert dictionary(SimpleNamespace(a=1)) == {"a": 1} and attribute(SimpleNamespace(a=1), "a") == 1


def test_what_a_class_in_c_computes_is_read_only_on_request():
    assert attribute(ValueError(1), "args") is MISSING
    assert attribute(ValueError(1), "args", in_c=True) == (1,)
