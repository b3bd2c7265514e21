"""A run beside a baseline: which change is which finding, and what is no finding."""

import msgspec
import pytest
from handwritten_runs import CWD, function, key, leaf, static

from jaxscope.check.baseline import comparison, extract, file, update
from jaxscope.present import findings as words
from jaxscope.rules import registry
from jaxscope.schema import events as ev
from jaxscope.schema.findings import CERTAIN, ERROR, NOTE, WARNING, Finding
from jaxscope.schema.keys import Frame, Memory, Sharding

MESH = [Sharding("NamedSharding", "P('data')", "0-7", (("data", 8, "Auto"),), "P('data',)")]
HLO = """HloModule jit_step, is_scheduled=true, num_partitions=8

FileNames
1 "{cwd}/train.py"

FunctionNames
1 "step"
2 "loss"

FileLocations
1 {{file_name_id=1 function_name_id=1 line=31 end_line=31 column=4 end_column=9}}
2 {{file_name_id=1 function_name_id=2 line=50 end_line=50 column=4 end_column=9}}

StackFrames
1 {{file_location_id=1 parent_frame_id=1}}
2 {{file_location_id=2 parent_frame_id=1}}

{computations}ENTRY %main (p: f32[64]) -> f32[64] {{
  %p = f32[64]{{0}} parameter(0)
{more}  ROOT %cos = f32[64]{{0}} cosine(%p), metadata={{op_name="jit(step)/cos" stack_frame_id=1}}
}}
"""
GATHER = '  %ag.{i} = f32[{n}]{{0}} all-gather(%p), channel_id={i}, replica_groups=[1,8]<=[8], dimensions={{0}}, use_global_device_ids=true, metadata={{op_name="jit(step)/cos" stack_frame_id={frame}}}\n'
FUSION = "  %fused.{i} = f32[64]{{0}} fusion(%p), kind=kLoop, calls=%c.{i}\n"
FUSED = "%c.{i} (q: f32[64]) -> f32[64] {{\n  %q = f32[64]{{0}} parameter(0)\n  ROOT %n = f32[64]{{0}} negate(%q)\n}}\n\n"
STABLEHLO = """#loc1 = loc("{cwd}/train.py":31:4 to :9)
module @jit_step attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%arg0: tensor<8xf32>{donated} loc("x")) -> (tensor<8xf32>) {{
{more}    %0 = stablehlo.cosine %arg0 : tensor<8xf32> loc(#loc1)
    return %0 : tensor<8xf32> loc(#loc)
  }} loc(#loc)
}} loc(#loc)
#loc = loc(unknown)
"""
CONSTANT = "    %cst = stablehlo.constant dense<[{values}]> : tensor<{n}xf32> loc(#loc1)\n"
DOT = "    %d = stablehlo.dot_general %arg0, %arg0, contracting_dims = [0] x [0], precision = [{p}, {p}] : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32> loc(#loc1)\n"
CONVERT = "    %h = stablehlo.convert %arg0 : (tensor<8xbf16>) -> tensor<8xf32> loc(#loc1)\n"
CALLBACK = '    %c = stablehlo.custom_call @xla_ffi_python_cpu_callback(%arg0) {{api_version = 4 : i32}} : (tensor<8xf32>) -> tensor<8xf32> loc("jit(step)/pure_callback"(#loc1))\n'


def hlo(gathers=(), fusions=0):
    """``gathers``: (elements, frame) of each."""
    more = "".join(GATHER.format(i=i, n=n, frame=f) for i, (n, f) in enumerate(gathers, 1))
    more += "".join(FUSION.format(i=i) for i in range(fusions))
    computations = "".join(FUSED.format(i=i) for i in range(fusions))
    return HLO.format(cwd=CWD, more=more, computations=computations)


def mlir(more="", donated=False):
    return STABLEHLO.format(
        cwd=CWD, more=more.format() if "{" in more else more, donated=" {tf.aliasing_output = 0 : i32}" if donated else ""
    )  # fmt: skip


def x(n=8, **more):
    return key(leaf("x", n), **{"shardings": MESH, **more})


def held(before, after):
    """The comparison after the baseline has been a file."""
    return comparison.compare(file.loads(file.dumps(before.baseline).encode()), after)


def told(found):
    return [(f.code, f.severity) for f in found.findings]


