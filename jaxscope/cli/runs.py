"""``jaxscope runs``: list the recorded runs, remove them, merge or upload them."""

from __future__ import annotations

import argparse
import contextlib
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxscope.cli import uploading
from jaxscope.errors import LogError, RunNotFound, UsageError
from jaxscope.log import ranks, removal, store
from jaxscope.log.counts import SUFFIX
from jaxscope.log.jobs import Queue
from jaxscope.log.liveness import STALE_S, beat_of
from jaxscope.log.store import RunDir
from jaxscope.present.escape import escape

if TYPE_CHECKING:
    from jaxscope.model.run import Run

DESCRIPTION = "List the recorded runs of this directory, remove some of them, or merge the runs of one job."
EXAMPLES = """\
examples:
  jaxscope runs                           the list, newest last
  jaxscope runs rm train-20260102-030405-a1b2
  jaxscope report latest/MESH=4x4         one run of --vary; the list shows it under the first run
  jaxscope runs gc --keep 20              all but the 20 newest
  jaxscope runs gc --older-than 30 --dry-run
  jaxscope runs merge host0/run host1/run -o job    merge what the processes of a job recorded into one run
  jaxscope runs upload latest s3://bucket/run     upload the files that are missing in the store
"""
MERGING = """\
Copy the recordings of the processes of one job into one run. This is needed if the processes have no common
file system. DIR is a run, or any directory that contains runs. The rank of a process is the one that its
launcher set; if it set none, it is JAX's process index.
"""
UPLOADING = """\
Upload the files of a run that are missing in a store: all of them, or, after `run --out s3://...`, the files
that could not be uploaded because the store did not answer. Then `jaxscope report URL` reads the run from the
store.
"""
REMOVAL = """\
Remove runs by name or directory: the files that jaxscope wrote, and the directory if
nothing else is in it.
"""
DAY_S = 86_400
OLD_S = 60 * DAY_S
KEEP = 20
SHOWN = 5


