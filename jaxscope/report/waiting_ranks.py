"""Describe what each rank (process) of a run does at the moment: whether it waits, runs or compiles, at which
line of code, and since when."""

from __future__ import annotations

from jaxscope.analysis.grouping import grouped
from jaxscope.model.rank_log import Rank
from jaxscope.model.ranks import Job
from jaxscope.rules import ranks as rules
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Field, Message, Seconds, message

MOST = 6  # groups of ranks that are described

Doing = tuple[str, Frame | None]  # the slug of a message, ``rank-waits-at``, and a line


def blocked_since(rank: Rank) -> int | None:
    """Return since when the main thread of ``rank`` has been waiting, in ns since the epoch. Return None if
    it was not waiting when its state was last recorded."""
    return rank.look.since_ns if rank.look is not None and rank.look.blocked else None


def activity_of(rank: Rank) -> Doing:
    """Return what a rank (process) does, did when it was killed, or that it has ended, as (name of a message
    template, line): ``("rank-waits-at", frame)``. The line is None if it is unknown."""
    if rank.left_ns is not None and (rank.left or rank.code in (None, 0)):
        return "rank-has-left", rank.seen[-1].site if rank.seen else None
    if rank.phase is not None:
        return f"rank-in-{rank.phase[0]}", rank.phase[1]
    if rank.look is None:
        return "rank-was-at", rank.seen[-1].site if rank.seen else None
    line = rank.look.stack[0] if rank.look.stack else None
    return "rank-waits-at" if rank.look.blocked else "rank-runs-at", line


def groups(job: Job) -> dict[Doing, list[Rank]]:
    """Return the ranks (processes) of a run grouped by what they do and at which line: {(name of a message
    template, line): ranks}. The smallest group comes first."""
    found = grouped((activity_of(rank), rank) for rank in job.ranks)
    # The others probably wait for the smallest group.
    return dict(sorted(found.items(), key=lambda each: (len(each[1]), each[1][0].number)))


def sentences(job: Job, now_ns: int | None = None) -> list[Message]:
    """Return a message for each group of ranks that do the same at the same line (the MOST smallest groups):
    which ranks, at which line, since when, the step and the last program. ``now_ns`` is the present time;
    None: use the time at which the first rank of the group ended or was last known to be alive."""
    return [_sentence(job, each, ranks, now_ns) for each, ranks in list(groups(job).items())[:MOST]]


def _sentence(job: Job, each: Doing, ranks: list[Rank], now_ns: int | None) -> Message:
    """Return the message about ``ranks``, which all do the same thing at the same line (``each``). ``now_ns``
    is as in ``sentences``."""
    rank = ranks[0]
    now = now_ns or rank.left_ns or rank.last_ns
    since = blocked_since(rank) or (rank.phase[2] if rank.phase else None)
    if since is None:
        since = rank.left_ns or (rank.look.since_ns if rank.look is not None else rank.last_ns)
    fields: dict[str, Field] = {
        "ranks": rules.named(job, ranks),
        "line": message("rank-line", line=each[1]) if each[1] is not None else None,
        "time": Seconds(None if since is None or now is None else max(0, now - since) / 1e9),
        "step": message("rank-at-step", step=rank.steps) if rank.steps is not None else None,
        "last": message("rank-last-program", program=rules.spelled(rank.seen[-1])) if rank.seen else None,
    }
    return next(m for m in _doings(fields) if m.slug == each[0])


def _doings(fields: dict[str, Field]) -> list[Message]:
    return [
        message("rank-waits-at", **fields),
        message("rank-runs-at", **fields),
        message("rank-was-at", **fields),
        message("rank-in-trace", **fields),
        message("rank-in-lower", **fields),
        message("rank-in-compile", **fields),
        message("rank-has-left", **fields),
    ]
