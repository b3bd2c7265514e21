"""JX305: a relative tolerance that float32 does not resolve."""

import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry
from jaxscope.schema.keys import Frame

SOURCE = """\
import diffrax
import numpy as np
from jax.scipy.sparse.linalg import cg
from scipy.integrate import solve_ivp


def solve(y0):
    return {call}


def never_called(y0):
    return diffrax.PIDController(rtol=1e-12, atol=1e-12)


result = solve(y0)
"""


@pytest.mark.parametrize(
    ("call", "dtype", "titles"),
    [
        ("diffrax.PIDController(rtol=1e-8, atol=1e-8)", "float32", ["rtol=1e-08"]),
        ("cg(matrix, y0, tol=1e-9)", "float32", ["tol=1e-09"]),
        ("diffrax.PIDController(rtol=1e-7, atol=1e-12)", "float32", []),
        ("diffrax.PIDController(rtol=1e-8, atol=1e-8)", "float64", []),
        ("solve_ivp(field, (0, 1), y0, rtol=1e-10)", "float32", []),
        ("np.allclose(y0, y0, rtol=1e-10)", "float32", []),
        ("diffrax.PIDController(rtol=tolerance, atol=1e-12)", "float32", []),
    ],
)
def test_a_tolerance_below_the_rounding_of_float32_is_reported(tmp_path, monkeypatch, call, dtype, titles):
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "train.py"
    program.write_text(SOURCE.format(call=call))
    directory = store.create(tmp_path / "run")
    log = Log(directory)
    solve = function("solve", str(program), 7)
    log.say(solve)
    at = Frame(str(program), 15, "<module>")
    log.compiled(solve, key(leaf("y0", 2, dtype=dtype)), program="p1", site=at)
    log.end()
    found = [f for f in registry.findings(load(directory)) if f.code == "JX305"]
    assert [words.title(f).partition(" is smaller")[0] for f in found] == titles
    assert all(f.source == Frame(str(program), 8, "solve") for f in found)
