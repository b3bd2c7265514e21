"""Compare the ranks (processes) of a multi-process job: where does a rank first compile another program?

Only programs that run on the devices of several processes are compared. What a process compiles for its own
devices (a checkpoint, a log line of process 0) may differ. Programs that the main thread called must come in
the same order; programs that were compiled ahead of time or by other threads are compared as a set.
"""

from __future__ import annotations

import bisect
import gc
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import msgspec
from msgspec.structs import force_setattr

from jaxscope.analysis.stablehlo import differences
from jaxscope.errors import LogError
from jaxscope.log import files, store
from jaxscope.log import ranks as places
from jaxscope.log.counts import SUFFIX
from jaxscope.log.store import RunDir
from jaxscope.model.load import Tail, state
from jaxscope.model.rank_log import LEFT_EARLY_NS, Known, Rank, RankLog, Seen
from jaxscope.model.run import Run
from jaxscope.schema.collectives import KINDS
from jaxscope.schema.keys import Key

OTHER, EXTRA, MISSING, ORDER, STEP = "other", "extra", "missing", "order", "step"
# If a job has at most FEW ranks, each poll reads all of them. Otherwise it reads the ranks whose logs have
# grown, and one in IN_TURN of the others: for their steps, and to see whether they are alive.
FEW = 16
IN_TURN = 10
IN_PART = 16  # ranks that one task of a process pool reads
AGREED = 64  # the most calls for each rank that ``Job.agreed`` returns
RECORDED_NS = 1_000_000_000  # time within which the end of a killed program is recorded
WAITED_NS = 5_000_000_000  # a rank that has not compiled a program this long after the others never will
_COLLECTIVE = re.compile(rf"= \S.*? ({'|'.join(KINDS)})(-start)?\(([^\n]*)")
_METADATA = re.compile(r", metadata=\{[^}]*\}")


class Divergence(NamedTuple):
    """The first difference of some ranks from the majority, in the programs that they compiled.

    From ``Job.rest``, which ignores the order, ``position`` is 0, and ``here`` or ``there`` is a program that
    the other side lacks.

    Attributes:
      kind: OTHER (a different program), EXTRA (a program that the majority lacks), MISSING (a program is
        missing), ORDER (the same programs in another order) or STEP (the same program in another step).
      ranks: the ranks that differ.
      most: the ranks of the majority, with which they are compared.
      position: the position in the sequence at which they differ, from 0.
      here: what the first of ``ranks`` compiled at this position; None: this rank compiled nothing more.
      there: what the majority compiled at this position; None: the majority compiled nothing more.
      before: the compilation before this position, equal in ``ranks`` and ``most``; None: there is none.
    """

    kind: str
    ranks: list[Rank]
    most: list[Rank]
    position: int
    here: Seen | None
    there: Seen | None
    before: Seen | None


class OtherCollectives(NamedTuple):
    """A program that has equal StableHLO in several ranks, but other collectives in its compiled HLO, or
    collectives in another order.

    Attributes:
      ranks: the ranks that differ from the majority.
      most: the ranks of the majority.
      here: the compilation in the first of ``ranks``.
      there: the compilation in the first of ``most``.
    """

    ranks: list[Rank]
    most: list[Rank]
    here: Seen
    there: Seen


class _Alike(NamedTuple):
    """Ranks (processes of a job) that compiled the same programs in the same steps. ``seen`` has the compared
    compilations of the first of these ranks."""

    ranks: list[Rank]
    seen: list[Seen]


def _ranks(alike: Sequence[_Alike]) -> list[Rank]:
    """Return all ranks in the groups ``alike``, sorted by number."""
    return sorted((r for each in alike for r in each.ranks), key=lambda r: r.number)


