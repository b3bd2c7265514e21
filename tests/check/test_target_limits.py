"""Limits on programs for targets, on runs written by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from target_runs import EVAL, GIB, STEP, Aimed

from jaxscope.check import limits, target_limits
from jaxscope.check.limits import Limits
from jaxscope.errors import UsageError
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.schema.findings import NOTE

HLO = """HloModule jit_train_step, is_scheduled=true, num_partitions=4

ENTRY %main (p: f32[2]) -> f32[8] {
  %p = f32[2]{0} parameter(0)
  ROOT %g = f32[8]{0} all-gather(%p), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true, metadata={op_name="jit(train_step)/jit(main)/gather" source_file="/home/ann/work/train.py" source_line=91}
}
"""


@pytest.fixture
def run(tmp_path):
    """train_step on v5e:4x4 takes 3 GiB at its peak and gathers once."""
    a = Aimed(tmp_path / "run", "v5e:4x4", "v6e:4x4")
    call = a.called()
    a.lowered(call, "v5e:4x4", "7a67")
    a.made("v5e:4x4", "7a67", hlo=HLO)
    a.lowered(call, "v6e:4x4", "7a68")
    a.made("v6e:4x4", "7a68", peak=4 * GIB)
    return a


def held(a, names=(), allowed=Limits(), functions=None, tables=None, further=()):  # noqa: B008
    runs = [load(a.run), *(load(o.run) for o in further)]
    aim = target_limits.aim(runs, names, tables or {})
    return [(f.code, words.title(f)) for f in target_limits.findings(aim, allowed, functions or {})]


def test_limits_of_programs_hold_for_those_of_the_target_that_is_requested(run):
    allowed = Limits(peak_bytes=2 * GIB, temp_bytes=2 * GIB, collectives={"*": 0}, compilations=0)
    found = held(run, ["V5E:4x4"], allowed)
    assert [code for code, _ in found] == ["JX591", "JX491"]
    assert found[0][1] == (
        "train_step#1 for v5e:4x4 uses 3.0 GiB at its peak per device, 2.0 GiB allowed "
        "(temporaries 2.0 GiB, arguments 1.0 GiB, the largest state.params['dense'] 16.0 MiB, x 16.0 KiB)"
    )
    assert found[1][1].startswith("train_step#1 for v5e:4x4 has 1 collectives, 0 allowed")
    assert held(run, ["v5e:4x4"], Limits(peak_bytes=3 * GIB, collectives={"*": 1})) == []
    assert [t.partition(" uses")[0] for _, t in held(run, ["v5e:4x4", "v6e:4x4"], Limits(peak_bytes=1))] == [
        "train_step#1 for v5e:4x4",
        "train_step#1 for v6e:4x4",
    ]


@pytest.mark.parametrize(
    ("peak", "said"),
    [
        (3 * GIB, "arguments 1.0 GiB, the largest"),
        (
            4 * GIB,
            "arguments 1.0 GiB, and 1.0 GiB that the compiler adds, such as constants, the largest",
        ),
        (2 * GIB, "arguments 1.0 GiB, not all at the same time, the largest"),
    ],
)
def test_what_the_compilers_own_peak_has_beside_its_parts_is_reported(tmp_path, peak, said):
    a = Aimed(tmp_path / "run", "v5e:4x4")
    a.lowered(a.called(), "v5e:4x4", "7a67")
    a.made("v5e:4x4", "7a67", peak=peak)
    ((_, title),) = held(a, ["v5e:4x4"], Limits(peak_bytes=GIB))
    assert said in title


def test_the_tables_of_a_target_and_of_a_function_take_the_place_of_the_general_limit(run):
    tight, wide = Limits(peak_bytes=GIB), Limits(peak_bytes=8 * GIB)
    assert held(run, ["v5e:4x4"], tight, tables={"v5e:4x4": wide}) == []
    assert len(held(run, ["v5e:4x4"], wide, tables={"v5e:*": tight})) == 1
    assert held(run, ["v5e:4x4"], tight, functions={"train_*": wide}) == []
    assert (
        len(held(run, ["v5e:4x4"], wide, {"train_*": wide}, {"v?e:*": tight})) == 1
    )  # each special one holds


def test_a_table_alone_holds_for_what_was_recorded_and_leaves_the_rest_alone(run):
    table = {"v6e:4x4": Limits(peak_bytes=3 * GIB)}
    ((code, title),) = held(run, allowed=Limits(peak_bytes=1), tables=table)
    assert code == "JX591" and title.startswith("train_step#1 for v6e:4x4 uses 4.0 GiB")
    assert held(run, ["v5e:4x4"], tables=table) == []  # another was asked for


def test_a_table_for_a_target_that_was_not_recorded_is_reported_where_it_is_no_pattern(run):
    tables = {"v5p:2x2x4": Limits(peak_bytes=1), "tpu7x:*": Limits(peak_bytes=1)}
    assert held(run, tables=tables) == [
        ("JX901", "limits are set for v5p:2x2x4, but the run was not compiled for it")
    ]
    assert held(run, ["v5e:4x4"], tables=tables) == []


def test_the_star_of_two_slices_is_no_pattern(tmp_path):
    a = Aimed(tmp_path / "run", "2*v5e:4x4")
    a.lowered(a.called(), "2*v5e:4x4")
    a.made("2*v5e:4x4")
    assert (
        target_limits.single_target("2*v5e:4x4") == "2*v5e:4x4"
        and target_limits.single_target("2*v5e:*") is None
    )
    assert len(held(a, tables={"2*V5E:4x4": Limits(peak_bytes=1)})) == 1


def test_a_target_that_was_not_recorded_is_an_error_with_the_command_that_records_it(run):
    aim = target_limits.aim([load(run.run)], ["2*v5e:4x4", "v5e:4x4"], {})
    lacking = target_limits.not_recorded(aim, ["train.py"])
    assert lacking.message == "the run was not compiled for 2*v5e:4x4, but for v5e:4x4, v6e:4x4"
    assert lacking.hint == "record it: jaxscope run --target '2*v5e:4x4' --wait-targets train.py"
    assert (
        target_limits.not_recorded(target_limits.aim([load(run.run)], ["v5e:4x4"], {}), ["train.py"]) is None
    )


@pytest.mark.parametrize("names, tables", [(["v5z:4x4"], {}), ([], {"v5z:4x4": Limits()})])
def test_a_name_that_is_no_target_is_an_error_with_the_nearest(run, names, tables):
    with pytest.raises(UsageError) as caught:
        held(run, names, tables=tables)
    assert "v5z:4x4" in caught.value.message and "did you mean v5" in caught.value.hint


@pytest.mark.parametrize(
    ("outcome", "error", "said"),
    [
        (None, None, "still waiting for the compiler (jaxscope run --wait-targets waits)"),
        ("crashed", "died of SIGSEGV", "not compiled (crashed): died of SIGSEGV"),
        ("late", None, "not compiled (late): no reason was given"),
        ("failed", "INTERNAL:\n  x", "not compiled (failed): INTERNAL: x"),
    ],
)
def test_a_program_that_was_not_compiled_is_not_known(tmp_path, outcome, error, said):
    a = Aimed(tmp_path / "run", "v5e:4x4")
    a.lowered(a.called(), "v5e:4x4")
    if outcome is not None:
        a.made("v5e:4x4", outcome=outcome, error=error)
    ((code, title),) = held(a, ["v5e:4x4"], Limits(peak_bytes=1, collectives={"*": 0}))
    assert code == "JX901" and title.startswith("train_step#1 for v5e:4x4 is unknown: it ")
    assert title.endswith(said)


def test_one_that_was_not_lowered_and_one_that_nobody_lowered_are_not_known(tmp_path):
    a = Aimed(tmp_path / "run", "v5e:4x4")
    a.lowered(a.called(), "v5e:4x4", skipped="it runs on 32 devices, v5e:4x4 has 16")
    a.called(EVAL, program="e0e0")
    found = target_limits.findings(target_limits.aim([load(a.run)], ["v5e:4x4"], {}), Limits(), {})
    assert [words.title(f) for f in found] == [
        "train_step#1 for v5e:4x4 is unknown: it was not lowered: it runs on 32 devices, v5e:4x4 has 16",
        "eval_step was compiled, but not for v5e:4x4",
    ]
    assert {f.severity for f in found} == {NOTE} and found[0].function == STEP.function


def test_of_one_that_does_not_fit_the_size_is_known_and_its_collectives_are_not(tmp_path):
    a = Aimed(tmp_path / "run", "v5e:4x4")
    a.full()
    found = held(a, ["v5e:4x4"], Limits(peak_bytes=GIB, temp_bytes=GIB, collectives={"*": 0}))
    assert [code for code, _ in found] == ["JX901", "JX591", "JX591"]
    assert (
        found[0][1]
        == "train_step#1 for v5e:4x4: its collectives are unknown, because the program does not fit into the target"
    )
    assert "uses 20.3 GiB of temporaries per device, 1.0 GiB allowed" in found[1][1]


def test_a_target_of_another_size_is_looked_for_in_the_sub_run(run, tmp_path):
    other = Aimed(tmp_path / "other", "v5e:2x4")
    other.lowered(other.called(), "v5e:2x4")
    other.made("v5e:2x4", peak=9 * GIB)
    ((_, title),) = held(run, ["v5e:2x4"], Limits(peak_bytes=8 * GIB), further=[other])
    assert title.startswith("train_step#1 for v5e:2x4 uses 9.0 GiB")


def test_what_does_not_fit_is_reported_whatever_is_requested_and_of_the_target_that_is(tmp_path):
    a = Aimed(tmp_path / "run", "v5e:4x4", "v6e:4x4")
    a.full()
    a.full("v6e:4x4", "7a68", "c0df", EVAL)
    runs = [load(a.run)]
    for names, expected in (([], {"v5e:4x4", "v6e:4x4"}), (["v6e:4x4"], {"v6e:4x4"})):
        for rules in (False, True):
            found = target_limits.of_rules(
                target_limits.aim(runs, names, {}), _rules(runs[0]) if rules else [], rules=rules
            )
            assert {t for f in found if f.code == "JX801" for t in f.contexts.targets} == expected


def _rules(run):
    from jaxscope.rules import registry

    return registry.findings(run)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"v5e:4x4": {"max-compilations": 3}}, "limits a run, not a program"),
        ({"v5e:4x4": {"max-peak": "1 GiB"}}, "did you mean max-peak-bytes?"),
        ({"v5e:4x4": 3}, ""),
        (3, '[tool.jaxscope.check.targets."v5e:16x16"]'),
    ],
)
def test_a_table_that_cannot_be_is_an_error_that_says_what_can(table, said):
    with pytest.raises(UsageError) as caught:
        limits.targets(table, "pyproject.toml")
    assert said in (caught.value.hint or "")


@given(st.text(max_size=30))
def test_any_text_is_a_target_a_pattern_or_an_error(text):
    try:
        one = target_limits.single_target(text)
    except UsageError as e:
        assert e.hint
        return
    assert one is None or target_limits.single_target(one) == one
