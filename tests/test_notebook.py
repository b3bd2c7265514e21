"""A real notebook, run by nbconvert: cells are called by their numbers, and a cell shows its report."""

import json
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

pytestmark = [
    pytest.mark.capture,
    pytest.mark.subprocess,
    pytest.mark.costly,
    pytest.mark.skipif(
        not (find_spec("nbconvert") and find_spec("ipykernel")),
        reason="nbconvert and ipykernel run the notebook",
    ),
]

CELLS = [
    "import jax, jax.numpy as jnp, jaxscope\n%load_ext jaxscope",
    "@jax.jit\ndef step(w, x):\n    return jnp.tanh(w @ x)",
    "%%jaxscope --text\nw = jnp.ones((8, 8))\nfor n in (3, 4, 5):\n    y = step(w, jnp.ones((8, n)))\ny.shape",
    "with jaxscope.record() as run:\n    for n in range(3):\n        f = jax.jit(lambda x: x * 2 + n)\n        f(w)\n"
    "run.report()",
    "%%jaxscope\nstep(w, jnp.ones((3, 3)))",
    "%%jaxscope --nonsense\nprint('not run')",
    "[run.path.is_relative_to('/'), 'jaxscope-' in run.path.parent.name, run.read().compilations != {}]",
    "r = run.read()\nr.function('<lambda>')",
    "r.program('<lambda>#1')",
    "[r.array('w'), r.array('w').sharding is not None]",
    "r.array('w')",
]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory, clean_env):
    """What is below each cell: its texts, and what else its outputs have."""
    folder = tmp_path_factory.mktemp("notebook")
    cells = [
        {
            "cell_type": "code",
            "id": f"c{n}",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": text,
        }
        for n, text in enumerate(CELLS)
    ]
    spec = {"name": "python3", "display_name": "Python", "language": "python"}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": spec}, "cells": cells}
    (folder / "n.ipynb").write_text(json.dumps(notebook))
    kernel = folder / "share" / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    start = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": start, **spec}))
    env = {
        **clean_env,
        "JUPYTER_PATH": str(folder / "share" / "jupyter"),
        "IPYTHONDIR": str(folder / "ipython"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "nbconvert", "--execute", "--allow-errors", "--to", "notebook"]
        + ["--output", "out.ipynb", "n.ipynb"],
        cwd=folder, env=env, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not (folder / ".jaxscope").exists()  # runs are in a temporary directory
    found = json.loads((folder / "out.ipynb").read_text())["cells"]
    return [cell["outputs"] for cell in found]


def printed(output):
    return re.sub(r"\x1b\[[0-9;]*m", "", "".join(output["text"]))


def test_a_cell_shows_its_report_in_one_output_with_the_numbers_of_cells(outputs):
    report, value = outputs[2]
    text = printed(report)
    assert text.startswith("notebook\n")
    assert "x changed from" in text and "In[3], line 4" in text and "step  In[2], line " in text, text
    assert "ipykernel" not in text
    assert "".join(value["data"]["text/plain"]) == "(8, 5)"


def test_the_source_of_a_cell_is_known_to_the_rules(outputs):
    [report] = outputs[3]
    shown = "".join(report["data"]["text/html"])  # of run.report()
    assert shown.startswith("<iframe") and "a lambda was created again at In[4], line 3" in shown


def test_what_a_cell_raises_is_raised_below_the_report(outputs):
    report, error = outputs[4]
    assert "<iframe" in "".join(report["data"]["text/html"])
    assert error["output_type"] == "error" and error["ename"] == "TypeError"


def test_a_wrong_option_runs_nothing(outputs):
    [message] = outputs[5]
    assert "--nonsense" in printed(message) and "not run" not in printed(message)


def test_a_recording_in_a_notebook_goes_to_a_temporary_directory(outputs):
    assert outputs[6][0]["data"]["text/plain"] == ["[True, True, True]"]


def test_a_function_a_program_and_an_array_are_each_one_output(outputs):
    for cell, words in (
        (7, "created again at In[4], line 3"),
        (8, "arguments 256 B"),
        (10, "w  float32[8,8]"),
    ):
        [output] = outputs[cell]
        assert "data" in output, output
        assert "".join(output["data"]["text/html"]).startswith("<iframe"), words
        assert " ".join(words.split()) in " ".join("".join(output["data"]["text/plain"]).split())
    assert "float32[8,8]" in "".join(outputs[9][0]["data"]["text/plain"])  # in a list as text
