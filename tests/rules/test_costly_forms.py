"""JX211: how many operations another form has to save."""

import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.rules.registry import findings

STEP = function("step")
# (a @ b) @ v
TEXT = """module @jit_step {
  func.func public @main(%arg0: tensor<NxNxf32>, %arg1: tensor<NxNxf32>, %arg2: tensor<Nxf32>) -> (tensor<Nxf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<NxNxf32>, tensor<NxNxf32>) -> tensor<NxNxf32> loc(#l)
    %1 = stablehlo.dot_general %0, %arg2, contracting_dims = [1] x [0] : (tensor<NxNxf32>, tensor<Nxf32>) -> tensor<Nxf32> loc(#l)
    return %1 : tensor<Nxf32>
  }
}
#l = loc("/home/ann/work/train.py":7:3)
"""


@pytest.mark.parametrize(
    ("platform", "size", "number"), [("cpu", 500, 0), ("cpu", 2000, 1), ("gpu", 2000, 0), ("gpu", 10_000, 1)]
)
def test_an_accelerator_has_to_save_more_operations(tmp_path, platform, size, number):
    log = Log(store.create(tmp_path / "run"))
    log.backend(platform=platform)
    log.say(STEP)
    arguments = key(leaf("a", size), leaf("b", size), leaf("v", size))
    log.compiled(STEP, arguments, program="aa11", texts={"stablehlo": TEXT.replace("N", str(size))})
    log.end()
    assert [f.code for f in findings(load(log.run)) if f.code == "JX211"] == ["JX211"] * number
