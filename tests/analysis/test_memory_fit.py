"""What a compiler says of a program that does not fit, read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis import machines, memory_fit
from jaxscope.analysis.stablehlo import reading
from jaxscope.schema.keys import Memory

GIB = 1 << 30
V5E = machines.parse("v5e:4x4")

# As libtpu 0.0.42 and 0.0.50 said it of one program.
EARLY = "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (28.75G) exceeds available HBM (15.75G)."
EARLY_50 = (
    "RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required for HLO"
    " temporaries (290.00G) exceeds available HBM (95.73G). HLO module: jit_step.\nSee https://openxla.org/xla/errors/error_1000 for more details."
)  # fmt: skip
# As a user quotes it (erfanzar/EasyDeL issue 166, a v4), shortened.
LATE = """RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 63.80G of 30.75G hbm. Exceeded hbm capacity by 33.05G.

Total hbm usage >= 65.05G:
    reserved          1.25G
    program          63.80G
    arguments            0B

Output size 0B; shares 0B with arguments.

Program hbm requirement 63.80G:
    global            1.14M
    scoped            4.56M
    HLO temp         63.79G (100.0% utilization: Unpadded (63.58G) Padded (63.58G), 0.3% fragmentation (210.89M))

  Largest program allocations in hbm:

  1. Size: 2.00G
     Operator: op_name="jit(causal_step)/jit(main)/transformer/h/0/dot_general[dimension_numbers=(((3,), (3,)))]" source_file="/home/ann/attention_module.py" source_line=1059
     Shape: f32[32,4096,4096]{1,2,0:T(8,128)}
     Unpadded size: 2.00G
     XLA label: fusion.1265.remat3 = fusion(custom-call.224), kind=kOutput, calls=fused_computation.957
     Allocation type: HLO temp
     ==========================

  2. Size: 512.0M
     Shape: f32[32,4096,1024]{1,2,0:T(8,128)}
     Unpadded size: 2.00G
     XLA label: copy.3 = copy(parameter.4)
     Allocation type: HLO temp
     ==========================
"""


@pytest.mark.parametrize(
    "message, used, capacity", [(EARLY, 28.75, 15.75), (EARLY_50, 290.0, 95.73), (LATE, 63.80, 30.75)]
)
def test_what_would_be_used_and_what_there_is_are_the_compilers_own_figures(message, used, capacity):
    found = memory_fit.of_message(V5E, message)
    assert found.fits is False
    assert found.used == int(used * GIB) and found.capacity == int(capacity * GIB)


def test_the_largest_buffers_come_with_the_users_line_where_the_compiler_has_it():
    found = memory_fit.of_message(None, LATE)
    assert found.parts["HLO temp"] == int(63.79 * GIB) and found.parts["arguments"] == 0
    first, second = found.largest
    assert (first.bytes, first.file, first.line) == (2 * GIB, "/home/ann/attention_module.py", 1059)
    assert first.operation.startswith("jit(causal_step)/") and first.shape.startswith("f32[32,4096,4096]")
    assert second.file is None and second.operation == "copy.3 = copy(parameter.4)"


def test_an_unknown_message_says_that_it_does_not_fit_and_nothing_more():
    found = memory_fit.of_message(V5E, "RESOURCE_EXHAUSTED: no luck today")
    assert (found.fits, found.used, found.capacity) == (False, None, int(15.75 * GIB))


def test_a_program_that_was_compiled_fits_as_far_as_its_peak_says():
    assert memory_fit.of_program(V5E, 3 * GIB).fits is True
    assert memory_fit.of_program(V5E, 16 * GIB).fits is False
    assert memory_fit.of_program(V5E, None).fits is None
    assert memory_fit.of_program(None, 3 * GIB).fits is None


def test_a_device_of_a_chip_with_two_has_half_its_memory():
    assert memory_fit.capacity_of(machines.parse("tpu7x:2x2x1")) < 96 * GIB
    assert memory_fit.capacity_of(machines.parse("h100:8")) == 84942979072


def test_without_a_stated_peak_it_is_bounded_by_the_parts_and_unknown_where_one_is():
    whole = Memory(argument_bytes=4, output_bytes=3, temp_bytes=2, alias_bytes=1)
    assert memory_fit.peak_of(whole, None) == 8 and memory_fit.peak_of(whole, 5) == 5
    assert (
        memory_fit.peak_of(Memory(argument_bytes=4), None) is None and memory_fit.peak_of(None, None) is None
    )


STABLEHLO = """module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=8]>
  func.func public @main(%arg0: tensor<1024x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg1: tensor<16xf32>) -> (tensor<1024x16xf32> {jax.result_info = "result"}) {
    return %arg0 : tensor<1024x16xf32>
  }
}
"""


def test_the_part_of_a_value_without_a_sharding_is_not_guessed():
    found = memory_fit.contributors(reading.analyze(STABLEHLO, paths=["x", "b"]))
    assert [(c.of, c.path, c.bytes) for c in found] == [
        ("argument", "x", 8192),
        ("output", "result", None),
        ("argument", "b", None),
    ]
    alone = reading.analyze(STABLEHLO.replace("num_partitions = 8", "num_partitions = 1"), paths=["x", "b"])
    assert {c.path: c.bytes for c in memory_fit.contributors(alone)}["b"] == 64
    assert memory_fit.contributors(None) is None


@given(st.text(max_size=300), st.sampled_from(["", EARLY, LATE]))
def test_no_message_is_too_odd(text, real):
    found = memory_fit.of_message(V5E, real[: len(text) * 7] + text + real)
    assert found.fits is False and len(found.largest) <= memory_fit.LARGEST
