"""``jaxscope check`` and ``jaxscope run --check``: what holds, by exit code."""

import json
import subprocess
import sys
import textwrap

import handwritten_runs
import pytest

from jaxscope.cli import config
from jaxscope.errors import UsageError
from jaxscope.log import store
from jaxscope.log.store import RunDir

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.costly]


@pytest.fixture
def run(home) -> RunDir:
    return handwritten_runs.training(home / "train-1")


def test_what_holds_leaves_with_0_and_what_does_not_with_1(check, run):
    assert check("--no-recompiles-after", "400") == (0, "", "no findings")
    code, out, _ = check("--no-recompiles-after", "300")
    assert code == 1 and "JX190" in out
    assert (
        "in step 376, but nothing may compile after step 300: batch['ids'] changed from i32[32,512] to i32[32,511]"
        in out
    )
    assert "train.py:140" in out and "7.0 s" in out and "pad batch['ids'] to the larger size" in out
    assert check("--no-recompiles-after", "300", "--allow-cache-hits")[0] == 0


def test_a_selection_that_leaves_out_what_is_requested_is_an_error(check, run, tmp_path):
    code, _, err = check("--no-recompiles-after", "300", "--select", "JX4")
    assert code == 2 and "select excludes JX190, which reports it" in err and "--select JX190" in err
    assert check("--no-recompiles-after", "300", "--select", "JX1")[0] == 1
    assert check("--no-recompiles-after", "300", "--ignore", "JX190,JX1")[0] == 0  # on purpose
    (tmp_path / "pyproject.toml").write_text("[tool.jaxscope.check]\nmax-peak-bytes = 1\n")
    assert check("--select", "JX1")[0] == 2


def test_the_run_is_named_or_the_latest(check, run):
    for which in ("latest", "train-1", str(run.path)):
        assert check(which, "--no-recompiles-after", "1")[0] == 1
    code, _, err = check("no-such-run", "--no-recompiles-after", "1")
    assert code == 2 and "no run called 'no-such-run'" in err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--no-recompiles-after", "-1"], "the step must be 0, 1, 2"),
        (["--no-recompiles-after=-1"], "the step must be 0, 1, 2"),
        (["--no-recompiles-after", "two"], "0 allows no compilation;"),
        (["--no-recompiles-after"], "expected one argument"),
        (["--no-recompile-after", "2"], "did you mean --no-recompiles-after?"),
    ],
)
def test_wrong_usage_leaves_with_2_and_says_what_to_do(check, run, argv, said):
    code, out, err = check(*argv)
    assert (code, out) == (2, "") and said in err and "Traceback" not in err


def test_a_run_without_steps_leaves_with_2_and_says_how_they_are_given(check, home):
    log = handwritten_runs.Log(store.create(home / "plain-1"))
    step = handwritten_runs.function("update")
    log.say(step)
    log.compiled(step, handwritten_runs.key(handwritten_runs.leaf("x", 3)))
    log.end()
    code, _, err = check("plain-1", "--no-recompiles-after", "1")
    assert code == 2 and "jaxscope.step()" in err and "--step-function update" in err
    assert "not checked: no recompiles after step 1" in err
    assert check("plain-1", "--no-recompiles-after", "0")[0] == 1


@pytest.fixture
def plain(home):
    """A run of one function, compiled for three sizes, whose steps are not counted."""
    log = handwritten_runs.Log(store.create(home / "plain-1"))
    step = handwritten_runs.function("update")
    log.say(step)
    for n in (3, 4, 5):
        log.compiled(step, handwritten_runs.key(handwritten_runs.leaf("x", n)))
    log.end()


def test_what_cannot_be_checked_does_not_hide_what_can(check, plain, tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.jaxscope.check]\nmax-compilations = 2\n")
    code, out, err = check("--no-recompiles-after", "1", "--target", "v5e:2x2")
    assert code == 2 and "JX191 your functions were compiled 3 times, 2 allowed" in out
    assert (
        "not checked: the run was not compiled for v5e:2x2; no recompiles after step 1: nothing counted"
        in err
    )
    assert "jaxscope run --target v5e:2x2" in err and "jaxscope.step()" in err
    (tmp_path / "pyproject.toml").write_text("[tool.jaxscope.check]\nmax-compilations = 3\n")
    assert check("--no-recompiles-after", "1")[:2] == (2, "")


def test_where_nothing_else_is_requested_the_findings_of_the_run_are_reported_beside(check, plain):
    code, out, _ = check("--no-recompiles-after", "1")
    assert code == 2 and "JX101 update recompiled 2 times" in out


@pytest.mark.parametrize("how", ["json", "github", "sarif", "junit"])
def test_what_cannot_be_checked_is_in_what_machines_read(check, plain, how):
    code, out, _ = check("--no-recompiles-after", "1", "--output-format", how)
    assert (
        code == 2 and "JX901" in out and "not checked: no recompiles after step 1" in out and "JX101" in out
    )
    if how == "json":
        found = json.loads(out)
        assert found["failed"] is True and {
            f["severity"] for f in found["findings"] if f["code"] == "JX901"
        } == {"error"}


def test_without_anything_requested_the_findings_of_the_run_are_checked(check, run):
    code, out, _ = check()
    assert code == 1 and "JX101" in out and "JX190" not in out


def test_limits_come_from_pyproject_and_the_command_line_goes_before(check, run, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        textwrap.dedent("""
        [tool.jaxscope.check]
        no-recompiles-after = 400
        max-compilations = 100
        [tool.jaxscope.check.functions."train_*"]
        max-compilations = 3
        """)
    )
    code, out, _ = check()
    assert code == 1 and "train_step was compiled 4 times, 3 allowed" in out and "JX190" not in out
    assert "JX190" in check("--no-recompiles-after", "1")[1]


