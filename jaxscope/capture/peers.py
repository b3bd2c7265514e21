"""Compare the programs of the ranks (processes) of a job that share no directory. The ranks exchange the ids
of their programs through the key-value store of JAX's coordination service.

Each rank publishes, under a key of its own, the latest programs that it has compiled for all processes. Rank
0 reads all keys and records where the ranks differ. A thread calls the store, and none of its calls waits for
another rank. The first call is made after a program for several processes has been compiled, because JAX's
client is connected then. The last call is made before JAX disconnects. If a call fails, no further one is
made.
"""

from __future__ import annotations

import _thread
import json
import time
import zlib
from collections.abc import Sequence
from typing import Any

from jaxscope import jax_internals
from jaxscope.capture import shield
from jaxscope.log.writer import Writer
from jaxscope.schema.events import RankGroup, RanksCompiled

PREFIX = "jaxscope/ranks/"
ROUND_S = 0.5  # the shortest time between two rounds of calls
PER_RANK_S = 0.003  # the time between two rounds is at least this for each rank: one coordinator serves all
LATEST = 8  # programs that a rank publishes at a time
NAME = 100  # characters of a function's id: what a rank publishes stays below 2 KB
SETTLE_NS = 2_000_000_000  # a difference is recorded after this time, in which more ranks may publish
AHEAD_NS = 3_000_000_000  # as SETTLE_NS, if at most half of the ranks have the program
LEAVE_S = 1.0  # the longest time that the program's exit waits for the thread
MOST_EVENTS = 20

Program = tuple[str, str]  # the program's hash, and the id of the function


