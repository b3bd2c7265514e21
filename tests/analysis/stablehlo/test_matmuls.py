"""Matrix products by what they are computed in, as JAX 0.10 and 0.12 print them."""

import pytest

from jaxscope.analysis.stablehlo.reading import analyze

TEXT = """module @jit_f attributes {{mhlo.num_partitions = 1 : i32}} {{
  func.func public @main(%arg0: tensor<4x8xf32>, %arg1: tensor<8x4xf32>) -> tensor<4x4xf32> {{
{body}    return %0 : tensor<4x4xf32> loc(#loc)
  }} loc(#loc)
}} loc(#loc)
#loc = loc(unknown)
#loc1 = loc("/home/ann/work/train.py":31:4 to :9)
"""
DOT = "    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]{more} : (tensor<4x8x{a}>, tensor<8x4x{a}>) -> tensor<4x4x{out}> loc(#loc1)\n"
CONVOLUTION = "    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGHEST>]} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32> loc(#loc1)\n"
ALGORITHM = ", precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = {n}, allow_imprecise_accumulation = false>"


def found(body):
    return [(p.operands, p.precision, p.count) for p in analyze(TEXT.format(body=body)).products]


@pytest.mark.parametrize(
    ("line", "operands", "precision"),
    [
        (DOT.format(a="f32", out="f32", more=", precision = [DEFAULT, DEFAULT]"), "f32 x f32 -> f32", "DEFAULT"),
        (DOT.format(a="f32", out="f32", more=""), "f32 x f32 -> f32", "DEFAULT"),
        (DOT.format(a="f32", out="f32", more=", precision = [HIGH, DEFAULT]"), "f32 x f32 -> f32", "HIGH"),
        (DOT.format(a="bf16", out="f32", more=", precision = [HIGHEST, HIGHEST]"), "bf16 x bf16 -> f32", "HIGHEST"),
        (DOT.format(a="f32", out="f32", more=ALGORITHM.format(n=3)), "f32 x f32 -> f32", "tf32_tf32_f32 x3"),
        (DOT.format(a="f32", out="f32", more=ALGORITHM.format(n=1)), "f32 x f32 -> f32", "tf32_tf32_f32"),
        (CONVOLUTION, "f32 x f32 -> f32", "HIGHEST"),
    ],
)  # fmt: skip
def test_operands_and_precision_are_read(line, operands, precision):
    assert found(line) == [(operands, precision, 1)]


def test_the_types_of_a_product_are_data():
    [product] = analyze(TEXT.format(body=DOT.format(a="bf16", out="f32", more=""))).products
    assert product.dtypes == ("bf16", "bf16", "f32")


def test_products_of_one_line_are_counted_together():
    one = DOT.format(a="f32", out="f32", more=", precision = [DEFAULT, DEFAULT]")
    assert found(one + one.replace("%0", "%1")) == [("f32 x f32 -> f32", "DEFAULT", 2)]


def test_a_line_of_another_kind_is_none():
    assert found("    %0 = stablehlo.add %arg0, %arg0 : tensor<4x8xf32> loc(#loc1)\n") == []
