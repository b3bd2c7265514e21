"""The requested, compiled and actual shardings of real programs, and the differences between them."""

from __future__ import annotations

import io

import pytest
from folders import PROGRAMS

from jaxscope.analysis.sharding_audit import disagreement, spelled
from jaxscope.log.store import RunDir
from jaxscope.model import sharding_audit
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.present import render
from jaxscope.report import json_report
from jaxscope.report.console import console
from jaxscope.report.function import render_function
from jaxscope.rules import registry
from jaxscope.schema import events as ev

pytestmark = pytest.mark.capture

SOURCE = (PROGRAMS / "asked.py").read_text().splitlines()
ODD, ODD_PLANE = (
    next(n for n, text in enumerate(SOURCE, 1) if text.endswith(mark)) for mark in ("# 17 rows", "on 4x2")
)
EIGHT = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}


@pytest.fixture(scope="module")
def recorded(record_module):
    return record_module(PROGRAMS / "asked.py", env=EIGHT)


@pytest.fixture(scope="module")
def run(recorded):
    return load(recorded.run)


def told(run, name, number=None):
    """Return (path, requested, by what, compiled, actual, difference) of each argument and result."""
    [f] = [f for f in run.functions.values() if f.seen.qualname == name]
    c = dict(run.numbered(f))[number] if number else sharding_audit.latest(run, f)[0]
    rows = []
    for i in sharding_audit.of_compilation(run, c):
        d = disagreement(i)
        asked, compiled, actual = (
            s and render.text(spelled(s, len(i.shape))) for s in (i.asked, i.compiled, i.actual)
        )  # fmt: skip
        rows.append(
            (
                i.of[0],
                i.path,
                asked,
                i.by,
                compiled,
                actual,
                d and (d.kind, d.reason and render.text(d.reason), d.times),
            )
        )
    return rows


MOVED = ("moved", None, None)


def test_a_constraint_that_divides_is_what_the_result_is(run):
    assert told(run, "even") == [
        ("a", "x", None, None, "P('data')", "on cpu:0", MOVED),
        ("r", "", "P('data')", "constraint", "P('data')", None, None),
    ]


def test_a_constraint_that_does_not_divide_leaves_the_result_whole(run):
    assert told(run, "odd")[1] == (
        "r", "", "P('data')", "constraint", "replicated", None, ("not_as_asked", "17 is not divisible by 8", 8),
    )  # fmt: skip


def test_of_two_axes_the_one_that_divides_is_kept(run):
    [_, h, _] = told(run, "odd_plane")
    assert h == (
        "r", "['h']", "P('data', 'model')", "constraint", "P(None, 'model')", None,
        ("not_as_asked", "18 is not divisible by 4", 4),
    )  # fmt: skip


def test_what_a_constraint_leaves_to_the_partitioner_is_no_difference(run):
    assert [row[2:5:2] + row[6:] for row in told(run, "partly")] == [(None, "P('data', 'model')", None)] * 2


def test_a_constraint_inside_a_jitted_function_that_is_called_is_followed(run):
    first, total = told(run, "outer")[1:]
    assert first[:4] == ("r", "[0]", "P('data')", "constraint") and first[6][0] == "not_as_asked"
    assert total[:4] == ("r", "[1]", None, None)


def test_what_jit_was_given_is_reported_for_each_leaf(run):
    down, up, batch, *results = told(run, "step", 1)
    assert up == (
        "a",
        "params['up']",
        "P(None, 'model')",
        "in_shardings",
        "P(None, 'model')",
        "on cpu:0",
        MOVED,
    )
    assert down[2] == down[4] == "P('model')" and batch[2] == batch[4] == "P('data')"
    assert [r[1:5] for r in results] == [
        ("[0]['down']", "P('model')", "out_shardings", "P('model')"),
        ("[0]['up']", "P(None, 'model')", "out_shardings", "P(None, 'model')"),
        ("[1]", None, None, "replicated"),
    ]


def test_arguments_are_those_of_the_latest_call(run):
    """The parameters were moved once, and came back with the requested sharding; the batch is moved every time."""
    down, up, batch, *_ = told(run, "step", 2)
    assert (down[6], up[6], batch[6]) == (None, None, MOVED)


def test_ahead_of_time_it_is_known_too(run):
    down, _, batch, *_ = told(run, "step", 3)
    assert down[2:5] == ("P('model')", "in_shardings", "P('model')")
    assert batch[2:6] == ("P('data')", "in_shardings", "P('data')", None)


def test_under_explicit_axes_the_type_is_what_was_requested(run):
    [x, double, whole] = told(run, "typed")
    assert x[2:] == (None, None, "P('e')", "P('e')", None)  # gathered inside: a use of it
    assert double[2:] == ("P('e')", double[3], "P('e')", None, None)
    assert whole[2] == "replicated" and whole[4] == "replicated" and whole[6] is None