class Peers:
    """Publishes the programs that this rank (process of a job) compiles for all processes. Rank 0 also
    records where the programs of the ranks differ.

    Args:
      index: JAX's number of this process.
      count: the number of processes.
    """

    def __init__(self, writer: Writer, index: int, count: int) -> None:
        self._writer = writer
        self._index, self._count = index, count
        self._known: list[list[Program]] = [[] for _ in range(count if index == 0 else 0)]
        self._own: list[Program] = []
        self._left: set[int] = set()
        self._rounds = 0
        self._beats: dict[
            int, tuple[int, int]
        ] = {}  # each rank's last round, and when this round was first read
        self._leaving = False
        self._since: dict[object, int] = {}  # when each difference was seen first
        self._recorded: set[object] = set()
        self._stop, self._stopped = _thread.allocate_lock(), _thread.allocate_lock()
        self._stop.acquire()

    def compiled(self, program: str, function: str) -> None:
        """Add a program that this process has compiled for the devices of all processes of the job. A thread
        publishes it for the other processes; the first call of this method starts the thread.

        Args:
          program: a text that is equal for equal programs (``digest``).
          function: the id of the compiled function.
        """
        self._own.append(
            (
                program,
                function if len(function) <= NAME else f"{function[: NAME // 2]}...{function[-NAME // 2 :]}",
            )
        )
        if len(self._own) == 1:
            self._stopped.acquire()
            shield.start_thread(self._run)

    def stop(self) -> None:
        """Publish that the program ends in this rank (process of the job), and end the thread that publishes.
        Wait at most LEAVE_S seconds for the thread."""
        self._leaving = True
        if self._own and self._stop.locked():
            self._stop.release()
            self._stopped.acquire(timeout=LEAVE_S)

    def _run(self) -> None:
        """Publish the programs of this process at intervals (``_round``), and a last time after ``stop``. End
        earlier if JAX has no client of its coordination service, or if a call of this service fails."""
        try:
            last = False
            while shield.attempt("peers", self._round, time.time_ns()) and not last:
                last = self._stop.acquire(timeout=max(ROUND_S, PER_RANK_S * self._count))
        finally:
            self._stopped.release()

    def _round(self, now: int) -> bool:
        """Publish the programs of this rank (process of the job). In rank 0, also read and compare the
        programs of all ranks. Return True; False if JAX has no client of its coordination service. ``now`` is
        the time in ns.

        Raises:
          Exception: a call of the client failed.
        """
        client = jax_internals.coordination_client()
        if client is None:
            return False
        self._rounds += 1  # published each time: a rank whose number stays the same was killed, or hangs
        count = len(self._own)
        latest = self._own[max(0, count - LATEST) : count]
        value = json.dumps([count, self._leaving, latest, self._rounds], separators=(",", ":"))
        client.key_value_set(f"{PREFIX}{self._index}", value, allow_overwrite=True)
        if self._index == 0:
            for key, value in client.key_value_dir_get(PREFIX):
                self._read(key, value, now)
            self._compare(now)
        return True

    def _read(self, key: str, value: str, now: int) -> None:
        """Remember what a rank (process of the job) has published in the key-value store of JAX.

        Args:
          key: the key of the store, which ends in the number of the rank.
          value: JSON of [the number of programs that the rank has compiled, whether it ends now, its latest
            programs, how often it has published].
          now: when ``value`` was read, in ns.
        """
        rank = int(key.rpartition("/")[2])
        count, left, latest, rounds = json.loads(value)
        if self._beats.get(rank, (0, 0))[0] != rounds:
            self._beats[rank] = rounds, now
        known = self._known[rank]
        if left:
            self._left.add(rank)
        begins = count - len(latest)
        known += [("", "")] * (begins - len(known))  # published and overwritten between two rounds
        for n, (program, function) in enumerate(latest, begins):
            if n >= len(known):
                known.append((program, function))

    def _compare(self, now: int) -> None:
        """Record where the lists of programs that the ranks (processes of the job) have compiled differ.
        ``now`` is the time in ns.

        There are three kinds of differences: the ranks have different programs at one position of the lists;
        at most half of the ranks have a program at a position (other than the first); at most half of the
        ranks have ended.
        """
        self._known[0] = list(self._own)
        position = 0
        while any(position < len(known) for known in self._known):
            at = {n: known[position] for n, known in enumerate(self._known) if position < len(known)}
            programs = {program for program, _ in at.values() if program}
            if len(programs) > 1:
                self._once(("differ", position), now, position, at, SETTLE_NS if len(at) < self._count else 0)
                break
            if position and len(at) * 2 <= self._count:
                # If rank 0 itself is ending, it will not compile this program later: do not wait.
                after_ns = 0 if self._leaving and 0 not in at else AHEAD_NS
                behind = [n for n in range(1, self._count) if n not in at and n not in self._left]
                self._once(("ahead", position, tuple(at)), now, position, at, after_ns, behind)
            position += 1
        if self._left and len(self._left) * 2 <= self._count:
            # If a rank was killed, the ranks that wait for it end with an error, which is no difference
            # between programs. So the ranks that stay must be alive.
            stay = [n for n in range(1, self._count) if n not in self._left]
            self._once(("left", tuple(self._left)), now, position, {}, AHEAD_NS, stay)

    def _once(
        self,
        difference: Any,
        now: int,
        position: int,
        program_of: dict[int, Program],
        after_ns: int,
        behind: Sequence[int] = (),
    ) -> None:
        """Log ``RanksCompiled`` once for a difference between ranks that has lasted for ``after_ns``.

        Log it only if each of the ranks ``behind`` has published something after that time. Otherwise one of
        them may have been killed, which explains the difference. At most MOST_EVENTS differences are logged.

        Args:
          difference: identifies the difference.
          now: the present time, in ns.
          position: where in the lists of programs the ranks differ.
          program_of: rank -> its program at this position.
          after_ns: how long the difference must have lasted, in ns.
          behind: the ranks that must be alive: those without a program at this position, or those that have
            not ended.
        """
        since = self._since.setdefault(difference, now)
        if any(self._beats.get(n, (0, 0))[1] < since + after_ns for n in behind):
            return
        if now - since < after_ns or difference in self._recorded or len(self._recorded) >= MOST_EVENTS:
            return
        self._recorded.add(difference)
        groups: dict[Program | None, list[int]] = {}
        for rank in range(self._count):
            groups.setdefault(program_of.get(rank), []).append(rank)
        self._writer.emit(
            RanksCompiled(
                position=position,
                groups=[
                    RankGroup(
                        ranks=ranks, program=each[0] if each else None, function=each[1] if each else None
                    )
                    for each, ranks in groups.items()
                ],
                left=sorted(self._left),
            )
        )


def digest(program: str | None, module: str | None, *, calls_back: bool) -> str:
    """Return a text that is equal in all ranks (processes of a job) that compile one program: the program's
    id. If the id is unknown, or the program has callbacks (then its id differs between ranks), the text is a
    checksum of the name of its module.

    Args:
      program: the id of the program; None: unknown.
      module: the name of the program's module; None: unknown.
      calls_back: whether the program has callbacks.
    """
    # The id of a program with callbacks contains their addresses.
    return program if program is not None and not calls_back else f"{zlib.crc32((module or '').encode()):08x}"
