"""What the documentation says to put into CI is run as it is printed there."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "ci.md").read_text()
FLAGS = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}

pytestmark = [pytest.mark.capture, pytest.mark.costly]


def block(language, holding):
    (found,) = [b for b in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if holding in b]
    return found


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_compiled.py").write_text(block("python", "test_what_the_step_compiles_to"))
    return folder


@pytest.fixture
def shell(project, clean_env):
    def call(line, **env):
        jaxscope = f"{sys.executable} -m jaxscope"
        return subprocess.run(
            ["bash", "-c", re.sub(r"^jaxscope\b", jaxscope, line)],
            cwd=project,
            env={**{k: v for k, v in clean_env.items() if k != "CI"}, **FLAGS, **env},
            capture_output=True,
            text=True,
            timeout=200,
        )

    return call


def commands(language_block):
    """The lines of a recipe that call jaxscope."""
    return re.findall(r"^ *- (?:run: )?(jaxscope .*)$", language_block, re.MULTILINE)


@pytest.mark.long
def test_the_test_that_compiles_only_passes_as_it_is_written(shell):
    done = shell(f"{sys.executable} -m pytest -q -p no:cacheprovider -p no:xdist tests/test_compiled.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


@pytest.mark.long
def test_both_recipes_pass_with_a_baseline_and_fail_where_the_step_got_worse(shell, project):
    github, gitlab = commands(block("yaml", "runs-on")), commands(block("yaml", "artifacts"))
    assert len(github) == len(gitlab) == 2 and github[0] == gitlab[0]
    assert all(
        f"{k}: {v}" in block("yaml", where) for k, v in FLAGS.items() for where in ("runs-on", "artifacts")
    )
    assert shell(github[0]).returncode == 0
    assert shell("jaxscope check recorded --update-baseline").returncode == 0
    for line in (github[1], gitlab[1]):
        done = shell(line, CI="true")
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert ET.parse(project / "jaxscope.xml").getroot().get("failures") == "0"

    source = project / "tests" / "test_compiled.py"
    source.write_text(source.read_text().replace("donate_argnums=0", "donate_argnums=()"))
    again = github[0].replace("--out recorded", "--out again")
    assert shell(again).returncode == 0
    done = shell(github[1].replace("recorded", "again"), CI="true")
    assert done.returncode == 1
    first = done.stdout.splitlines()[0]
    assert first.startswith(f"::error file=tests{os.sep}test_compiled.py,line=") and "JX705" in first
    assert "w is no longer donated" in first


@pytest.mark.long
@pytest.mark.subprocess
def test_the_gate_in_a_test_fails_with_the_words_that_stand_there(project):
    from test_pytest_plugin import session

    code = block("python", "test_nothing_is_compiled_after_the_first_step")
    (project / "tests" / "test_training.py").write_text(code)
    _, out, _ = session(project, "-p", "no:xdist", "tests/test_training.py")
    text = "no_recompiles: " + PAGE.partition("```\nno_recompiles: ")[2].partition("```")[0]
    assert "no_recompiles: JX190 train_step" in out
    for line in text.replace(", 53 ms", "").split("\n    "):  # the page breaks long lines
        assert " ".join(line.split()) in " ".join(out.split())


def test_the_limits_in_the_documentation_are_read(tmp_path):
    from jaxscope.cli import config

    (tmp_path / "pyproject.toml").write_text(block("toml", "max-collectives"))
    found = config.load(tmp_path).values["check"]
    assert found["no-recompiles-after"] == 1 and found["functions"]["train_*"].peak_bytes == 12 << 30
