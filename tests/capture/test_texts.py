"""A program's identity: what it computes, not where it was written."""

from jaxscope.capture import texts

ONE = """#loc1 = loc("x")
module @jit_f {
  func.func public @main(%arg0: tensor<3xf32> loc("x")) -> tensor<3xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<3xf32> loc(#loc12)
    return %0 : tensor<3xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc("/a/b.py":3:4)
#loc12 = loc("jit(f)/add"(#loc))
"""


def identity(text, **other):
    return texts.program_id(text, **{"options": (), "platforms": ("cpu",), "devices": 1, **other})


def test_locations_do_not_count():
    elsewhere = (
        ONE.replace("/a/b.py", "/c/d.py")
        .replace("#loc12", "#loc7")
        .replace('loc("x")', 'loc("renamed"(#loc))')
        .replace("#loc1 = ", "#loc2 = ")
    )
    assert identity(ONE) == identity(elsewhere) and len(identity(ONE)) == 16


def test_what_is_computed_for_whom_and_how_does_count():
    ids = [
        identity(ONE),
        identity(ONE.replace("add", "multiply")),
        identity(ONE.replace("3xf32", "4xf32")),
        identity(ONE, platforms=("tpu",)),
        identity(ONE, devices=8),
        identity(ONE, options=(("xla_embed_ir_in_executable", True),)),
    ]
    assert len(set(ids)) == len(ids)