class Job:
    """The recorded ranks (processes) of a job, and comparisons of them.

    Attributes:
      ranks: the ranks, sorted by number.
      size: the number of processes of the job; None: unknown.
    """

    def __init__(self, directory: RunDir, ranks: Sequence[Rank], size: int | None) -> None:
        self.directory = directory
        self.ranks = sorted(ranks, key=lambda r: r.number)
        self.size = size
        self._names = self._equal_programs()
        self._groups: list[list[Rank]] | None = None
        self._found: list[Divergence] | None = None

    def sequence(self, rank: Rank) -> tuple[str, ...]:
        """Return the names of the programs that were compiled for calls in the main thread of ``rank`` (a
        process of the job), in order. Equal programs have the same name in all ranks."""
        return tuple(self.name(s) for s in rank.seen if s.ordered)

    def name(self, compilation: Seen) -> str:
        """Return a name for the program of ``compilation``. Equal programs have the same name in all
        ranks."""
        return self._names.get(compilation.program, compilation.program)

    @property
    def missing(self) -> list[int]:
        """Return the numbers from 0 to ``size`` - 1 that no recorded rank has; empty if ``size`` is None."""
        have = {r.number for r in self.ranks}
        return [n for n in range(min(self.size or 0, 1 << 20)) if n not in have]

    def groups(self) -> list[list[Rank]]:
        """Return the ranks (processes of the job) in groups. All ranks of a group compiled equal programs,
        and for calls of the main thread also in the same order. Only programs that run on several processes
        are compared. The largest group comes first; of equally large groups, the one with the lowest rank."""
        if self._groups is None:
            found: dict[object, list[Rank]] = {}
            for rank in self.ranks:
                others = frozenset(Counter(self.name(s) for s in rank.seen if not s.ordered).items())
                found.setdefault((self.sequence(rank), others), []).append(rank)
            self._groups = sorted(found.values(), key=lambda group: (-len(group), group[0].number))
        return self._groups

    def divergences(self) -> list[Divergence]:
        """Return how ranks (processes of the job) differ from the majority in the programs that the main
        threads called: for each set of processes on which programs run, the first difference of each rank.
        Ranks with equal differences are one entry."""
        if self._found is None:
            self._found = [d for processes in self._sets(ordered=True) for d in self._divergences(processes)]
        return self._found

    def _sets(self, *, ordered: bool) -> list[frozenset[int]]:
        """Return the different sets of processes on which programs run: ``{0, 1}``, ``{2, 3}``. With
        ``ordered``, only programs that the main thread called count; otherwise only the other programs."""
        found = {id(s.processes): s.processes for r in self.ranks for s in r.seen if s.ordered == ordered}
        return list(dict.fromkeys(found.values()))

    def _of(self, rank: Rank, processes: frozenset[int], *, ordered: bool) -> list[Seen]:
        """Return the compilations of ``rank`` (a process of the job) whose programs run on exactly
        ``processes``. With ``ordered``, only those of programs that the main thread called; otherwise only
        those of the other programs."""
        return [
            s
            for s in rank.seen
            if s.ordered == ordered and (s.processes is processes or s.processes == processes)
        ]

    def _divergences(self, processes: frozenset[int]) -> list[Divergence]:
        """Return each rank's first difference from the majority, in the programs that the main thread called
        and that run on exactly ``processes``. ``divergences`` calls this for each set of processes."""
        # At each position, the majority is determined among the ranks that agreed at all earlier positions.
        found: list[Divergence] = []
        agree = self._alike(processes)
        position = 0
        while sum(len(each.ranks) for each in agree) > 1:
            at = {id(each): each.seen[position] if position < len(each.seen) else None for each in agree}
            counted_steps = all(s is None or s.step is not None for s in at.values())
            by_name: dict[tuple[str, int | None] | None, list[_Alike]] = {}
            for each in agree:
                s = at[id(each)]
                name = None if s is None else (self.name(s), s.step if counted_steps else None)
                by_name.setdefault(name, []).append(each)
            if set(by_name) == {None}:
                break
            if len(by_name) == 1:
                position += 1
                continue
            most = max(by_name.values(), key=lambda alike: (len(_ranks(alike)), -_ranks(alike)[0].number))
            for odd in by_name.values():
                if odd is most:
                    continue
                kind = self._kind(odd[0].seen, most[0].seen, position)
                before = most[0].seen[position - 1] if position else None
                here, there = at[id(odd[0])], at[id(most[0])]
                found.append(Divergence(kind, _ranks(odd), _ranks(most), position, here, there, before))
            agree, position = most, position + 1
        return found

    def _alike(self, processes: frozenset[int]) -> list[_Alike]:
        """Return groups of ranks that compiled the same programs in the same training steps. Only programs
        that the main thread called and that run on exactly ``processes`` are compared."""
        found: dict[object, _Alike] = {}
        for rank in self.ranks:
            if rank.seen and rank.number in processes:
                seen = self._of(rank, processes, ordered=True)
                what = tuple((self.name(s), s.step) for s in seen)
                found.setdefault(what, _Alike([], seen)).ranks.append(rank)
        return list(found.values())

    def certain(self, d: Divergence) -> bool | None:
        """Return how certain the difference ``d`` is: True (certain), False (likely) or None (no difference
        yet).

        ``d`` is certain if both the differing ranks and the majority compiled a program at the position. If
        only one side compiled a program there, ``d`` is certain if a rank of the other side has the exit code
        0 or has waited long after its end (``Rank.left``), and likely if such a rank was alive WAITED_NS
        nanoseconds after the program was compiled."""
        shown, behind = (d.there, d.ranks) if d.here is None else (d.here, d.most)
        if (d.here is not None and d.there is not None) or any(r.code == 0 or r.left for r in behind):
            return True
        assert shown is not None
        ends = [r.left_ns if r.left_ns is not None else r.last_ns for r in behind]
        return False if any(end is not None and end - shown.t_ns > WAITED_NS for end in ends) else None

    def agreed(self) -> dict[str, list[int]]:
        """Return the calls that may run under ``--stop-on-divergence``: {name of a rank's directory: numbers
        of calls, ascending, at most the latest AGREED (64)}. With this option, a program waits until all
        ranks have compiled it.

        A program may run when all ranks on whose devices it runs have compiled it, and if the main thread
        called it, at the same position."""
        found: dict[str, list[int]] = {r.directory.path.name: [] for r in self.ranks}
        sets = [
            (processes, ordered) for ordered in (True, False) for processes in self._sets(ordered=ordered)
        ]
        for processes, ordered in sets:
            seen = [self._of(r, processes, ordered=ordered) for r in self.ranks if r.number in processes]
            if len(seen) < len(processes):
                continue  # a rank has recorded nothing yet
            names = [Counter(map(self.name, each)) for each in seen]
            for each, rank in zip(seen, (r for r in self.ranks if r.number in processes), strict=True):
                for n, s in enumerate(each):
                    at = {self.name(other[n]) if n < len(other) else None for other in seen}
                    if len(at) == 1 if ordered else all(self.name(s) in others for others in names):
                        found[rank.directory.path.name].append(int(s.compilation.rpartition(".")[2]))
        return {place: sorted(calls)[-AGREED:] for place, calls in found.items()}

    def went_past(self, d: Divergence) -> bool:
        """Return whether the difference ``d`` is certain while the job still runs, so that it is reported.

        ``d`` is certain if both the differing ranks and the majority compiled a program at the position. If
        only one side compiled a program there, ``d`` is certain if a rank of the other side has ended its
        program without an error, or is more than one step beyond the step in which the program was
        compiled."""
        if d.here is not None and d.there is not None:
            return True
        shown, behind = (d.there, d.ranks) if d.here is None else (d.here, d.most)
        assert shown is not None
        step = shown.step
        return any(
            (r.left_ns is not None and r.code in (0, None))
            or (step is not None and r.steps is not None and r.steps > step + 1)
            for r in behind
        )

    def _kind(self, odd: Sequence[Seen], most: Sequence[Seen], position: int) -> str:
        """Return the kind of a difference at ``position`` (``Divergence.kind``: OTHER, EXTRA, ...). ``odd``
        are the compilations of a rank that differs, ``most`` those of a rank of the majority."""
        mine, theirs = ([self.name(s) for s in seen[position:]] for seen in (odd, most))
        if mine[:1] == theirs[:1]:
            return STEP
        if not theirs or (mine[1:2] == theirs[:1] and mine[0] not in theirs):
            return EXTRA
        if not mine or (theirs[1:2] == mine[:1] and theirs[0] not in mine):
            return MISSING
        return ORDER if mine[0] in theirs and theirs[0] in mine else OTHER

    def rest(self) -> list[Divergence]:
        """Return how ranks differ from the majority in programs that were compiled ahead of time or that
        other threads than the main thread called, whatever their order. ``Divergence.position`` is always
        0."""
        found = []
        for processes in self._sets(ordered=False):
            ranks = [r for r in self.ranks if r.seen and r.number in processes]
            seen = {r.number: self._of(r, processes, ordered=False) for r in ranks}
            items = {n: frozenset(Counter(map(self.name, each)).items()) for n, each in seen.items()}
            usual, _ = Counter(items.values()).most_common(1)[0]
            most = [r for r in ranks if items[r.number] == usual]
            for rank in ranks:
                own, others = Counter(dict(items[rank.number])), Counter(dict(usual))
                here = next((s for s in seen[rank.number] if self.name(s) in own - others), None)
                there = next((s for s in seen[most[0].number] if self.name(s) in others - own), None)
                if here is not None and there is not None and here.function == there.function:
                    found.append(Divergence(OTHER, [rank], most, 0, here, there, None))
                    continue
                if here is not None:
                    found.append(Divergence(EXTRA, [rank], most, 0, here, None, None))
                if there is not None:
                    found.append(Divergence(MISSING, [rank], most, 0, None, there, None))
        return found

    def _equal_programs(self) -> dict[str, str]:
        """Return {program id: name} for programs with custom calls that some rank lacks. Programs have equal
        names if they differ only in what depends on the process, such as addresses of Python callbacks."""
        # A text is read only if some rank does not have the program.
        have = Counter(p for r in self.ranks for p in {s.program for s in r.seen})
        known: dict[str, str] = {}
        for rank in self.ranks:
            for s in rank.seen:
                if have[s.program] < len(self.ranks) and s.program not in known and s.stablehlo is not None:
                    text = text_of(rank, s.stablehlo)
                    if text is not None and "custom_call" in text:
                        known[s.program] = differences.same_for_all_processes(text)
        return known

    def collectives_differ(self) -> Iterator[OtherCollectives]:
        """Yield the programs whose collectives differ between ranks that have equal StableHLO."""
        by_name: dict[str, list[tuple[Rank, Seen]]] = {}
        for rank in self.ranks:
            for s in {self.name(s): s for s in rank.seen if s.hlo is not None}.values():
                by_name.setdefault(self.name(s), []).append((rank, s))
        for holders in by_name.values():
            if len({s.hlo for _, s in holders}) < 2:
                continue
            schedules = {s.hlo: schedule(text_of(r, s.hlo)) for r, s in holders}
            counted = Counter(schedules[s.hlo] for _, s in holders if schedules[s.hlo] is not None)
            if len(counted) < 2:
                continue
            usual = max(counted, key=lambda each: counted[each])
            most = [(r, s) for r, s in holders if schedules[s.hlo] == usual]
            odd = [(r, s) for r, s in holders if schedules[s.hlo] not in (usual, None)]
            yield OtherCollectives([r for r, _ in odd], [r for r, _ in most], odd[0][1], most[0][1])

    def first_to_leave(self, early_ns: int = LEFT_EARLY_NS) -> Rank | None:
        """Return the rank that ended first by itself: a rank with a nonzero exit code that no other rank has,
        or one after whose end most others continued for ``early_ns`` nanoseconds. If a signal killed only one
        rank, and no other rank ended before it, return that rank. None if there is no such rank, or only one
        rank in all.

        If jaxscope ended the job (``--stop-on-divergence``), only ranks that raised an error count."""
        if len(self.ranks) < 2:
            return None
        codes = Counter(r.code for r in self.ranks)
        ends = sorted(e for r in self.ranks if (e := r.left_ns or r.last_ns) is not None)

        def left_others(rank: Rank) -> bool:
            """Return whether ``rank`` failed with an exit code that no other rank has, or ended more than
            ``early_ns`` before most others."""
            if rank.code not in (0, None) and codes[rank.code] == 1:
                return True
            late = len(ends) - bisect.bisect_right(ends, (rank.left_ns or 0) + early_ns)
            return late * 2 > len(self.ranks) - 1

        left = [r for r in self.ranks if r.left_ns is not None]
        if places.was_ended(self.directory, (r.directory for r in self.ranks)):
            left = [r for r in left if r.died is not None]
        cut = [r for r in left if r.cut]
        if len(cut) == 1 and not any(_left_before(r, cut[0]) for r in left):
            return cut[0]  # the only rank that was killed: the others ended because of that
        ended = sorted(left, key=lambda r: r.left_ns or 0)
        return next(filter(left_others, ended), None)


