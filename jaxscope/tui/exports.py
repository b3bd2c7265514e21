"""Write what is shown, or the run, as files into the current directory; no file is overwritten."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jaxscope.log import files
from jaxscope.log.store import RunDir, clean_name

if TYPE_CHECKING:
    from jaxscope.model.ranks import Job

LANE = 60  # columns of the lane of a group of ranks


def free(directory: RunDir, ending: str) -> Path:
    """Return an unused path such as ``train-20260102.overview.txt``, numbered if that file exists."""
    stem = clean_name(directory.path.name)
    path = Path(f"{stem}.{ending}").absolute()
    name, dot, suffix = ending.rpartition(".")
    n = 1
    while path.exists() or path.is_symlink():
        n += 1
        path = Path(f"{stem}.{name}-{n}{dot}{suffix}").absolute()
    return path


def report(directory: RunDir, path: Path) -> None:
    """Write what ``jaxscope report --format json`` prints. Loads the run: call it in a worker."""
    from jaxscope.model.load import load
    from jaxscope.report.json_report import pieces

    files.write(path, pieces(load(directory), directory), mode=files.SHARED)


def programs(directory: RunDir, function: str, number: int, out: Path) -> list[str]:
    """Write the files of one compilation as ``jaxscope dump`` does. Return their paths; empty if none."""
    from jaxscope.model.load import load
    from jaxscope.report.dump import dump

    run = load(directory)
    found = run.functions.get(function)
    written = list(dump(run, directory, [found], out, number)) if found is not None else []
    return [str(file) for w in written for file in w.files]


def ranks(directory: RunDir) -> str | None:
    """Return the report's lines about the ranks of the job that ``directory`` is a
    part of, and where they differ.

    None: it is no job. Reads all ranks: call it in a worker.
    """
    from jaxscope.model import ranks as model
    from jaxscope.model.load import load
    from jaxscope.present import findings as words
    from jaxscope.present.escape import escape
    from jaxscope.present.text import Places
    from jaxscope.report import ranks as report

    whole = model.job_of(directory)
    if whole is None:
        return None
    job = model.read(whole)
    lines = [f"{f.code} {escape(words.sentence(f))}" for f in report.findings(job)]
    section = report.section(job, Places(load(directory)))
    page = [*lines, *(" " * each.indent + each.text.plain for each in section), "", *_rank_lanes(job)]
    return "\n".join(page).strip()


def _rank_lanes(job: Job) -> list[str]:
    """Return a line per group of equal ranks: when its first rank ran, and when it compiled."""
    from jaxscope.present.text import seconds
    from jaxscope.report.ranks import GROUPS, named

    began = min((r.began_ns for r in job.ranks if r.began_ns is not None), default=0)
    length = max((r.left_ns or r.last_ns or 0 for r in job.ranks), default=0) - began
    if length <= 0:
        return []
    groups = job.groups()[:GROUPS]
    names = [named(group, job.ranks) for group in groups]
    wide = max(map(len, names))
    lines = [f"Time  0 … {seconds(length / 1e9)}  █ compiled a program for several processes  · ran"]
    for name, group in zip(names, groups, strict=True):
        rank = group[0]
        until = (rank.left_ns or rank.last_ns or began) - began
        first, last = ((t - began) * (LANE - 1) // length for t in (rank.began_ns or began, began + until))
        lane = ["·" if first <= n <= last else " " for n in range(LANE)]
        for seen in rank.seen:
            lane[min(max(0, (seen.t_ns - began) * (LANE - 1) // length), LANE - 1)] = "█"
        lines.append(f"  {name:{wide}}  {''.join(lane).rstrip()}")
    return lines
