"""When computing in float64 is a finding."""

import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.rules.registry import findings

STEP, EVALUATE = function("step"), function("evaluate", line=99)
TEXT = """module @jit_step {
  func.func public @main(%arg0: tensor<8xf64>) -> (tensor<8xf64>) {
    %0 = stablehlo.sine %arg0 : tensor<8xf64> loc(#l)
    return %0 : tensor<8xf64>
  }
}
#l = loc("/home/ann/work/train.py":7:3)
"""
# The constant has the line of the call.
CONVERTED = """module @jit_step {
  func.func public @main(%arg0: tensor<8xf32>) -> (tensor<8xf64>) {
    %c = stablehlo.constant dense<2.0> : tensor<8xf64> loc(#call)
    %d = stablehlo.constant dense<3.0> : tensor<8xf64> loc(#call)
    %0 = stablehlo.convert %arg0 : (tensor<8xf32>) -> tensor<8xf64> loc(#l)
    %1 = stablehlo.multiply %0, %c : tensor<8xf64> loc(#l)
    %2 = stablehlo.add %1, %d : tensor<8xf64> loc(#l)
    return %2 : tensor<8xf64>
  }
}
#call = loc("/home/ann/work/train.py":140:3)
#l = loc("/home/ann/work/train.py":9:3)
"""


@pytest.mark.parametrize(
    ("dtypes", "number"),
    [
        (["float64", "int32"], 0),  # the precision that the program asks for
        (["float64", "float32"], 1),
        (["int32"], 0),  # the program makes it, and there are no other floats in the run
    ],
)
def test_float64_beside_other_floats_is_a_finding_on_a_cpu(tmp_path, dtypes, number):
    assert len(doubles(tmp_path, TEXT, dtypes)) == number


@pytest.mark.parametrize(("other", "number"), [("float32", 1), ("float64", 0), ("int32", 0)])
def test_float64_that_a_program_makes_is_a_finding_if_another_program_takes_other_floats(
    tmp_path, other, number
):
    assert len(doubles(tmp_path, TEXT, ["int32"], other)) == number


@pytest.mark.parametrize(
    ("dtypes", "severity"), [(["float64"], "note"), (["int32"], "note"), (["float64", "float32"], "warning")]
)
def test_float64_that_a_program_asks_for_is_a_note_on_a_gpu(tmp_path, dtypes, severity):
    assert [f.severity for f in doubles(tmp_path, TEXT, dtypes, platform="gpu")] == [severity]


@pytest.mark.parametrize(("kind", "number"), [("NVIDIA H200", 0), ("NVIDIA GeForce RTX 4090", 1)])
def test_float64_that_was_asked_for_is_no_finding_on_a_gpu_that_is_as_fast_with_it(tmp_path, kind, number):
    assert len(doubles(tmp_path, TEXT, ["float64"], platform="gpu", kind=kind)) == number
    assert len(doubles(tmp_path / "mixed", TEXT, ["float64", "float32"], platform="gpu", kind=kind)) == 1


@pytest.mark.parametrize(
    "text",
    [
        CONVERTED,
        CONVERTED.replace("stablehlo.convert %arg0 : (tensor<8xf32>)", "stablehlo.iota dim = 0 : ()"),
    ],
)
def test_the_line_is_that_of_an_operation_not_that_of_the_call(tmp_path, text):
    [f] = doubles(tmp_path, text, ["float32"])
    assert f.source.line == 9


def doubles(tmp_path, text, dtypes, other=None, platform="cpu", kind="cpu"):
    log = Log(store.create(tmp_path / "run"))
    log.backend(platform=platform, kind=kind)
    log.say(STEP)
    leaves = [leaf(f"x{n}", 8, dtype=dtype) for n, dtype in enumerate(dtypes)]
    log.compiled(STEP, key(*leaves), program="aa11", texts={"stablehlo": text})
    if other is not None:
        log.say(EVALUATE)
        log.compiled(EVALUATE, key(leaf("y", 8, dtype=other)), program="bb22", texts={"stablehlo": ""})
    log.end()
    return [f for f in findings(load(log.run)) if f.code == "JX303"]