def add_parser(subparsers: Any) -> None:
    """Add the command ``jaxscope runs`` with ``list``, ``rm``, ``gc``, ``merge`` and ``upload`` to
    ``subparsers`` (of argparse)."""
    parser = subparsers.add_parser(
        "runs", help="list and remove runs", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.set_defaults(handler=handle_list)
    verbs = parser.add_subparsers(metavar="{list,rm,gc,merge,upload}")
    listing = verbs.add_parser("list", help="what is recorded (default)")
    listing.set_defaults(handler=handle_list)
    remove = verbs.add_parser("rm", help="remove runs", description=REMOVAL)
    remove.add_argument(
        "names", nargs="+", metavar="NAME", help="the whole name, as the list shows it, or a directory"
    )
    remove.add_argument("-y", "--yes", action="store_true", help="do not ask")
    remove.set_defaults(handler=handle_rm)
    clear = verbs.add_parser(
        "gc",
        help="remove old runs",
        description="Remove old runs, selected by --keep or --older-than. Without either,"
        " nothing is removed: jaxscope only lists the runs that are older than the"
        f" {KEEP} newest. A run that is still being recorded is never removed.",
    )
    clear.add_argument("--keep", type=_natural, metavar="N", help="keep the N newest")
    clear.add_argument("--older-than", type=_natural, metavar="DAYS", help="remove only what is older")
    clear.add_argument("--dry-run", action="store_true", help="print what would be removed")
    clear.add_argument("-y", "--yes", action="store_true", help="do not ask")
    clear.set_defaults(handler=handle_gc)
    merge = verbs.add_parser(
        "merge", help="merge the runs of a job's processes into one", description=MERGING
    )
    merge.add_argument(
        "directories", nargs="+", metavar="DIR", type=Path, help="a run, or a folder that contains runs"
    )
    merge.add_argument(
        "-o", "--out", metavar="DIR", type=Path, help="the new run (default: in .jaxscope/runs)"
    )
    merge.add_argument("--job", metavar="NAME", help="merge only the processes of this job")
    merge.set_defaults(handler=handle_merge)
    upload = verbs.add_parser("upload", help="copy a run to a store: s3://, gs://", description=UPLOADING)
    upload.add_argument("run", metavar="RUN", help="a run's name, its directory, or latest")
    upload.add_argument("url", metavar="URL", help="the directory of the run in the store: s3://bucket/run")
    upload.add_argument("--overwrite", action="store_true", help="replace a run that is already at URL")
    upload.set_defaults(handler=uploading.handle)


class Row(NamedTuple):
    """One run in the list, each column as text."""

    name: str
    when: str
    program: str
    seconds: str
    compiles: str
    end: str
    size: str


def handle_list(args: argparse.Namespace) -> int:
    """Run ``jaxscope runs list``: print a table of all runs. Return 0."""
    runs = store.all_runs()
    if not runs:
        sys.stderr.write(
            f"no run is recorded under {store.runs_home()}\n  record one: jaxscope run train.py\n"
        )
        return 0
    print_table(runs)
    return 0


def print_table(runs: Sequence[RunDir]) -> None:
    """Print a table of ``runs`` and of the runs inside their directories. If its lines do not fit into the
    terminal, print several lines for each run instead."""
    from jaxscope.report.console import terminal_width

    rows = [
        Row("RUN", "WHEN", "PROGRAM", "TIME", "COMPILED", "END", "SIZE"),
        *(r for d in runs for r in _rows(d)),
    ]
    widths = [max(len(r[i]) for r in rows) for i in range(len(Row._fields))]
    right = {3, 4, 6}
    order = (0, 1, 3, 4, 6, 5, 2)  # the program last: it may be long
    most = terminal_width(sys.stdout)
    if most is not None and sum(widths) + 2 * (len(widths) - 1) > most:
        for r in rows[1:]:
            print(r.name)  # noqa: T201
            rest = "  ".join([r.when, r.seconds, f"{r.compiles} compiled", r.size, r.end, r.program])
            for text in textwrap.wrap(rest, most - 2, break_on_hyphens=False):
                print(f"  {text}")  # noqa: T201
        return
    for r in rows:
        cells = [r[i].rjust(widths[i]) if i in right else r[i].ljust(widths[i]) for i in order]
        print("  ".join(cells).rstrip())  # noqa: T201


def _rows(directory: RunDir) -> list[Row]:
    """Return the row of the run in ``directory``, then the rows of the runs inside it (from ``run --vary``,
    or from ``compile`` for several numbers of devices), whose names begin with two spaces and a slash."""
    within = [row(sub) for sub in store.sub_runs(directory)]
    return [row(directory), *(r._replace(name=f"  /{r.name}") for r in within)]


def row(directory: RunDir) -> Row:
    """Return the row of the run in ``directory`` for the list of runs. This reads the log of the run."""
    from jaxscope.model.load import load
    from jaxscope.present.runs import ending
    from jaxscope.present.text import command, count, seconds, size

    places = store.rank_runs(directory)
    process = store.one_process(directory)
    run = load(process)
    meta = process.meta
    given = "".join(f"{name}={value} " for name, value in directory.settings if not name.startswith("-"))
    compiled = sum(f.compiled for f in run.functions.values())
    return Row(
        escape(directory.path.name),
        _when(meta.get("started")),
        f"{escape(given)}{command(process.argv or [])}"[:60]
        + (f" ({count(len(places), 'rank')})" if places else ""),
        seconds(run.seconds),
        f"{compiled:,}",
        ending(run, process)[0],
        size(directory.bytes_on_disk()),
    )


def handle_rm(args: argparse.Namespace) -> int:
    """Run ``jaxscope runs rm``: remove the named runs. Return 0. Unlike in other commands, the beginning of a
    name is not enough.

    Raises:
      UsageError: a name does not name exactly one run; then nothing is removed.
      LogError: a directory is not a run, or cannot be removed.
    """
    runs = {r.path.name: r for r in store.all_runs()}
    chosen = []
    for name in args.names:
        found = runs.get(name) or store.find(name)
        named = name in (found.name, found.path.name, store.address(found)) or found.path == RunDir(name).path
        same = [r for r in runs.values() if r.name == name]
        if not named or (name not in runs and len(same) > 1):
            raise UsageError(
                f"{name!r} does not name one run; nothing was removed",
                hint="give the whole name: " + ", ".join(r.path.name for r in (same or [found])[:5]),
                slug="run-ambiguous",
            )
        chosen.append(found)
    for found in chosen:
        if not removal.is_run(found.path):
            raise LogError(f"{found.path} is not a jaxscope run; nothing was removed", slug="not-a-run")
    if _agreed(chosen, yes=args.yes):
        for found in chosen:
            _remove(found)
    return 0


def handle_gc(args: argparse.Namespace) -> int:
    """Run ``jaxscope runs gc``: remove the old runs that the options select and that have ended. With
    ``--dry-run``, or without ``--keep`` and ``--older-than``, only list them. Return 2 if one cannot be
    removed, else 0."""
    from jaxscope.present.text import count, size

    limited = args.keep is not None or args.older_than is not None
    keep = args.keep if limited else KEEP
    runs = [r for r in store.all_runs() if removal.is_run(r.path)]
    old = runs[: max(0, len(runs) - keep)] if keep is not None else runs
    if args.older_than is not None:
        limit = time.time() - args.older_than * DAY_S
        old = [r for r in old if r.started < limit]
    old = [r for r in old if not _going_on(r)]
    freed, done, failed = 0, 0, 0
    removes = limited and not args.dry_run
    if removes and old and not _agreed(old, yes=args.yes):
        return 0
    for found in old:
        bytes = found.bytes_on_disk()
        try:
            if not removes:
                print(found.path)  # noqa: T201
            elif not _remove(found):
                continue
        except LogError as e:
            failed += 1
            sys.stderr.write(f"jaxscope: {escape(e.message)}\n")
            continue
        freed += bytes
        done += 1
    what = "removed" if removes else "would be removed"
    sys.stderr.write(f"{count(done, 'run')} {what}, {size(freed)}; {len(runs) - len(old) + failed} kept\n")
    if old and not limited and not args.dry_run:
        sys.stderr.write(f"nothing was removed; to do it: jaxscope runs gc --keep {KEEP}\n")
    return 2 if failed else 0


def handle_merge(args: argparse.Namespace) -> int:
    """Run ``jaxscope runs merge``: copy the recordings of a job's processes into a new run, and print the
    directory of the new run. Return 0.

    Raises:
      JaxscopeError: there are no recordings, or they are of several jobs, have unknown or equal ranks, or
        cannot be copied.
    """
    from jaxscope.present.text import count

    sources = [place for path in args.directories for place in ranks.found_below(path)]
    of_job = [p for p in sources if args.job in (None, p.meta.get("job"))]
    if not of_job:
        raise RunNotFound(
            f"no recorded process{f' of the job {args.job}' if args.job else ''} in"
            f" {', '.join(map(str, args.directories))}",
            hint="give the directories of the runs, or a folder that contains them",
            slug="nothing-to-merge",
        )
    jobs = sorted({str(p.meta["job"]) for p in of_job if "job" in p.meta})
    if len(jobs) > 1:
        raise UsageError(
            f"these are the processes of {len(jobs)} jobs: {', '.join(jobs[:SHOWN])}",
            hint=f"choose one: --job {jobs[0]}",
            slug="merge-jobs",
        )
    by_rank = _by_rank(of_job)
    first = by_rank[min(by_rank)]
    sizes = [n for p in of_job if isinstance(n := p.meta.get("ranks"), int)]
    job = jobs[0] if jobs else first.path.name
    whole = ranks.create_merged(
        args.out, job, max([*sizes, max(by_rank) + 1]), first.name, min(p.started for p in of_job)
    )
    for rank, place in sorted(by_rank.items()):
        try:
            ranks.copy(place, whole, rank, job=job)
        except OSError as e:
            raise LogError(f"{place.path} cannot be copied: {e}", slug="run-unreadable") from e
    print(whole.path)  # noqa: T201
    sys.stderr.write(f"{count(len(by_rank), 'rank')} of the job {escape(job)} merged\n")
    return 0


def _by_rank(places: Sequence[RunDir]) -> dict[int, RunDir]:
    """Return a dict: rank (number of a process in a job) -> the directory in ``places`` with the recording of
    this process.

    Raises:
      UsageError: the rank of a recording is unknown, or two recordings have the same rank.
    """
    from jaxscope.model.rank_log import Known, RankLog

    found: dict[int, RunDir] = {}
    for place in places:
        rank = ranks.number(place)
        if rank is None:
            log = RankLog(place, Known())
            log.poll()
            rank = log.index
        if rank is None:
            raise UsageError(
                f"the rank of {place.path} is unknown: no launcher set the rank of the recorded process, and"
                " this process did not start JAX with several processes",
                hint="leave it out",
                slug="merge-rank-unknown",
            )
        if rank in found:
            raise UsageError(
                f"{found[rank].path} and {place.path} are both of rank {rank}",
                hint="give the directories of one launch only",
                slug="merge-ranks",
            )
        found[rank] = place
    return found


def _agreed(chosen: Sequence[RunDir], *, yes: bool) -> bool:
    """Ask the user whether the runs ``chosen`` may be removed, and return the answer. Return True without
    asking if ``yes`` (``--yes``) is set, if ``chosen`` is empty, or if stdin or stderr is no terminal."""
    from jaxscope.present.text import count, size

    if yes or not chosen or not all(s is not None and s.isatty() for s in (sys.stdin, sys.stderr)):
        return True
    for found in chosen[:SHOWN]:
        sys.stderr.write(f"  {escape(str(found.path))}\n")
    if len(chosen) > SHOWN:
        sys.stderr.write(f"  and {len(chosen) - SHOWN:,} more\n")
    total = size(sum(found.bytes_on_disk() for found in chosen))
    sys.stderr.write(f"remove {count(len(chosen), 'run')}, {total}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().casefold() in ("y", "yes"):
        return True
    sys.stderr.write("nothing was removed\n")
    return False


def _remove(directory: RunDir) -> bool:
    """Remove the run in ``directory`` and print its directory. Keep files that jaxscope did not write, and
    name them on stderr. Return False if the run does not exist any more.

    Raises:
      LogError: the run cannot be removed.
    """
    try:
        left = directory.remove()
    except OSError as e:
        raise LogError(f"{directory.path} cannot be removed: {e.strerror}", slug="run-unremovable") from e
    except LogError:
        if directory.path.exists():
            raise
        return False
    print(f"removed {directory.path}")  # noqa: T201
    if left:
        named = ", ".join(escape(name) for name in sorted(left)[:SHOWN])
        more = f" and {len(left) - SHOWN:,} more" if len(left) > SHOWN else ""
        sys.stderr.write(f"  files that jaxscope did not write are kept: {named}{more}\n")
    return True


def _going_on(directory: RunDir) -> bool:
    """Return whether a process still writes into the run ``directory``, its ranks (processes of a job) or the
    runs inside it, or still compiles their programs for targets. If this is unknown, because the process is
    on another machine, return whether it wrote within the last day."""
    from jaxscope.model.load import going_on, load

    places = store.rank_runs(directory)
    for each in places or (directory, *store.sub_runs(directory)):
        queue = Queue(each)
        if queue.waiting() and not queue.abandoned():
            return True
        if time.time() - each.started > OLD_S and not removal.in_use(each.path):
            continue  # old logs need not be read
        run = load(each)
        known = going_on(run, each)
        if known or (known is None and time.time() - _last_sign(run, each) < DAY_S):
            return True
    return False


def _last_sign(run: Run, directory: RunDir) -> float:
    """Return when a process last wrote into the run (an event, a call count or a heartbeat), in seconds since
    the epoch. Times that are clearly in the future are ignored."""
    times = [directory.started, *(p.last_ns / 1e9 for p in run.processes.values())]
    beat = beat_of(directory.heartbeat)
    if beat is not None:
        times.append(beat.at)
    for path in directory.logs():
        with contextlib.suppress(OSError):
            times.append(path.with_suffix(SUFFIX).stat().st_mtime)
    return max((t for t in times if t <= time.time() + STALE_S), default=0.0)


def _when(started: object) -> str:
    try:
        assert isinstance(started, (int, float))
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(started))
    except (AssertionError, ValueError, OverflowError, OSError):
        return "?"


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"not a number of at least 0: {text!r}")
    return int(text[:9])
