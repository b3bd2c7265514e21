"""The pytest plugin, in real sessions of pytest."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from jaxscope import pytest_plugin

pytestmark = [pytest.mark.subprocess, pytest.mark.costly]
DATA = Path(__file__).parent / "data"
PLUGIN = (
    []
    if any(p.value == "jaxscope.pytest_plugin" for p in importlib.metadata.entry_points(group="pytest11"))
    else ["-p", "jaxscope.pytest_plugin"]
)
ASYNC = """
import asyncio, inspect, pytest

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        names = pyfuncitem._fixtureinfo.argnames
        asyncio.run(pyfuncitem.obj(**{n: pyfuncitem.funcargs[n] for n in names}))
        return True
"""


def session(folder: Path, *args: str, env: dict | None = None, launcher: tuple[str, ...] = ()):
    """Run pytest in ``folder``: (exit code, what it printed, {test: (outcome, what it said)})."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("JAXSCOPE", "XLA_FLAGS", "PYTEST"))}
    done = subprocess.run(
        [
            sys.executable,
            *launcher,
            "-m",
            "pytest",
            *PLUGIN,
            "-q",
            "-p",
            "no:cacheprovider",
            "--junitxml=out.xml",
            *args,
        ],
        cwd=folder,
        env={
            **clean,
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
            "PYTHONPATH": str(DATA),
            **(env or {}),
        },
        capture_output=True,
        text=True,
        timeout=280,
    )
    said = {}
    if (folder / "out.xml").exists():
        for case in ET.parse(folder / "out.xml").iter("testcase"):
            wrong = [e for e in case if e.tag in ("failure", "error", "skipped")]
            text = "\n".join(f"{e.get('message')}\n{e.text}" for e in case)
            said[case.get("name")] = (wrong[0].tag if wrong else "passed", text)
    return done.returncode, done.stdout + done.stderr, said


# -- marks --------------------------------------------------------------------------------------------------------

FAIL = {
    "test_late": "no_recompiles: JX190 step was traced and compiled in step 3, but nothing may compile after step 1: x changed from f32[3] to f32[4]",
    "test_bare_mark": "in step 2, but nothing may compile after step 1: x changed from",
    "test_known_from_an_earlier_test": "step was traced and compiled, where nothing may compile: x changed from",
    "test_no_steps": "nothing counted the steps",
    "test_function_with_a_typo": "no function called 'setp' was compiled: check the spelling",
    "test_parametrised[7]": "in step 2, but nothing may compile after step 1: x changed from",
    "test_mark_of_a_parameter[9]": "in step 2, but nothing may compile after step 1: x changed from",
    "test_takes_its_mark": "plain was traced and compiled, where nothing may compile",
    "test_async": "in step 3, but nothing may compile after step 1: x changed from",
    "test_too_many": "max_compilations: JX191 your functions were compiled 2 times, 1 allowed (plain 2 times); most recently plain: x changed from",
    "test_too_long": "max_compile_seconds: JX291 tracing, lowering and compiling took",
    "test_communicates": "#1 has 1 all-gather, 0 allowed; the largest: all-gather over data of 32 B",
    "test_communicates_too_much": "48 B of collectives per call, 4 B allowed",
    "test_after_that_recording": "plain was traced and compiled, where nothing may compile",
    "test_a_recording_of_its_own_under_a_mark": "unknown what was compiled: the test began or ended a recording",
    "test_nothing_to_measure": "no function of yours was compiled in this test",
}
PASS = [
    "test_on_time", "test_no_steps_and_nothing_compiled", "test_parametrised[3]", "test_mark_of_a_parameter[8]",
    "test_has_marks_of_its_own_besides", "test_fixtures_may_compile", "test_async_clean", "test_just_enough",
    "test_of_another_function", "test_not_too_long", "test_communicates_as_allowed", "test_fixture",
    "test_without_any_of_it", "test_a_recording_of_its_own",
]  # fmt: skip


@pytest.fixture(scope="module")
def marked(made_once):
    def make(folder):
        (folder / "test_marked.py").write_text((DATA / "gate" / "marked.py").read_text())
        (folder / "conftest.py").write_text(ASYNC)
        return session(folder, "-p", "no:xdist", "--jaxscope-dir=kept", env={"TMPDIR": str(folder)}), folder

    return made_once("marked", make)


