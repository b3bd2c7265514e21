"""Numbers that grow beside a log: stored without a call to the kernel, read by anybody."""

import resource
from pathlib import Path

import pytest

from jaxscope.log import counts
from jaxscope.log.counts import PAGE, WIDTH, Cells


def test_what_is_stored_is_what_anybody_reads_at_once(tmp_path):
    cells = Cells(tmp_path / "1-a.counts")
    places = [cells.take() for _ in range(PAGE // WIDTH + 3)]  # more than a page
    assert [p[0] for p in places] == list(range(len(places)))
    for n, page, index in places:
        page[index] = n * 10
    found = counts.read(tmp_path / "1-a.jsonl")
    assert list(found[: len(places)]) == [n * 10 for n in range(len(places))]


def descriptors():
    return sorted(p.name for p in Path("/dev/fd").iterdir())


def test_no_descriptor_stays_open(tmp_path):
    """os.closerange() would close it, and the number would be a file of the program's."""
    before = descriptors()
    taken = Cells(tmp_path / "1-a.counts").take()
    assert descriptors() == before and taken[0] == 0


def test_a_disk_without_room_is_an_error_and_no_signal_later(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError):
            Cells(tmp_path / "1-a.counts").take()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("data", [b"", b"123", b"\xff" * 20, None])
def test_a_damaged_file_is_as_many_numbers_as_it_holds(tmp_path, data):
    if data is not None:
        (tmp_path / "1-a.counts").write_bytes(data)
    assert list(counts.read(tmp_path / "1-a.jsonl")) == [2**64 - 1] * (len(data or b"") // 8)
