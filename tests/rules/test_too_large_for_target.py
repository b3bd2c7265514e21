"""Programs that do not fit into a target: figures, the largest buffers and the fix; no compiler needed."""

import pytest
from target_runs import EARLY, GIB, STEP, Aimed

from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.report.json_report import as_json
from jaxscope.rules import merging, registry
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Memory

LATE = """RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 63.80G of 30.75G hbm. Exceeded hbm capacity by 33.05G.

Total hbm usage >= 65.05G:
    reserved          1.25G
    program          63.80G
    arguments            0B

  Largest program allocations in hbm:

  1. Size: 2.00G
     Operator: op_name="jit(train_step)/jit(main)/dot_general" source_file="/home/ann/attention.py" source_line=1059
     Shape: f32[32,4096,4096]{1,2,0:T(8,128)}
     Unpadded size: 2.00G
     Allocation type: HLO temp
"""


@pytest.fixture
def aimed(tmp_path):
    return lambda *targets: Aimed(tmp_path / "run", *(targets or ("v5e:4x4",)))


def found(run, code="JX801"):
    return [f for f in registry.findings(load(run)) if f.code == code]


def test_it_is_an_error_with_the_compilers_figures_and_the_largest_by_tree_path(aimed):
    a = aimed()
    a.full()
    (f,) = found(a.end())
    assert words.title(f) == (
        "train_step does not fit into v5e:4x4: it needs 20.3 GiB of temporaries, 4.6 GiB more than the 15.8 GiB "
        "of one v5e chip"
    )
    assert (f.severity, f.certainty, f.contexts.targets, f.function) == (
        "error",
        "certain",
        ["v5e:4x4"],
        STEP.function,
    )
    assert [words.evidence(e) for e in f.evidence[1:]] == [
        "argument state.params['dense']: 1.0 GiB on each device",
        "argument x: 16.0 KiB on each device",
        "a result: 16.0 KiB on each device",
    ]
    assert {e.program for e in f.evidence} == {"7a67"} and f.source.line == 140
    assert "jax.lax.map" in words.fix_text(f) and "jax.checkpoint" in words.fix_text(f)


def test_the_buffers_that_the_compiler_names_come_with_their_lines(aimed):
    a = aimed("v4:2x2x4")
    a.full("v4:2x2x4", error=LATE)
    (f,) = found(a.end())
    assert (
        words.title(f)
        == "train_step does not fit into v4:2x2x4: it needs 63.8 GiB (program 63.8 GiB), 33.0 GiB more than the 30.8 "
        "GiB of one v4 chip"
    )
    buffer = f.evidence[1]
    assert (
        words.evidence(buffer)
        == "2.0 GiB HLO temp: f32[32,4096,4096]{1,2,0:T(8,128)} jit(train_step)/jit(main)/dot_general"
    )
    assert (buffer.source.file, buffer.source.line) == ("/home/ann/attention.py", 1059)


VALUES = """module @jit_train_step attributes {mhlo.num_partitions = %d : i32} {
  func.func public @main(%%arg0: tensor<2097152x512xf32>, %%arg1: tensor<512x2048xf32>) -> (tensor<512xf32>) {
    %%0 = stablehlo.dot_general %%arg0, %%arg1, contracting_dims = [1] x [0] : (tensor<2097152x512xf32>, tensor<512x2048xf32>) -> tensor<2097152x2048xf32> loc(#loc2)
    %%1 = stablehlo.sine %%0 : tensor<2097152x2048xf32> loc(#loc2)
    %%2 = stablehlo.slice %%1 [0:1, 0:512] : (tensor<2097152x2048xf32>) -> tensor<512xf32> loc(#loc2)
    return %%2 : tensor<512xf32>
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc1 = loc("/home/ann/train.py":12:8)
#loc2 = loc("jit(train_step)/dot_general"(#loc1))
"""