@pytest.mark.capture
@pytest.mark.parametrize("name", FAIL)
def test_a_mark_that_does_not_hold_fails_its_test_with_the_cause(marked, name):
    outcome, said = marked[0][2][name]
    assert outcome == "failure" and FAIL[name] in said, said


@pytest.mark.capture
def test_a_mark_that_holds_says_nothing(marked):
    said = marked[0][2]
    assert {n: said[n] for n in PASS if said[n][0] != "passed"} == {}
    assert set(said) == {*FAIL, *PASS, "test_own_failure", "test_skipped", "test_expected_to_fail"}


@pytest.mark.capture
def test_the_tests_own_failure_stands_and_ours_goes_below(marked):
    (code, out, said), _ = marked
    assert code == 1
    outcome, text = said["test_own_failure"]
    assert outcome == "failure" and text.startswith("AssertionError: its own")
    below = out[out.index("test_own_failure ___") :]
    assert below.index("AssertionError") < below.index("Captured jaxscope call") < below.index("to f32[5]")


@pytest.mark.capture
def test_skipped_and_expected_failures_stay_what_they_are(marked):
    said = marked[0][2]
    assert said["test_skipped"][0] == "skipped" and "not today" in said["test_skipped"][1]
    assert said["test_expected_to_fail"][0] == "skipped" and "jaxscope" not in said["test_skipped"][1]


@pytest.mark.capture
def test_the_recording_is_kept_where_it_is_requested(marked):
    from jaxscope import open_run

    run = open_run(marked[1] / "kept" / "tests")
    assert {"step", "plain"} <= {f.name for f in run.functions.values()}
    assert not list(marked[1].glob("jaxscope-*"))


@pytest.mark.long
@pytest.mark.capture
def test_with_two_workers_the_same_fails_and_the_same_passes(marked, tmp_path):
    (tmp_path / "test_marked.py").write_text((DATA / "gate" / "marked.py").read_text())
    (tmp_path / "conftest.py").write_text(ASYNC)
    code, _, said = session(tmp_path, "-n", "2", "--jaxscope-dir=kept", env={"TMPDIR": str(tmp_path)})
    # What a function was compiled for in an earlier test is warm only in the same worker.
    depends = {
        "test_no_steps",
        "test_no_steps_and_nothing_compiled",
        "test_has_marks_of_its_own_besides",
        "test_async_clean",
        "test_fixture",
    }
    alone = {name: outcome for name, (outcome, _) in marked[0][2].items() if name not in depends}
    assert code == 1 and {n: o for n, (o, _) in said.items() if n not in depends} == alone
    assert FAIL["test_late"] in said["test_late"][1]
    assert {p.name[:3] for p in (tmp_path / "kept").iterdir()} == {"gw0", "gw1"}


@pytest.mark.long
@pytest.mark.capture
def test_under_jaxscope_run_the_tests_are_part_of_that_recording(tmp_path):
    (tmp_path / "test_few.py").write_text((DATA / "gate" / "marked.py").read_text())
    code, _, said = session(
        tmp_path, "-p", "no:xdist", "-k", "test_late or test_on_time",
        launcher=("-m", "jaxscope", "run", "-q", "-o", "recorded"),
    )  # fmt: skip
    assert code == 1 and FAIL["test_late"] in said["test_late"][1] and said["test_on_time"][0] == "passed"
    assert (tmp_path / "recorded" / "meta.json").exists()


# -- every kind of cause --------------------------------------------------------------------------------