def test_findings_name_the_line_the_reason_and_the_cost(run):
    found = {}
    for f in registry.findings(run):
        found.setdefault(f.code, []).append(f)
    titles = [words.title(f) for f in found["JX503"]]
    assert (
        "odd does not use the requested sharding for its result (f32[17,4]): requested P('data'), got replicated "
        "because 17 is not divisible by 8: each device holds all of it; with the requested sharding it would hold 1/8"
        in titles
    )
    assert {f.source.line for f in found["JX503"]} == {ODD, ODD_PLANE} and len(titles) == 3
    [padded] = found["JX504"]
    assert words.title(padded).endswith(
        "the size 29 of dimension 0 is not divisible by 8: XLA pads the dimension to 32, of which 3 are padding"
    )
    [moved] = found["JX508"]
    assert words.title(moved).startswith(
        "table (2.0 MiB) is placed on cpu:0, but predict needs it as replicated over 8 devices"
    )


def test_live_arrays_carry_what_was_requested_of_them(run):
    [look] = [s for s in json_report.as_json(run)["arrays"]["snapshots"] if s["count"] > 8][-1:]
    groups = {g["path"]: (g["asked"], g["compiled"]) for g in look["groups"]}
    assert groups["right"] == ("P('data', None) on data=8", "P('data',) on data=8")
    assert groups["wrong"] == ("P('data', None) on data=8", "P() on data=8")
    assert groups["half['h']"] == (
        "P('data', 'model') on data=4,model=2",
        "P(None, 'model') on data=4,model=2",
    )
    assert groups["half['x']"][0] is None
    assert groups["inner"][0] == "P('data', None) on data=8"
    assert groups["params['up']"] == ("P(None, 'model') on data=4,model=2",) * 2
    assert groups["table"] == (None, "P() on data=8")


def test_a_functions_report_has_the_table(run, recorded):
    out = io.StringIO()
    to = console(out)
    to.width = 100
    render_function(run, "odd", to, RunDir(recorded.run.path))
    text = " ".join(out.getvalue().split())
    assert "Requested, compiled and actual" in text
    assert "17 is not divisible by 8; 8 times the memory" in text and f"asked.py:{ODD}" in text


def test_json_tells_each_argument_and_result_of_a_compilation(run):
    entries = json_report.as_json(run)["compilations"]
    [odd] = [c for c in entries if c["function"].startswith("odd@") and c["shardings"]]
    x, result = odd["shardings"]
    assert result == {
        "path": "", "of": "result", "asked": "P('data', None) on data=8", "asked_by": "constraint",
        "asked_at": {"file": result["asked_at"]["file"], "line": ODD, "function": "odd"}, "compiled": "P() on data=8",
        "actual": None, "agrees": False, "difference": "not_as_asked", "reason": "17 is not divisible by 8", "times": 8,
    }  # fmt: skip
    assert (x["agrees"], x["difference"], x["actual"]) == (False, "moved", "cpu:0")


def test_on_one_device_nothing_is_written_that_follows_by_itself(record):
    done = record("import jax, jax.numpy as jnp\njax.jit(lambda x: x + 1)(jnp.ones(3))")
    assert all(e.asked == [] and e.asked_in == [] for e in done.of(ev.Lowered))
    assert all(e.in_shardings == [] and e.in_sharding_of == [] for e in done.of(ev.Compiled))
    assert all(c["shardings"] is None for c in json_report.as_json(load(done.run))["compilations"])


DEATHS = {
    "JX504": (
        "jax.device_put(jnp.ones((17, 4)), NamedSharding(mesh, P('data')))",
        "17 is not divisible by 8",
    ),
    "JX508": (
        "jax.jit(lambda a, b: a + b)(jax.device_put(jnp.ones(8), jax.devices()[1]), jax.device_put(jnp.ones(8), jax.devices()[2]))",
        "a on device 1, b on device 2",
    ),
    "JX503": (
        "jax.jit(lambda x: x, in_shardings=NamedSharding(mesh, P('data')))(jax.device_put(jnp.ones(8), NamedSharding(mesh, P())))",
        "has the sharding P(), but in_shardings requires P('data')",
    ),
}


@pytest.mark.parametrize("code", DEATHS)
def test_a_program_that_jax_refuses_to_place_tells_why(code, record):
    call, said = DEATHS[code]
    done = record(
        "import jax, jax.numpy as jnp, numpy as np\n"
        "from jax.sharding import Mesh, NamedSharding, PartitionSpec as P\n"
        "mesh = Mesh(np.array(jax.devices()), ('data',))\n" + call,
        env=EIGHT,
        check=False,
    )
    assert done.code == 1
    found = [f for f in registry.findings(load(done.run)) if f.code == code]
    assert (
        [f.severity for f in found] == ["error"]
        and said in words.title(found[0])
        and found[0].source.line == 4
    )


def test_an_array_in_pinned_host_memory_is_requested_and_had(record):
    done = record(
        """
        import jax, jax.numpy as jnp
        from jax.sharding import NamedSharding, PartitionSpec as P
        mesh = jax.make_mesh((8,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
        host = NamedSharding(mesh, P("d"), memory_kind="pinned_host")
        f = jax.jit(lambda x: x * 2, out_shardings=host)
        y = f(jax.device_put(jnp.ones(8), NamedSharding(mesh, P("d"))))
        """,
        env=EIGHT,
        check=False,
    )
    if done.code:
        pytest.skip(f"this backend does not: {done.err.splitlines()[-1]}")
    [row] = [r for r in told(load(done.run), "<lambda>") if r[0] == "r"]
    assert row[2] == "P('d') in pinned_host" and row[6] is None