def _left_before(rank: Rank, killed: Rank) -> bool:
    """Return whether the process ``rank`` of a job ended before the process ``killed`` was killed. False if
    ``rank`` raised an exception at nearly the same time: the kill caused the exception."""
    # The time of the kill is recorded up to RECORDED_NS late.
    late = RECORDED_NS if rank.died is not None else 0
    return (rank.left_ns or 0) < (killed.left_ns or 0) - late


def schedule(text: str | None) -> tuple[str, ...] | None:
    """Return the collectives of a compiled HLO text in their order, each as the text from the opcode on, with
    ``%`` for each name: ``all-reduce%), replica_groups={{0,1}}, to_apply=%``. None if ``text`` is None."""
    if text is None:
        return None
    found = _COLLECTIVE.findall(_METADATA.sub("", text))
    return tuple(kind + start + re.sub(r"%[\w.-]+", "%", rest) for kind, start, rest in found)


def text_of(rank: Rank, blob: str | None) -> str | None:
    """Return the text in the file ``blob`` of the recording of ``rank``. None if ``blob`` is None or the file
    is unreadable."""
    try:
        return None if blob is None else rank.directory.text(blob)
    except LogError:
        return None


def job_of(directory: RunDir) -> RunDir | None:
    """Return the run directory of the job to which the rank (process) recorded in ``directory`` belongs. None
    if it belongs to no job, or is the only rank of its job."""
    parent = places.whole_of(directory)
    return parent if parent is not None and len(store.rank_runs(parent)) > 1 else None


