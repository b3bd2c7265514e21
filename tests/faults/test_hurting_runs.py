"""Runs from somebody else never hurt who reads them: the short form of benchmarks/faults.py."""

import os
import random
import resource
import shutil
import sys

import damaged_runs
import pytest

# What takes longest stands in the benchmark alone.
SLOW = {"a text of 60 MiB of lines", "a text of 1.9 GiB", "a sparse log of 256 MiB"}
MUTATIONS = 40
PART = 20


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return damaged_runs.base(tmp_path_factory.mktemp("base") / "run").path


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs" / "run"


def wrong(run, verbs):
    return [f"{verb}: {why}" for verb, _, why in damaged_runs.look(run, verbs) if why]


@pytest.mark.parametrize("shape", [s for s in damaged_runs.SHAPES if s not in SLOW])
def test_a_shape_made_to_hurt_harms_nobody(base, place, tmp_path, shape):
    theirs = damaged_runs.theirs(tmp_path / "theirs")
    shutil.copytree(base, place)
    damaged_runs.SHAPES[shape](place, theirs)
    verbs = ("json", "full") + (("view",) if shape in damaged_runs.VIEWED else ())
    assert wrong(place, verbs) == []
    assert damaged_runs.unharmed(theirs)


@pytest.mark.subprocess
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of this process from /proc")
@pytest.mark.long
def test_a_text_of_a_gigabyte_in_a_few_bytes_takes_no_gigabyte(base, place, tmp_path):
    shutil.copytree(base, place)
    pid = os.fork()
    if not pid:  # the memory of making it is another process's
        damaged_runs.SHAPES["a text of 1.9 GiB"](place, tmp_path)
        os._exit(0)
    os.waitpid(pid, 0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert wrong(place, ["text"]) == []
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < 512 << 20


@pytest.mark.parametrize("first", range(0, MUTATIONS, PART))
def test_a_run_damaged_at_random_ends_no_verb(base, place, first):
    for n in range(first, first + PART):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(base, place)
        done = damaged_runs.mutate(place, random.Random(f"1 {n}"))
        found = wrong(
            place,
            [
                damaged_runs.VERBS[n % len(damaged_runs.VERBS)],
                damaged_runs.VERBS[(n + 5) % len(damaged_runs.VERBS)],
            ],
        )
        assert found == [], (n, done)