# What is to be read in the failure, by the kind of the cause.
WORDS = {
    "shape": r"changed from \w+\[[\d,]*\] to \w+\[",
    "rank": r"changed from \w+\[[\d,]*\] to \w+\[",
    "dtype": r"dtype|changed from \w+\[.* to \w+\[",
    "weak_type": r"weak",
    "prng": r"key|uint32",
    "tree": r"changed from|none|no longer|added|keys|more|fewer|tuple|list",
    "tree_static": r"changed from .* to |changed, but",
    "static_value": r"the static argument .* changed from .* to ",
    "static_identity": r"identity|another object|new (function )?object|equal",
    "call_form": r"keyword|positional|spelled out|passed",
    "new_function": r"is a new object",
    "options": r"option|donat|out_shardings|jitted with",
    "sharding": r"shard|P\(",
    "committed": r"committed",
    "layout": r"layout",
    "device": r"cpu:\d|device",
    "memory_kind": r"memory",
    "mesh": r"mesh",
    "config": r"jax_|precision|x64",
    "cleared": r"cleared|collected",
    "transform": r"grad|vmap|transform",
}
CASES = json.loads((DATA / "gate" / "cases.json").read_text())


@pytest.fixture(scope="module")
def kinds(made_once):
    chosen = {
        "changed": [n for names in CASES["changed"].values() for n in names] + CASES["noise"],
        "clean": CASES["clean"],
    }
    env = {"GATE_CASES": json.dumps(chosen)}

    def make(folder):
        (folder / "test_recompiling.py").write_text((DATA / "gate" / "recompiling.py").read_text())
        return session(folder, "-p", "no:xdist", env=env)[2]

    return made_once("kinds", make)


@pytest.mark.capture
@pytest.mark.parametrize("kind", CASES["changed"])
def test_a_recompile_in_the_third_step_fails_with_the_right_words(kinds, kind):
    for name in CASES["changed"][kind]:
        outcome, said = kinds[f"test_changed[{name}]"]
        assert outcome == "failure" and "in step 3, but nothing may compile after step 2" in said, (
            name,
            said,
        )
        assert re.search(WORDS[kind], said.partition("after step 2: ")[2]), (name, said)


@pytest.mark.capture
def test_what_only_leaves_the_fast_path_passes(kinds):
    assert [n for n in CASES["noise"] if kinds[f"test_changed[{n}]"][0] != "passed"] == []


@pytest.mark.capture
def test_the_clean_twin_passes(kinds):
    assert [n for n in CASES["clean"] if kinds[f"test_clean[{n}]"][0] != "passed"] == []


RAISES = """
import jax, jax.numpy as jnp
import pytest

def test_block(jaxscope):
    with jaxscope.no_recompiles(after=0):
        jax.jit(lambda x: x + 1)(jnp.ones(3))

def test_mark(jaxscope):
    step = jax.jit(lambda x: x + 2)
    with jaxscope.no_recompiles(after=1):
        for n in (1, 2):
            step(jnp.ones(n))
            jaxscope.step()

def test_watched(jaxscope):
    step = jaxscope.watch(jax.jit(lambda x: x + 3), step=True)
    with jaxscope.no_recompiles(after=1):
        for n in (4, 5, 6):
            step(jnp.ones(n))

def test_decorated(jaxscope):
    @jaxscope.no_recompiles(after=0)
    def call():
        jax.jit(lambda x: x + 4)(jnp.ones(7))
    call()

def test_pinned(jaxscope):
    with jaxscope.pinned():
        jax.jit(lambda x: x + 5)(jnp.ones(8))

def test_nothing(jaxscope):
    with jaxscope.pinned():
        pass
"""


@pytest.mark.capture
def test_what_is_raised_is_shown_at_the_users_line_without_lines_of_ours(tmp_path):
    (tmp_path / "test_it.py").write_text(RAISES)
    code, out, _ = session(tmp_path, "-p", "no:xdist")
    failures = out[out.index("= FAILURES =") : out.index("= short test summary")]
    assert code == 1 and failures.count("E   ") >= 6
    shown = {line.split(":")[0] for line in failures.splitlines() if re.match(r"\S+\.py:\d+: ", line)}
    assert shown == {"test_it.py"}, failures
    for test in ("block", "mark", "watched", "decorated", "pinned", "nothing"):
        assert f"_ test_{test} _" in failures


# -- baselines ------------------------------------------------------------------------------------------------------

CALLS_BACK = "* jax.pure_callback(np.sort, x, x)"
PINNED = """
import jax, numpy as np, pytest

@jax.jit
def step(x):
    return x OPERATION

@pytest.mark.parametrize("n", [3, 4])
def test_step(jaxscope, n):
    step(np.ones(9, "float32"))  # what was compiled before does not matter
    with jaxscope.pinned():
        step.lower(np.ones(n, "float32")).compile()

def test_two(jaxscope):
    for name in "ab":
        with jaxscope.pinned(name):
            step.lower(np.ones(5, "float32")).compile()
"""


