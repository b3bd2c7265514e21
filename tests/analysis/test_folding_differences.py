"""Many differences as few lines."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from test_key_differences import any_key, array, key

from jaxscope.analysis import fold as folding
from jaxscope.analysis.fold import Folded
from jaxscope.analysis.keys import compare, flatten
from jaxscope.schema.keys import Leaf, Static


def fold(before, after):
    a, b = flatten(before), flatten(after)
    return folding.fold(compare(a, b), a, b)


def test_leaves_that_change_alike_become_one_line_with_their_common_path():
    paths = [f"state.params['l{i}']['{n}']" for i in range(74) for n in ("w", "b")]
    before = key(*[array(p) for p in paths], array("lr", ()))
    after = key(*[array(p, dtype="bfloat16") for p in paths], array("lr", ()))
    assert fold(before, after) == [Folded("state.params", 148, "dtype", "float32", "bfloat16")]


def test_one_dimension_changed_alike_is_told_by_its_axis():
    before = key(*[array(f"batch['{n}']", (32, n_)) for n_, n in enumerate("abc", 1)])
    after = key(*[array(f"batch['{n}']", (17, n_)) for n_, n in enumerate("abc", 1)])
    assert fold(before, after) == [Folded("batch", 3, "axis 0", "32", "17")]


def test_two_leaves_stay_two_lines_spelled_as_jax_spells_them():
    before = key(array("x", (64, 8)), array("y", (64,), "int32"))
    after = key(array("x", (5, 8)), array("y", (5,), "int32"))
    assert fold(before, after) == [
        Folded("x", 1, "aval", "f32[64,8]", "f32[5,8]"),
        Folded("y", 1, "aval", "i32[64]", "i32[5]"),
    ]


def test_arguments_without_a_common_step_are_not_thrown_together():
    before = key(*[array(f"{a}.w{i}") for a in ("params", "mu") for i in range(3)])
    after = key(*[array(f"{a}.w{i}", dtype="bfloat16") for a in ("params", "mu") for i in range(3)])
    assert [(f.path, f.count) for f in fold(before, after)] == [("params", 3), ("mu", 3)]


def test_a_python_scalar_is_told_from_an_array_by_type_and_weakness():
    free = msgspec.structs.replace(array("lr", ()), committed=False)
    assert fold(key(free), key(Leaf("lr", "float", (), "float32", True))) == [
        Folded("lr", 1, "aval", "jax.Array f32[]", "float f32[] weak")
    ]


def test_the_tree_is_left_out_where_the_leaves_say_it():
    before, after = key(array("x"), tree="(*)"), key(array("x"), array("mask"), tree="(*, *)")
    assert fold(before, after) == [Folded("mask", 1, "leaf", None, "f32[4]")]
    assert fold(key(tree="(*)"), key(tree="[*]")) == [Folded(None, 1, "tree", "(*)", "[*]")]


def test_long_texts_are_cut_to_where_they_differ():
    same = "PyTreeDef(" + "*, " * 300
    [line] = fold(key(tree=same + "{'a': *})" + same), key(tree=same + "{'b': *})" + same))
    assert "'a'" in line.before and "'b'" in line.after
    assert len(line.before) < 80 and line.before.startswith("…") and line.before.endswith("…")


def test_static_values_and_settings_keep_their_lines():
    before = key(static=[Static("n", "3", "int")], options={"inline": "True"})
    after = key(static=[Static("n", "4", "int")], options={})
    assert fold(before, after) == [
        Folded("n", 1, "static", "3", "4"),
        Folded(None, 1, "options.inline", "True", None),
    ]


def test_what_a_librarys_wrapper_adds_is_left_out_where_a_field_says_it():
    def one(mode, hashed):
        return key(
            static=[
                Static("mode", mode, "str"),
                Static("<equinox.filter_jit>.static", "…", "Static", "value", None, hashed),
            ]
        )

    assert [f.path for f in fold(one("'a'", 1), one("'b'", 2))] == ["mode"]
    assert [f.path for f in fold(one("'a'", 1), one("'a'", 2))] == ["<equinox.filter_jit>.static"]


def test_a_path_comes_apart_at_its_steps_and_back_together():
    assert folding.tokens("state.params['a.b'][0].w") == ["state", ".params", "['a.b']", "[0]", ".w"]
    assert folding.common_prefix(["s.a['x']", "s.a['y']"]) == "s.a"
    assert folding.common_prefix(["a", "b"]) is None
    assert folding.common_prefix([]) is None


@given(st.text(alphabet="a.[]'0\n", max_size=30))
def test_no_path_loses_a_character(path):
    assert "".join(folding.tokens(path)) == path


@given(st.text(max_size=300), st.text(max_size=300))
def test_two_different_texts_still_differ_when_cut(a, b):
    x, y = folding.excerpt(a, b)
    assert (x != y) or a == b or max(len(a), len(b)) > 120
    assert len(x) < 160 and len(y) < 160


@given(any_key, any_key)
def test_every_difference_is_in_some_line(a, b):
    before, after = flatten(a), flatten(b)
    found = compare(before, after)
    lines = folding.fold(found, before, after)
    told = [d for d in found if d.field != "tree"]
    assert bool(lines) or not told
    assert sum(line.count for line in lines) <= max(1, 2 * len(found))
