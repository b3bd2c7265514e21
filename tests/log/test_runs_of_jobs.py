"""The run of a job: each process takes its place in it without a message to the others."""

import json
import os
import stat
import threading

import pytest

from jaxscope.errors import LogError, RunNotFound
from jaxscope.log import ranks, removal, store
from jaxscope.log.liveness import Heartbeat
from jaxscope.log.store import RunDir


def joined(path, rank, size=4, job="j", **more):
    return ranks.join(path, job, rank, size, name="train", **more)


def whole(place):
    return place.path.parent.parent


def ended(place, seconds=100.0):
    """Write the heartbeat of a process that ended ``seconds`` ago, and the beginning of its run before that."""
    Heartbeat(place.heartbeat, hold=False).beat()
    beat = json.loads(place.heartbeat.read_text())
    place.heartbeat.write_text(json.dumps({**beat, "at": beat["at"] - seconds, "machine": "other"}))


def test_ranks_that_come_at_the_same_time_make_one_run_that_others_cannot_read(tmp_path):
    made, together = [], threading.Barrier(16)

    def come(rank):
        together.wait()
        made.append(joined(tmp_path / "runs" / "j", rank, 16))

    threads = [threading.Thread(target=come, args=(n,)) for n in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert {whole(p) for p in made} == {tmp_path / "runs" / "j"}
    found = store.rank_runs(RunDir(tmp_path / "runs" / "j"))
    assert [ranks.number(r) for r in found] == list(range(16))
    for path in (tmp_path / "runs" / "j", tmp_path / "runs" / "j" / "ranks", found[3].path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_rank_that_comes_while_another_creates_the_run_joins_it(tmp_path, monkeypatch):
    """The other rank writes meta.json after this one has looked for it, before it looks at what is there."""
    real, other = ranks.files.is_regular, []

    def too_early(path, **how):
        found = real(path, **how)
        if not other:
            other.append(path)
            joined(tmp_path / "j", 1)
        return found

    monkeypatch.setattr(ranks.files, "is_regular", too_early)
    assert whole(joined(tmp_path / "j", 0)) == tmp_path / "j"


def test_a_launch_again_of_the_same_job_is_another_run(tmp_path):
    first = [joined(tmp_path / "j", n, 2) for n in range(2)]
    again = [joined(tmp_path / "j", n, 2) for n in (1, 0)]
    assert {whole(p) for p in first} == {tmp_path / "j"}
    assert {whole(p) for p in again} == {tmp_path / "j~2"}
    assert whole(joined(tmp_path / "j", 0, 8)) == tmp_path / "j~3", (
        "another number of ranks is another launch"
    )
    assert whole(joined(tmp_path / "j", 1, 2, job="other")) == tmp_path / "j~4"


def test_a_place_that_is_free_in_a_launch_that_is_over_is_not_taken(tmp_path):
    ended(joined(tmp_path / "j", 0))
    assert whole(joined(tmp_path / "j", 1)) == tmp_path / "j~2"


def test_a_rank_that_comes_late_joins_while_another_is_alive(tmp_path):
    first = joined(tmp_path / "j", 0)
    meta = tmp_path / "j" / "meta.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "started": 1.0}))
    Heartbeat(first.heartbeat, hold=False).beat()
    assert whole(joined(tmp_path / "j", 1)) == tmp_path / "j"


def test_a_rank_that_is_unknown_has_a_place_all_the_same(tmp_path):
    place = joined(tmp_path / "j", None, None)
    assert place.path.name.endswith(f"-{os.getpid()}") and ranks.number(place) is None
    assert store.rank_runs(RunDir(tmp_path / "j")) and removal.is_run(place.path)


def test_a_directory_with_anything_else_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(LogError, match="not a jaxscope run"):
        joined(tmp_path, 0)
    store.create(tmp_path / "one")
    with pytest.raises(LogError, match="run of one process"):
        joined(tmp_path / "one", 0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "one"]


def test_overwriting_replaces_each_place_and_forgets_those_of_the_earlier_job(tmp_path):
    for n in range(4):
        ended(joined(tmp_path / "j", n))
    for n in range(2):
        joined(tmp_path / "j", n, 2, job="k", overwrite=True)
    assert [ranks.number(r) for r in store.rank_runs(RunDir(tmp_path / "j"))] == [0, 1]


def test_texts_of_all_ranks_are_stored_once_and_each_rank_reads_them(tmp_path):
    places = [joined(tmp_path / "j", n) for n in range(3)]
    blobs = {p.put_text("module")[0] for p in places}
    assert len(list((tmp_path / "j" / "blobs").iterdir())) == len(blobs) == 1
    assert [p.text(*blobs) for p in places] == ["module"] * 3


def test_a_run_with_ranks_is_removed_as_a_whole_with_the_contents_of_its_ranks(tmp_path):
    place = joined(tmp_path / "j", 0)
    store.create(store.sub_run(place, "4x4"), name="train")
    place.put_text("module")
    assert [r.path.name for r in store.sub_runs(place)] == ["4x4"]
    assert removal.remove(tmp_path / "j") == [] and not (tmp_path / "j").exists()


def test_a_rank_that_records_keeps_the_run_in_use(tmp_path):
    place = joined(tmp_path / "j", 3)
    assert not removal.in_use(tmp_path / "j")
    held = Heartbeat(place.heartbeat)
    held.beat()
    assert removal.in_use(tmp_path / "j")
    held.close()


def test_the_run_to_read_is_the_first_rank_unless_another_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXSCOPE_HOME", str(tmp_path))
    places = [joined(tmp_path / "runs" / "j", n) for n in (0, 1)]
    run = store.find("j")
    assert store.one_process(run).path == places[0].path and store.address(places[0]) == "j"
    assert store.one_process(run, 1).path == store.find(store.address(places[1])).path == places[1].path
    with pytest.raises(RunNotFound, match="no rank 7") as e:
        store.one_process(run, 7)
    assert "0, 1" in e.value.hint
    (places[1].path / "events" / "1-a.jsonl").write_text('{"kind":"RunStarted"}\n')
    assert run.recorded and store.one_process(run).path == places[1].path, "rank 0 recorded nothing"


def test_a_link_among_the_ranks_is_not_followed(tmp_path):
    joined(tmp_path / "j", 0)
    other = store.create(tmp_path / "other")
    (tmp_path / "j" / "ranks" / "00001").symlink_to(other.path)
    (tmp_path / "j" / "ranks" / "00002").symlink_to(tmp_path / "j")
    assert len(store.rank_runs(RunDir(tmp_path / "j"))) == 1 and not removal.in_use(tmp_path / "j")
    assert removal.remove(tmp_path / "j") and other.path.exists()


def test_places_of_several_machines_are_copied_into_one_run(tmp_path):
    for n in range(2):
        place = joined(tmp_path / f"host{n}" / "j", n, 2)
        blob, _ = place.put_text("module")
        (place.path / "events" / f"{n}-a.jsonl").write_text('{"kind":"RunStarted"}\n')
        (place.path / "notes.txt").write_text("mine")
    found = ranks.found_below(tmp_path)
    merged = ranks.create_merged(tmp_path / "all", "j", 2, "train", 5.0)
    for place in found:
        ranks.copy(place, merged, ranks.number(place))
    copies = store.rank_runs(merged)
    assert [ranks.number(c) for c in copies] == [0, 1] and merged.started == 5.0
    assert [c.text(blob) for c in copies] == ["module"] * 2 and all(c.recorded for c in copies)
    assert not list((tmp_path / "all").rglob("notes.txt"))
    with pytest.raises(LogError, match="not empty"):
        ranks.create_merged(tmp_path / "all", "j", 2, "train", 5.0)