def only(found):
    (f,) = found.findings
    return f


def test_the_same_run_again_is_nothing_to_tell(making):
    one = ((x(), "aa", hlo([(64, 1)], fusions=3), mlir(donated=True)),)
    found = held(making.read(*one), making.read(*one))
    assert found.findings == found.new == []


def test_one_recompile_more_is_reported_with_its_cause_and_line(making):
    found = held(
        making.read((x(8), "aa", None, None)),
        making.read((x(8), "aa", None, None), (x(7), "bb", None, None)),
    )
    f = only(found)
    assert (f.code, f.severity) == ("JX701", ERROR)
    assert words.title(f) == "step is compiled 2x, 1x in the baseline: x changed from f32[8] to f32[7]"
    assert (f.source.line, f.path) == (140, "x")
    assert "--update-baseline" in words.fix_text(f) and f.seconds > 6


def test_another_reason_for_as_many_recompiles_is_reported_too(making):
    before = making.read((x(8), "aa", None, None), (x(7), "bb", None, None))
    after = making.read(
        (x(8), "aa", None, None),
        (x(8, static=[static("mode", 1)]), "cc", None, None),
    )
    worse = [f for f in held(before, after).findings if f.severity == ERROR]
    assert [f.code for f in worse] == ["JX701"]
    assert "for a new reason" in words.title(worse[0])


def test_fewer_compilations_are_good_news_that_does_not_fail(making):
    found = held(
        making.read((x(8), "aa", None, None), (x(7), "bb", None, None)),
        making.read((x(8), "aa", None, None)),
    )
    assert told(found) == [("JX711", NOTE)]
    assert "compiled 1x, 2x in the baseline" in words.title(only(found))


def test_a_function_the_baseline_does_not_know_is_reported(making):
    found = held(
        making.read((x(), "aa", None, None)),
        making.read((x(), "aa", None, None), function("helper", line=9), (x(), "cc", None, None)),
    )
    new = only(found)
    assert words.title(new) == "helper is compiled 1x but is not in the baseline"
    assert [words.evidence(e) for e in new.evidence] == ["called here"]


def test_a_baseline_of_another_program_is_called_that(making):
    found = held(
        making.read(function("other", line=9), (x(), "cc", None, None)), making.read((x(), "aa", None, None))
    )
    assert "written from another program?" in words.title(found.findings[0])
    assert found.findings[0].severity == NOTE


def test_a_function_that_did_not_run_is_an_unused_entry(making):
    found = held(
        making.read((x(), "aa", None, None), function("helper", line=9), (x(), "cc", None, None)),
        making.read((x(), "aa", None, None)),
    )
    assert told(found) == [("JX710", NOTE)]
    assert "train.py::helper" in words.title(only(found))


def test_a_function_in_another_file_is_taken_for_the_same_and_that_is_reported(making):
    moved = function("step", f"{CWD}/model/step.py", 3)
    found = held(
        making.read((x(8), "aa", None, None)),
        making.read((x(8), "aa", None, None), (x(7), "bb", None, None), seen=moved),
    )
    assert told(found) == [("JX710", NOTE), ("JX701", ERROR)]
    assert (
        "train.py::step of the baseline seems to have a new name, model/step.py::step: the two are compared"
        in words.title(found.findings[0])
    )


def test_lines_that_move_are_no_difference(making):
    before = making.read((x(8), "aa", None, None), seen=function("step", line=10))
    after = making.read((x(8), "aa", None, None), seen=function("step", line=99))
    assert held(before, after).findings == []


def test_one_collective_more_is_reported_with_kind_axis_bytes_and_line(making):
    found = held(
        making.read((x(), "aa", hlo([(64, 1)]), None)),
        making.read((x(), "bb", hlo([(64, 1), (64, 2)]), None)),
    )
    f = only(found)
    assert f.code == "JX702"
    assert words.title(f) == "step: 2 all-gather over data in loss, 1 in the baseline"
    assert (f.source.line, f.source.function) == (50, "loss")
    assert "size grew from 256 to 512" in " ".join(words.evidence(e) for e in f.evidence).replace(" B", "")


def test_a_larger_collective_is_reported_by_its_bytes(making):
    found = held(
        making.read((x(), "aa", hlo([(64, 1)]), None)),
        making.read((x(), "bb", hlo([(6400, 1)]), None)),
    )
    title = "step: all-gather over data: size grew from 256 B to 25.0 KiB (+9,900 %)"
    assert words.title(only(found)) == title