@pytest.mark.parametrize(("devices", "kind"), [(1, "value"), (8, "value on all devices")])
def test_where_the_compiler_names_no_buffer_the_largest_values_of_the_program_are_named(aimed, devices, kind):
    a = aimed()
    a.lowered(a.called(), "v5e:4x4", stablehlo=VALUES % devices)
    a.made("v5e:4x4", outcome="exhausted", error=EARLY)
    run = a.end()
    (f,) = found(run)
    value = f.evidence[1]
    assert words.evidence(value) == f"16.0 GiB {kind}: f32[2097152,2048] dot_general"
    assert (value.source.file, value.source.line) == ("/home/ann/train.py", 12)
    (program,) = [p for p in as_json(load(run), run)["programs"] if p["target"] == "v5e:4x4"]
    (named,) = program["memory"]["largest"]
    assert (named["bytes"], named["kind"], named["source"]["line"]) == (16 * GIB, kind, 12)


def test_a_compiler_that_takes_it_all_the_same_is_held_to_the_cards_memory(aimed):
    a = aimed("h100:8")
    a.lowered(a.called(), "h100:8")
    a.made("h100:8", temp=90 * GIB, peak=91 * GIB)
    (f,) = found(a.end())
    assert (
        "it needs 91.0 GiB (temporaries 90.0 GiB), 11.9 GiB more than the 79.1 GiB of one h100 GPU"
        in words.title(f)
        and f.certainty == "certain"
    )


def test_what_fits_is_no_finding_and_neither_is_what_is_unknown(aimed):
    a = aimed()
    call = a.called()
    for program, outcome in (("a1", "ok"), ("a2", "failed"), ("a3", "crashed"), ("a4", "late")):
        a.lowered(call, "v5e:4x4", program)
        a.made("v5e:4x4", program, outcome, error="INTERNAL: no")
    a.lowered(call, "v5e:4x4", "a5")  # waits
    assert found(a.end()) == []


def test_a_message_without_figures_is_reported_without_figures(aimed):
    a = aimed()
    a.full(error="RESOURCE_EXHAUSTED: no luck today")
    (f,) = found(a.end())
    assert words.title(f).endswith(
        "does not fit into the memory of v5e:4x4 (one v5e chip has 15.8 GiB): the compiler found no room for its arrays"
    )


def test_figures_that_do_not_exceed_the_memory_are_not_subtracted(aimed):
    a = aimed()
    a.full(error="RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 15.75G of 15.75G hbm.")
    (f,) = found(a.end())
    assert words.title(f).endswith("(one v5e chip has 15.8 GiB): the compiler found no room for its arrays")


def test_another_memory_than_hbm_is_named(aimed):
    a = aimed()
    a.full(error="RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem. Used 20.50M of 16.00M vmem.")
    (f,) = found(a.end())
    assert "it needs 20.5 MiB, 4.5 MiB more than the 16.0 MiB of vmem of one v5e chip" in words.title(
        f
    ) and "blocks" in words.fix_text(f)


# As libtpu 0.0.42.1 said it of a Pallas kernel for a v5e, with other sizes.
SCOPED = (
    "RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom:\nRan out of memory in memory space vmem while allocating on"
    " stack for %{what}. Scoped allocation with size 31.07M and limit 16.00M exceeded scoped vmem limit by 15.07M. It"
    " should not be possible to run out of scoped vmem - \nSee https://openxla.org/xla/errors/error_1001 for more details."
)


@pytest.mark.parametrize(
    ("what", "named", "advice"),
    [
        (
            "reduce-window.1 = u32[16,8,128]{2,1,0:T(8,128)S(1)} reduce-window(%bitcast.2726), window={size=1x1x128}",
            "reduce-window.1",
            "compiler_options={'xla_tpu_scoped_vmem_limit_kib': '31816'}",
        ),
        (
            'attend.1 = f32[2048,4096]{1,0:T(8,128)} custom-call(%x.1), custom_call_target="tpu_custom_call",'
            " operand_layout_constraints={f32[2048,4096]{1,0}}, frontend_attributes={kernel_metadata={}},"
            ' metadata={op_name="jit(train_step)/pallas_call" stack_frame_id=2}',
            "jit(train_step)/pallas_call",
            "vmem_limit_bytes in its pltpu.CompilerParams",
        ),
    ],
)
def test_an_operation_beyond_the_compilers_own_limit_is_named_with_the_flag(aimed, what, named, advice):
    a = aimed()
    a.full(error=SCOPED.replace("{what}", what))
    (f,) = found(a.end())
    assert words.title(f) == (
        f"train_step does not compile for v5e:4x4: {named} needs 31.1 MiB of vmem at once, and the compiler's limit for"
        " one operation is 16.0 MiB"
    )
    assert advice in words.fix_text(f) and "--xla_tpu_scoped_vmem_limit_kib=31816" in words.fix_text(f)