@pytest.mark.capture
@pytest.mark.long
def test_a_baseline_a_test_is_written_compared_and_trimmed(tmp_path):
    def run(*args, operation="* 2", **env):
        (tmp_path / "test_it.py").write_text(PINNED.replace("OPERATION", operation))
        return session(tmp_path, "-p", "no:xdist", *args, env={"CI": "", **env})

    code, out, _ = run()
    assert code == 1 and "there is no baseline at" in out
    assert "pytest --jaxscope-update=new test_it.py::test_two" in out
    code, out, _ = run("--jaxscope-update=new", CI="true")
    assert code == 4 and "baselines are not updated in CI (CI=true)" in out
    assert not (tmp_path / "jaxscope-baselines").exists()
    assert run("--jaxscope-update=new")[0] == 0
    names = sorted(p.name for p in (tmp_path / "jaxscope-baselines").iterdir())
    assert len(names) == 4 and names[-2:] == ["test_it.py.test_two@a.json", "test_it.py.test_two@b.json"]
    assert str(tmp_path) not in (tmp_path / "jaxscope-baselines" / names[-1]).read_text()
    assert run()[0] == 0
    assert run("-k", "4")[0] == 0  # alone as together
    code, out, said = run(operation=CALLS_BACK)
    assert code == 1 and "differs from test_it.py.test_two@a.json" in said["test_two"][1], out
    assert "pure_callback" in said["test_two"][1] or "Python" in said["test_two"][1]
    assert run("--jaxscope-update=all", operation=CALLS_BACK)[0] == 0

    (tmp_path / "jaxscope-baselines" / "test_gone.json").write_text("{}")
    code, out, _ = run("--jaxscope-update=trim", "-k", "4")
    assert code == 4 and "run it on the whole suite" in out
    code, out, _ = run("--jaxscope-update=trim", operation=CALLS_BACK)
    assert code == 0 and sorted(p.name for p in (tmp_path / "jaxscope-baselines").iterdir()) == names


# -- wrong usage ----------------------------------------------------------------------------------------------------


MISTAKES = [
    ("no_recompile(after=1)", "did you mean no_recompiles?"),
    ("max_compilation(1)", "did you mean max_compilations?"),
    ("no_recompiles(aftr=1)", "did you mean after? usage: no_recompiles(after=1, functions=None)"),
    ("no_recompiles(after=-1)", "after=-1: the step must be 0, 1, 2"),
    ("no_recompiles(after='2')", "after='2': the step must be 0, 1, 2"),
    ("no_recompiles(1, None, 3)", "too many positional arguments"),
    ("no_recompiles(functions=[])", "is neither a name nor a list of names"),
    ("max_compilations()", "missing a required argument: 'n'"),
    ("max_compilations(-1)", "n=-1 is not a whole number, 0 or more"),
    ("max_compile_seconds('long')", "a number of seconds"),
    ("max_collectives()", "give count=, bytes= or both"),
    ("max_collectives(kind='all-gater', count=1)", "did you mean all-gather?"),
    ("max_collectives(bytes='2 apples')", "is not a size"),
]


@pytest.fixture(scope="module")
def mistaken(made_once):
    def make(folder):
        for n, (mark, _) in enumerate(MISTAKES):
            (folder / f"test_{n}.py").write_text(f"import pytest\n@pytest.mark.{mark}\ndef test_it(): pass\n")
        return session(folder, "-p", "no:xdist")

    return made_once("mistakes", make)


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_a_mistake_in_a_mark_is_an_error_of_collection(mistaken, number):
    code, out, _ = mistaken
    assert code == 2 and f"test_{number}.py::test_it: " in out and MISTAKES[number][1] in out


