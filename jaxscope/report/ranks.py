"""Report on the ranks (processes) of one run: which of them compiled the same programs, the fastest and the
slowest, and how each ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from jaxscope.analysis.grouping import grouped
from jaxscope.model import ranks
from jaxscope.model.rank_log import Rank
from jaxscope.model.ranks import Job
from jaxscope.present.escape import escape
from jaxscope.present.render import text
from jaxscope.present.spans import Span
from jaxscope.present.text import Places, count, seconds, size
from jaxscope.report import contract, waiting_ranks
from jaxscope.report.layout import BLANK, Line, line
from jaxscope.rules import ranks as rules
from jaxscope.schema.findings import Finding

GROUPS, NAMED = 10, 16
PROGRAMS = 500  # programs for which hits of the persistent cache are compared


def findings(job: Job | None, of_run: Sequence[Finding]) -> list[Finding]:
    """Return the findings about differences between the ranks (processes) of a run, followed by ``of_run``,
    the findings of one rank, without those that repeat these differences. ``job`` has all ranks; None: there
    is only one."""
    return [*of_ranks(job), *rules.without_published(of_run, job)]


def of_ranks(job: Job | None) -> list[Finding]:
    """Return the findings about differences between the ranks (processes) of a run. ``job`` has all ranks;
    None: there is only one, and the list is empty."""
    return [] if job is None else rules.findings(job)


def section(job: Job, places: Places) -> Iterator[Line]:
    """Yield lines about the ranks (processes) of a run: a line for each group of ranks that compiled the same
    programs, then the smallest and the largest seconds and memory of a rank, and how the ranks ended.
    ``places`` shortens file names."""
    groups = job.groups()
    yield BLANK
    yield line(("Ranks", "title"), f"  {count(len(job.ranks), 'process', 'processes')} of one job", hang=4)
    for group in groups[:GROUPS]:
        programs = len(group[0].seen)
        same = ", the same on these ranks" if len(group) > 1 and programs else ""
        yield line(
            (named(group, job.ranks), "name"),
            f"  {count(programs, 'program')} on devices of several processes{same}",
            indent=2,
            hang=4,
        )
    if len(groups) > GROUPS:
        yield line((f"and {count(len(groups) - GROUPS, 'more group')}", "dim"), indent=2)
    for phase in ("trace", "lower", "compile"):
        yield from _spread(job.ranks, phase, attrgetter(f"{phase}_seconds"), seconds)
    known = [r for r in job.ranks if r.memory is not None]
    yield from _spread(known, "memory of the largest program", lambda r: r.memory or 0, size)
    yield from _slowest(job, places)
    yield from _cached(job)
    if job.missing:
        missing = job.missing
        more = f" and {len(missing) - NAMED:,} more" if len(missing) > NAMED else ""
        shown = ", ".join(map(str, missing[:NAMED]))
        yield line(("not recorded: ", "warning"), f"{_word(missing)} {shown}{more}", indent=2, hang=4)
    yield from _where(job)
    for how, ended in _ends(job).items():
        yield line((f"{named(ended, job.ranks)}: ", "dim"), how, indent=2, hang=4)


def _where(job: Job) -> Iterator[Line]:
    """Yield lines that say at which line of code ranks (processes) wait or run. Yield nothing unless a rank
    still runs, or was killed while it waited."""
    killed = any(
        r.code is not None and r.code < 0 and waiting_ranks.blocked_since(r) is not None for r in job.ranks
    )
    if killed or any(r.state == "running" for r in job.ranks):
        for each in waiting_ranks.sentences(job):
            yield line(escape(text(each)), indent=2, hang=4)


def _cached(job: Job) -> Iterator[Line]:
    """Yield a line for each program that some ranks had to compile although others loaded it from the
    persistent compilation cache."""
    alike = grouped((tuple((s.program, s.cache) for s in rank.seen), rank) for rank in job.ranks)
    found: dict[str, dict[str | None, list[Rank]]] = {}
    names: dict[str, str] = {}
    for group in alike.values():
        for name, s in {job.name(s): s for s in reversed(group[0].seen)}.items():
            found.setdefault(name, {}).setdefault(s.cache, []).extend(group)
            names[name] = s.name
    for program, by_outcome in list(found.items())[:PROGRAMS]:
        hit, missed = by_outcome.get("hit", []), by_outcome.get("miss", [])
        if hit and missed:
            yield line(
                ("persistent cache: ", "dim"),
                f"{escape(names[program])} was loaded by {named(hit, job.ranks)}"
                f" and compiled by {named(missed, job.ranks)}",
                indent=2,
                hang=4,
            )


def named(group: Sequence[Rank], every: Sequence[Rank]) -> str:
    """Return the numbers of the ranks in ``group`` as text: ``ranks 0-2``. If only few numbers between the
    first and the last are missing, the text names these: ``ranks 0-63 but 37``. ``every`` has all ranks."""
    return f"{_word(group)} {ranks.numbers(group, every)}"


def _word(items: Sequence[object]) -> str:
    return "rank" if len(items) == 1 else "ranks"


def _spread(
    known_ranks: Sequence[Rank], name: str, figure: Callable[[Rank], float], written: Callable[[float], str]
) -> Iterator[Line]:
    """Yield a line with the smallest and the largest ``figure`` of the ranks and the ranks that have them.
    ``name`` is what the figure is, and ``written`` makes its text."""
    if not known_ranks:
        return
    low, high = min(known_ranks, key=figure), max(known_ranks, key=figure)
    span: list[Span] = [(f"{name} ", "dim"), written(figure(low))]
    if written(figure(low)) != written(figure(high)):
        span += [f" (rank {low.number}) to ", written(figure(high)), f" (rank {high.number})"]
    yield line(*span, indent=2, hang=4)


def _slowest(job: Job, places: Places) -> Iterator[Line]:
    """Yield a line about the rank with the most seconds of compiling and its slowest compilation."""
    slow = max(job.ranks, key=lambda r: r.seconds)
    if slow.slowest is None or len(job.ranks) < 2:
        return
    frame, function, spent = slow.slowest
    where = places.frame(frame)
    yield line(
        ("slowest: ", "dim"),
        f"rank {slow.number}, {seconds(slow.seconds)}, most of it {escape(function)}",
        (f" ({where})" if where else "", "path"),
        f" {seconds(spent)}",
        indent=2,
        hang=4,
    )


def _ends(job: Job) -> dict[str, list[Rank]]:
    """Return the ranks (processes) by how they ended: ``{"exit code 1": [...], "signal 9": [...]}``. The dict
    is empty if all ended normally."""
    found: dict[str, list[Rank]] = {}
    for rank in job.ranks:
        code = rank.code
        if code is None:
            how = {"running": "still running", "stopped": "ended"}.get(rank.state, "no end in the log")
        else:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
        found.setdefault(how, []).append(rank)
    return {} if list(found) in (["exit code 0"], ["ended"]) else found


def as_json(job: Job | None) -> contract.Ranks | None:
    """Return the entry ``ranks`` of the JSON report, about the processes of a run. Return None if the run has
    only one process."""
    if job is None:
        return None
    return contract.Ranks(
        size=job.size,
        missing=job.missing,
        groups=[[r.number for r in group] for group in job.groups()],
        ranks=[
            contract.Rank.copy_of(
                r,
                rank=r.number,
                directory=r.directory.path.name,
                exit_code=r.code if r.code is None or r.code >= 0 else None,
                signal=-r.code if r.code is not None and r.code < 0 else None,
                compilations=r.compiled,
                shared_programs=[job.name(s) for s in r.seen],
                program_memory_bytes=r.memory,
                slowest=None if r.slowest is None else contract.SlowestCompilation(*r.slowest),
            )
            for r in job.ranks
        ],
    )
