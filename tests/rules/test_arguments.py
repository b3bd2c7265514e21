"""What to do about arguments of other sizes and in other containers, on runs written by hand."""

from __future__ import annotations

import msgspec
import pytest
from handwritten_runs import Log, function, key, leaf, static

from jaxscope.log import store
from jaxscope.model import observed_sizes
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.present.render import text
from jaxscope.rules import arguments, recompiles, registry
from jaxscope.schema import events as ev
from jaxscope.schema.findings import NOTE
from jaxscope.schema.keys import Frame, Static

STEP = function("step")
ODD = "drop the smaller batch, also from averages and counts; or pad {} like the other batches, and let no result depend on the padding (for example, jnp.mean(values, where=mask) with an argument mask: False for the padding, in the shape of values)"
FEW = "pad x to the next of a few sizes (such as 64, 128, 256), and let no result depend on the padding (for example, jnp.mean(values, where=mask) with an argument mask: False for the padding, in the shape of values)"
SAME = "pass the same containers, with the same dict keys and the same lengths, in every call"
FINAL = "use one array of the final size instead of a collection that grows"


@pytest.fixture
def found(tmp_path):
    """``found(key, key, ...)``: (title, fix) of what is found after calls with these keys."""

    def make(*keys):
        log = Log(store.create(tmp_path / "run"))
        log.say(STEP)
        for k in keys:
            log.compiled(STEP, k)
        return [
            (words.title(f), words.fix_text(f))
            for f in registry.findings(load(log.run))
            if f.code in ("JX101", "JX105")
        ]

    return make


def x(*shape):
    return key(leaf("x", *shape))


def batch(n, width=8):
    return key(*(leaf(f"batch['{name}']", width, n) for name in "abcdef"))


def tree(nodes, *paths):
    return key(*(leaf(p, 2) for p in paths), nodes=nodes, tree=f"{nodes} {paths}")


@pytest.mark.parametrize(
    ("keys", "fix"),
    [
        ([x(32, 6), x(17, 6)], ODD.format("x to [32,6]")),
        ([x(10), x(14)], "pad x to the larger size, [14], in every call, and let no result depend on the padding (for example, jnp.mean(values, where=mask) with an argument mask: False for the padding, in the shape of values)"),
        ([x(3, 5), x(5, 3)], "pad x to the larger size, [5,5], in every call, and let no result depend on the padding (for example, jnp.mean(values, where=mask) with an argument mask: False for the padding, in the shape of values)"),
        ([x(8), x(6), x(4)], FEW),
        ([batch(16), batch(12)], ODD.format("batch to 16 on axis 1")),
        ([batch(12), batch(16)], "pad batch to the larger size, 16 on axis 1, in every call, and let no result depend on the padding (for example, jnp.mean(values, where=mask) with an argument mask: False for the padding, in the shape of values)"),
    ],
)  # fmt: skip
def test_only_a_smaller_size_that_came_later_is_an_odd_batch(keys, fix, found):
    assert [f for _, f in found(*keys)] == [fix]


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        ([x(768), x(1536)], True),
        ([batch(96), batch(128)], True),
        ([x(8, 256), x(8, 320)], True),
        ([x(1536), x(768)], False),
        ([batch(128), batch(96)], False),
        ([x(8, 250), x(8, 320)], False),
    ],
)
def test_two_round_sizes_of_which_the_later_is_larger_are_chosen(keys, chosen, found):
    """For example two buckets. The smaller size of an odd last batch comes later."""
    assert (found(*keys) == []) == chosen


def test_a_smaller_size_that_is_compiled_more_often_than_the_larger_is_not_odd(found):
    def again(n, static):
        return key(leaf("x", n), context=static)

    fixes = dict(found(again(9, "a"), again(5, "a"), again(5, "b"), again(5, "c")))
    assert [f for title, f in fixes.items() if "x changed from" in title] == [
        "pad x to the larger size, [9], in every call, and let no result depend on the padding (for example, jnp.mean(values, where=mask) with an argument mask: False for the padding, in the shape of values)"
    ]


def test_a_list_that_grows_is_one_finding_and_is_to_be_an_array_of_its_final_size(found):
    lists = [tree({"history": "list"}, *(f"history[{i}]" for i in range(n))) for n in (1, 2, 3, 4)]
    assert found(*lists) == [("step recompiled 3 times, most recently: history[3] (f32[2]) was added", FINAL)]


def test_containers_of_other_kinds_do_not_grow(found):
    kinds = [("dict", "t['a']"), ("list", "t[0]"), ("tuple", "t[0]")]
    assert [f for _, f in found(*(tree({"t": kind}, path) for kind, path in kinds))] == [SAME]


