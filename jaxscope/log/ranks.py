"""Manage the run (recording) of a job, which is one program that runs in many processes. Each process (rank)
has a directory in this run, which is a run itself:

    .jaxscope/runs/train-slurm-41.0/
        meta.json         name of the run, id of the job, number of its ranks
        ranks/00002/      the recording of the process with rank 2
        blobs/            the program texts of all ranks, each stored once

The processes agree on the directory of the run without a message, because its name follows from the id of
the job. Each rank creates its own directory in the run with ``mkdir``. If a directory of this rank exists
already, another launch of the same job made it. The rank then uses the run with ``~2``, ``~3``, ... at the
end of its name.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxscope.errors import LogError
from jaxscope.log import files, liveness, removal, store
from jaxscope.log.store import RunDir

JOIN_S = 600.0  # seconds in which all ranks of a launch start, if none has a heartbeat
OVER_S = 20.0  # if the last heartbeat of all ranks is older, a new process belongs to another launch
MOST_LAUNCHES = 1000
DIVERGED, AGREED = "diverged.txt", "agreed.json"
MOST_AGREED = 4 << 20  # bytes


def join(
    path: Path,
    job: str,
    rank: int | None,
    size: int | None,
    *,
    name: str,
    overwrite: bool = False,
    **meta: Any,
) -> RunDir:
    """Create and return the directory in which this process records, inside the run of its job (several
    processes that run one program together). The first process of the job also creates that run.

    Args:
      path: the run directory of the first launch of the job.
      job: the id of the job, which is the same in all processes.
      rank: the number of this process in the job; None: unknown. The directory is then named after the
        machine and the process id.
      size: the number of processes of the job; None: unknown.
      name: the name of the run.
      overwrite: record in the run at ``path`` even if another launch of the job made it, and replace an
        existing directory of this process.
      meta: further entries of ``meta.json``, as JSON values.

    Raises:
      LogError: the directory cannot be created or contains something other than the run of a job, or there
        are too many launches of the job already.
    """
    place = f"{rank:05}" if rank is not None else f"{store.clean_name(socket.gethostname())}-{os.getpid()}"
    given = {"job": job, "rank": rank, "ranks": size}
    for whole in launches(path):
        try:
            if not _joined(whole, job, size, name, overwrite=overwrite):
                continue
            files.make_directory(whole.path / store.RANKS, within=whole.path)
            inner = whole.path / store.RANKS / place
            if not files.make_new_directory(inner, within=whole.path) and not overwrite:
                continue
        except OSError as e:
            raise store.unwritable(whole.path, e) from e
        return store.create(inner, name=name, overwrite=overwrite, **given, **meta)
    raise LogError(
        f"{path} has {MOST_LAUNCHES:,} runs of this job already",
        hint="remove old runs: jaxscope runs gc --keep 20",
        slug="run-directory-in-use",
    )


def launches(path: Path) -> Iterator[RunDir]:
    """Yield the run directories for repeated launches of one job: ``path`` for the first, then ``path~2``,
    ``path~3``, ... They need not exist."""
    yield RunDir(path)
    for n in range(2, MOST_LAUNCHES + 1):
        yield RunDir(path.with_name(f"{path.name}~{n}"))


def _joined(whole: RunDir, job: str, size: int | None, name: str, *, overwrite: bool) -> bool:
    """Create ``whole``, the run of a job, if it is missing. Return whether this process belongs to this run.
    Return False if another launch of the job made the run.

    Args:
      job: the id of the job.
      size: the number of its processes; None: unknown.
      name: the name of the run, if it is created.
      overwrite: if another launch has made the run, write its ``meta.json`` anew and return True.

    Raises:
      LogError: the directory contains something other than the run of a job.
      OSError: the directory cannot be created.
    """
    try:
        there = files.names(whole.path)
    except FileNotFoundError:
        there = []
    if removal.META not in there:  # files that another rank is writing begin with a dot
        if any(name not in (store.RANKS, "blobs") and name[:1] != "." for name in there):
            raise LogError(
                f"{whole.path} is not empty and is not a jaxscope run",
                hint="choose a new or an empty directory with --out",
                slug="run-directory-in-use",
            )
        store.make_home(whole.path)
        _describe(whole, job, size, name)
        return True
    known = whole.meta
    if "job" not in known:
        raise LogError(
            f"{whole.path} already contains a run of one process",
            hint="choose another directory with --out",
            slug="run-exists",
        )
    same = known["job"] == job and known.get("ranks") in (size, None)
    if overwrite and not (same and _recent(whole)):
        _describe(whole, job, size, name)
        return True
    return overwrite or (same and _recent(whole))


def _describe(whole: RunDir, job: str, size: int | None, name: str, started: float | None = None) -> None:
    """Write ``meta.json`` of ``whole``, the run of a job, create its folder ``blobs``, and remove its
    ``diverged.txt`` and ``agreed.json``. Several ranks (processes of the job) may do so at the same time.

    Args:
      job: the id of the job.
      size: the number of its processes; None: unknown.
      name: the name of the run.
      started: when the job started, in seconds since 1970; None: now.
    """
    begun = time.time() if started is None else started
    record = {"schema": store.SCHEMA, "name": name, "started": begun, "job": job, "ranks": size}
    files.write(whole.path / removal.META, json.dumps(record, indent=1) + "\n", within=whole.path)
    files.make_directory(whole.path / "blobs", within=whole.path)
    for name in (DIVERGED, AGREED):  # files of the run that is replaced
        with contextlib.suppress(OSError):
            files.remove(whole.path / name, within=whole.path)


def _recent(whole: RunDir) -> bool:
    """Return whether a process that starts now may belong to the same launch of the job as the processes that
    record to the run ``whole``: one of these was alive in the last OVER_S seconds, or if none has a
    heartbeat, the run began less than JOIN_S seconds ago."""
    # A heartbeat is written every second. Without any, all ranks start within JOIN_S seconds.
    beats = [b for r in store.rank_runs(whole) if (b := liveness.beat_of(r.heartbeat)) is not None]
    if any(b.going or time.time() - b.at < OVER_S for b in beats):
        return True
    return not beats and time.time() - whole.started < JOIN_S


def number(place: RunDir) -> int | None:
    """Return the rank of a process (its number in the job). ``place`` is the directory in which it records.
    Return None if it has no rank."""
    found = place.meta.get("rank")
    if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
        return found
    name = place.path.name
    return int(name) if place.path.parent.name == store.RANKS and re.fullmatch(r"\d{5,9}", name) else None


def whole_of(place: RunDir) -> RunDir | None:
    """Return the run of the job that contains ``place``, the recording of one process. Return None if
    ``place`` is not in the run of a job."""
    return store.parent_of(place) if place.path.parent.name == store.RANKS else None


def write_diverged(whole: RunDir, line: str) -> None:
    """Record in ``whole``, the run of a job, that its ranks (processes) run different programs. ``line`` is a
    sentence that says how they differ. Raises OSError if the file cannot be written."""
    files.write(whole.path / DIVERGED, line + "\n", within=whole.path)


def diverged(whole: RunDir) -> bool:
    """Return whether ``write_diverged`` has recorded in ``whole``, the run of a job, that its ranks run
    different programs."""
    return files.is_regular(whole.path / DIVERGED, within=whole.path)


def was_ended(whole: RunDir, places: Iterable[RunDir]) -> bool:
    """Return whether ``--stop-on-divergence`` ended the job that is recorded in ``whole``: its ranks
    (processes) ran different programs, and one of them was started with this option. ``places`` are the
    recordings of the ranks."""
    options = (place.meta.get("options") for place in places)
    return diverged(whole) and any(isinstance(o, dict) and o.get("stop-on-divergence") for o in options)


def write_agreed(whole: RunDir, calls: Mapping[str, Sequence[int]]) -> None:
    """Record in ``whole``, the run of a job, which calls of jitted functions may run their programs under
    ``--stop-on-divergence``. A rank (process of the job) waits for this record before it runs a program.

    Args:
      calls: {name of a rank's directory: numbers of this rank's latest calls that may run}.

    Raises:
      OSError: the file cannot be written.
    """
    files.write(whole.path / AGREED, json.dumps(calls), within=whole.path)


def agreed(whole: RunDir) -> dict[str, list[int]] | None:
    """Return the calls that ``write_agreed`` last recorded in ``whole``, the run of a job: {name of a rank's
    directory: numbers of this rank's latest calls that may run}. Return None if nothing can be read."""
    try:
        found = json.loads(files.read(whole.path / AGREED, MOST_AGREED, within=whole.path))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def found_below(path: Path, depth: int = 5) -> list[RunDir]:
    """Return the recordings of single processes in the directory ``path`` and its subdirectories, down to
    ``depth`` levels. For the run of a job, these are the recordings of its processes. ``path`` may be a
    recording itself. Links are not followed."""
    here = RunDir(path)
    if removal.is_run(path):
        return store.rank_runs(here) or ([] if "job" in here.meta and not here.logs() else [here])
    if depth == 0 or path.is_symlink():
        return []
    try:
        below = sorted(p for p in path.iterdir() if p.is_dir())
    except OSError:
        return []
    return [each for p in below for each in found_below(p, depth - 1)]


def copy(place: RunDir, into: RunDir, rank: int, **entries: Any) -> RunDir:
    """Copy ``place``, the recording of one process, into ``into``, the run of a job, as the process with the
    number ``rank``. Return the directory of the copy. The program texts are copied to ``into/blobs``.
    Profiles and sub-runs are not copied. ``entries`` are added to the ``meta.json`` of the copy.

    Raises:
      OSError: something cannot be read or written.
    """
    target = into.path / store.RANKS / f"{rank:05}"
    files.make_directory(target, within=into.path, parents=True)
    for part in ("events", "blobs", "boot"):
        files.make_directory(target / part, within=into.path)
    for relative in removal.own_files(place.path):
        to = into.path / relative if relative.parts[0] == "blobs" else target / relative
        files.make_directory(to.parent, within=into.path, parents=True)
        files.write(to, _content(place.path / relative, place.path), within=into.path)
    outer = store.texts_of(place)
    if outer != place.path:
        for blob in files.names(outer / "blobs", within=outer):
            if not (into.path / "blobs" / blob).exists():
                with contextlib.suppress(OSError):
                    files.write(
                        into.path / "blobs" / blob, _content(outer / "blobs" / blob, outer), within=into.path
                    )
    meta = {**place.meta, "rank": rank, **entries}
    files.write(target / removal.META, json.dumps(meta, indent=1) + "\n", within=into.path)
    return RunDir(target)


def _content(path: Path, within: Path) -> bytes:
    """Return the content of the file ``path`` in the run directory ``within``."""
    with files.open_regular(path, within=within) as f:
        return b"".join(itertools.takewhile(bool, iter(lambda: f.read(store.PIECE), b"")))


def create_merged(path: Path | None, job: str, size: int, name: str, started: float) -> RunDir:
    """Create an empty run of the job with the id ``job``, and return it. Recordings of single processes are
    later copied into this run (``copy``).

    Args:
      path: its directory; None: a new one under ``runs_home()``, named after ``name``.
      size: the number of ranks (processes) of the job.
      started: when the job started, in seconds since 1970.

    Raises:
      LogError: the run cannot be created, or it already exists.
    """
    whole = RunDir(path or store.fresh(name))
    if whole.path.exists() and files.names(whole.path):
        raise LogError(f"{whole.path} is not empty", hint="choose a new directory with -o", slug="run-exists")
    try:
        store.make_home(whole.path)
        _describe(whole, job, size, name, started)
    except OSError as e:
        raise store.unwritable(whole.path, e) from e
    return whole