def test_arguments_that_fill_it_are_to_be_split(aimed, tmp_path):
    a = aimed()
    call = a.called(size=1 << 20)
    large = "module @m attributes {mhlo.num_partitions = 1 : i32} {\n  func.func public @main(%arg0: tensor<1048576x4096xf32>, %arg1: tensor<64x64xf32>) -> (tensor<64x64xf32>) {\n    return %arg1 : tensor<64x64xf32>\n  }\n}\n"
    a.lowered(call, "v5e:4x4", stablehlo=large)
    a.made("v5e:4x4", outcome="exhausted", error=EARLY)
    (f,) = found(a.end())
    assert words.fix_text(f).startswith(
        "shard state.params['dense'] over the mesh (PartitionSpec)"
    ) and "donate" in words.fix_text(f)


def test_of_one_function_the_worst_program_is_reported_and_how_many_more(aimed):
    a = aimed()
    for n, gib in enumerate(("18.00", "30.00", "19.00")):
        a.full(program=f"a{n}", of=f"c{n}", error=EARLY.replace("20.31", gib))
    (f,) = found(a.end())
    assert "30.0 GiB of temporaries" in words.title(f) and words.title(f).endswith(
        "(2 more of its programs do not fit either)"
    )


def test_each_target_has_figures_of_its_own(aimed):
    a = aimed("v5e:4x4", "v5p:2x2x4")
    a.full()
    a.full("v5p:2x2x4", "7a68", "c0df", error=EARLY.replace("20.31", "120.00").replace("15.75", "95.73"))
    assert sorted(f.contexts.targets for f in found(a.end())) == [["v5e:4x4"], ["v5p:2x2x4"]]


def test_findings_of_two_runs_for_two_targets_are_not_merged(tmp_path):
    several = []
    for target in ("v5e:4x4", "v5e:2x4"):
        a = Aimed(tmp_path / target.replace(":", "-"), target)
        a.full(target)
        several.append(found(a.end()))
    joined = merging.joined(several[0], several[1:])
    assert [f.contexts.targets for f in joined] == [["v5e:4x4"], ["v5e:2x4"]]


def test_the_stand_in_is_not_reported_as_too_small_for_what_is_meant_for_another_machine(aimed):
    a = aimed()
    a.log.say(ev.ArraysSeen(host_limit=1024))
    a.log.call += 1
    ahead = a.log.missed(STEP, None, entry="compile")
    a.log.phase(
        ahead, "lower", 0.1, program="c0de", module="jit_train_step", num_partitions=1, platforms=["cpu"]
    )
    memory = Memory(1 << 40, 0, 0, 0, 0)
    a.log.phase(ahead, "compile", 1.0, program="c0de", devices="0", memory=memory)
    run = a.run
    assert [f.code for f in registry.findings(load(run)) if f.code == "JX510"] == ["JX510"]
    a.lowered(ahead, "v5e:4x4")
    assert found(run, "JX510") != []  # nobody knows yet how it fits where it belongs
    a.made("v5e:4x4", outcome="exhausted", error=EARLY)
    assert found(run, "JX510") == [] and len(found(run)) == 1


def test_it_is_among_the_findings_of_the_json(aimed):
    a = aimed()
    a.full()
    run = a.end()
    (entry,) = [f for f in as_json(load(run), run)["findings"] if f["code"] == "JX801"]
    assert entry["targets"] == ["v5e:4x4"] and entry["evidence"][0]["program"] == "7a67"


def test_a_damaged_log_makes_no_error_of_it(aimed):
    a = aimed()
    a.made("v9x:1", "ffff", "exhausted", error="RESOURCE_EXHAUSTED: Used 9" + "9" * 400 + "G of 1G hbm")
    (f,) = found(a.end())
    assert words.title(f).startswith("a program does not fit into the memory of v9x:1")
