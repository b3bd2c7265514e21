"""``jaxscope check`` with a baseline, a choice of codes and formats, on runs written by hand."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import handwritten_runs
import pytest
from handwritten_runs import Log, exited, function, key, leaf

from jaxscope.check.baseline import file
from jaxscope.log import store

pytestmark = pytest.mark.usefixtures("home")

STEP = function("step")


def made(path, *sizes, code=0, jax="0.12.0.1", end=True, file_name=None):
    """A run in which ``step`` is compiled for arrays of these sizes."""
    run = store.create(path)
    log = Log(run, jax=jax, cwd=str(Path.cwd()))
    log.backend(8)
    seen = STEP if file_name is None else function("step", file_name, 2)
    log.say(seen)
    for n in sizes:
        log.compiled(seen, key(leaf("x", n)), program=f"p{n}")
    if end:
        log.end()
        exited(run, code)
    return run.path


@pytest.fixture
def good(home):
    return made(home / "good", 8)


@pytest.fixture
def worse(home, good):
    return made(home / "worse", 8, 7)


def test_the_baseline_of_a_run_holds_for_it_and_for_its_repetition(jaxscope, home, good, tmp_path):
    code, out, err = jaxscope("check", "--update-baseline")
    assert (code, out) == (0, "")
    assert "jaxscope-baseline.json: 1 function written" in err
    assert file.read(tmp_path / file.NAME).functions.keys() == {"train.py::step"}
    again = made(home / "again", 8)
    assert jaxscope("check", again)[:2] == (0, "")
    assert jaxscope("check", again, "--strict")[0] == 0


def test_a_recompile_more_fails_with_the_finding_that_names_it(jaxscope, good, worse):
    jaxscope("check", good, "--update-baseline")
    code, out, err = jaxscope("check", worse)
    assert code == 1
    assert "JX701 step is compiled 2x, 1x in the baseline: x changed from f32[8] to f32[7]" in out
    assert "JX101" not in out  # said once
    assert err.endswith("1 finding\n")


def test_what_a_run_has_from_the_first_is_no_finding_after_it_was_accepted(jaxscope, worse):
    assert jaxscope("check", worse)[0] == 1  # JX101
    jaxscope("check", worse, "--update-baseline")
    assert jaxscope("check", worse)[:2] == (0, "")


def test_codes_that_are_not_looked_at_are_not_called_gone(jaxscope, worse):
    jaxscope("check", worse, "--update-baseline")
    assert jaxscope("check", worse, "--select", "JX7")[:2] == (0, "")
    assert jaxscope("check", worse, "--ignore", "JX1", "--strict")[:2] == (0, "")


def test_fewer_compilations_pass_and_are_reported_also_under_strict(jaxscope, good, worse):
    jaxscope("check", worse, "--update-baseline")
    for options in ((), ("--strict",)):
        code, out, err = jaxscope("check", good, *options)
        assert code == 0
        assert "JX711 note:" in out and "note" in err


def test_another_jax_is_not_compared_and_fails_where_that_is_strict(jaxscope, home, good, worse):
    jaxscope("check", good, "--update-baseline")
    other = made(home / "other", 8, jax="0.13.1")
    code, out, _ = jaxscope("check", other)
    assert code == 0
    assert (
        "JX712 note: the baseline was skipped, because it is from another environment: JAX 0.12, this run 0.13"
        in out
    )
    assert jaxscope("check", other, "--strict")[0] == 1


def test_a_function_that_did_not_run_is_reported_and_fails_where_that_is_strict(jaxscope, home, good):
    jaxscope("check", good, "--update-baseline")
    idle = made(home / "idle")
    code, out, _ = jaxscope("check", idle)
    assert code == 0 and "JX710 note: train.py::step is in the baseline" in out
    assert jaxscope("check", idle, "--strict")[0] == 1


def test_a_baseline_is_not_written_in_ci(jaxscope, good, monkeypatch, tmp_path):
    monkeypatch.setenv("CI", "true")
    code, out, err = jaxscope("check", "--update-baseline")
    assert (code, out) == (2, "")
    assert "not updated in CI" in err and "commit it" in err
    assert not (tmp_path / file.NAME).exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"code": 1}, "failed with exit code 1"),
        ({"end": False}, "is not finished"),
        ({"sizes": ()}, "compiled none of your functions"),
    ],
)
def test_no_baseline_is_made_of_a_run_that_is_not_whole(jaxscope, home, options, said, tmp_path, monkeypatch):
    sizes = options.pop("sizes", (8,))
    if options.get("end") is False:
        from jaxscope.log import store as log_store

        monkeypatch.setattr("jaxscope.log.liveness.STALE_S", 1e12)
        assert log_store
    bad = made(home / "bad", *sizes, **options)
    code, _, err = jaxscope("check", bad, "--update-baseline")
    assert code == 2 and said in err
    assert not (tmp_path / file.NAME).exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot be read"),
        ('{"jaxscope_baseline": 7}', "version 7 of the format; this jaxscope reads version 1"),
        ('{"functions": {}}', "is not a baseline"),
        ('{"jaxscope_baseline": 1, "functions": {"\\u001b[31m": 3}}', "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("<<<<<<< ours\n{}\n", "an unfinished merge"),
    ],
)
def test_a_damaged_or_foreign_baseline_is_an_error_that_says_what_to_do(
    jaxscope, good, tmp_path, content, said
):
    (tmp_path / file.NAME).write_text(content)
    code, out, err = jaxscope("check", good)
    assert (code, out) == (2, "")
    assert said in err and "--update-baseline" in err and "\x1b" not in err


@pytest.mark.parametrize("how", ["full", "concise", "json", "github", "sarif", "junit"])
def test_hostile_names_in_a_baseline_reach_no_terminal(jaxscope, good, tmp_path, how):
    jaxscope("check", good, "--update-baseline")
    data = json.loads((tmp_path / file.NAME).read_text())
    evil = "a.py::\x1b[2J\n::error::\u202e"
    data["functions"][evil] = {"traces": 1, "causes": {evil: 3}, "programs": [{"arguments": {evil: 1}}]}
    data["eager"] = {evil: {evil: 2}}
    data["findings"] = {evil: 1}
    (tmp_path / file.NAME).write_text(json.dumps(data))
    code, out, err = jaxscope("check", good, "--output-format", how)
    assert code == 0 and "JX710" in out and "JX711" in out
    for line in (out + err).split("\n"):
        assert line.isprintable() and not line.startswith("::error")


def test_a_baseline_that_is_not_there_is_an_error_with_the_command_that_writes_it(jaxscope, good):
    code, _, err = jaxscope("check", good, "--baseline", "none.json")
    assert code == 2 and "jaxscope check --update-baseline --baseline none.json" in err


def test_a_damaged_baseline_can_be_written_anew_and_another_file_is_not_overwritten(jaxscope, good, tmp_path):
    path = tmp_path / "pinned.json"
    path.write_text('{"jaxscope_baseline": 1, "oops')
    assert jaxscope("check", good, "--update-baseline", "--baseline", path)[0] == 0
    assert file.read(path).functions
    source = tmp_path / "train.py"
    source.write_text("print('mine')\n")
    code, _, err = jaxscope("check", good, "--update-baseline", "--baseline", source)
    assert code == 2 and "is not overwritten" in err
    assert source.read_text() == "print('mine')\n"


def test_an_update_keeps_the_tolerance(jaxscope, good, tmp_path):
    jaxscope("check", good, "--update-baseline")
    path = tmp_path / file.NAME
    path.write_text(path.read_text().replace('"memory": 0.05', '"memory": 0.5'))
    jaxscope("check", good, "--update-baseline")
    assert file.read(path).tolerance["memory"] == 0.5


def test_a_path_in_pyproject_is_relative_to_that_file(jaxscope, good, tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('[tool.jaxscope.check]\nbaseline = "ci/pinned.json"\n')
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert jaxscope("check", good, "--update-baseline")[0] == 0
    assert (tmp_path / "ci" / "pinned.json").is_file()


def test_codes_are_chosen_on_the_command_line_and_in_pyproject(jaxscope, worse, tmp_path):
    assert jaxscope("check", worse, "--ignore", "JX1")[0] == 0
    assert jaxscope("check", worse, "--select", "JX3,JX4")[0] == 0
    assert jaxscope("check", worse, "--select", "JX3", "--select", "JX101")[0] == 1
    code, _, err = jaxscope("check", worse, "--ignore", "JX1010")
    assert code == 2 and "did you mean JX101?" in err
    (tmp_path / "pyproject.toml").write_text('[tool.jaxscope.check]\nignore = ["changing-shape"]\n')
    assert jaxscope("check", worse)[0] == 0
    (tmp_path / "pyproject.toml").write_text(
        '[tool.jaxscope.check]\nper-file-ignores = {"*.py" = ["JX101"]}\n'
    )
    assert jaxscope("check", worse)[0] == 0
    (tmp_path / "pyproject.toml").write_text('[tool.jaxscope.check]\nper-file-ignores = ["JX101"]\n')
    code, _, err = jaxscope("check", worse)
    assert code == 2 and "per-file-ignores" in err


def test_a_comment_on_the_users_line_leaves_a_finding_out_and_one_that_does_nothing_is_reported(
    jaxscope, home, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # a file elsewhere is not read
    source = tmp_path / "train.py"
    call = "    state = step(x){}\n"
    lines = ["\n"] * 139 + [call.format("  # jaxscope: ignore[JX101]")]
    source.write_text("".join(lines))
    run = store.create(home / "here")
    log = Log(run, cwd=str(tmp_path))
    log.backend()
    seen = function("step", str(source), 3)
    log.say(seen)
    for n in (8, 7):
        call_number = log.compiled(
            seen, key(leaf("x", n)), site=handwritten_runs.Frame(str(source), 140, "main")
        )
        assert call_number
    log.end()
    assert jaxscope("check", run.path)[:2] == (0, "")
    source.write_text("".join(lines).replace("JX101", "JX302"))
    from jaxscope.model import sources

    sources.text.cache_clear()
    code, out, _ = jaxscope("check", run.path, "--output-format", "concise")
    assert code == 1
    assert out.splitlines() == [
        "train.py:140: JX101 step recompiled: x changed from f32[8] to f32[7]",
        "train.py:140: JX902 note: the comment '# jaxscope: ignore[JX302]' excludes no finding",
    ]


def test_every_format_is_what_its_name_says(jaxscope, worse):
    def out(how):
        code, text, _ = jaxscope("check", worse, "--output-format", how)
        assert code == 1
        return text

    assert "train.py:140: JX101 step recompiled" in out("concise")
    assert " --> " in out("full") and " = help: " in out("full")
    assert json.loads(out("json"))["findings"][0]["code"] == "JX101"
    assert out("github").startswith("::warning file=")
    assert json.loads(out("sarif"))["runs"][0]["results"][0]["ruleId"] == "JX101"
    assert ET.fromstring(out("junit")).get("failures") == "1"


def test_a_format_that_does_not_exist_is_wrong_usage(jaxscope, worse):
    assert jaxscope("check", worse, "--output-format", "xml")[0] == 2


def test_a_baseline_may_be_named_where_a_run_is_recorded(jaxscope, good, worse, tmp_path):
    from jaxscope.cli import check, config

    jaxscope("check", good, "--update-baseline")
    asked = check.options(config.check_spec(f"baseline={tmp_path / file.NAME}"))
    assert not check.passes(store.RunDir(worse), asked)
    assert check.passes(store.RunDir(good), asked)
