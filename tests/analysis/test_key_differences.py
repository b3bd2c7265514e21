"""Two cache keys side by side."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis import keys
from jaxscope.analysis.keys import Difference, difference, nearest
from jaxscope.schema.keys import Key, Leaf, Sharding, Static

CPU0 = Sharding("SingleDeviceSharding", "cpu:0", "0", None, None, "device")
CPU1 = Sharding("SingleDeviceSharding", "cpu:1", "1", None, None, "device")
MESH = [("d", 4, "Auto")]
SPLIT = Sharding("NamedSharding", "P('d') on d=4", "0-3", MESH, "P('d')", "device")
WHOLE = Sharding("NamedSharding", "P() on d=4", "0-3", MESH, "P()", "device")


def array(path: str, shape=(4,), dtype="float32", sharding=0, **more) -> Leaf:
    given = {
        "weak_type": False,
        "committed": True,
        "memory_kind": "device",
        "layout": str(tuple(range(len(shape)))),
    }
    return Leaf(path=path, type="jax.Array", shape=shape, dtype=dtype, sharding=sharding, **{**given, **more})


def key(*arguments: Leaf, **more) -> Key:
    return Key(arguments=list(arguments), **{"shardings": [CPU0, CPU1], **more})


def test_a_key_does_not_differ_from_itself():
    k = key(
        array("x"),
        static=[Static("n", "3", "int")],
        tree="T",
        options={"donate_argnums": "(0,)"},
        context="c1",
    )
    assert difference(k, k) == []


def test_a_shape_is_spelled_in_brackets_and_names_its_path():
    found = difference(
        key(array("x"), array("batch['ids']", (32, 512))), key(array("x"), array("batch['ids']", (32, 511)))
    )
    assert found == [Difference("batch['ids']", "shape", "[32,512]", "[32,511]")]


def test_every_field_of_a_leaf_is_a_fact():
    before = array("x")
    for field, value, said in (
        ("dtype", "bfloat16", ("float32", "bfloat16")),
        ("weak_type", True, ("False", "True")),
        ("committed", False, ("True", "False")),
        ("memory_kind", "pinned_host", ("device", "pinned_host")),
        ("layout", "(1, 0)", ("(0,)", "(1, 0)")),
        ("sharding", 1, ("cpu:0", "cpu:1")),
    ):
        after = msgspec.structs.replace(before, **{field: value})
        assert difference(key(before), key(after)) == [Difference("x", field, *said)]


def test_shardings_compare_by_what_they_say_not_by_their_number_in_the_table():
    before = Key(arguments=[array("x", sharding=0)], shardings=[SPLIT, WHOLE])
    same = Key(arguments=[array("x", sharding=1)], shardings=[WHOLE, SPLIT])
    other = Key(arguments=[array("x", sharding=0)], shardings=[WHOLE])
    assert difference(before, same) == []
    assert difference(before, other) == [Difference("x", "sharding", "P('d') on d=4", "P() on d=4")]


def test_shardings_with_one_text_are_told_apart_by_what_differs():
    moved = msgspec.structs.replace(SPLIT, devices="4-7")
    found = difference(
        Key(arguments=[array("x")], shardings=[SPLIT]), Key(arguments=[array("x")], shardings=[moved])
    )
    assert found == [
        Difference("x", "sharding", "P('d') on d=4 (devices 0-3)", "P('d') on d=4 (devices 4-7)")
    ]


def test_an_index_outside_the_table_is_an_unknown_sharding():
    assert difference(Key(arguments=[array("x", sharding=7)]), Key(arguments=[array("x", sharding=-1)])) == []


def test_a_change_of_type_takes_along_what_only_arrays_have():
    numpy = Leaf("x", "numpy.ndarray", (4,), "float32", False)
    free = msgspec.structs.replace(array("x"), committed=False)
    assert difference(key(free), key(numpy)) == [Difference("x", "type", "jax.Array", "numpy array")]


def test_an_array_that_was_placed_differs_by_its_place_and_not_by_its_type():
    """device_put of a NumPy array: the type alone would compile nothing."""
    numpy = Leaf("x", "numpy.ndarray", (4,), "float32", False)
    found = {d.field: (d.before, d.after) for d in difference(key(numpy), key(array("x")))}
    assert found["committed"] == ("False", "True")
    assert found["sharding"][0] is None and found["sharding"][1] and "type" not in found


def test_a_change_of_rank_takes_along_the_layout():
    assert [d.field for d in difference(key(array("x", (4,))), key(array("x", (4, 1))))] == ["shape"]


def test_leaves_that_come_and_go_are_named():
    found = difference(key(array("x"), array("old", (2,))), key(array("x"), array("new", (), "int32")))
    assert found == [Difference("new", "leaf", None, "i32[]"), Difference("old", "leaf", "f32[2]", None)]


def test_two_leaves_of_one_name_stay_two():
    found = difference(key(array("x"), array("x", (3,))), key(array("x"), array("x", (5,))))
    assert found == [Difference("x (2)", "shape", "[3]", "[5]")]


def test_static_values_compare_as_jax_compares_them():
    def one(**fields):
        return key(
            static=[Static("n", **{"repr": "3", "type": "int", "compares": "value", "hash": 3, **fields})]
        )

    assert difference(one(), one()) == []
    assert difference(one(), one(repr="4", hash=4)) == [Difference("n", "static", "3", "4")]
    assert difference(one(repr="1"), one(repr="1.0", type="float")) == [
        Difference("n", "static", "1 (int)", "1.0 (float)")
    ]
    assert difference(one(serial=1), one(serial=2)) == []  # equal by value: another object is no difference
    assert difference(one(), one(hash=9)) == [Difference("n", "static", "3 (hash 3)", "3 (hash 9)")]
    mine = {"repr": "<Config>", "type": "Config", "compares": "identity"}
    assert difference(one(**mine, serial=1), one(**mine, serial=2)) == [
        Difference("n", "static", "<Config> (object #1)", "<Config> (object #2)")
    ]


def test_options_settings_and_the_function_object_have_no_path():
    contexts = {"c1": {"jax_enable_x64": "False", "m": "1"}, "c2": {"jax_enable_x64": "True", "m": "1"}}
    before = key(options={}, context="c1", function_object=3, tree="A", call_form="1 positional")
    after = key(
        options={"donate_argnums": "(0,)"}, context="c2", function_object=5, tree="B", call_form="keywords: x"
    )
    assert {(d.path, d.field, d.before, d.after) for d in difference(before, after, contexts)} == {
        (None, "options.donate_argnums", None, "(0,)"),
        (None, "context.jax_enable_x64", "False", "True"),
        (None, "function_object", "#3", "#5"),
        (None, "tree", "A", "B"),
        (None, "call_form", "1 positional", "keywords: x"),
    }


def test_settings_that_are_not_recorded_differ_by_their_id_only():
    assert [d.field for d in difference(key(context="c1"), key(context="c2"))] == ["context"]
    assert difference(key(context="c1"), key(context="c2"), {"c1": {"a": "1"}}) == []


def test_what_could_not_be_read_is_never_a_difference():
    assert difference(key(tree="A", function_object=1), key(tree=None, function_object=None)) == []
    assert difference(key(options={"a": "1"}), key(options={"a": "2"}, missing=["options"])) == []


def test_the_nearest_key_has_the_fewest_differing_facts():
    far = key(array("x", (8,)), array("y", (8,), "int32"))
    near = key(array("x", (4,)), array("y", (8,)))
    assert nearest(key(array("x", (4,)), array("y", (9,))), [far, near, far]) == 1


def test_of_equally_near_keys_the_latest_is_taken():
    a, b = key(array("x", (1,))), key(array("x", (2,)))
    assert nearest(key(array("x", (3,))), [a, b]) == 1
    assert nearest(a, [a, b, a, b]) == 2
    assert nearest(a, []) is None


def test_every_fact_of_a_key_is_there_by_path_and_field():
    found = keys.facts(key(array("x"), static=[Static("n", "3", "int")], tree="T"))
    assert found["x", "dtype"] == "float32"
    assert found["x", "sharding"] == CPU0
    assert found["n", "static"].repr == "3"
    assert found[None, "tree"] == "T"


leaves = st.builds(
    Leaf,
    path=st.sampled_from(["x", "y['a']", "y['b']", ""]),
    type=st.sampled_from(["jax.Array", "float"]),
    shape=st.none() | st.lists(st.integers(0, 3) | st.just("n"), max_size=3).map(tuple),
    dtype=st.none() | st.sampled_from(["float32", "key<fry>"]),
    weak_type=st.none() | st.booleans(),
    sharding=st.none() | st.integers(-1, 3),
    committed=st.none() | st.booleans(),
    layout=st.none() | st.just("(0,)"),
)
statics = st.builds(
    Static,
    path=st.sampled_from("ab"),
    repr=st.sampled_from("12"),
    type=st.just("int"),
    serial=st.none() | st.integers(1, 2),
)
any_key = st.builds(
    Key,
    arguments=st.lists(leaves, max_size=4),
    static=st.lists(statics, max_size=2),
    tree=st.none() | st.sampled_from("AB"),
    options=st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"), max_size=2),
    context=st.none() | st.sampled_from(["c1", "c2"]),
    shardings=st.just([CPU0, CPU1, SPLIT]),
    function_object=st.none() | st.integers(1, 2),
    missing=st.lists(st.sampled_from(["tree", "options"]), max_size=1),
)


@given(any_key, any_key)
def test_differences_are_the_same_from_both_sides(a, b):
    there, back = difference(a, b, {"c1": {"s": "1"}}), difference(b, a, {"c1": {"s": "1"}})
    assert {(d.path, d.field) for d in there} == {(d.path, d.field) for d in back}
    assert difference(a, a) == []


@given(any_key, st.lists(any_key, min_size=1, max_size=5))
def test_no_earlier_key_is_nearer_than_the_nearest(k, earlier):
    index = nearest(k, earlier)
    counts = [len(difference(e, k)) for e in earlier]
    assert counts[index] == min(counts)
    assert min(counts) not in counts[index + 1 :]