def test_a_collective_of_which_is_no_longer_known_how_often_it_runs_is_reported(making):
    loop = """%body (t: (s32[], f32[64])) -> (s32[], f32[64]) {{
  %t = (s32[], f32[64]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %v = f32[64]{{0}} get-tuple-element(%t), index=1
  %g = f32[64]{{0}} all-gather(%v), channel_id=9, replica_groups=[1,8]<=[8], dimensions={{0}}, use_global_device_ids=true
  ROOT %r = (s32[], f32[64]) tuple(%i, %g)
}}

%cond (t2: (s32[], f32[64])) -> pred[] {{
  %t2 = (s32[], f32[64]) parameter(0)
  %j = s32[] get-tuple-element(%t2), index=0
  ROOT %lt = pred[] custom-call(%j), custom_call_target="enough"
}}

"""
    call = """  %z = s32[] constant(0)
  %init = (s32[], f32[64]) tuple(%z, %p)
  %w = (s32[], f32[64]) while(%init), condition=%cond, body=%body{how}
"""

    def text(how):
        return HLO.format(cwd=CWD, computations=loop.format(), more=call.format(how=how))

    known = text(', backend_config={"known_trip_count":{"n":"3"}}')
    found = held(making.read((x(), "aa", known, None)), making.read((x(), "bb", text(""), None)))
    told_of = [words.title(f) for f in found.findings if f.code == "JX702"]
    assert told_of == ["step: all-gather over data: executions per call unknown now, 3 in the baseline"]


def test_fewer_collectives_are_good_news(making):
    found = held(
        making.read((x(), "aa", hlo([(64, 1), (64, 2)]), None)),
        making.read((x(), "bb", hlo([(64, 1)]), None)),
    )
    assert told(found) == [("JX711", NOTE)]


@pytest.mark.parametrize(("fusions", "codes"), [(41, ["JX703"]), (40, []), (38, []), (30, ["JX711"])])
def test_fusions_are_compared_within_the_tolerance_of_the_file(making, fusions, codes):
    before = making.read((x(), "aa", hlo(fusions=39), None))
    found = held(before, making.read((x(), "bb", hlo(fusions=fusions), None)))
    assert [f.code for f in found.findings] == codes


def with_memory(making, temp, k=None):
    run = making.run((k or x(), "aa", None, None))
    (p,) = run.programs.values()
    p.compiled = msgspec.structs.replace(p.compiled, memory=Memory(4096, 128, 0, temp, None))
    return extract.extract(run, [])


def test_memory_within_the_tolerance_is_the_same_and_beyond_it_is_reported_with_the_argument_that_changed(
    making,
):
    before = with_memory(making, 100_000)
    assert held(before, with_memory(making, 104_900)).findings == []
    f = only(held(before, with_memory(making, 106_000, x(16))))
    assert f.code == "JX704"
    assert words.title(f).startswith(
        "step: memory per device: temporaries grew from 97.7 KiB to 103.5 KiB (+6 %): "
    )
    assert words.title(f).endswith("x changed from f32[8] P('data',) to f32[16] P('data',)")
    assert told(held(before, with_memory(making, 90_000))) == [("JX711", NOTE)]


def sized(making, *sizes, **more):
    return making.read(*((x(n, **more), f"{n:x}{i}", hlo(fusions=n), None) for i, n in enumerate(sizes)))


def test_a_batch_of_another_size_is_not_compared_with_one_that_is_another_program(making):
    found = held(sized(making, 64, 40), sized(making, 96, 40))
    f = only(found)
    assert (f.code, f.severity) == ("JX701", ERROR)
    assert words.title(f) == (
        "step is compiled for arguments that the baseline does not have: "
        "x changed from f32[64] P('data',) to f32[96] P('data',)"
    )
    assert [words.evidence(e).partition(":")[0] for e in f.evidence] == [
        "program 1 of step matches no program of the baseline and was not compared"
    ]
    assert words.fix_text(f).startswith("pass x as f32[64] P('data',) again; ")
    assert held(sized(making, 64, 40), sized(making, 64, 40)).findings == []


