"""How values are spelled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis.avals import aval_bytes, short_aval, short_dtype
from jaxscope.analysis.paths import common_prefix, excerpt, tokens


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("float32", "f32"), ("bfloat16", "bf16"), ("float8_e4m3fn", "f8_e4m3fn"), ("int32", "i32"), ("uint8", "u8"),
        ("int4", "i4"), ("bool", "bool"), ("complex64", "c64"), ("key<fry>", "key<fry>"), (None, "?"),
    ],
)  # fmt: skip
def test_dtypes_have_jaxs_short_names(long, short):
    assert short_dtype(long) == short


def test_avals_read_as_in_a_jaxpr():
    assert short_aval((32, 512), "float32") == "f32[32,512]"
    assert short_aval((), "int32", True) == "i32[] weak"
    assert short_aval(("batch", 4), "float32", type_name="numpy.ndarray") == "numpy array f32[batch,4]"
    assert short_aval(None, None) == "?"
    assert short_aval(None, None, type_name="Widget") == "Widget"


@pytest.mark.parametrize(
    ("shape", "dtype", "packed", "in_numpy"),
    [
        ((3, 5), "float32", 60, 60), ((3, 5), "bool", 15, 15), ((3, 5), "int4", 8, 15), ((), "bfloat16", 2, 2),
        ((8,), "float8_e4m3fn", 8, 8), ((8,), "float4_e2m1fn", 4, 8), (("batch", 4), "float32", None, None),
        ((2,), "key<fry>", None, None), (None, "float32", None, None), ((2,), None, None, None),
    ],
)  # fmt: skip
def test_programs_pack_small_types_and_numpy_does_not(shape, dtype, packed, in_numpy):
    assert aval_bytes(shape, dtype) == packed
    assert aval_bytes(shape, dtype, packed=False) == in_numpy


def test_a_path_comes_apart_at_its_steps_and_back_together():
    assert tokens("state.params['a.b'][0].w") == ["state", ".params", "['a.b']", "[0]", ".w"]
    assert common_prefix(["s.a['x']", "s.a['y']"]) == "s.a"
    assert common_prefix(["a", "b"]) is None
    assert common_prefix([]) is None


@given(st.text(alphabet="a.[]'0\n", max_size=30))
def test_no_path_loses_a_character(path):
    assert "".join(tokens(path)) == path


@given(st.text(max_size=300), st.text(max_size=300))
def test_two_different_texts_still_differ_when_cut(a, b):
    x, y = excerpt(a, b)
    assert (x != y) or a == b or max(len(a), len(b)) > 120
    assert len(x) < 160 and len(y) < 160
