"""Where an option of ``jaxscope run`` comes from when the command line does not say: environment, pyproject."""

import json

import pytest

PYPROJECT = """
[tool.jaxscope]
wrapper-libraries = ["mylib"]
[tool.jaxscope.run]
ir = "stats"
quiet = true
name = "configured"
"""


@pytest.fixture
def project(place):
    place.program("pyproject.toml", PYPROJECT)
    return lambda *words, **how: place.run(*words, "-c", "pass", cwd=place.path, **how)


def test_pyproject_holds_where_nothing_else_is_reported(place, project):
    assert project().stderr == ""
    assert place.latest.meta["options"] == {"ir": "stats", "wrapper-libraries": ["mylib"]}
    assert place.latest.name == "configured"


def test_the_environment_comes_before_pyproject_and_the_command_line_before_both(place, project):
    project(env={"JAXSCOPE_IR": "hlo"})
    assert place.latest.meta["options"]["ir"] == "hlo"
    project("--ir", "none", env={"JAXSCOPE_IR": "hlo"})
    assert place.latest.meta["options"]["ir"] == "none"


def test_a_key_that_does_not_exist_starts_nothing(place):
    place.program("pyproject.toml", "[tool.jaxscope.run]\nstep-funtion = 'f'\n")
    ours = place.run("-c", "print(1)", cwd=place.path)
    assert (ours.returncode, ours.stdout) == (2, "")
    assert "did you mean step-function?" in ours.stderr


@pytest.mark.parametrize(("value", "recorded"), [("true", {"redact": True}), ("false", {})])
def test_redact_holds_for_every_run_of_a_project(place, value, recorded):
    place.program("pyproject.toml", f"[tool.jaxscope.run]\nredact = {value}\n")
    place.program("program.py", "import os; print(os.environ['JAXSCOPE_OPTIONS'])")
    assert json.loads(place.run("program.py", cwd=place.path).stdout) == recorded
    assert place.latest.meta["options"] == recorded


def test_redact_is_true_or_false(place):
    place.program("pyproject.toml", "[tool.jaxscope.run]\nredact = 'all'\n")
    ours = place.run("-c", "print(1)", cwd=place.path)
    assert (ours.returncode, ours.stdout) == (2, "") and "redact" in ours.stderr
