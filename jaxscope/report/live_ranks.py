"""Compare the ranks (processes) of a running program. Report in a line if some of them compile other programs
than the rest, or if they hang."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec

from jaxscope.log.store import RunDir
from jaxscope.model.ranks import EXTRA, MISSING, Divergence, Following, Job
from jaxscope.present import findings as words
from jaxscope.present.escape import escape
from jaxscope.present.render import text
from jaxscope.report import waiting_ranks
from jaxscope.report.waiting_ranks import blocked_since
from jaxscope.rules import ranks as rules
from jaxscope.schema.findings import CERTAIN, Finding
from jaxscope.schema.messages import Message, Parts, Seconds, message

PATIENCE_S = 30.0  # seconds without progress after which the waiting ranks are named
ALIKE = 10  # if all ranks wait at the same line, multiply PATIENCE_S by this: the step may be a long one
SETTLE_S = 2.0  # seconds for more ranks to compile their program: the majority decides which ranks differ
AHEAD_S = 4.0  # seconds until a program that only some ranks have is reported
MOST_LINES = 50
LENGTH = 1_000  # longer lines are cut


class Comparison:
    """Compares the ranks (processes) of a running program.

    Args:
      whole: the directory of the run with all ranks.
      patience_s: seconds without progress after which the waiting ranks are named.
      holds: whether jaxscope delays each rank after a compilation until all ranks have compiled the same
        program.
      clock: a function that returns the present time in ns since the epoch.

    Attributes:
      agreed: the calls whose program all ranks that run it have compiled, so that they may run it: name of a
        rank's directory -> numbers of the latest of these calls in that rank's log, ascending. Empty unless
        ``holds`` is set.
      diverged: the line about ranks that certainly run different programs; None: no such ranks were found.
    """

    def __init__(
        self,
        whole: RunDir,
        patience_s: float = PATIENCE_S,
        *,
        holds: bool = False,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.agreed: dict[str, list[int]] = {}
        self.diverged: str | None = None
        self._following = Following(whole)
        self._patience_ns = int(patience_s * 1e9)
        self._holds = holds
        self._clock = clock
        self._first: dict[object, int] = {}  # when each difference was seen first
        self._named: set[int] = set()  # ranks that differ for certain
        self._likely: dict[tuple[int, ...], Divergence] = {}  # ranks that are ahead, or have an extra program
        self._ended = False
        self._waiting: frozenset[int] = frozenset()  # ranks that were named as waiting
        self._lines = 0

    def poll(self, *, last: bool = False) -> list[str]:
        """Read what the ranks have logged since the last call of ``poll``. Return lines about what is new:
        ranks that differ, end, hang or have caught up. After MOST_LINES lines, return none.

        Args:
          last: whether this is the last call. Only certain differences are then reported, at once.
        """
        job = self._following.poll()
        if self._holds:
            self.agreed = job.agreed()
        if self._lines >= MOST_LINES:
            return []
        if len(job.ranks) < 2:
            return self._published()
        found = [*self._differences(job, last), *self._first_end(job)]
        lines = [self._written(f) for f in found]
        if not last:
            lines += [
                f"jaxscope: {escape(text(m), LENGTH)}" for m in (*self._caught_up(job), *self._stalled(job))
            ]
        self._lines += len(lines)
        return lines

    def _published(self) -> list[str]:
        """Return a line for each new difference between ranks that record into separate directories, from the
        log of rank 0. It has the names of the ranks' programs, which the ranks send to rank 0."""
        run = self._following.alone()
        found = [] if run is None else [f for f in rules.published(run) if f.identity not in self._first]
        for f in found:
            self._first[f.identity] = 0
            if f.certainty == CERTAIN:
                self.diverged = self.diverged or self._written(f)
        return [self._written(f) for f in found]

    def _written(self, f: Finding) -> str:
        return f"jaxscope: {f.code} {escape(words.sentence(f), LENGTH)}"

    def _differences(self, job: Job, last: bool) -> Iterator[Finding]:
        """Yield a finding for each new difference between ranks: a certain one after SETTLE_S seconds, so
        that more ranks can compile their program, and a likely one (some ranks are ahead) after AHEAD_S
        seconds. ``last`` is the parameter of ``poll``."""
        now = self._clock()
        for d in (*job.divergences(), *job.rest()):
            numbers = tuple(r.number for r in d.ranks)
            if self._named.issuperset(numbers):
                continue
            since = now - self._first.setdefault((numbers, d.kind, d.position), now)
            if job.went_past(d) or self._held(d, now):
                if since >= SETTLE_S * 1e9 or last or _all_came(job, d):
                    self._named.update(numbers)
                    finding = msgspec.structs.replace(rules.differs(job, d), certainty=CERTAIN)
                    self.diverged = self.diverged or self._written(finding)
                    yield finding
            elif since >= AHEAD_S * 1e9 and numbers not in self._likely and not last:
                ahead = _ahead(d)
                if ahead is not None:
                    self._likely[numbers] = ahead
                    yield rules.differs(job, ahead)

    def _held(self, d: Divergence, now: int) -> bool:
        """Return whether ``d`` is certain, because some ranks compiled a further program and all others have
        been blocked for ``patience_s``. False unless ``holds`` is set. ``now`` is in ns."""
        ahead = _ahead(d) if self._holds else None
        since = [blocked_since(r) for r in ahead.most] if ahead is not None else []
        return bool(since) and all(s is not None and now - s >= self._patience_ns for s in since)

    def _caught_up(self, job: Job) -> Iterator[Message]:
        """Yield a message for each reported difference that is gone, because the ranks that lacked a program
        have compiled it since."""
        for numbers, d in list(self._likely.items()):
            shown = d.here
            assert shown is not None
            behind = [r for r in job.ranks if any(r.number == m.number for m in d.most)]
            if all(any(job.name(s) == job.name(shown) for s in r.seen) for r in behind):
                del self._likely[numbers]
                yield message(
                    "ranks-caught-up", ranks=rules.named(job, behind), function=rules.spelled(shown)
                )

    def _first_end(self, job: Job) -> Iterator[Finding]:
        """Yield a finding, only once, if a rank failed or ended long before most others. A rank that failed
        is reported after SETTLE_S seconds, and not if another rank failed in the same way."""
        rank = None if self._ended or self._named else job.first_to_leave(int(AHEAD_S * 1e9))
        if rank is not None and rank.code is not None and rank.code > 0:
            # Other ranks may be failing in the same way at this moment.
            now = self._clock()
            waited = now - self._first.setdefault(("end", rank.number), now) >= SETTLE_S * 1e9
            if not waited or any(r.died == rank.died for r in job.ranks if r is not rank and r.died):
                return
        if rank is not None:
            self._ended = True
            yield rules.ended_first(job, rank)

    def _stalled(self, job: Job) -> Iterator[Message]:
        """Yield a message about what each rank does, if ranks have waited for too long. It is not repeated
        before one of these ranks has continued."""
        now = self._clock()
        since = {r.number: s for r in job.ranks if r.left_ns is None and (s := blocked_since(r)) is not None}
        waiting = frozenset(n for n, s in since.items() if now - s >= self._patience_ns)
        if self._waiting and not waiting >= self._waiting:
            self._waiting = frozenset()
        if self._waiting or not waiting:
            return
        longest = max(now - since[n] for n in waiting)
        if len(waiting_ranks.groups(job)) == 1 and longest < self._patience_ns * ALIKE:
            return
        self._waiting = waiting
        found = tuple(waiting_ranks.sentences(job, now))
        yield message("ranks-no-progress", time=Seconds(longest / 1e9), groups=Parts(found, between="; "))


def _all_came(job: Job, d: Divergence) -> bool:
    """Return whether the difference ``d`` is final: each rank (process) of ``job`` has compiled enough
    programs to reach the position of ``d``, and no rank is known to be missing."""
    complete = job.size is None or len(job.ranks) >= job.size
    return complete and all(sum(s.ordered for s in r.seen) > d.position for r in job.ranks)


def _ahead(d: Divergence) -> Divergence | None:
    """Return ``d`` as a difference of the kind EXTRA: at most half of the ranks (processes) compiled a
    program that the others have not compiled. Return None if it is another difference, or if the others may
    only be late."""
    # As many ranks lack the program as have it, or more: the ranks that have it are then the unusual ones.
    if d.kind == MISSING and d.here is None and len(d.most) <= len(d.ranks):
        d = d._replace(kind=EXTRA, ranks=d.most, most=d.ranks, here=d.there, there=None)
    alone = d.kind == EXTRA and d.here is not None and d.there is None and len(d.ranks) <= len(d.most)
    # A rank that compiles at this moment may only be late.
    if not alone or d.before is None or any(r.phase is not None for r in d.most):
        return None
    return d