def test_an_array_that_only_some_calls_have_is_passed_always_or_never(found):
    trees = [tree({"t": "dict"}, *paths) for paths in (["t['a']"], ["t['a']", "t['b']"])]
    assert [f for _, f in found(*trees)] == [
        "pass t['b'] in every call: where it is missing now, use a value that has no effect. If it is not needed, pass it in no call"
    ]


def test_keys_that_come_instead_of_others_do_not_grow(found):
    trees = [
        tree({"t": "dict"}, *paths) for paths in (["t['a']"], ["t['a']", "t['b']"], ["t['a']", "t['c']"])
    ]
    assert [f for _, f in found(*trees)] == [SAME]


@pytest.mark.parametrize(
    ("shapes", "start"),
    [
        ([(1, 8), (8,)], "pass x with the same number of axes"),
        ([(32, 8), (8,)], "change nothing if you need x with both shapes"),
    ],
)
def test_another_number_of_axes_is_another_size_unless_the_axis_is_of_size_1(shapes, start, found):
    [fix] = [f for _, f in found(*(x(*shape) for shape in shapes))]
    assert fix.startswith(start)


@pytest.mark.parametrize("array_first", [False, True])
@pytest.mark.parametrize(
    ("value", "shape", "fix"),
    [
        (0, (), "pass step as an array in every call, including the first: jnp.asarray(step, 'int32')"),
        (0, (3,), SAME),
        ("mean", (), SAME),
    ],
)
def test_a_number_that_comes_back_as_an_array_is_an_array_from_the_first_call(
    value, shape, fix, array_first, found
):
    number = key(tree="n", static=[static("step", value)])
    array = key(leaf("step", *shape, dtype="int32"), tree="a")
    assert [f for _, f in found(*((array, number) if array_first else (number, array)))] == [fix]


def test_none_for_an_array_is_compared_with_the_call_with_that_array(found):
    was, between = tree({"t": "dict"}, "t['a']"), tree({"t": "tuple"}, "t[0]")
    titles = [title for title, _ in found(was, between, tree({"t": "dict", "t['a']": "None"}))]
    told = "step recompiled: t['a'] changed from f32[2] to None (compared with compilation #1, the most similar earlier one)"
    assert told in titles


def test_a_size_that_changes_in_the_same_calls_is_reported_with_the_fix(tmp_path):
    log = Log(store.create(tmp_path / "run"))
    log.say(STEP)
    for n, count in enumerate((0, 1, 2, 3)):
        log.compiled(
            STEP, key(leaf("xs", 8 + min(n, 2)), static=[Static("seen", str(count), "int", "value")])
        )
    [fix] = [words.fix_text(f) for f in registry.findings(load(log.run)) if f.code == "JX107"]
    assert fix.endswith(" (xs also changed shape in 2 of the recompiles)")


def test_what_changes_beside_it_is_named_in_the_order_of_the_arguments(tmp_path):
    log = Log(store.create(tmp_path / "run"))
    log.say(STEP)
    for size in (8, 9):
        log.compiled(
            STEP,
            key(*(leaf(name, size) for name in "fbdace"), static=[Static("seen", str(size), "int", "value")]),
        )
    [fix] = [words.fix_text(f) for f in registry.findings(load(log.run)) if f.code == "JX107"]
    named = ", ".join(f"{name} also changed shape in this recompile" for name in "fbd")
    assert fix.endswith(f" ({named}, 3 more)")


@pytest.mark.parametrize(
    ("shapes", "creeps"),
    [
        ([(2, n, 16) for n in range(2, 8)], True),
        ([(1, n) for n in (9, 10, 11, 12, 13, 5, 6, 7, 8)], True),
        ([(n,) for n in (5, 6, 4, 5, 7, 8, 6, 7)], False),
        ([(n,) for n in (3, 9, 4, 12)], False),
        ([(n, n) for n in range(2, 8)], False),
        ([(n,) for n in range(8, 2, -1)], False),
    ],
)
def test_what_grows_by_as_much_in_every_call_is_to_be_made_once(shapes, creeps, found):
    [fix] = [f for _, f in found(*(x(*shape) for shape in shapes))]
    assert fix.startswith("pad x to its longest length in every call") == creeps
    assert creeps or fix == FEW


def test_each_argument_that_is_none_at_times_is_named(found):
    none = tree({"t": "dict", "t['a']": "None", "t['b']": "None"}, "t['c']")
    both = tree({"t": "dict"}, "t['a']", "t['b']", "t['c']")
    [(_, fix)] = found(none, both)
    assert (
        fix
        == "pass an array for t['a'] in every call: where you pass None now, use an array that has no effect. If t['a'] is not needed, pass None in every call; do the same with t['b']"
    )


