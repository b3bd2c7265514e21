"""``jaxscope try``: a program before and after a change, in checkouts of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import handwritten_runs
import jsonschema
import pytest

from jaxscope.cli import worktrees
from jaxscope.errors import UsageError
from jaxscope.log import store
from jaxscope.model import diff, facts
from jaxscope.model.load import load
from jaxscope.report import trial
from jaxscope.report.trial import compare_outputs

TRAIN = """\
import jax
import jax.numpy as jnp
from helper import SIZES


@jax.jit
def step(x):
    return (x * x).sum()


for size in SIZES:
    print("loss", float(step(jnp.ones(size))))
"""
HELPER = "SIZES = (3, 4, 5)\n"
PADDED = """\
--- a/work/helper.py
+++ b/work/helper.py
@@ -1 +1 @@
-SIZES = (3, 4, 5)
+SIZES = (5, 5, 5)
"""


def git(at: Path, *words: str) -> str:
    identity = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    name = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", *name, *words],
        cwd=at,
        env={**os.environ, **identity},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
def repository(tmp_path):
    """A checkout with an uncommitted change in train.py and a new file, helper.py; the work is in a
    subdirectory."""
    work = tmp_path / "repo" / "work"
    work.mkdir(parents=True)
    git(work.parent, "init", "-q")
    (work / "train.py").write_text("raise SystemExit('committed')\n")
    (work / ".gitignore").write_text("data/\n")
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "first")
    (work / "train.py").write_text(TRAIN)
    (work / "helper.py").write_text(HELPER)
    (work / "data").mkdir()
    (work / "data" / "large").write_text("ignored")
    (work.parent / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\nexit 1\n")
    (work.parent / ".git" / "hooks" / "post-checkout").chmod(0o755)
    return work


def state(work: Path) -> tuple:
    files = {
        str(p): p.read_bytes() for p in sorted(work.rglob("*")) if p.is_file() and ".jaxscope" not in p.parts
    }
    return (
        files,
        git(work, "status", "--porcelain"),
        git(work, "worktree", "list"),
        git(work, "stash", "list"),
    )


def attempt(work, clean_env, *words):
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "try", "--format", "json", *words],
        cwd=work, env={**clean_env, "TMPDIR": str(work.parents[1])}, capture_output=True, text=True,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


@pytest.mark.long
@pytest.mark.capture
@pytest.mark.costly
def test_a_patch_that_helps_is_better_and_a_comment_changes_nothing(repository, clean_env, tmp_path):
    before = state(repository)
    fix = tmp_path / "fix.diff"
    fix.write_text(PADDED)
    code, page, err = attempt(repository, clean_env, "--patch", str(fix), "train.py")
    assert state(repository) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fix.diff", "repo"]
    jsonschema.Draft202012Validator(trial.schema()).validate(page)
    known = {(f["name"], f["function"]): (f["before"], f["after"], f["verdict"]) for f in page["facts"]}
    assert known["recompiles", None] == known["recompiles", "step"] == (2, 0, "better")
    assert known["compilations", "step"] == (3, 1, "better")
    assert known["transfers_to_host", None] == (3, 3, "equal")
    assert ("peak_bytes", "step") not in known and page["facts_equal"] > 3
    assert [f["code"] for f in page["findings_gone"]] == ["JX101"] and not page["findings_new"]
    # 3.0 was printed before and 5.0 is printed now: the numbers differ, the words do not.
    assert (code, page["verdict"]) == (1, "outputs differ"), err
    assert page["outputs"]["first_difference"] == {"line": 1, "before": "loss 3.0", "after": "loss 5.0"}
    assert page["outputs"]["largest_difference"] == 0.4
    assert page["before"]["label"] == "HEAD with uncommitted changes"
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "second")
    (repository / "train.py").write_text(TRAIN + "# a comment\n")
    code, page, err = attempt(repository, clean_env, "--ref", "HEAD", "train.py")
    assert (code, page["verdict"], page["outputs"]["identical"]) == (3, "equal", True), err
    assert {f["verdict"] for f in page["facts"]} == {"equal"}


@pytest.mark.subprocess
def test_the_version_to_try_has_uncommitted_and_new_files_and_no_ignored_ones(repository, monkeypatch):
    monkeypatch.chdir(repository)
    before, objects = state(repository), sorted((repository.parent / ".git" / "objects").rglob("*"))
    with worktrees.repository() as r:
        with r.checked_out(r.uncommitted()) as folder:
            assert (folder / "train.py").read_text() == TRAIN
            assert sorted(p.name for p in folder.iterdir()) == [".gitignore", "helper.py", "train.py"]
            first = folder
        with r.checked_out(r.commit_of("main")) as folder:
            assert folder == first and (folder / "train.py").read_text().startswith("raise")
    assert state(repository) == before and not first.exists()
    assert sorted((repository.parent / ".git" / "objects").rglob("*")) == objects


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (["--patch", "none.diff"], "no-patch"),
        (["--patch", "train.py"], "patch-does-not-apply"),
        (["--ref", "nowhere"], "no-such-ref"),
        (["--ref=--output=x"], "no-such-ref"),
    ],
)
def test_what_cannot_be_tried_is_an_error_and_leaves_nothing_behind(
    repository, monkeypatch, capsys, tmp_path, words, slug
):
    from jaxscope import cli
    from jaxscope.cli import trial as command

    monkeypatch.chdir(repository)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    original = command._run

    def without_the_first(repository, commit, patch, *rest):
        return None if patch is None and "--patch" in words else original(repository, commit, patch, *rest)

    monkeypatch.setattr(command, "_run", without_the_first if "--patch" in words else lambda *_: None)
    before = state(repository)
    assert cli.command(["try", "--format", "json", *words, "train.py"]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["slug"] == slug
    assert state(repository) == before and [p.name for p in tmp_path.iterdir()] == ["repo"]


@pytest.mark.subprocess
def test_outside_a_repository_the_error_names_another_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UsageError) as e, worktrees.repository():
        pass
    assert e.value.slug == "no-repository" and "jaxscope diff" in e.value.hint


@pytest.mark.parametrize(
    ("before", "after", "equal", "largest"),
    [
        ("loss 1.0\n", "loss 1.0\n", True, 0.0),
        ("loss 1.0\n", "loss 1.000001\n", True, 1e-6 / 1.000001),
        ("loss 1.0\n", "loss 1.1\n", False, 0.1 / 1.1),
        ("loss 1.0\n", "cost 1.0\n", False, None),
        ("loss nan\n", "loss nan \n", True, 0.0),
        ("loss nan\n", "loss 1.0\n", False, None),
        ("a\n", "a\nb\n", False, None),
        ("x 1e-8\n", "x 0.0\n", False, 1.0),
    ],
)
def test_outputs_are_compared_by_words_and_by_numbers_within_a_share(before, after, equal, largest):
    found = compare_outputs(before, after, 1e-5)
    assert found.equal == equal and found.identical == (before == after)
    assert found.largest_difference == (None if largest is None else pytest.approx(largest))
    assert (found.first_difference is None) == equal


def side(tmp_path, name, sizes, **more):
    run = store.create(tmp_path / name, name=name, argv=["train.py"])
    log = handwritten_runs.Log(run)
    log.backend(1)
    f = handwritten_runs.function("train_step")
    log.say(f)
    for n in sizes:
        log.compiled(f, handwritten_runs.key(handwritten_runs.leaf("x", n)), (1.0, 1.0, 1.0))
    log.end()
    read = load(run)
    return trial.Side(
        **{"label": name, "name": name, "run": read, "findings": [], "exit_code": 0, "output": "", **more}
    )


def test_each_verdict_has_its_exit_code(tmp_path):
    many, one = side(tmp_path, "many", (1, 2, 3)), side(tmp_path, "one", (3,))

    def verdict(a, b):
        page = trial.compare(a, b, 1e-5).page
        return page.verdict, trial.EXIT_CODES[page.verdict]

    assert verdict(many, one) == ("better", 0)
    assert verdict(one, many) == ("worse", 1)
    assert verdict(one, one) == ("equal", 3)
    assert verdict(many, one._replace(output="x")) == ("outputs differ", 1)
    assert verdict(many, one._replace(exit_code=1)) == ("failed", 1)
    assert verdict(many._replace(exit_code=1), one) == ("better", 0)


def test_seconds_are_no_fact_and_a_mixed_result_is_named_so(tmp_path):
    many, one = side(tmp_path, "many", (1, 2, 3)), side(tmp_path, "one", (3,))
    found = facts.facts(diff.runs(many.run, one.run))
    assert not [f for f in found if "seconds" in f.figure.what]
    worse = [facts.Fact("counts", facts.Difference("x", 1, 2), facts.WORSE)]
    assert facts.verdict([*found, *worse]) == facts.MIXED
    assert facts.verdict([]) == facts.EQUAL


def test_the_text_has_the_verdict_the_outputs_and_the_facts_that_differ(tmp_path):
    import io

    from jaxscope.report.console import console
    from jaxscope.report.layout import put

    many, one = side(tmp_path, "many", (1, 2, 3)), side(tmp_path, "one", (3,))
    buffer = io.StringIO()
    put(console(buffer, width=120), trial.lines(trial.compare(many, one, 1e-5)))
    text = buffer.getvalue()
    assert text.startswith("better: many → one\n  the outputs are equal\n")
    assert "  better recompiles of your functions: 2 → 0 (-2)\n" in text
    assert "  better train_step, compilations: 3 → 1 (-2)\n" in text
    assert "  equal  calls off JAX's fast path: 0\n" in text
    assert "jaxscope diff many one" in text
