"""A problem of the program that ran and of the same program for targets is one finding that names both."""

import pytest
from target_runs import EVAL, STEP, Aimed, text

from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import merging, registry

CPU, TPU = "tf6_scan_fsdp_remat__cpu_jax0102", "tf6_scan_fsdp_remat__tpuv5e_jax0102"


def texts(name):
    return {stage: text(name, stage) for stage in ("hlo", "stablehlo")}


def on_both(a, target, program="7a67", of="c0de", here=CPU, there=TPU, seen=STEP):
    call = a.called(seen, program=of, texts=None if here is None else texts(here))
    a.lowered(call, target, program, of, text(there, "stablehlo"))
    a.made(target, program, hlo=text(there, "hlo"))


@pytest.fixture
def aimed(tmp_path):
    return lambda *targets, at="run": Aimed(tmp_path / at, *targets)


def inserted(run, further=()):
    found = merging.findings(load(run), [load(r) for r in further])
    return [f for f in found if f.code == "JX401"]


def test_one_finding_names_the_target_and_has_its_figures_as_evidence(aimed):
    alone = aimed("v5e:4x4", at="alone")
    alone.called(texts=texts(CPU))
    expected = inserted(alone.end())
    a = aimed("v5e:4x4")
    on_both(a, "v5e:4x4")
    found = inserted(a.end())
    here = [f for f in found if "(for v5e:4x4)" not in words.title(f)]
    assert len(here) == len(expected) > 0
    assert {f.identity for f in here} == {f.identity for f in expected}
    both = [f for f in here if f.contexts.targets == ["v5e:4x4"]]
    assert both and all(words.title(f).endswith(") (also for v5e:4x4)") for f in both)
    first = both[0]
    mine, theirs = first.evidence
    assert (mine.program, theirs.program) == ("c0de", "7a67")
    # The CPU gathers float32, the TPU bfloat16: one line, one finding, two figures.
    assert "384.0 KiB 6 times" in words.evidence(mine)
    assert words.evidence(theirs).startswith("for v5e:4x4: ") and "192.0 KiB 6 times" in words.evidence(
        theirs
    )


def test_what_only_the_targets_compiler_does_says_so(aimed):
    a = aimed("v5e:4x4")
    on_both(a, "v5e:4x4", here="zero_nested_loops__cpu_jax0102")
    found = inserted(a.end())
    assert found and all(words.title(f).endswith(") (for v5e:4x4)") for f in found)
    assert all(merging.of_target_alone(load(a.run), f) for f in found)


def test_what_only_the_compiler_of_the_stand_in_does_is_a_note(aimed):
    a = aimed("v5e:4x4")
    on_both(a, "v5e:4x4", there="zero_nested_loops__tpuv5e_jax0102")
    found = inserted(a.end())
    assert found and {f.severity for f in found} == {"note"} and not any(f.contexts.targets for f in found)
    assert words.evidence(found[0].evidence[-1]) == "not found in the programs compiled for v5e:4x4"
    waiting = aimed("v5e:4x4", at="waiting")
    waiting.lowered(waiting.called(texts=texts(CPU)), "v5e:4x4")
    assert {f.severity for f in inserted(waiting.end())} == {"warning"}  # nobody knows yet


def test_many_targets_are_counted_after_the_third(aimed):
    names = ["v5e:4x4", "v5p:2x2x4", "v6e:4x4", "v4:2x2x4"]
    a = aimed(*names)
    call = a.called(texts=texts(CPU))
    for n, name in enumerate(names):
        a.lowered(call, name, f"7a6{n}", stablehlo=text(TPU, "stablehlo"))
        a.made(name, f"7a6{n}", hlo=text(TPU, "hlo"))
    told = [f for f in inserted(a.end()) if "(also" in words.title(f)]
    assert told and all(
        words.title(f).endswith("(also for v4:2x2x4, v5e:4x4, v5p:2x2x4 and 1 more)") for f in told
    )
    assert all(len(f.evidence) == 5 for f in told)


def test_a_sub_run_adds_its_targets_to_what_was_reported_already(aimed):
    a, more = aimed("v5e:4x4"), aimed("v5e:2x4", at="more")
    on_both(a, "v5e:4x4")
    on_both(more, "v5e:2x4", "9a67")
    before, after = inserted(a.end()), inserted(a.run, [more.end()])
    assert len(after) == len(before)
    assert {tuple(f.contexts.targets) for f in after if f.contexts.targets} == {("v5e:4x4", "v5e:2x4")}
    assert inserted(a.run, [more.run]) == after  # the runs are only read


def test_what_a_sub_run_says_of_the_program_itself_is_not_said_again(aimed):
    a, more = aimed("v5e:4x4"), aimed("v5e:2x4", at="more")
    for one in (a, more):
        for size in (8, 16, 24):
            one.called(size=size)
    main = registry.findings(load(a.end()))
    assert main and merging.findings(load(a.run), [load(more.end())]) == main


def test_a_function_that_was_lowered_for_a_target_only_is_looked_at_all_the_same(aimed):
    a = aimed("v5e:4x4")
    call = a.log.missed(EVAL, None)
    donor = 'module @jit_f {\n  func.func public @main(%arg0: tensor<1024x1024xbf16>) -> (tensor<1024x1024xf32>) {\n    %0 = stablehlo.convert %arg0 : (tensor<1024x1024xbf16>) -> tensor<1024x1024xf32> loc(#l)\n    return %0 : tensor<1024x1024xf32>\n  }\n}\n#l = loc("/home/ann/work/train.py":7:3)\n'
    a.lowered(call, "v5e:4x4", of=None, stablehlo=donor)
    found = [f for f in registry.findings(load(a.end())) if f.code == "JX302"]
    assert [f.evidence[0].program for f in found] == ["7a67"] and found[0].contexts.targets == []
