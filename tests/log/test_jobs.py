"""Programs that wait for a compiler: files of a run."""

import os

import pytest

from jaxscope.analysis import machines
from jaxscope.log import jobs, store
from jaxscope.schema.events import TargetCompiled

TARGET = machines.parse("v5e:4x4")
ID = "0123456789abcdef"


@pytest.fixture
def queue(tmp_path):
    return jobs.Queue(store.create(tmp_path / "run"))


def job(id=ID, **more):
    return jobs.Job(id=id, target=TARGET, partitions=16, **more)


def test_a_job_comes_out_as_it_was_put_in(queue):
    asked = job(
        positions=[3, 1, 0, 2], propagate_to_outputs=[True, False], options={"xla_tpu_x": True}, shardy=True
    )
    assert queue.put(asked, b"MLIR")
    (path,) = queue.waiting()
    assert queue.job(path) == asked and queue.module(ID) == b"MLIR"


def test_the_same_program_waits_once_and_is_not_requested_again_when_it_is_done(queue):
    assert queue.put(job(), b"x") and not queue.put(job(), b"x")
    queue.done(ID)
    assert queue.waiting() == [] and not queue.put(job(), b"x")
    assert sorted(p.name for p in queue.path.iterdir()) == [f"{ID}.done"]


def test_jobs_are_taken_in_the_order_they_came(queue):
    ids = ["ffffffffffffffff", "0000000000000000", "aaaaaaaaaaaaaaaa"]
    for i, id in enumerate(ids):
        queue.put(job(id), b"")
        os.utime(queue.path / f"{id}.job", ns=(i, i))
    assert [p.stem for p in queue.waiting()] == ids


def test_another_file_in_the_directory_is_no_job(queue):
    queue.put(job(), b"")
    for name in ("../../etc.job", "x.job", f"{ID}.job.12.ab.part", "readme"):
        (queue.path / name.replace("/", "_")).write_text("{")
    assert [p.stem for p in queue.waiting()] == [ID]


def test_there_is_no_result_until_there_is_one_whole(queue):
    queue.put(job(), b"")
    assert queue.result_of(ID) is None
    (queue.path / f"{ID}.result").write_text('{"program": "0123')
    assert queue.result_of(ID) is None
    queue.put_result(TargetCompiled(program=ID, seconds=2.0))
    assert queue.result_of(ID).outcome == jobs.OK


def test_a_queue_says_when_no_more_jobs_will_come(queue):
    assert not queue.closed and queue.waiting() == []
    queue.close()
    assert queue.closed


def test_a_queue_reads_what_it_waits_for_from_a_small_file_of_its_own(queue, tmp_path):
    queue.beat()
    queue.wait_behind([12, 13])
    assert queue.behind() == (12, 13)
    path = queue.path / "behind"
    path.unlink()
    os.mkfifo(path)  # reading it would wait for a writer
    assert queue.behind() == ()
    path.unlink()
    (tmp_path / "elsewhere").write_text("[14]")
    path.symlink_to(tmp_path / "elsewhere")
    assert queue.behind() == ()
    path.unlink()
    path.write_text("[" + "1," * jobs.MAX_BEHIND + "1]")
    assert queue.behind() == ()
    queue.wait_behind([])
    assert not path.exists()