def test_a_mark_of_ones_own_that_looks_like_ours_is_left_alone(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = no_recompile: mine\n")
    (tmp_path / "test_it.py").write_text("import pytest\n@pytest.mark.no_recompile\ndef test_it(): pass\n")
    assert session(tmp_path, "-p", "no:xdist")[0] == 0


def test_a_suite_that_does_not_use_it_imports_nothing(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import sys, pytest\n"
        "@pytest.mark.parametrize('n', [1])\n@pytest.mark.mine\n"
        "def test_it(n):\n"
        "    ours = {m for m in sys.modules if m.partition('.')[0] == 'jaxscope'}\n"
        "    assert ours == {'jaxscope', 'jaxscope.pytest_plugin'}\n"
        "    assert not {'jax', 'msgspec', 'rich', 'zstandard'} & set(sys.modules)\n"
    )
    code, out, _ = session(tmp_path, "-p", "no:xdist")
    assert code == 0, out


TRIED = {
    "test_late": "in step 3, but nothing may compile after step 1",
    "test_late_and_flaky": "in step 3, but nothing may compile after step 1",
    "test_flaky": None,
    "test_measured_in_the_first_try": None,
    "test_repeated[64-1-2]": None,
    "test_repeated[64-2-2]": None,
    "test_repeated[29-1-2]": "in step 3, but nothing may compile after step 1",
    "test_repeated[29-2-2]": "in step 3, but nothing may compile after step 1",
    "test_measured_once[1-2]": None,
    "test_measured_once[2-2]": None,
    "test_set_up_may_compile": None,
    "test_the_method_may_not": "where nothing may compile",
    "test_async_set_up_may_compile": None,
    "test_the_async_method_may_not": "where nothing may compile",
}


@pytest.mark.long
@pytest.mark.capture
def test_a_try_after_the_first_proves_nothing_and_set_up_may_compile(tmp_path):
    pytest.importorskip("pytest_rerunfailures"), pytest.importorskip("pytest_repeat")
    (tmp_path / "test_tried.py").write_text((DATA / "gate" / "tried_again.py").read_text())
    _, out, said = session(tmp_path, "-p", "no:xdist", "--reruns", "1")
    assert set(said) == set(TRIED), out
    for name, words in TRIED.items():
        outcome, text = said[name]
        assert outcome == ("failure" if words else "passed") and (words or "") in text, (name, text)


ADDED = """
import jax, numpy as np, pytest


@pytest.fixture(autouse=True)
def gate(request):
    request.node.add_marker(pytest.mark.no_recompiles(after=0))


def test_compiles():
    jax.jit(lambda x: x * 2)(np.ones(3))


def test_does_not():
    pass
"""


@pytest.mark.long
@pytest.mark.capture
def test_a_mark_that_a_fixture_adds_is_checked_where_it_is_the_only_one(tmp_path):
    (tmp_path / "test_added.py").write_text(ADDED)
    _, out, said = session(tmp_path, "-p", "no:xdist")
    assert [said[n][0] for n in ("test_compiles", "test_does_not")] == ["failure", "passed"], out
    assert "where nothing may compile" in said["test_compiles"][1]


class Item:
    """A test with these marks, the nearest first."""

    def __init__(self, *marks):
        self.iter_markers = lambda: [m.mark for m in marks]


def test_marks_about_other_functions_or_collectives_are_all_checked_and_of_equal_ones_the_nearest():
    mark = pytest.mark
    for marks, checked in (
        ([mark.max_collectives("all-gather", 1), mark.max_collectives("all-reduce", 1)], 2),
        ([mark.max_collectives("all-gather", 1), mark.max_collectives(kind="all-gather", count=2)], 1),
        ([mark.max_compilations(1, "f"), mark.max_compilations(2, function="f")], 1),
        ([mark.no_recompiles(after=1), mark.no_recompiles(2, ["f"])], 2),
        ([mark.no_recompiles(after=1), mark.no_recompiles], 1),
    ):
        assert len(list(pytest_plugin._marks_of(Item(*marks)))) == checked, marks


def test_the_plugin_is_an_entry_point_and_knows_all_marks():
    import tomllib

    from jaxscope.check import marks

    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"jaxscope": "jaxscope.pytest_plugin"}
    assert {n: line.partition(":")[0] for n, line in pytest_plugin.MARKS.items()} == {
        n: marks.usage(n) for n in marks.MARKS
    }