def test_of_programs_that_changed_their_place_each_is_compared_with_its_own(making):
    assert held(sized(making, 64, 40), sized(making, 40, 64)).findings == []


def test_a_program_without_counterpart_is_reported_with_the_compilation_that_is_one_more(making):
    found = held(sized(making, 64), sized(making, 96, 40))
    f = only(found)
    assert words.title(f).startswith("step is compiled 2x, 1x in the baseline: x changed from")
    assert words.evidence(f.evidence[-1]).startswith("program 1 of step matches no program of the baseline")


def test_several_programs_without_counterpart_are_one_finding(making):
    f = only(held(sized(making, 64, 32), sized(making, 96, 48)))
    assert "does not have (2 programs): x changed from f32[64]" in words.title(f) and len(f.evidence) == 2


def half(n):
    return key(leaf("x", n, dtype="bfloat16"), shardings=MESH)


def test_what_another_dtype_makes_worse_in_several_programs_is_one_finding(making):
    before = making.read((x(64), "aa", hlo(), mlir()), (x(40), "bb", hlo(), mlir()))
    after = making.read(
        (half(64), "cc", hlo(fusions=3), mlir(CONVERT)), (half(40), "dd", hlo(fusions=3), mlir())
    )
    worse = [f for f in held(before, after).findings if f.severity == ERROR]
    by_reason = {words.title(f).rpartition(": ")[2]: f for f in worse}
    assert len(worse) == 2 and len(by_reason) == 2  # x of 64 and x of 40: two lines of reasons
    f = next(f for f in worse if f.code == "JX707")
    assert words.title(f) == (
        "program 1 of step: conversions from bfloat16 to float32: 1, none in the baseline: "
        "x changed from f32[64] P('data',) to bf16[64] P('data',); 1 more figure is worse for the same reason"
    )
    assert words.evidence(f.evidence[-1]) == "JX703 program 1 of step: fusions: 3, none in the baseline"
    assert words.fix_text(f).startswith("pass x as f32[64] P('data',) again; if the change is intended")


def test_programs_whose_reason_is_the_same_argument_are_one_finding(making):
    def of(dtype, fusions):
        state = leaf("state", 8, dtype=dtype)
        return making.read(
            *((key(state, leaf("x", n)), f"{n:x}{dtype[0]}", hlo(fusions=fusions), None) for n in (64, 40))
        )

    f = only(held(of("float32", 0), of("bfloat16", 3)))
    assert words.title(f).startswith(
        "program 1 of step: fusions: 3, none in the baseline: state changed from f32[8] to bf16[8]"
    )
    assert words.title(f).endswith("; 1 more figure is worse for the same reason")
    assert words.evidence(f.evidence[-1]) == "JX703 program 2 of step: fusions: 3, none in the baseline"


def test_what_is_smaller_for_a_smaller_batch_is_not_better(making):
    assert held(sized(making, 64), sized(making, 40)).findings == []


def test_a_tolerance_that_somebody_wrote_into_the_file_holds_and_outlives_an_update(making):
    before = making.read((x(), "aa", hlo(fusions=10), None)).baseline
    wide = msgspec.structs.replace(before, tolerance={**before.tolerance, "fusions": 0.5})
    after = making.read((x(), "bb", hlo(fusions=14), None))
    assert comparison.compare(wide, after).findings == []
    assert update.updated(wide, after.baseline).tolerance["fusions"] == 0.5


def test_a_donation_that_is_gone_is_reported_by_argument(making):
    found = held(making.read((x(), "aa", None, mlir(donated=True))), making.read((x(), "bb", None, mlir())))
    f = only(found)
    assert f.code == "JX705"
    assert (
        words.title(f)
        == "step: x is no longer donated: 1 array was reused in the baseline (32 B more memory per device)"
    )


def test_an_array_that_is_captured_now_is_reported_with_its_size(making):
    values = ", ".join(f"{i}.0" for i in range(40))
    taken = mlir(CONSTANT.replace("{values}", values).replace("{n}", "40"))
    found = held(making.read((x(), "aa", None, mlir())), making.read((x(), "bb", None, taken)))
    f = only(found)
    assert f.code == "JX706"
    assert "160 B" in words.title(f) and "none in the baseline" in words.title(f)


