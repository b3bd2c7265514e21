"""When computing in float64 is a finding."""

import pytest
from written import Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.rules.registry import findings

STEP = function("step")
TEXT = """module @jit_step {
  func.func public @main(%arg0: tensor<8xf64>) -> (tensor<8xf64>) {
    %0 = stablehlo.sine %arg0 : tensor<8xf64> loc(#l)
    return %0 : tensor<8xf64>
  }
}
#l = loc("/home/ann/work/train.py":7:3)
"""


@pytest.mark.parametrize(
    ("dtypes", "number"),
    [
        (["float64", "int32"], 0),  # the precision that the program asks for
        (["float64", "float32"], 1),
        (["int32"], 1),  # the program makes it
    ],
)
def test_float64_beside_other_floats_is_a_finding_on_a_cpu(tmp_path, dtypes, number):
    log = Log(store.create(tmp_path / "run"))
    log.backend()
    log.say(STEP)
    leaves = [leaf(f"x{n}", 8, dtype=dtype) for n, dtype in enumerate(dtypes)]
    log.compiled(STEP, key(*leaves), program="aa11", texts={"stablehlo": TEXT})
    log.end()
    assert [f.code for f in findings(load(log.run))].count("JX303") == number
