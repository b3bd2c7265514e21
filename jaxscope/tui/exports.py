"""Write a screen, the report or the texts of programs as files into the current directory.

No file is overwritten. This module also collects what the dialog about the ranks of a job shows.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jaxscope.log import files
from jaxscope.log.store import RunDir, clean_name

if TYPE_CHECKING:
    from jaxscope.model.rank_log import Rank

LANE = 60  # characters of the time line of a group of ranks
COLUMNS = 100  # characters per line of the findings about the ranks


def free(directory: RunDir, ending: str) -> Path:
    """Return an unused path in the current directory: the name of the run, a dot, then ``ending``. For the
    run ``train``, ``overview.txt`` gives ``train.overview.txt``, and if this file exists,
    ``train.overview-2.txt``."""
    stem = clean_name(directory.path.name)
    path = Path(f"{stem}.{ending}").absolute()
    name, dot, suffix = ending.rpartition(".")
    n = 1
    while path.exists() or path.is_symlink():
        n += 1
        path = Path(f"{stem}.{name}-{n}{dot}{suffix}").absolute()
    return path


def report(directory: RunDir, path: Path) -> None:
    """Write the JSON report (``jaxscope report --format json``) of the run in ``directory`` to the file
    ``path``. This loads the whole run, so the view calls it in another process."""
    from jaxscope.model import ranks as model
    from jaxscope.model.load import load
    from jaxscope.report.json_report import pieces

    whole = model.job_of(directory)
    job = model.read(whole) if whole is not None else None
    files.write(path, pieces(load(directory), directory, job), mode=files.SHARED)


def programs(directory: RunDir, function: str, number: int, out: Path) -> list[str]:
    """Write the texts of one compilation into the directory ``out``, as ``jaxscope dump`` does. Return the
    paths of the files; empty if the run has no such compilation.

    Args:
      function: the id of a function.
      number: the number of one of its compilations, from 1.
    """
    from jaxscope.model.load import load
    from jaxscope.report.dump import dump

    run = load(directory)
    found = run.functions.get(function)
    written = list(dump(run, directory, [found], out, number)) if found is not None else []
    return [str(file) for w in written for file in w.files]


class RankGroup(NamedTuple):
    """Ranks (processes of a job) that compiled the same programs.

    Attributes:
      first: the number of the lowest rank of the group.
      directory: the run directory of that rank.
      programs: number of compilations in each rank of the group, of programs that run on several ranks.
      state: the states of these ranks: running, exited, stopped or lost, separated by commas.
      lane: a time line of the lowest rank, at most LANE characters wide: ``·`` while it ran, ``█`` where it
        compiled one of these programs.
    """

    name: str
    first: int
    directory: RunDir
    programs: int
    state: str
    lane: str


class JobRanks(NamedTuple):
    """The ranks (processes) of a job, as the dialog shows them.

    Attributes:
      groups: the groups of ranks that compiled the same programs, the largest group first.
      seconds: seconds from the first event of the job to the last; None: unknown.
      text: the findings about differences between the ranks, then the section of the report about ranks.
    """

    groups: list[RankGroup]
    seconds: float | None
    text: str


def ranks(directory: RunDir) -> JobRanks | None:
    """Return the ranks (processes) of the job to which the run in ``directory`` belongs; None if it belongs
    to no job. This reads the logs of all ranks, so the view calls it in another process."""
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
    """Draw ``RankGroup.lane`` for ``rank``. The job began at ``began`` and lasts ``length``, in
    nanoseconds."""
    if length <= 0:
        return ""
    until = (rank.left_ns or rank.last_ns or began) - began
    first, last = ((t - began) * (LANE - 1) // length for t in (rank.began_ns or began, began + until))
    lane = ["·" if first <= n <= last else " " for n in range(LANE)]
    for seen in rank.seen:
        lane[min(max(0, (seen.t_ns - began) * (LANE - 1) // length), LANE - 1)] = "█"
    return "".join(lane).rstrip()


def rank(directory: RunDir) -> str:
    """Return what ``jaxscope report`` prints about the run of one rank (process of a job). This loads the
    whole run, so the view calls it in another process."""
    import io

    from jaxscope.model.load import load
    from jaxscope.report import text
    from jaxscope.report.console import WIDEST, console

    printed = io.StringIO()
    text.render(load(directory), console(printed, width=WIDEST), directory)
    return printed.getvalue()