def test_a_product_in_a_higher_precision_is_reported(making):
    found = held(
        making.read((x(), "aa", None, mlir(DOT.replace("{p}", "DEFAULT")))),
        making.read((x(), "bb", None, mlir(DOT.replace("{p}", "HIGHEST")))),
    )
    f = only(found)
    assert f.code == "JX707" and "f32 x f32 -> f32, HIGHEST: 1, none in the baseline" in words.title(f)
    assert f.source.line == 31


def test_another_product_of_the_same_kind_is_a_larger_program_and_no_finding(making):
    one = DOT.replace("{p}", "DEFAULT")
    found = held(
        making.read((x(), "aa", None, mlir(one))),
        making.read((x(), "bb", None, mlir(one + one.replace("%d", "%e")))),
    )
    assert found.findings == []


def test_a_conversion_to_a_wider_type_is_reported(making):
    found = held(making.read((x(), "aa", None, mlir())), making.read((x(), "bb", None, mlir(CONVERT))))
    assert only(found).code == "JX707"
    assert "from bfloat16 to float32: 1, none in the baseline" in words.title(only(found))


def test_a_callback_is_reported(making):
    found = held(making.read((x(), "aa", None, mlir())), making.read((x(), "bb", None, mlir(CALLBACK))))
    assert only(found).code == "JX708"
    assert "pure_callback" in words.title(only(found))


def test_what_this_run_does_not_tell_is_reported_to_be_not_compared(making):
    found = held(making.read((x(), "aa", hlo(), mlir())), making.read((x(), "aa", None, None)))
    assert told(found) == [("JX901", NOTE)]
    assert "collectives of step" in words.title(only(found)) and "fusions of step" in words.title(only(found))


def test_what_the_baseline_does_not_tell_is_not_requested(making):
    found = held(making.read((x(), "aa", None, None)), making.read((x(), "aa", hlo([(64, 1)]), mlir())))
    assert found.findings == []


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"jax": "0.10.2"}, "JAX 0.12, this run 0.10"),
        ({"devices": 4}, "devices 8 x cpu, this run 4 x cpu"),
    ],
)
def test_another_environment_is_not_compared_and_that_is_reported(making, other, said):
    before = making.read((x(), "aa", hlo([(64, 1)]), None))
    after = making.read((x(), "bb", hlo([(64, 1), (64, 1)]), None), (x(7), "cc", None, None), **other)
    found = held(before, after)
    assert told(found) == [("JX712", NOTE)] and said in words.title(only(found))


def test_another_patch_release_of_jax_is_compared(making):
    before = making.read((x(), "aa", None, None), jax="0.12.0.1")
    assert held(before, making.read((x(), "aa", None, None), jax="0.12.3")).findings == []


def finding(code="JX302", path=None, severity=NOTE, n=1):
    return [
        Finding(code, severity, CERTAIN, f"{code} number {i}", "step@?", Frame(f"{CWD}/train.py", 31 + i, "step"), path=path)
        for i in range(n)
    ]  # fmt: skip


def test_findings_the_baseline_knows_are_known_and_one_more_is_new_and_fails(making):
    before = making.read((x(), "aa", None, None), findings=finding(path="x[0]"))
    found = held(before, making.read((x(), "aa", None, None), findings=finding(path="x[1]", n=2)))
    assert [(words.title(f), f.severity) for f in found.new] == [("JX302 number 1", WARNING)]
    other = held(before, making.read((x(), "aa", None, None), findings=finding(path="y")))
    assert [f.path for f in other.new] == ["y"]
    assert told(other) == [("JX711", NOTE)]  # that of x is gone


def test_findings_the_baseline_knows_stay_known_in_another_environment(making):
    before = making.read((x(), "aa", None, None), findings=finding())
    found = held(before, making.read((x(), "aa", None, None), findings=finding(n=2), devices=4))
    assert [words.title(f) for f in found.new] == ["JX302 number 1"]
    assert [f.severity for f in found.new] == [NOTE]


def test_the_rules_own_word_on_a_recompile_is_merged_into_the_comparisons(making):
    def read(*compilations):
        run = making.run(*compilations)
        return extract.extract(run, registry.findings(run))

    found = held(read((x(8), "aa", None, None)), read((x(8), "aa", None, None), (x(7), "bb", None, None)))
    assert [f.code for f in found.new] == ["JX101"]
    (f,) = comparison.merged([*found.findings, *found.new])
    assert f.code == "JX701"
    assert "pad" in words.fix_text(f) and "--update-baseline" in words.fix_text(f)


