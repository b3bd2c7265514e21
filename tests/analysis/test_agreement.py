"""Asked, compiled, actual: when two shardings are one, and what is said where they are not."""

import pytest

from jaxscope.analysis.sharding_audit import (
    ARGUMENT,
    CONSTRAINT,
    IN_SHARDINGS,
    MOVED,
    NOT_AS_ASKED,
    RESULT,
    Intent,
    disagreement,
    left_open,
    of_spec,
    same,
    spelled,
)
from jaxscope.analysis.stablehlo.shardings import Mesh, spec
from jaxscope.present.render import text as words
from jaxscope.schema.keys import Sharding


def named(text, devices="0-7", memory="device", **mesh):
    axes = [(name, size, "Auto") for name, size in (mesh or {"data": 8}).items()]
    shown = f"{text} on {','.join(f'{n}={s}' for n, s, _ in axes)}"
    return Sharding("NamedSharding", shown, devices, axes, text, memory)


def on(device, memory="device"):
    return Sharding("SingleDeviceSharding", f"cpu:{device}", str(device), None, None, memory)


def gspmd(text):
    return Sharding("GSPMDSharding", f"GSPMDSharding({{{text}}})", "0-7", None, None, "device")


TWO = {"data": 4, "model": 2}


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (named("P('data',)"), named("P('data', None)"), True),
        (named("P('data',)"), gspmd("devices=[8,1]<=[8]"), True),
        (named("P()"), gspmd("replicated"), True),
        (named("P('data',)"), named("P()"), False),
        (named("P('data',)"), named("P('data',)", devices="7,6,5,4,3,2,1,0"), False),
        (named("P('data',)", **TWO), named("P('data',)", devices="0,2,4,6,1,3,5,7", **TWO), False),
        (named("P('data',)"), named("P('data',)", memory="pinned_host"), False),
        (named("P('data',)"), named("P('data',)", memory="unpinned_host"), True),  # the default of a CPU
        (named("P()"), on(0), False),
        (on(0), on(0), True),
        (on(0), on(1), False),
        (named("P('data',)", devices=None), named("P()"), False),  # by the number of parts
        (named("P('data',)", devices=None), named("P('data',)"), None),  # in which order is not known
        (named("P(UNCONSTRAINED,)"), named("P()"), None),
        (Sharding("New", "New(?)", "0-7"), named("P()"), None),
    ],
)
def test_two_shardings_are_one_where_each_device_holds_the_same(a, b, expected):
    assert same(a, b, 2) is expected and same(b, a, 2) is expected


def result(asked, compiled, shape=(16, 4)):
    return Intent("[0]", RESULT, shape, "float32", asked=asked, by=CONSTRAINT, compiled=compiled)


def test_what_does_not_divide_is_reported_with_what_it_costs():
    found = disagreement(result(named("P('data',)"), named("P()"), shape=(17, 4)))
    assert (found.kind, words(found.reason), found.times) == (NOT_AS_ASKED, "17 is not divisible by 8", 8)


def test_of_two_dimensions_the_one_that_was_dropped_is_named():
    asked, got = named("P('data', 'model')", **TWO), named("P(None, 'model')", **TWO)
    found = disagreement(result(asked, got, shape=(18, 6)))
    assert (words(found.reason), found.times) == ("18 is not divisible by 4", 4)


def test_a_reason_that_is_not_known_is_not_made_up():
    found = disagreement(result(named("P('data',)"), named("P()")))
    assert (words(found.reason), found.times) == ("", 8)


def test_another_memory_than_asked_is_a_difference():
    found = disagreement(result(named("P()", memory="pinned_host"), named("P()")))
    assert (found.kind, words(found.reason), found.times) == (NOT_AS_ASKED, "its memory kind is device", 1)


def argument(asked, compiled, actual, by=IN_SHARDINGS, **more):
    return Intent(
        "x", ARGUMENT, (16, 4), "float32", asked=asked, by=by, compiled=compiled, actual=actual, **more
    )


def test_an_argument_from_elsewhere_is_moved():
    split = named("P('data',)")
    found = disagreement(argument(split, split, on(0)))
    assert (found.kind, found.wanted, found.got) == (MOVED, split, on(0))
    assert disagreement(argument(split, split, named("P('data', None)"))) is None
    assert disagreement(argument(split, split, None)) is None  # a NumPy array lies nowhere


def test_an_argument_that_is_gathered_inside_is_used_not_missed():
    split, whole = named("P('data',)"), named("P()")
    assert disagreement(argument(whole, split, split, by=CONSTRAINT)) is None
    found = disagreement(argument(split, whole, whole, by=CONSTRAINT))
    assert (found.kind, found.times) == (NOT_AS_ASKED, 8)


def test_what_the_program_drops_agrees_with_everything():
    assert disagreement(argument(named("P()"), None, on(0), dropped=True)) is None
    assert disagreement(Intent("x", RESULT, None, None, asked=named("P()"), compiled=on(0))) is None


@pytest.mark.parametrize(
    ("sharding", "rank", "text"),
    [
        (named("P('data',)"), 2, "P('data')"),
        (named("P('data', None, None)"), 3, "P('data')"),
        (named("P(None, 'data')"), 2, "P(None, 'data')"),
        (named("P()"), 2, "replicated"),
        (named("P()"), None, "P()"),
        (on(3), 2, "on cpu:3"),
        (named("P('data',)", memory="pinned_host"), 1, "P('data') in pinned_host"),
    ],
)
def test_shardings_are_spelled_as_a_person_would(sharding, rank, text):
    assert words(spelled(sharding, rank)) == text


def test_what_a_programs_text_states_becomes_a_sharding_on_its_devices():
    meshes = {
        "mesh": Mesh("mesh", (("a", 4), ("b", 2))),
        "turned": Mesh("turned", (("a", 8),), (7, 6, 5, 4, 3, 2, 1, 0)),
    }
    plain = of_spec(spec('<@mesh, [{"a"}, {}]>', meshes), "8-15")
    assert (plain.devices, plain.spec, plain.text) == ("8-15", "P('a', None)", "P('a', None) on a=4,b=2")
    turned = of_spec(spec('<@turned, [{"a"}]>', meshes), "8-15")
    assert turned.devices == "15,14,13,12,11,10,9,8"
    assert of_spec(spec('<@mesh, [{"a"}]>', meshes), None).devices is None
    assert same(of_spec(spec('"{devices=[8,1]<=[8]}"', {}), "0-7"), named("P('data',)"), 2) is True


@pytest.mark.parametrize(
    ("text", "compiled", "expected"),
    [
        ('<@mesh, [{"a"}, {?}]>', named("P('a', 'b')", a=4, b=2), True),
        ('<@mesh, [{"a"}, {?}]>', named("P('a',)", a=4, b=2), True),
        ('<@mesh, [{"a"}, {?}]>', named("P(None, 'b')", a=4, b=2), False),  # dropped: that is told
        ('<@mesh, [{"a"}, {}]>', named("P('a', 'b')", a=4, b=2), False),
        ('<@mesh, [{"a"}, {?}]>', None, True),
    ],
)
def test_what_is_left_to_the_partitioner_is_no_difference(text, compiled, expected):
    meshes = {"mesh": Mesh("mesh", (("a", 4), ("b", 2)))}
    assert left_open(spec(text, meshes), compiled, 2) is expected