def read(whole: RunDir, step: Callable[[int], None] | None = None) -> Job:
    """Return the job that is recorded in its run directory ``whole``, with all ranks (processes). If there
    are many ranks, several processes read them. ``step`` is called from time to time with the number of ranks
    read so far."""
    found: list[tuple[int | None, Rank]] = []
    shared = _Shared()
    every = store.rank_runs(whole)
    parts = [every[n : n + IN_PART] for n in range(0, len(every), IN_PART)]
    for part in _mapped(_read_part, parts):
        shared.put(rank for _, rank in part)
        found += part
        if step is not None:
            step(len(found))
    return _numbered(whole, found)


def _read_part(directories: Sequence[RunDir]) -> list[tuple[int | None, Rank]]:
    """Return (JAX's process index or None if unknown, rank) for each rank that is recorded in
    one of ``directories``."""
    known, found = Known(), []
    for place in directories:
        log = RankLog(place, known)
        log.poll()
        found.append((log.index, log.rank()))
    return found


def _mapped(
    read_part: Callable[[Sequence[RunDir]], list[tuple[int | None, Rank]]], parts: list[list[RunDir]]
) -> Iterator[list[tuple[int | None, Rank]]]:
    """Yield ``read_part(part)`` for each of ``parts``, in order. Forked processes read them if there are many
    parts. A process that has threads, or has imported JAX (which starts threads), is not forked."""
    number = min(len(parts) // 2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)
    if number < 2 or threading.active_count() > 1 or "jax" in sys.modules:
        yield from map(read_part, parts)
        return
    with ProcessPoolExecutor(number, multiprocessing.get_context("fork"), _begin) as pool:
        yield from pool.map(read_part, parts)


def _begin() -> None:
    """Prepare a forked process that reads recordings of ranks: ignore Ctrl-C, and disable the garbage
    collector."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    gc.disable()  # the records of a rank have no reference cycles


def _numbered(whole: RunDir, ranks: Sequence[tuple[int | None, Rank]]) -> Job:
    """Give each rank its number, and return the job. The number is JAX's process index. If an index is
    unknown or not unique, all ranks get the launcher's numbers; a rank without one gets another number.

    Args:
      whole: the run directory of the job.
      ranks: (JAX's process index or None, rank) for each rank.
    """
    launched = [places.number(rank.directory) for _, rank in ranks]
    indices = [index for index, _ in ranks]
    # JAX's messages name JAX's index. If one launch starts several jobs, only the launcher's numbers are
    # unique.
    by_index = None not in indices and len(set(indices)) == len(indices)
    numbers = (
        indices if by_index else [n if n is not None else len(ranks) + i for i, n in enumerate(launched)]
    )
    for (_, rank), number in zip(ranks, numbers, strict=True):
        rank.number = number or 0
    size = whole.meta.get("ranks")
    return Job(whole, [rank for _, rank in ranks], size if isinstance(size, int) else None)


class Following:
    """Reads the ranks of a job repeatedly while they are recorded, each time only what is new."""

    def __init__(self, whole: RunDir) -> None:
        self._whole = whole
        self._logs: dict[str, RankLog] = {}
        self._tail: Tail | None = None  # reads the complete recording if there is only one rank
        self._ranks: dict[str, tuple[int | None, Rank]] = {}
        self._stamps: dict[str, object] = {}
        self._names: list[str] = []
        self._listed: list[RunDir] = []
        self._job: Job | None = None
        self._polls = 0
        self._known = Known()

    def alone(self) -> Run | None:
        """Return the complete run if only one rank records into the directory of the job; else None."""
        if len(self._listed) != 1:
            return None
        if self._tail is None:
            self._tail = Tail(self._listed[0])
        self._tail.poll()
        return self._tail.run

    def poll(self) -> Job:
        """Read what the ranks have recorded since the last call, and return the job as recorded now. The
        ``Job`` object is the same as before, unless a rank was added, compiled anything or got another index;
        the ranks in it are updated. Of more than FEW (16) ranks, one whose log has not grown is read only at
        every tenth call."""
        self._polls += 1
        places = self._places()
        changed = self._job is None or len(places) != len(self._job.ranks)
        for n, place in enumerate(places):
            name = place.path.name
            stamp = _stamp(place)
            in_turn = (self._polls + n) % IN_TURN == 0 or len(places) <= FEW
            if in_turn or name not in self._ranks or stamp != self._stamps.get(name):
                self._stamps[name] = stamp
                changed |= self._read(place)
            elif self._ranks[name][1].state == "running":
                self._ranks[name][1].last_ns = time.time_ns()
        if changed or self._job is None:
            self._job = _numbered(self._whole, [self._ranks[place.path.name] for place in places])
        return self._job

    def _places(self) -> list[RunDir]:
        """Return the directories of the ranks."""
        try:
            names = sorted(files.names(self._whole.path / store.RANKS, within=self._whole.path))
        except OSError:
            names = []
        if names != self._names or len(names) != len(self._listed):
            self._names, self._listed = names, store.rank_runs(self._whole)
        return self._listed

    def _read(self, place: RunDir) -> bool:
        """Read the new lines in the logs of the rank (process of the job) recorded in ``place``. Return
        whether the rank is new, has compiled anything new, or has got another process index."""
        name = place.path.name
        log = self._logs.get(name)
        if log is None:
            log = self._logs[name] = RankLog(place, self._known)
        news, known = log.poll(), self._ranks.get(name)
        if known is not None and not news:
            known[1].state, known[1].last_ns = state(log, place), log.last_ns
            return False
        index, rank = log.index, log.rank()
        if known is None or (known[0], known[1].seen) != (index, rank.seen):
            self._ranks[name] = index, rank
            return True
        for field in rank.__struct_fields__:  # the same object is updated, because Divergences refer to it
            if field not in ("number", "seen"):
                setattr(known[1], field, getattr(rank, field))
        return False


def _stamp(place: RunDir) -> object:
    """Return a value that changes when a log in the directory ``place`` grows: the names and sizes of the
    logs. None if the directory cannot be read."""
    try:
        with os.scandir(place.events) as found:
            logs = [e for e in found if not e.name.endswith(SUFFIX)]
            return sorted((e.name, e.stat(follow_symlinks=False).st_size) for e in logs)
    except OSError:
        return None


class _Shared:
    """Keeps equal cache keys, and equal sets of processes, of all ranks (processes of a job) only once, to
    save memory."""

    def __init__(self) -> None:
        self._keys: dict[bytes, Key] = {}
        self._sets: dict[frozenset[int], frozenset[int]] = {}

    def put(self, ranks: Iterable[Rank]) -> None:
        """Replace the keys and sets in the compilations of ``ranks`` by equal objects of earlier ranks."""
        keys: dict[int, tuple[Key, Key]] = {}  # by id; each key is kept, so that no other object gets its id
        sets: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
        for rank in ranks:
            for seen in rank.seen:
                key, processes = seen.key, seen.processes
                if key is not None:
                    if id(key) not in keys:
                        keys[id(key)] = key, self._keys.setdefault(msgspec.msgpack.encode(key), key)
                    force_setattr(seen, "key", keys[id(key)][1])
                if id(processes) not in sets:
                    sets[id(processes)] = processes, self._sets.setdefault(processes, processes)
                force_setattr(seen, "processes", sets[id(processes)][1])


def numbers(ranks: Iterable[Rank], all_ranks: Sequence[Rank] = ()) -> str:
    """Return the numbers of ``ranks`` (processes of a job) as text: ``0-3, 7``. ``all_ranks`` are all ranks
    of the job. If only few are missing between the lowest and the highest of ``ranks`` (at most a quarter as
    many as ``ranks``), the missing ones are named: ``0-63 but 37``."""
    these = sorted(r.number for r in ranks)
    low, high = (these[0], these[-1]) if these else (0, 0)
    out = sorted({r.number for r in all_ranks if low < r.number < high} - set(these))
    whole = {r.number for r in all_ranks if low <= r.number <= high} == set(range(low, high + 1))
    if whole and out and len(out) * 4 <= len(these):
        return f"{low}-{high} but {as_ranges(out)}"
    return as_ranges(these)


def as_ranges(sorted_numbers: Sequence[int]) -> str:
    """Return ``sorted_numbers`` as text: ``[0, 1, 2, 3, 7]`` -> ``0-3, 7``."""
    parts: list[list[int]] = []
    for n in sorted_numbers:
        if parts and n == parts[-1][-1] + 1:
            parts[-1].append(n)
        else:
            parts.append([n])
    return ", ".join(
        str(p[0]) if len(p) == 1 else f"{p[0]}{'-' if len(p) > 2 else ', '}{p[-1]}" for p in parts
    )
