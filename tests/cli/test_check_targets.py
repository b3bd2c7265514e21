"""``jaxscope check`` of programs for targets, on a machine without any of their devices."""

import json

import pytest
from handwritten_runs import exited
from target_runs import GIB, Aimed

from jaxscope import cli
from jaxscope.cli import config
from jaxscope.errors import UsageError
from jaxscope.log import store

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def aimed(home):
    """train_step takes 3 GiB of a v5e; on eight of them it does not fit."""
    a = Aimed(home / "train-1", "v5e:4x4")
    a.lowered(a.called(), "v5e:4x4")
    a.made("v5e:4x4")
    other = Aimed(store.sub_run(a.run, 8), "v5e:2x4")
    other.full("v5e:2x4")
    for one in (other, a):
        one.log.end()
    exited(a.run)
    return a


def test_what_does_not_fit_fails_without_being_requested_also_in_a_sub_run(check, aimed):
    code, out, _ = check()
    assert code == 1 and "JX801" in out
    assert (
        "does not fit into v5e:2x4: it needs 20.3 GiB of temporaries, 4.6 GiB more than the 15.8 GiB of one v5e chip"
        in out
    )
    assert check("--ignore", "JX801")[0] == 0
    assert check("--no-recompiles-after", "0", "--ignore", "JX190")[0] == 1  # whatever else is asked


def test_only_the_target_that_is_requested_is_looked_at(check, aimed):
    assert check("--target", "v5e:4x4") == (0, "", "no findings")
    assert check("--target", "v5e:2x4")[0] == 1
    assert check("--target", "v5e:2x4", "--target", "v5e:4x4")[0] == 1


def test_limits_of_pyproject_hold_for_the_target(check, aimed, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.jaxscope.check]\ntarget = ["v5e:4x4"]\nmax-peak-bytes = "2 GiB"\nmax-compilations = 1\n'
    )
    code, out, _ = check()
    assert code == 1 and "JX591 train_step#1 for v5e:4x4 uses 3.0 GiB at its peak" in out
    assert out.count("JX591") == 1  # not of the CPU that stood in
    with (tmp_path / "pyproject.toml").open("a") as f:
        f.write('\n[tool.jaxscope.check.targets."v5e:4x4"]\nmax-peak-bytes = "4 GiB"\n')
    assert check() == (0, "", "no findings")
    found = json.loads(check("--target", "v5e:2x4", "--output-format", "json")[1])["findings"]
    assert {(f["code"], *f["targets"]) for f in found} == {("JX591", "v5e:2x4"), ("JX801", "v5e:2x4")}


def test_a_table_of_a_target_that_no_run_has_is_a_note_and_a_table_of_no_target_an_error(
    check, aimed, tmp_path
):
    table = '[tool.jaxscope.check.targets."{}"]\nmax-peak-bytes = "4 GiB"\n'
    (tmp_path / "pyproject.toml").write_text(table.format("v5p:2x2x4"))
    code, out, _ = check("--ignore", "JX801")
    assert code == 0 and "limits are set for v5p:2x2x4, but the run was not compiled for it" in out
    assert check("--ignore", "JX801", "--strict")[0] == 1
    (tmp_path / "pyproject.toml").write_text(table.format("v5z:4"))
    code, _, err = check()
    assert code == 2 and '[tool.jaxscope.check.targets."v5z:4"]' in err and "did you mean" in err


def test_a_run_that_was_not_compiled_for_it_is_an_error_with_the_command(check, aimed):
    code, out, err = check("--target", "v5e:16x16")
    assert (code, out) == (2, "")
    assert "the run was not compiled for v5e:16x16, but for v5e:" in err
    assert "jaxscope run --target v5e:16x16 --wait-targets train.py --epochs 3" in err
    code, _, err = check("--target", "v5e-256")
    assert code == 2 and "did you mean v5e:16x16" in err


def test_what_still_waits_is_not_known_and_fails_where_checks_are_strict(check, home):
    a = Aimed(home / "train-2", "v5e:4x4")
    a.lowered(a.called(), "v5e:4x4")
    a.log.end()
    exited(a.run)
    code, out, _ = check("--target", "v5e:4x4")
    assert code == 0 and "JX901" in out and "still waiting for the compiler" in out
    assert check("--target", "v5e:4x4", "--strict")[0] == 1


def test_a_recompile_that_is_too_late_is_not_reported_by_its_rule_once_more(check, home, tmp_path):
    a = Aimed(home / "train-3", "v5e:4x4")
    for n, size in enumerate((8, 16, 24), 1):
        a.called(size=size, program=f"c{n}")
    a.log.end()
    exited(a.run)
    code, out, _ = check("--no-recompiles-after", "0", "--select", "JX1")
    assert code == 1 and "JX190" in out and "JX101" not in out
    assert "JX101" in check("--select", "JX1")[1]
    assert "JX101" in check("--no-recompiles-after", "0", "--select", "JX1", "--ignore", "JX190")[1]


def test_the_report_has_what_does_not_fit_of_a_sub_run_among_what_to_change(aimed, capsys):
    assert cli.command(["report", "train-1"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "✖ JX801 train_step does not fit into v5e:2x4: it needs 20.3 GiB of temporaries" in page


def test_targets_are_written_into_a_spec_too():
    found = config.check_spec("target=v5e:4x4,target=2*v5e:4x4,max-peak-bytes=8 GiB,select=JX5,select=JX8")
    assert found == {
        "target": ["v5e:4x4", "2*v5e:4x4"],
        "max-peak-bytes": 8 * GIB,
        "select": ["JX5", "JX8"],
    }
    with pytest.raises(UsageError):
        config.check_spec("targets.v5e=3")
