"""What is removed with a run: what jaxscope wrote, never anything else."""

import os
import stat

import pytest

from jaxscope.errors import LogError
from jaxscope.log import files, removal, store
from jaxscope.log.jobs import Queue
from jaxscope.log.liveness import Heartbeat
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev


def full(path, **meta):
    """A run with every kind of file that one can hold."""
    run = store.create(path, argv=["a.py"], **meta)
    writer = Writer(run, lambda forked: ev.RunStarted(), of_program=True)
    writer.open()
    writer.cell()
    writer.put_text("module {}")
    files.write(run.path / "keeper.json", "{}", within=run.path)
    os.close(files.append(run.output, within=run.path))
    os.close(files.append(run.path / "boot" / "17", within=run.path))
    heartbeat = Heartbeat(run.heartbeat, hold=False)
    heartbeat.beat()
    heartbeat.close()
    Queue(run).beat()
    Queue(run).wait_behind([1])
    Queue(run).close()
    os.close(files.append(run.path / "targets" / "lock", within=run.path))
    files.make_directory(run.path / "derived", within=run.path)
    files.write(run.path / "derived" / f"{'0' * 32}.msgpack", b"", within=run.path)
    (run.path / "blobs" / f".{'0' * 16}.part").touch()  # left by a kill
    (run.path / "blobs" / f"{'0' * 64}.17.abcdef.part").touch()  # by an older version
    return run, writer


def tree(path):
    return sorted(str(p.relative_to(path)) for p in path.rglob("*"))


def test_a_run_with_all_that_it_can_hold_is_gone_with_its_directory(tmp_path):
    run, writer = full(tmp_path / "run")
    full(store.sub_run(run, "A=1"))
    assert not [*removal.foreign(run.path)]
    assert run.remove() == [] and not run.path.exists()
    writer.close()


def test_a_profile_is_removed_and_other_files_beside_it_stay(tmp_path):
    for name, others in (
        ("one", []),
        ("two", ["profile/plugins/profile/2026_01_02_03_04_05/mine.txt", "profile/mine.txt"]),
    ):
        run, writer = full(tmp_path / name)
        writer.close()
        profile = run.path / "profile" / "plugins" / "profile" / "2026_01_02_03_04_05"
        profile.mkdir(parents=True)
        for file in ("vm-1.xplane.pb", "vm-1.trace.json.gz"):
            (profile / file).touch()
        for file in others:
            (run.path / file).touch()
        assert sorted(run.remove()) == sorted(others)
        assert run.path.exists() == bool(others) and not list(run.path.rglob("*.pb"))


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_nobody_else_can_read_any_of_it(tmp_path, umask):
    before = os.umask(umask)
    try:
        run, writer = full(tmp_path / "out" / "run")
    finally:
        os.umask(before)
    writer.close()
    for path in (run.path, *run.path.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        if not path.name.endswith(".part"):
            assert mode == (0o700 if path.is_dir() else 0o600), path


def test_an_empty_directory_becomes_private_with_the_run_in_it(tmp_path):
    tmp_path.chmod(0o755)
    store.create(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_what_somebody_else_put_there_stays_and_is_named(tmp_path):
    run, writer = full(tmp_path / "run")
    writer.close()
    _, writer = full(store.sub_run(run, "A=1"))
    writer.close()
    precious = ["train.py", ".git/HEAD", "events/notes.jsonl", "blobs/weights.bin", "sub/mine/output.log", "sub/A=1/x", "deep/meta.json"]  # fmt: skip
    for name in precious:
        (run.path / name).parent.mkdir(exist_ok=True)
        (run.path / name).write_text("precious")
    left = run.remove()
    assert sorted(left) == sorted([".git", "blobs/weights.bin", "deep", "events/notes.jsonl", "sub/A=1/x", "sub/mine", "train.py"])  # fmt: skip
    assert [p for p in tree(run.path) if (run.path / p).is_file()] == sorted(precious)


def test_what_links_lead_to_stays(tmp_path):
    outside = tmp_path / "outside"
    victim, writer = full(outside / "victim")
    writer.close()
    before = tree(outside)
    run = store.create(tmp_path / "run")
    (run.path / "events").rmdir()
    (run.path / "events").symlink_to(victim.path / "events")
    (run.path / "sub").symlink_to(outside)
    (run.path / "output.log").symlink_to(victim.path / "meta.json")
    assert sorted(run.remove()) == ["events", "output.log", "sub"]
    assert tree(outside) == before
    (tmp_path / "link").symlink_to(victim.path)
    with pytest.raises(LogError, match="it is a link"):
        removal.remove(tmp_path / "link")
    assert tree(outside) == before


@pytest.mark.parametrize(
    "meta", ["{}", '{"classes": 10}', "[]", '{"name": 1, "started": "x"}', '{"lr": ', "\xff", ""]
)
def test_a_directory_with_a_meta_json_of_another_tool_is_no_run(tmp_path, meta):
    (tmp_path / "events").mkdir()
    (tmp_path / "meta.json").write_text(meta, encoding="latin-1")
    (tmp_path / "weights.bin").touch()
    with pytest.raises(LogError, match="nothing was removed"):
        removal.remove(tmp_path)
    assert tree(tmp_path) == ["events", "meta.json", "weights.bin"]


def test_a_run_whose_meta_json_a_full_disk_cut_short_can_be_removed(tmp_path):
    run, writer = full(tmp_path / "run")
    writer.close()
    (run.path / "meta.json").write_text('{"schema": 1, "na')
    assert run.remove() == []


def test_a_removal_that_was_interrupted_can_be_made_again(tmp_path, monkeypatch):
    run, writer = full(tmp_path / "run")
    writer.close()
    real, left = os.unlink, [3]

    def unlink(*args, **kwargs):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(5, "Input/output error")
        real(*args, **kwargs)

    monkeypatch.setattr(os, "unlink", unlink)
    with pytest.raises(OSError, match="Input/output"):
        run.remove()
    left[0] = 10**6
    assert run.remove() == [] and not run.path.exists()


def test_a_new_run_takes_a_new_or_an_empty_directory_and_replaces_a_run_when_requested(tmp_path):
    run, writer = full(tmp_path / "run")
    with pytest.raises(LogError, match="already contains a recorded run"):
        store.create(run.path)
    with pytest.raises(LogError, match="still being recorded"):
        store.create(run.path, overwrite=True)
    writer.close()
    (run.path / "train.py").write_text("precious")
    with pytest.raises(LogError, match=r"contains files that do not belong to the run: train\.py"):
        store.create(run.path, overwrite=True)
    assert run.logs()
    (run.path / "train.py").unlink()
    assert not store.create(run.path, overwrite=True).logs()
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.py").touch()
    for overwrite in (False, True):
        with pytest.raises(LogError, match="is not empty and is not a jaxscope run"):
            store.create(tmp_path / "project", overwrite=overwrite)
    assert tree(tmp_path / "project") == ["a.py"]
