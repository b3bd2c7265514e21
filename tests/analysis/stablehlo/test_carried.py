"""Values that a loop of a StableHLO text carries from iteration to iteration unchanged."""

from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis.stablehlo import reader
from jaxscope.analysis.stablehlo.carried import unchanged

TEXT = """\
module @jit_f {
  func.func public @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.negate %arg0 : tensor<8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:3 = stablehlo.while(%iterArg = %0, %iterArg_0 = %c, %iterArg_1 = %arg1) : tensor<8xf32>, tensor<i32>, tensor<8xf32>
    cond {
      %c_2 = stablehlo.constant dense<50> : tensor<i32>
      %2 = stablehlo.compare LT, %iterArg_0, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2 = stablehlo.subtract %iterArg, %iterArg_1 : tensor<8xf32>
      %c_2 = stablehlo.constant dense<1> : tensor<i32>
      %3 = stablehlo.add %iterArg_0, %c_2 : tensor<i32>
      stablehlo.return %iterArg, %3, %2 : tensor<8xf32>, tensor<i32>, tensor<8xf32>
    }
    return %1#2 : tensor<8xf32>
  }
}
"""


def test_an_argument_that_the_body_returns_as_it_is_is_the_value_outside():
    assert unchanged(TEXT.split("\n")) == {5: frozenset({"%iterArg"})}
    ops = reader.read(TEXT).ops
    [subtract] = [op for op in ops if op.name == "stablehlo.subtract"]
    assert subtract.operands == (0,) and ops[0].name == "stablehlo.negate"
    assert subtract.places == (0,), "the second operand changes in the loop"


def test_a_swapped_argument_changes():
    assert (
        unchanged(TEXT.replace("return %iterArg, %3, %2", "return %iterArg_1, %3, %iterArg").split("\n"))
        == {}
    )


def test_a_result_of_an_operation_with_several_is_not_followed():
    text = TEXT.replace("%iterArg = %0,", "%iterArg = %0#1,")
    [subtract] = [op for op in reader.read(text).ops if op.name == "stablehlo.subtract"]
    assert subtract.operands == ()


@given(st.data())
def test_a_damaged_text_is_no_error(data):
    lines = TEXT.split("\n")
    drawn = data.draw(
        st.lists(st.sampled_from([*lines, "}", "{", "} do {", "cond {", "stablehlo.return %a"]), max_size=40)
    )
    unchanged(drawn)
    reader.read("\n".join(drawn))
