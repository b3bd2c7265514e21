"""Write what is shown, or the run, as files into the current directory; no file is overwritten."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jaxscope.log import files
from jaxscope.log.store import RunDir, clean_name

if TYPE_CHECKING:
    from jaxscope.model.rank_log import Rank

LANE = 60  # columns of the lane of a group of ranks
COLUMNS = 100  # of what is printed about all of them


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


class RankGroup(NamedTuple):
    """Ranks that compiled the same programs.

    Attributes:
      name: ``ranks 0-2``.
      first: the number of the lowest rank of the group.
      directory: the run directory of that rank.
      programs: number of programs that each rank compiled for devices of more than one process.
      state: the state of these ranks, for example running or ended.
      lane: when the lowest rank ran, and when it compiled, in LANE columns.
    """

    name: str
    first: int
    directory: RunDir
    programs: int
    state: str
    lane: str


class JobRanks(NamedTuple):
    """The ranks of a job as the view shows them.

    Attributes:
      groups: the groups of equal ranks, the largest first.
      seconds: seconds from the first event to the last; None: unknown.
      text: the differences between the ranks, and their figures.
    """

    groups: list[RankGroup]
    seconds: float | None
    text: str


def ranks(directory: RunDir) -> JobRanks | None:
    """Return the ranks of the job to which ``directory`` belongs; None: it does not belong to a job.

    This reads all ranks, so call it in a worker.
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
    found = [f"{f.code} {escape(words.sentence(f))}" for f in report.of_ranks(job)]
    lines = [line for each in found for line in textwrap.wrap(each, COLUMNS, subsequent_indent="  ")]
    section = report.section(job, Places(load(directory)))
    page = [*lines, *(" " * each.indent + each.text.plain for each in section)]
    began = min((r.began_ns for r in job.ranks if r.began_ns is not None), default=0)
    length = max((r.left_ns or r.last_ns or 0 for r in job.ranks), default=0) - began
    groups = [
        RankGroup(
            report.named(group, job.ranks),
            group[0].number,
            group[0].directory,
            len(group[0].seen),
            ", ".join(sorted({r.state for r in group})),
            _lane(group[0], began, length),
        )
        for group in job.groups()
    ]
    return JobRanks(groups, length / 1e9 if length > 0 else None, "\n".join(page).strip())


def _lane(rank: Rank, began: int, length: int) -> str:
    if length <= 0:
        return ""
    until = (rank.left_ns or rank.last_ns or began) - began
    first, last = ((t - began) * (LANE - 1) // length for t in (rank.began_ns or began, began + until))
    lane = ["·" if first <= n <= last else " " for n in range(LANE)]
    for seen in rank.seen:
        lane[min(max(0, (seen.t_ns - began) * (LANE - 1) // length), LANE - 1)] = "█"
    return "".join(lane).rstrip()


def rank(directory: RunDir) -> str:
    """Return what ``jaxscope report`` prints about one rank. Loads its run: call it in a worker."""
    import io

    from jaxscope.model.load import load
    from jaxscope.report import text
    from jaxscope.report.console import WIDEST, console

    printed = io.StringIO()
    text.render(load(directory), console(printed, width=WIDEST), directory)
    return printed.getvalue()
