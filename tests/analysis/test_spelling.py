"""How values are spelled."""

import pytest

from jaxscope.analysis.avals import short_aval, short_dtype


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
