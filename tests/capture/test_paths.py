"""Names for the arrays inside a value, whatever it is made of."""

import functools

import numpy as np

from jaxscope.capture import paths
from jaxscope.capture.calls import statics
from jaxscope.capture.paths import identity, walk


def is_array(value):
    return type(value) is np.ndarray


def names(*roots, **how):
    found = walk(list(roots), is_array, **how)
    return found.arrays, found.cut


class Node:
    def __init__(self, **fields):
        self.__dict__.update(fields)


def test_a_container_passed_twice_has_the_users_name_both_times():
    a, b = np.ones(2), np.zeros(3)
    batch = {"x": a, "y": [b]}
    arrays, cut = names(("first", batch), ("second", batch))
    assert not cut
    assert arrays[identity(a)] == ["first['x']", "second['x']"]
    assert arrays[identity(b)] == ["first['y'][0]", "second['y'][0]"]
    arrays, _ = names(("both", {"one": batch, "two": batch}))
    assert arrays[identity(b)] == ["both['one']['y'][0]", "both['two']['y'][0]"]


def test_references_in_a_circle_and_in_a_web_end():
    a = np.ones(2)
    parent = Node(a=a)
    parent.child = Node(parent=parent)
    assert names(("m", parent))[0][identity(a)] == ["m.a"]
    web = [a]
    for _ in range(22):  # four million ways to one array
        web = [web, web]
    arrays, cut = names(("w", web))
    assert cut and 1 <= len(arrays[identity(a)]) <= 30
    many = [Node(n=i) for i in range(300)]
    for node in many:
        node.all = many
    assert names(("g", many)) == ({}, False)


def test_others_are_found_as_often_as_they_are_passed():
    settings = {"mode": "fast"}
    found = walk([("a", settings), ("b", settings)], is_array)
    assert found.others == [("a['mode']", "fast"), ("b['mode']", "fast")]


def test_no_property_of_a_class_is_called():
    class Lazy:
        read = 0

        def __init__(self, w):
            self.w = w

        @property
        def _raw_value(self):  # the name of an attribute of flax.nnx.Variable
            Lazy.read += 1
            return self.w

    a = np.ones(2)
    assert names(("m", Lazy(a)))[0][identity(a)] == ["m.w"]
    assert Lazy.read == 0


def test_arrays_in_private_slots_have_the_users_name():
    class Slotted:
        __slots__ = ("__w",)

        def __init__(self, w):
            self.__w = w

    a = np.ones(2)
    assert names(("m", Slotted(a)))[0][identity(a)] == ["m.__w"]


def test_no_method_of_a_subclass_of_a_container_is_called():
    calls = []

    class Loud(type):
        """Makes classes whose methods are recorded when they are called."""

        def __new__(cls, name, bases, fields):
            for method in ("items", "keys", "__iter__", "__getitem__", "__repr__", "__len__"):
                fields[method] = lambda self, *args, m=method: calls.append((name, m))
            return super().__new__(cls, name, bases, fields)

    class Dict(dict, metaclass=Loud):
        pass

    class List(list, metaclass=Loud):
        pass

    class Tuple(tuple, metaclass=Loud):
        pass

    class Key(str, metaclass=Loud):
        pass

    class Part(functools.partial):
        @property
        def func(self):
            calls.append("func")

    a, b, c = np.ones(2), np.ones(3), np.ones(4)
    arrays, _ = names(("d", Dict({Key("w"): a, True: List([b])})), ("t", Tuple([Part(print, c)])))
    assert sorted(path for paths in arrays.values() for path in paths) == [
        "d['w']",
        "d[True][0]",
        "t[0].args[0]",
    ]
    assert calls == []


def test_an_object_of_the_program_is_no_array_of_jax():
    class Lazy:
        aval = dtype = shape = property(lambda self: 1 / 0)

    assert not paths.is_jax_array(Lazy())
    assert "ZeroDivisionError" not in statics.shown(Lazy())