def test_a_pattern_that_means_no_function_fails(check, run, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.jaxscope.check.functions."trian_*"]\nmax-compilations = 3\n'
    )
    code, out, _ = check()
    assert code == 1 and "JX901" in out and "'trian_*'" in out


def test_a_run_that_ended_without_a_word_is_reported_to_have(check, home):
    log = handwritten_runs.Log(store.create(home / "killed-1"))
    step = handwritten_runs.function("update")
    log.say(step)
    log.compiled(step, handwritten_runs.key(handwritten_runs.leaf("x", 3)), step=1)
    code, out, _ = check("killed-1", "--no-recompiles-after", "1")
    assert code == 1 and "JX901" in out and "the log is incomplete" in out
    assert check("killed-1", "--no-recompiles-after", "1", "--strict")[0] == 1


@pytest.mark.parametrize(("repeats", "fails"), [(12, 0), (25, 1)])
def test_a_note_that_seconds_decide_about_does_not_fail_even_a_strict_check(check, home, repeats, fails):
    log = handwritten_runs.Log(store.create(home / "eager-1"))
    add = handwritten_runs.function("add", None, None, eager=True, form="primitive")
    log.say(add)
    for n in range(repeats):
        log.compiled(add, handwritten_runs.key(handwritten_runs.leaf("x", n)), (0.0, 0.0, 0.1), line=12)
    log.end()
    code, out, _ = check("eager-1", "--strict", "--output-format", "json")
    [finding] = json.loads(out)["findings"]
    assert finding["code"] == "JX133" and (finding["severity"] == "warning") == bool(fails)
    assert finding["timed"] == (not fails) and code == fails  # 20 recompiles are a warning by their number


@pytest.mark.parametrize(
    ("table", "said", "hint"),
    [
        ("no-recompile-after = 2", "no option 'no-recompile-after'", "did you mean no-recompiles-after?"),
        ("no-recompiles-after = -2", "is less than 0", ""),
        ("max-temp-byte = 2", "no option 'max-temp-byte'", "did you mean max-temp-bytes?"),
        ("max-temp-bytes = '2 apples'", "is not a size", 'max-temp-bytes = "2 GiB"'),
        ('[tool.jaxscope.check.functions."f"]\nmax-compiles = 1', "no option 'max-compiles'", "did you mean"),
    ],
)
def test_a_mistake_in_the_limits_leaves_with_2_and_names_its_neighbor(
    check, run, tmp_path, table, said, hint
):
    (tmp_path / "pyproject.toml").write_text("[tool.jaxscope.check]\n" + table + "\n")
    code, out, err = check()
    assert (code, out) == (2, "") and said in err and hint in err


def test_a_spec_is_read_like_the_table():
    found = config.check_spec(
        "no-recompiles-after=2, max-compile-seconds=60,strict,max-collectives.all-gather=2,"
        "max-collectives.*@model=0,max-temp-bytes=64MiB"
    )
    assert found == {
        "no-recompiles-after": 2,
        "max-compile-seconds": 60.0,
        "strict": True,
        "max-collectives": {"all-gather": 2, "*@model": 0},
        "max-temp-bytes": 64 << 20,
    }


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "names nothing to check"),
        ("no-recompile-after=2", "did you mean no-recompiles-after?"),
        ("no-recompiles-after", "needs a value"),
        ("no-recompiles-after=-1", "is not a whole number of at least 0"),
        ("no-recompiles-after=two", "is not a whole number"),
        ("max-collectives.all-gater=1", "did you mean all-gather?"),
        ("strict.very=1", "is not a table"),
        ("functions=3", "no option 'functions'"),
    ],
)
def test_a_mistake_in_a_spec_is_named(spec, said):
    with pytest.raises(UsageError) as e:
        config.check_spec(spec)
    assert said in str(e.value)


# -- jaxscope run --check ---------------------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np, jax, jaxscope

@jaxscope.watch(step=True)
@jax.jit
def train_step(x):
    return x * 2

for n in map(int, sys.argv[2:]):
    train_step(np.ones(n, "float32"))
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def record(tmp_path, clean_env):
    (tmp_path / "train.py").write_text(PROGRAM)

    def go(spec: str, *args: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "jaxscope", "run", "-q", "--check", spec, "train.py", *args],
            cwd=tmp_path,
            env=clean_env,
            capture_output=True,
            text=True,
            timeout=240,
        )
        return done.returncode, " ".join(done.stderr.split())

    return go


@pytest.mark.capture
def test_a_program_that_succeeded_leaves_with_3_where_its_check_fails(record):
    code, err = record("no-recompiles-after=2", "0", "4", "4", "3")
    assert code == 3
    assert "train_step was traced and compiled in step 3, but nothing may" in err
    assert "compile after step 2: x" in err and "to f32[3]" in err
    assert record("no-recompiles-after=2", "0", "4", "3", "3") == (0, "")


@pytest.mark.capture
def test_after_a_run_what_can_be_checked_is_reported_beside_what_cannot(record, tmp_path):
    source = (tmp_path / "train.py").read_text()
    (tmp_path / "train.py").write_text(source.replace("@jaxscope.watch(step=True)\n", ""))
    code, err = record("no-recompiles-after=2,max-compilations=1", "0", "4", "3")
    assert code == 3 and "JX191" in err and "not checked: no recompiles after step 2" in err


@pytest.mark.capture
def test_a_program_that_failed_keeps_its_own_exit_code(record):
    assert record("no-recompiles-after=2", "5", "4", "4", "3") == (5, "")


@pytest.mark.capture
def test_a_spec_with_a_mistake_is_refused_before_the_program_runs(record):
    code, err = record("no-recompile-after=2", "0", "4")
    assert code == 2 and "did you mean no-recompiles-after?" in err