def test_an_operation_outside_jit_is_reported_by_the_function_that_calls_it(making):
    add = function("add", None, None, eager=True, form="primitive")
    base = (x(), "aa", None, None)
    found = held(making.read(base), making.read(base, add, (x(), None, None, None), (x(9), None, None, None)))
    f = only(found)
    assert f.code == "JX701"
    assert words.title(f) == "main compiles operations outside jit: add 2x (0x in the baseline)"
    assert f.source.line == 140
    assert told(held(making.read(base, add, (x(), None, None, None)), making.read(base))) == [("JX711", NOTE)]


def test_of_many_operations_outside_jit_the_title_names_three(making):
    ops = [
        function(name, None, None, eager=True, form="primitive")
        for name in ("add", "mul", "sub", "exp", "log")
    ]
    again = [part for op in ops for part in (op, (x(), None, None, None))]
    extra = [(x(9), None, None, None)]
    found = held(making.read((x(), "aa", None, None)), making.read((x(), "aa", None, None), *again, *extra))
    f = only(found)
    assert words.title(f) == (
        "main compiles operations outside jit: log 2x (0x in the baseline), add 1x (0x in the baseline), "
        "mul 1x (0x in the baseline) and 2 more operations"
    )
    assert len(f.evidence) == 5


def test_a_cause_of_any_length_does_not_make_a_title_of_any_length(making):
    def called(n):
        return key(leaf("batch" + "['images']" * 500, n))

    base = (called(1), "aa", None, None)
    found = held(making.read(base), making.read(base, (called(2), "bb", None, None)))
    (f,) = [f for f in found.findings if f.code == "JX701"]
    assert len(words.title(f)) < 500


def test_two_programs_of_one_function_are_compared_by_their_arguments(making):
    before = making.read((x(8), "aa", hlo([(64, 1)]), None), (x(7), "bb", hlo(), None))
    after = making.read((x(7), "bb", hlo(), None), (x(8), "aa", hlo([(64, 1)]), None))
    assert [f for f in held(before, after).findings if f.code != "JX711" and f.code != "JX701"] == []


def moved(count, steps=6, via="float", line=90):
    site = Frame(f"{CWD}/train.py", line, "main")
    return [
        ev.Step(index=steps),
        ev.Transferred(
            direction="device_to_host", via=via, site=site, text="float(loss)", count=count, steps=count
        ),
    ]


def with_transfers(making, *say, **more):
    return making.read((x(), "aa", None, None), say=say, transfers=True, **more)


def test_a_float_in_each_step_is_reported_with_the_line_and_the_expression(making):
    found = held(with_transfers(making, *moved(1)), with_transfers(making, *moved(6)))
    f = only(found)
    assert (f.code, f.severity, f.source.line) == ("JX714", ERROR, 90)
    assert (
        words.title(f)
        == "main moves data with float (device to host) 6x in 6 steps, 1x in the baseline: float(loss)"
    )


def test_as_many_transfers_in_as_many_more_steps_are_the_same(making):
    each = with_transfers(making, *moved(6, steps=6))
    assert held(each, with_transfers(making, *moved(60, steps=60))).findings == []
    assert held(each, with_transfers(making, *moved(3, steps=3))).findings == []
    once = with_transfers(making, *moved(1, steps=6))
    assert held(once, with_transfers(making, *moved(1, steps=3))).findings == []
    assert [f.code for f in held(once, with_transfers(making, *moved(60, steps=60))).findings] == ["JX714"]


def test_fewer_transfers_are_good_news_and_uncounted_ones_are_not_known(making):
    each = with_transfers(making, *moved(6))
    assert told(held(each, with_transfers(making, *moved(1)))) == [("JX711", NOTE)]
    uncounted = making.read((x(), "aa", None, None))
    assert told(held(each, uncounted)) == [("JX901", NOTE)]
    assert held(uncounted, each).findings == []


def test_a_watched_function_that_is_never_compiled_is_no_entry(making):
    read = making.read(
        (x(), "aa", None, None), function("plain", line=3), say=[ev.Watched(function="plain@?:3")]
    )
    assert set(read.baseline.functions) == {"train.py::step"}