@pytest.mark.parametrize(
    ("sizes", "silent"),
    [
        ((16, 32, 64), True),
        ((32, 16, 64), True),
        ((16, 32), True),
        ((32, 16), False),
        ((2, 4, 8), False),
        ((16, 32, 48), False),
        (tuple(2**n for n in range(4, 12)), False),
    ],
)
def test_few_powers_of_two_are_sizes_chosen_by_the_program(sizes, silent, found):
    assert (found(*(x(3, n, n) for n in sizes)) == []) == silent


@pytest.mark.parametrize(("calls", "note"), [(400, True), (12, False), (None, False)])
def test_few_sizes_that_many_calls_share_are_a_choice(tmp_path, calls, note):
    log = Log(store.create(tmp_path / "run"))
    log.say(STEP)
    for n, size in enumerate((40, 60, 100)):
        if calls:
            log.say(ev.Called(function=STEP.function, count=n + 1))
        log.compiled(STEP, x(size))
    if calls:
        log.say(ev.Called(function=STEP.function, count=calls))
    [f] = [f for f in registry.findings(load(log.run)) if f.code == "JX101"]
    assert (f.severity == NOTE) == note
    assert words.fix_text(f).startswith("change nothing if you pad to these sizes already") == note


GROWING = """
import jax, jax.numpy as jnp

@jax.jit
def attend(keys, query):
    return jax.nn.softmax(keys @ query) @ keys

keys, query = jnp.zeros((1, 4)), jnp.ones(4)
for _ in range(5):
    keys = jnp.concatenate([keys, query[None]])
    query = attend(keys, query)
"""
FINAL_SIZE = """
import jax, jax.numpy as jnp

@jax.jit
def attend(keys, query, length):
    scores = jnp.where(jnp.arange(keys.shape[0]) < length, keys @ query, -jnp.inf)
    return jax.nn.softmax(scores) @ keys

keys, query = jnp.zeros((6, 4)), jnp.ones(4)
for n in range(1, 6):
    keys = keys.at[n].set(query)
    query = attend(keys, query, n + 1)
"""


@pytest.mark.capture
@pytest.mark.long
def test_an_array_that_is_made_in_its_final_size_compiles_once(record):
    before, after = load(record(GROWING).run), load(record(FINAL_SIZE).run)
    [f] = [f for f in registry.findings(before) if f.code == "JX101"]
    assert words.fix_text(f).startswith(
        "pad keys to its longest length in every call"
    ) and not observed_sizes.varying(before)
    assert not [f for f in registry.findings(after) if f.code.startswith("JX1")]


def of_places(tmp_path, *calls):
    """The findings about shapes after calls with (size, what tells the place of the call)."""
    log = Log(store.create(tmp_path / "run"))
    log.say(STEP)
    for n, place in calls:
        log.compiled(STEP, key(leaf("batch['x']", n, 784), leaf("batch['y']", n)), **place)
    return [(f.severity, words.fix_text(f)) for f in registry.findings(load(log.run)) if f.code == "JX101"]


@pytest.mark.parametrize("other", [{"line": 9}, {"column": 30}, {"stack": [Frame("train.py", 40, "main")]}])
def test_two_places_with_a_size_each_are_no_finding(tmp_path, other):
    assert of_places(tmp_path, (2000, {}), (400, other)) == []


def test_one_place_with_two_sizes_is_an_odd_batch(tmp_path):
    [(severity, fix)] = of_places(tmp_path, (2000, {}), (400, {}))
    assert severity == "warning" and fix.startswith(ODD.format("batch['x'] to [2000,784]"))


def test_a_place_that_has_two_sizes_beside_one_that_has_one_is_no_data_set(tmp_path):
    [(severity, fix)] = of_places(tmp_path, (2000, {}), (400, {"line": 9}), (300, {"line": 9}))
    assert severity == "warning" and not fix.startswith("nothing")


@pytest.mark.parametrize(
    ("changed", "kind", "advise", "fix"),
    [
        (
            leaf("x", 9),
            "shape",
            arguments.changing_shape,
            "pad each changed argument to the larger size, [9], in",
        ),
        (
            leaf("x", 8, dtype="int32"),
            "dtype",
            arguments.changing_dtype,
            "convert each changed argument to the",
        ),
        (
            leaf("x", 8, weak_type=True),
            "weak_type",
            arguments.weak_type,
            "pass each changed argument as an array that",
        ),
    ],
)
def test_advice_about_arguments_without_a_known_path_names_what_changed(tmp_path, changed, kind, advise, fix):
    log = Log(store.create(tmp_path / "run"))
    log.say(STEP)
    for k in (x(8), key(changed)):
        log.compiled(STEP, k)
    [group] = recompiles.groups(load(log.run), (kind,))
    unknown = [msgspec.structs.replace(c, path=None) for c in group.causes]
    given = advise(msgspec.structs.replace(group, causes=unknown))
    assert fix in text(given.words) and given.arguments["path"] is None
