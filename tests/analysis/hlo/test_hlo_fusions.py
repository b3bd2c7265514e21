"""Fusions, elementwise operations left alone, custom calls, inputs and outputs."""

from __future__ import annotations

from hlo_cases import case, module

from jaxscope.analysis.hlo.attribution import Attribution
from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.program import analyze
from jaxscope.analysis.hlo.reader import read

FUSED = """%inner (i: f32[4]) -> f32[4] {
  %i = f32[4] parameter(0)
  ROOT %e = f32[4] exponential(%i)
}

%outer (x: f32[4], y: f32[8]) -> f32[4] {
  %x = f32[4] parameter(0)
  %y = f32[8] parameter(1)
  %n = f32[4] fusion(%x), kind=kLoop, calls=%inner
  %s = f32[4] slice(%y), slice={[0:4]}
  ROOT %m = f32[4] multiply(%n, %s)
}

%wrapped_sine (w: f32[4]) -> f32[4] {
  %w = f32[4] parameter(0)
  ROOT %sin = f32[4] sine(%w)
}

"""
TEXT = (
    "HloModule jit_f\n\n"
    + FUSED
    + module(
        "%a = f32[4] parameter(0)",
        "%b = f32[8] parameter(1)",
        "%f = f32[4] fusion(%a, %b), kind=kOutput, calls=%outer",
        "%g = f32[4] fusion(%f), kind=kLoop, calls=%wrapped_sine",
        "%h = f32[4] add(%g, %a)",
        '%c = f32[4] custom-call(%h), custom_call_target="my, \\"target\\""',
        "ROOT %z = f32[4] fusion(%c), kind=kFuture, calls=%gone",
        header="",
    )
)


def test_a_fusion_tells_what_it_holds_and_moves():
    program = analyze(TEXT)
    fusion = program.fusions.each[0]
    assert (fusion.name, fusion.kind, fusion.bytes_in, fusion.bytes_out) == ("f", "output", 48, 16)
    assert fusion.ops == {"slice": 1, "multiply": 1, "exponential": 1}
    assert program.fusions.by_kind == {"output": 1, "loop": 1, "future": 1}
    assert (program.fusions.total, program.fusions.nested) == (3, 1)


STARTED = (
    "HloModule jit_f, is_scheduled=true, num_partitions=8\n\n"
    "%product (p: f32[8,16], q: f32[16,8]) -> f32[8,8] {\n"
    "  %p = f32[8,16] parameter(0)\n  %q = f32[16,8] parameter(1)\n"
    "  ROOT %d = f32[8,8] dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n\n"
    "%row (t: f32[99,8], r: f32[1,8], i: s32[]) -> f32[99,8] {\n"
    "  %t = f32[99,8] parameter(0)\n  %r = f32[1,8] parameter(1)\n"
    "  %i = s32[] parameter(2)\n  ROOT %u = f32[99,8] dynamic-update-slice(%t, %r, %i, %i)\n}\n\n"
    + module(
        "%a = f32[8,16] parameter(0)",
        "%b = f32[16,8] parameter(1)",
        "%c = f32[99,8] parameter(2)",
        "%e = f32[1,8] parameter(3)",
        "%n = s32[] constant(3)",
        "%s = ((f32[8,16], f32[16,8]), f32[8,8], u32[]) fusion-start(%a, %b), kind=kLoop, calls=%product",
        "%x = ((f32[99,8], f32[1,8], s32[]), f32[99,8], u32[]) fusion-start(%c, %e, %n), kind=kInput, "
        "calls=%row",
        "%f = f32[8,8] fusion-done(%s)",
        "%y = f32[99,8] fusion-done(%x)",
        "ROOT %z = (f32[8,8], f32[99,8]) tuple(%f, %y)",
        header="",
    )
)


def test_a_fusion_that_runs_asynchronously_is_a_fusion_and_what_it_holds_runs():
    program = analyze(STARTED)
    assert program.fusions.by_kind == {"loop": 1, "input": 1} and program.fusions.nested == 0
    assert [(f.name, f.ops, f.bytes_out, f.executions) for f in program.fusions.each] == [
        ("s", {"dot": 1}, 256, 1),
        ("x", {"dynamic-update-slice": 1}, 99 * 8 * 4, 1),
    ]
    assert program.matrix_flops == 2 * 8 * 8 * 16
    # The two factors and the product; of the table only a row is written, and nobody knows what is read.
    assert program.moved_bytes == 512 + 512 + 256


