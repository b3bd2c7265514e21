"""Two cache keys and how far JAX had to go: what caused it, in which words."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keys_by_hand import (
    CPU0,
    CPU1,
    EXPLICIT,
    OTHER_MESH,
    RESPELLED,
    SPLIT,
    WHOLE,
    any_key,
    array,
    key,
    numpy,
    on_mesh,
    scalar,
)  # fmt: skip

from jaxscope.analysis import causes
from jaxscope.analysis.causes import Circumstances
from jaxscope.analysis.keys import flatten
from jaxscope.analysis.levels import COMPILE, FAST_PATH, LEVELS, LOWER, TRACE, sharding_level
from jaxscope.present.causes import clause, values
from jaxscope.schema.keys import Frame, Leaf, Static

KINDS = {
    "first", "shape", "rank", "dtype", "weak_type", "static_value", "static_identity", "tree", "tree_static",
    "call_form", "new_function", "options", "sharding", "committed", "layout", "device", "memory_kind", "mesh",
    "config", "prng", "cleared", "evicted", "aot", "argument_kind", "equal_sharding", "effects", "transform", "unknown",
}  # fmt: skip


def between(before, after, level=TRACE, contexts=None, **more):
    return causes.between(flatten(before, contexts), flatten(after, contexts), Circumstances(level, **more))


def one(before, after, level=TRACE, **more):
    """The only cause, as (kind, level, path, certainty)."""
    [c] = between(before, after, level, **more)
    return c.kind, c.level, c.path, c.certainty


def text(before, after, level=TRACE, **more):
    return clause(between(before, after, level, **more)[0])


# -- arrays ----------------------------------------------------------------------------------------------


def test_the_last_partial_batch_is_named_by_its_path_with_both_shapes():
    before = key(array("x"), array("batch['ids']", (32, 512), "int32"))
    after = key(array("x"), array("batch['ids']", (32, 511), "int32"))
    [c] = between(before, after)
    assert (c.kind, c.level, c.path, *values(c)) == (
        "shape",
        "trace",
        "batch['ids']",
        "i32[32,512]",
        "i32[32,511]",
    )
    assert clause(c) == "batch['ids'] changed from i32[32,512] to i32[32,511]"


@pytest.mark.parametrize(
    ("before", "after", "kind", "said"),
    [
        (array("x", (4,)), array("x", (4, 1)), "rank", "x changed from f32[4] to f32[4,1]"),
        (array("x"), array("x", dtype="bfloat16"), "dtype", "x changed from f32[4] to bf16[4]"),
        (array("x", (), committed=False), scalar("x"), "weak_type", "x is now weakly typed; it changed from f32[] (jax.Array) to f32[] weak (float)"),
        (array("x", (), weak_type=True), array("x", ()), "weak_type", "x is no longer weakly typed; it changed from f32[] weak to f32[]"),
        (scalar("x"), scalar("x", "int", "int32"), "dtype", "x changed from f32[] (float) to i32[] (int)"),
        (scalar("x", "int", "int32"), scalar("x", "bool", "bool"), "dtype", "x changed from i32[] (int) to bool[] (bool)"),
        (array("k", (), "key<fry>"), array("k", (), "key<rbg>"), "prng", "k changed from key<fry>[] to key<rbg>[]"),
        (array("k", (), "key<fry>"), array("k", (2,), "uint32"), "prng", "k changed from key<fry>[] to u32[2]"),
        (array("x"), array("x", memory_kind="pinned_host"), "memory_kind", "x moved from device memory to pinned_host memory"),
        (array("x", sharding=SPLIT), array("x", sharding=OTHER_MESH), "mesh", "the sharding of x changed from P('d',) on d=4 to P('z',) on z=4"),
        (array("x"), array("x", sharding=SPLIT), "mesh", "the sharding of x changed from cpu:0 to P('d',) on d=4"),
        (array("x", sharding=on_mesh("P('d',)", EXPLICIT)), array("x", sharding=on_mesh("P()", EXPLICIT)), "sharding",
         "the sharding of x changed from P('d',) on d=4 to P() on d=4"),
    ],
)  # fmt: skip
def test_what_retraces(before, after, kind, said):
    assert one(key(before), key(after)) == (kind, "trace", before.path, "certain")
    assert text(key(before), key(after)) == said


@pytest.mark.parametrize(
    ("before", "after", "level", "kind"),
    [
        (array("x", committed=False), array("x"), LOWER, "committed"),
        (array("x", sharding=SPLIT), array("x", sharding=WHOLE), LOWER, "sharding"),
        (array("x", (4, 4)), array("x", (4, 4), layout="(1, 0)"), LOWER, "layout"),
        (array("x"), array("x", sharding=CPU1), COMPILE, "device"),
        (array("x", sharding=SPLIT), array("x", sharding=RESPELLED), FAST_PATH, "equal_sharding"),
        (array("x", committed=False), numpy("x"), FAST_PATH, "argument_kind"),
        (array("x", (), committed=False), Leaf("x", "numpy.float32", (), "float32", False), FAST_PATH, "argument_kind"),
    ],
)  # fmt: skip
def test_what_misses_later_caches_only(before, after, level, kind):
    assert one(key(before), key(after), level) == (kind, level, "x", "certain")


def test_a_leaf_that_changed_in_two_ways_has_two_causes_the_shape_first():
    found = between(key(array("x")), key(array("x", (8,), "bfloat16")))
    assert [(c.kind, c.path) for c in found] == [("shape", "x"), ("dtype", "x")]


def test_what_an_array_is_now_and_was_before_is_reported_once():
    found = between(key(scalar("x")), key(numpy("x", (3,))))
    assert [(c.kind, clause(c)) for c in found] == [
        ("rank", "x changed from f32[] (float) to f32[3] (numpy array)"),
        ("weak_type", "x is no longer weakly typed"),
    ]


def test_nothing_was_compiled_is_reported_where_that_is_so():
    before = key(scalar("n", "int", "int32"), scalar("m"))
    counted = array("n", (), "int32", weak_type=True, committed=False)
    assert clause(between(before, key(counted, scalar("m")), FAST_PATH)[0]) == (
        "n changed from an int to a jax.Array, which by itself compiles nothing"
    )
    found = between(before, key(counted, array("m", (), committed=False)), TRACE)
    assert [c.kind for c in found] == ["weak_type"], "what compiles nothing by itself is no cause of what was"


def test_many_leaves_that_changed_alike_are_one_cause_with_their_common_path():
    paths = [f"state.params['l{i}']['{n}']" for i in range(74) for n in ("w", "b")]
    before = key(*[array(p, (i % 7, 3)) for i, p in enumerate(paths)])
    after = key(*[array(p, (i % 7, 3), dtype="bfloat16") for i, p in enumerate(paths)])
    [c] = between(before, after)
    assert (c.kind, c.path, c.count, *values(c)) == ("dtype", "state.params", 148, "f32", "bf16")
    assert clause(c) == "148 leaves under state.params changed dtype from f32 to bf16"


def test_one_axis_that_changed_alike_in_many_leaves_is_reported_by_its_number():
    before = key(*[array(f"batch['{n}']", (32, i)) for i, n in enumerate("abc")])
    after = key(*[array(f"batch['{n}']", (17, i)) for i, n in enumerate("abc")])
    [c] = between(before, after)
    assert (c.path, c.count, clause(c)) == (
        "batch",
        3,
        "axis 0 of 3 leaves under batch changed from 32 to 17",
    )


def test_two_arguments_are_not_thrown_together():
    before = key(*[array(f"{a}.w{i}") for a in ("params", "mu") for i in range(3)])
    after = key(*[array(f"{a}.w{i}", dtype="bfloat16") for a in ("params", "mu") for i in range(3)])
    assert [(c.path, c.count) for c in between(before, after)] == [("params", 3), ("mu", 3)]


def test_where_an_uncommitted_array_happens_to_lie_is_no_cause():
    a, b = array("x", committed=False), array("x", sharding=CPU1, committed=False)
    [c] = between(key(a), key(b), LOWER)
    assert c.kind == "unknown"


def test_a_stand_in_of_an_ahead_of_time_lowering_differs_only_in_its_abstract_value():
    stand_in = Leaf("x", "jax.ShapeDtypeStruct", (4,), "float32", False)
    [c] = between(key(stand_in), key(array("x")), LOWER, entry_before="aot", number_before=1)
    assert (c.kind, clause(c)) == (
        "aot",
        "it was compiled ahead of time (#1) and is now called as an ordinary function",
    )
    found = between(key(stand_in), key(array("x", (5,))), TRACE, entry_before="aot")
    assert [c.kind for c in found] == ["shape", "aot"] and "does not use it" in clause(found[1])


# -- static values and trees -----------------------------------------------------------------------------


def test_a_static_argument_with_another_value():
    before, after = (
        key(static=[Static("n", v, t, "value", None, 3)]) for v, t in (("3", "int"), ("3.0", "float"))
    )
    assert one(before, after) == ("static_value", "trace", "n", "certain")
    assert text(before, after) == "the static argument 'n' changed from 3 (int) to 3.0 (float)"


def test_a_new_object_that_looks_the_same_is_called_that_without_an_address():
    made = [Static("cfg", "<m.Config n=3>", "m.Config", "identity", serial, serial) for serial in (1, 2)]
    assert one(key(static=made[:1]), key(static=made[1:])) == ("static_identity", "trace", "cfg", "certain")
    said = text(key(static=made[:1]), key(static=made[1:]))
    assert "Config defines no __eq__ and __hash__" in said and "0x" not in said


def test_an_unstable_hash_is_called_that():
    made = [Static("cfg", "<m.C>", "m.C", "value", None, h, h == 2) for h in (1, 2)]
    assert one(key(static=made[:1]), key(static=made[1:]))[0] == "static_identity"
    assert "its __hash__ returned another value" in text(key(static=made[:1]), key(static=made[1:]))


def test_static_data_in_a_tree_is_named_by_its_attribute_and_its_node_is_left_out():
    def module(rate, whole):
        return key(
            array("m.w"),
            nodes={"m": "net.Net"},
            static=[
                Static("m.rate", rate, "float", "value", None, hash(rate)),
                Static("m", "(see the fields above)", "net.Net", "value", None, whole),
            ],
        )

    assert one(module("0.1", 1), module("0.2", 2)) == ("tree_static", "trace", "m.rate", "certain")
    [c] = between(module("0.1", 1), module("0.1", 2))
    assert (c.kind, c.path, c.certainty) == ("tree_static", "m", "likely")


def test_a_remade_optimiser_is_one_cause():
    def state(serial):
        made = [Static(f"s.tx.{n}", "<function f at o.py:1>", "function", "identity", serial + i, serial + i) for i, n in enumerate(("init", "update"))]  # fmt: skip
        return key(array("s.w"), nodes={"s": "TrainState"}, static=made)

    [c] = between(state(1), state(5))
    assert (c.kind, c.path, c.count) == ("static_identity", "s.tx", 2)


def test_what_a_librarys_wrapper_adds_is_left_out_where_a_field_says_it():
    def call(mode, hashed):
        own = Static("<equinox.filter_jit>.static", "(see the fields above)", "Static", "value", None, hashed)
        return key(static=[Static("mode", mode, "str", "value"), own])

    assert one(call("'a'", 1), call("'b'", 2))[:3] == ("static_value", "trace", "mode")
    assert one(call("'a'", 1), call("'a'", 2)) == ("tree_static", "trace", None, "likely")


@pytest.mark.parametrize(
    ("before", "after", "path", "said"),
    [
        (key(array("b['x']"), nodes={"b": "dict"}), key(array("b['x']"), array("b['m']"), nodes={"b": "dict"}), "b['m']",
         "b['m'] (f32[4]) was added"),
        (key(array("b['x']"), array("b['m']"), nodes={"b": "dict"}), key(array("b['x']"), nodes={"b": "dict"}), "b['m']",
         "b['m'] is no longer passed (it was f32[4])"),
        (key(array("b[0]"), nodes={"b": "list"}), key(array("b[0]"), nodes={"b": "tuple"}), "b", "b changed from a list to a tuple"),
        (key(array("x"), nodes={"m": "None"}), key(array("x"), array("m")), "m", "m changed from None to f32[4]"),
        (key(nodes={"b": "collections.OrderedDict ['x', 'y']"}), key(nodes={"b": "collections.OrderedDict ['y', 'x']"}), "b",
         "b changed from a collections.OrderedDict ['x', 'y'] to a collections.OrderedDict ['y', 'x']"),
    ],
)  # fmt: skip
def test_containers_that_differ(before, after, path, said):
    [c] = between(msgspec.structs.replace(before, tree="A"), msgspec.structs.replace(after, tree="B"))
    assert (c.kind, c.path, clause(c)) == ("tree", path, said)


def test_keys_of_a_container_in_another_order_are_named():
    leaves = [array("w"), array("batch['x']"), array("batch['y']")]
    [c] = between(key(*leaves, tree="A"), key(leaves[0], leaves[2], leaves[1], tree="B"))
    assert (c.kind, c.path) == ("tree", "batch")
    assert clause(c) == "the order of the keys of batch changed from 'x', 'y' to 'y', 'x'"


def test_a_tree_that_differs_in_nothing_that_was_read_is_cut_to_where_it_differs():
    same = "PyTreeDef(" + "*, " * 300
    [c] = between(key(tree=same + "{'a': *})" + same), key(tree=same + "{'b': *})" + same))
    assert c.kind == "tree" and c.path is None and "'a'" in values(c)[0] and len(clause(c)) < 250


# -- the call and the function ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        (
            key(array("x"), call_form="1 positional"),
            key(array("x"), call_form="0 positional, keywords: x"),
            "x",
        ),
        (
            key(array("x"), call_form="1 positional"),
            key(array("x"), scalar("s"), call_form="2 positional"),
            "s",
        ),
    ],
)
def test_the_same_arguments_passed_differently(before, after, path):
    [c] = between(before, after)
    assert (c.kind, c.path) == ("call_form", path)


def test_a_call_form_that_changed_with_a_shape_is_the_lesser_cause():
    before = key(array("x", shape=(3,)), call_form="1 positional")
    after = key(array("x", shape=(4,)), call_form="0 positional, keywords: x")
    assert [c.kind for c in between(before, after)] == ["shape", "call_form"]


def test_an_array_where_there_was_none_is_another_argument():
    before = key(array("x"), call_form="1 positional")
    after = key(array("x"), array("mask"), call_form="2 positional")
    assert one(before, after)[:3] == ("tree", "trace", "mask")


def test_a_default_that_is_spelled_out_differs_from_another_value_of_it():
    base = key(array("x"), call_form="1 positional")
    for value, kind in (("'fast'", "call_form"), ("'slow'", "static_value")):
        after = key(array("x"), static=[Static("mode", value, "str", "value")], call_form="2 positional")
        found = between(base, after, signature="(x, mode='fast')")
        assert (found[0].kind, found[0].path) == (kind, "mode")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            {"form": "lambda", "created_at": Frame("/work/t.py", 3, "f")},
            "a lambda was created again at t.py:3",
        ),
        ({"form": "partial", "wrappers": ["functools.partial"]}, "a functools.partial was created again"),
        ({"form": "method"}, "a bound method was created again"),
        ({"form": "def", "qualname": "main.<locals>.step"}, "main defined it again"),
        ({"form": "def", "wrappers": ["jax.grad"]}, "jax.grad(...) was applied again"),
    ],
)
def test_another_function_object_is_reported_by_how_it_was_made(how, said):
    found = between(key(array("x")), key(array("x"), function_object=2), **how)
    assert [(c.kind, c.path) for c in found] == [("new_function", None)]
    assert clause(found[0]).endswith(said)


def test_the_function_object_is_the_root_of_what_else_differs():
    found = between(key(array("x")), key(array("x", (8,)), function_object=2), form="lambda")
    assert [c.kind for c in found] == ["new_function", "shape"]


def test_options_act_at_the_level_that_was_reached():
    before, after = key(array("x")), key(array("x"), options={"donate_argnums": "(0,)"})
    for level in (TRACE, LOWER, COMPILE):
        assert one(before, after, level) == ("options", level, "donate_argnums", "certain")


def test_settings_and_meshes_around_the_call():
    contexts = {"c1": {"jax_enable_x64": "False", "mesh_context_manager": "()"}, "c2": {"jax_enable_x64": "True", "mesh_context_manager": "()"},
                "c3": {"jax_enable_x64": "False", "mesh_context_manager": "(Mesh('d': 4),)"}}  # fmt: skip
    a, b, c = (key(array("x"), context=n) for n in ("c1", "c2", "c3"))
    assert one(a, b, contexts=contexts)[:3] == ("config", "trace", "jax_enable_x64")
    assert text(a, b, contexts=contexts) == "the setting jax_enable_x64 changed from False to True"
    assert one(a, c, contexts=contexts)[:3] == ("mesh", "trace", "context")
    assert one(a, b)[:3] == ("config", "trace", None), "the settings behind the ids are lost"


def test_a_call_under_a_transform_is_called_that_and_nothing_else():
    found = between(key(array("x")), key(Leaf("x", "Tracer", (4,), "float32")), LOWER, entry="transform")
    assert [(c.kind, c.level) for c in found] == [("transform", "lower")]


# -- no difference ---------------------------------------------------------------------------------------


def test_the_same_key_again_is_explained_by_cleared_caches_a_full_cache_or_honestly_not():
    same = key(array("x"))
    assert one(same, same, cleared=1)[0::3] == ("cleared", "certain")
    assert one(same, same, full={"signatures": (2048, 2048)})[0::3] == ("evicted", "likely")
    fast = {"fast_path": (8192, 8192), "signatures": (2048, 2048)}
    assert one(same, same, FAST_PATH, full=fast)[0::3] == ("evicted", "likely")
    [c] = between(same, same, FAST_PATH, full=fast)
    assert clause(c).endswith("evicted from a full cache (fast path 8,192 of 8,192 entries)")
    assert one(same, same, FAST_PATH, full={"signatures": (2048, 2048)})[0] == "unknown"
    assert one(same, same, FAST_PATH, effects=["Debug"])[0] == "effects"
    [c] = between(same, same)
    assert (
        c.kind == "unknown"
        and "compared: 1 array argument," in clause(c)
        and "caches were cleared" in clause(c)
    )


def test_what_explains_a_later_cache_does_not_explain_a_retrace():
    found = between(key(array("x", committed=False)), key(array("x")), TRACE)
    assert [c.kind for c in found] == ["unknown", "committed"]
    found = between(key(array("x", committed=False)), key(array("x")), TRACE, cleared=1)
    assert [c.kind for c in found] == ["cleared", "committed"]


def test_what_could_not_be_read_is_no_cause_but_is_mentioned():
    before, after = (
        key(tree="A", missing=["options"]),
        key(tree=None, options={"b": "1"}, missing=["options"]),
    )
    [c] = between(before, after)
    assert c.kind == "unknown" and "not recorded: options" in clause(c)


@given(any_key, any_key, st.sampled_from(LEVELS), st.sampled_from(["call", "aot", "transform", "nested"]))
def test_any_two_keys_have_causes_in_known_words(a, b, level, entry):
    found = between(a, b, level, entry=entry)
    assert found and all(c.kind in KINDS and c.level in LEVELS and clause(c) for c in found)
    assert found[0].level == level or found[0].kind in ("transform", "aot")


@given(any_key, st.sampled_from(LEVELS))
def test_a_key_beside_itself_is_never_blamed_for_a_difference(a, level):
    [c] = between(a, a, level)
    assert c.kind in ("unknown", "effects")
    assert CPU0 not in (c.before, c.after)


# -- what looks alike ------------------------------------------------------------------------------------


def static(text="w", hashed=1, kind="m.Weights", compares="value", serial=None, **more):
    return key(static=[Static("w", text, kind, compares, serial, hashed, **more)])


@pytest.mark.parametrize(
    ("before", "after", "kind", "certainty"),
    [
        (static(hashed=1), static(hashed=2), "static_value", "likely"),  # its text was cut, or shows nothing
        (static("'a…", 1, "str"), static("'a…", 2, "str"), "static_value", "certain"),
        (static(hashed=1, serial=4), static(hashed=2, serial=5), "static_value", "likely"),
        (static(compares="identity", serial=4), static(compares="identity", serial=5), "static_identity", "certain"),
        # a tuple that holds the same function as before, and something else that does not show
        (static(hashed=1, compares="parts", serial=4), static(hashed=2, compares="parts", serial=4), "static_value", "likely"),
        (static(hashed=1, compares="parts", serial=4), static(hashed=2, compares="parts", serial=5), "static_identity", "certain"),
        (static(hashed=1), static(hashed=2, unstable_hash=True), "static_identity", "certain"),
        (static(kind="m.C"), static(kind="m.C (class #2)"), "static_value", "certain"),
    ],
)  # fmt: skip
def test_two_values_that_look_the_same_are_one_object_made_anew_only_where_that_is_known(
    before, after, kind, certainty
):
    assert one(before, after) == (kind, "trace", "w", certainty)


def test_the_static_data_of_an_argument_that_is_itself_a_node_is_data_of_the_tree():
    def node(n):
        return key(nodes={"b": "Graph"}, static=[Static("b", str(n), "Graph", "value", None, n)])

    assert one(node(1), node(2)) == ("tree_static", "trace", "b", "certain")


def test_another_number_of_keys_is_a_shape_another_implementation_is_not():
    one_key, two = array("k", (), "key<fry>"), array("k", (2,), "key<fry>")
    assert one(key(one_key), key(two))[0] == "rank"
    assert one(key(two), key(array("k", (3,), "key<fry>")))[0] == "shape"


def test_an_array_in_whose_place_a_container_stands_is_one_cause():
    before = key(array("p['a']"), nodes={"p": "dict"})
    after = key(array("p['a'][0]"), nodes={"p": "dict", "p['a']": "list"})
    assert text(before, after) == "p['a'] changed from f32[4] to a list"
    assert text(after, before) == "p['a'] changed from a list to f32[4]"


def test_a_container_that_came_with_several_leaves_is_reported_once_and_its_static_data_not_at_all():
    more = {"m": "Stack", "m[1]": "Layer"}
    size = Static("m[1].size", "4", "int", "value", None, 4)
    before = key(array("m[0].w"), nodes={"m": "Stack"})
    after = key(array("m[0].w"), array("m[1].w"), array("m[1].b"), nodes=more, static=[size])
    assert text(before, after) == "2 leaves under m[1] were added"


def test_what_was_traced_inside_another_function_is_called_directly():
    found = between(
        key(Leaf("x", "Tracer", (4,), "float32", False)), key(array("x")), LOWER, entry_before="nested"
    )
    assert [(c.kind, c.level) for c in found] == [("transform", "lower")]


def test_pmap_wraps_once_for_each_static_value_and_the_value_is_the_cause():
    def call(n):
        return key(static=[Static("n", str(n), "int", "value", None, n)], function_object=n)

    assert one(call(2), call(3), wrappers=["jax.pmap"])[:3] == ("static_value", "trace", "n")


def test_an_axis_of_size_one_splits_nothing():
    mesh = [("d", 4, "Auto"), ("one", 1, "Auto")]
    ones = [
        on_mesh(spec, mesh) for spec in ("P('one',)", "P()", "P(('one', 'd'),)", "P('d', None)", "P('d',)")
    ]
    levels = [[sharding_level(a, b) for b in ones] for a in ones]
    assert levels[0][1] == levels[2][3] == FAST_PATH
    assert levels[0][3] == levels[1][2] == LOWER
    explicit = [("one", 1, "Explicit")]
    assert sharding_level(on_mesh("P('one',)", explicit), on_mesh("P()", explicit)) == TRACE
