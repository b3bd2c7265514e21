"""``jaxscope runs rm`` and ``gc``: what they remove, what they leave, whom they ask."""

import functools
import io
import json
import time

import handwritten_runs
import pytest

from jaxscope import cli
from jaxscope.cli import runs
from jaxscope.errors import RunNotFound
from jaxscope.log import store
from jaxscope.log.jobs import Job, Queue
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev
from jaxscope.schema.targets import Target


@pytest.fixture
def jaxscope(jaxscope):
    return functools.partial(jaxscope, "runs")


def over(path, *, started=None):
    """A run that has ended."""
    run = store.create(path, argv=["a.py"])
    handwritten_runs.Log(run).end()
    handwritten_runs.exited(run)
    if started is not None:
        meta = json.loads((run.path / "meta.json").read_text())
        (run.path / "meta.json").write_text(json.dumps({**meta, "started": started}))
    return run


def goes_on(run):
    writer = Writer(run, lambda forked: ev.RunStarted(t_ns=1), of_program=True)
    writer.open()
    return writer


def names(home):
    return sorted(p.name for p in home.iterdir())


def test_gc_leaves_a_run_that_goes_on_however_long_it_says_nothing(jaxscope, home):
    writer = goes_on(store.create(home / "quiet", how="record"))
    old = store.create(home / "month", argv=["a.py"])
    (old.path / "meta.json").write_text(json.dumps({**old.meta, "started": time.time() - 90 * runs.DAY_S}))
    month = goes_on(old)
    over(home / "done")
    assert jaxscope("gc", "--keep", "0")[0] == 0
    assert names(home) == ["month", "quiet"]
    for each in (writer, month):
        each._let_go()  # as the program's death would
    assert jaxscope("gc", "--keep", "0")[0] == 0 and names(home) == []


def test_gc_leaves_a_run_while_one_within_it_goes_on_or_its_programs_are_compiled(jaxscope, home):
    outer, other = over(home / "outer"), over(home / "targets")
    inner = goes_on(store.create(store.sub_run(outer, "A=2")))
    queue = Queue(other)
    queue.beat()
    queue.put(Job("0" * 16, Target("v5e:1x1", "v5e", "tpu", (1, 1), 1, 1), 1), b"")
    assert jaxscope("gc", "--keep", "0")[0] == 0 and names(home) == ["outer", "targets"]
    inner._let_go()
    queue.done("0" * 16)
    assert jaxscope("gc", "--keep", "0")[0] == 0 and names(home) == []


def test_gc_gives_a_run_of_another_machine_a_day(jaxscope, home):
    for name, at in (("now", time.time() - 60), ("long-ago", time.time() - 2 * runs.DAY_S), ("future", 4e9)):
        run = store.create(home / name)
        (run.path / "meta.json").write_text(json.dumps({**run.meta, "started": time.time() - 3 * runs.DAY_S}))
        run.heartbeat.write_text(json.dumps({"machine": "another", "locked": True, "at": at}))
    assert jaxscope("gc", "--keep", "0")[0] == 0 and names(home) == ["now"]


def test_gc_passes_over_links_and_other_tools_runs_and_goes_on_behind_one_that_cannot_be_removed(
    jaxscope, home, tmp_path, monkeypatch
):
    first, last = over(home / "a", started=1), over(home / "z", started=2)
    elsewhere = over(tmp_path / "elsewhere")
    (home / "link").symlink_to(elsewhere.path)
    (home / "exp1").mkdir()
    (home / "exp1" / "meta.json").write_text('{"lr": 0.1}')
    (home / "exp1" / "ckpt.bin").touch()
    remove = store.RunDir.remove

    def fails(self):
        if self.path == first.path:
            raise PermissionError(13, "Permission denied")
        return remove(self)

    monkeypatch.setattr(store.RunDir, "remove", fails)
    code, out, err = jaxscope("gc", "--keep", "0")
    assert code == 2 and out == f"removed {last.path}\n" and "a cannot be removed: Permission denied" in err
    assert "1 run removed" in err and names(home) == ["a", "exp1", "link"]
    assert elsewhere.logs() and (home / "exp1" / "ckpt.bin").exists()


def test_of_two_who_remove_the_same_run_one_says_so(jaxscope, home, monkeypatch):
    run = over(home / "a")
    remove = store.RunDir.remove

    def second(self):
        remove(self)  # the other one
        return remove(self)

    monkeypatch.setattr(store.RunDir, "remove", second)
    code, out, err = jaxscope("gc", "--keep", "0")
    assert (code, out) == (0, "") and "0 runs removed" in err and not run.path.exists()


def test_rm_of_a_project_in_which_a_run_was_recorded_removes_the_run_alone(jaxscope, home, tmp_path):
    project = over(tmp_path / "project").path
    for name in (".git/HEAD", "train.py", "events/mine"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("precious")
    code, _, err = jaxscope("rm", str(project))
    assert code == 0 and "are kept: .git, events/mine, train.py" in err
    assert sorted(p.name for p in project.rglob("*") if p.is_file()) == ["HEAD", "mine", "train.py"]
    code, _, err = jaxscope("rm", str(project))
    assert code == 2 and (project / "train.py").exists()


@pytest.mark.parametrize(("answer", "left"), [("y\n", []), ("\n", ["a"]), ("no\n", ["a"]), ("", ["a"])])
def test_a_person_at_a_terminal_is_asked_and_nobody_else(jaxscope, home, monkeypatch, answer, left):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    over(home / "a")
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stderr", Terminal())
    assert jaxscope("rm", "a")[0] == 0 and names(home) == left
    if left:
        assert jaxscope("gc", "--keep", "0")[0] == 0 and names(home) == left
        assert jaxscope("rm", "--yes", "a")[0] == 0 and names(home) == []


def test_the_beginning_of_several_names_is_an_error_that_names_them(home):
    for n in range(1, 4):
        over(home / f"p{n}", started=n)
    over(home / "p", started=1)
    over(home / "other", started=1)
    assert store.find("p").path.name == "p" and store.find("oth").path.name == "other"
    store.find("p").remove()
    with pytest.raises(RunNotFound, match="'p' is the beginning of 3 names of runs") as e:
        store.find("p")
    assert "p1, p2, p3" in e.value.hint and e.value.slug == "run-ambiguous"


def test_of_several_runs_with_one_name_the_newest_is_meant_and_reported(home, capsys):
    for n in (1, 2):
        run = store.create(home / f"train-{n}", name="train", argv=["a.py"])
        (run.path / "meta.json").write_text(json.dumps({**run.meta, "started": n}))
    cli.command(["report", "train"])
    assert "2 runs are called train; showing the newest, train-2" in capsys.readouterr().err
    cli.command(["report", "train-1"])
    assert "newest" not in capsys.readouterr().err