def test_a_product_in_an_asynchronous_custom_call_is_counted_and_an_unknown_one_makes_the_sum_unknown():
    numbers = '{"lhs_contracting_dimensions":["1"]}'
    config = f'backend_config={{"gemm_backend_config":{{"dot_dimension_numbers":{numbers}}}}}'
    shape = "((f32[8,16], f32[16,8]), (f32[8,8], s8[64]), u32[])"
    line = f"%s = {shape} custom-call-start(%a, %a), custom_call_target={{}}, {{}}"
    for target, flops in (('"__cublas$gemm"', 2048), ('"mine"', None)):
        text = module("%a = f32[8,16] parameter(0)", line.format(target, config))
        assert analyze(text).matrix_flops == flops


def test_a_fusion_whose_body_is_missing_is_still_counted():
    gone = analyze(TEXT).fusions.each[-1]
    assert (gone.name, gone.ops, gone.bytes_in, gone.bytes_out) == ("z", {}, None, 16)


def test_elementwise_operations_left_alone_are_counted():
    assert analyze(TEXT).unfused_elementwise == 1


def test_custom_calls_by_target():
    assert analyze(TEXT).custom_calls == {'my, "target"': 1}


def test_reducers_are_no_part_of_the_program():
    reducer = (
        "%r (p: f32[], q: f32[]) -> f32[] {\n  %p = f32[] parameter(0)\n  ROOT %s = f32[] add(%p, %p)\n}\n\n"
    )
    text = (
        "HloModule m\n\n"
        + reducer
        + module(
            "%a = f32[4] parameter(0)",
            "ROOT %b = f32[] reduce(%a, %a), dimensions={0}, to_apply=%r",
            header="",
        )
    )
    assert analyze(text).unfused_elementwise == 0


def test_lines_of_a_fusion_are_those_of_what_it_holds():
    program = analyze(case("tf2_fsdptp_donate__cpu_jax0102"))
    with_lines = [f for f in program.fusions.each if f.sources]
    # The others convert and copy what the partitioner moved; their instructions carry no metadata.
    assert len(with_lines) > 0.7 * program.fusions.total
    assert {s.file for f in with_lines for s in f.sources} <= {
        "programs/progs.py",
        "programs/build_corpus.py",
    }


def test_a_line_leads_to_the_instructions_it_made():
    module = read(case("pipeline_ppermute__cpu_jax0102"))
    lines = Attribution(module, CallGraph(module))
    found = lines.at("programs/progs.py", 107)
    assert any(name.startswith("ppermute") for _, name in found)
    assert lines.at("programs/progs.py", 99_999) == []


HEADER = (
    "HloModule jit_f, input_output_alias={ {0}: (1, {}, must-alias), {1}: (0, {}, may-alias) }, "
    "buffer_donor={ (2, {}), (3, {}) }, entry_computation_layout={(f32[4]{0})->f32[4]{0}}"
)


def test_inputs_say_what_becomes_of_their_memory():
    text = module(
        "%p0 = f32[4] parameter(0), sharding={devices=[8]<=[8]}, metadata={op_name=\"state['w']\"}",
        "%p1 = f32[2] parameter(1)",
        "%p2 = f32[9] parameter(2)",
        "%p3 = bf16[5] parameter(3)",
        "ROOT %t = (f32[2], f32[4], f32[9], f32[9]) tuple(%p1, %p0, %p2, %p2)",
        header=HEADER,
    )
    memory = analyze(text).memory
    w, _, spare, unused = memory.parameters
    assert (w.name, w.aliased, w.sharding) == ("state['w']", [[1]], "{devices=[8]<=[8]}")
    assert (spare.donor, spare.aliased, spare.matches) == (True, [], 2)
    assert (unused.donor, unused.matches) == (True, 0)
    assert (memory.argument_bytes, memory.output_bytes, memory.alias_bytes) == (70, 96 + 4 * 8, 24)
    assert [a.kind for a in memory.aliases] == ["must-alias", "may-alias"]


def test_a_single_output_may_be_aliased_as_a_whole():
    program = analyze(case("zero_nested_loops__cpu_jax0102"))
    assert [(a.output, a.parameter) for a in program.memory.aliases] == [([], 0)]
    assert program.memory.alias_bytes == 128 * 128 * 4


def test_arithmetic_of_scalars_is_no_unfused_elementwise_work():
    text = module(
        "%p = f32[4] parameter(0)",
        "%i = s32[] constant(3)",
        "%j = s32[]{:T(128)} add(%i, %i)",
        "ROOT %n = f32[4] negate(%p)",
    )
    assert analyze(text).unfused_elementwise == 1
