"""Compare the ranks of a job that share no directory, through the key-value store of JAX's coordination
service.

Each rank publishes its latest programs for all processes under a key of its own; rank 0 reads the keys and
records where they differ. The calls are in a thread, and none of them waits for another rank. The first one
that fails is the last one; the first is made after a program for several processes has been compiled, when
the client is connected, and the last one before JAX disconnects.
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
ROUND_S = 0.5  # at least
PER_RANK_S = 0.003  # more for each rank: the coordinator serves them all
LATEST = 8  # programs in a value
NAME = 100  # characters of a function's id: a value stays below 2 KB
SETTLE_NS = 2_000_000_000  # for more ranks to come to a program
AHEAD_NS = 3_000_000_000  # that a rank alone has compiled a program for
LEAVE_S = 1.0  # that the exit of the program waits at most for a call that goes on
MOST_EVENTS = 20

Program = tuple[str, str]  # its hash, and the function's id


class Peers:
    """Publishes the programs of this rank from now on. In rank 0, also records differences between ranks.

    Args:
      index, count: JAX's index of this process, and the number of processes.
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
        ] = {}  # the last round of each rank, and when it was read first
        self._leaving = False
        self._since: dict[object, int] = {}  # when each difference was seen first
        self._recorded: set[object] = set()
        self._stop, self._stopped = _thread.allocate_lock(), _thread.allocate_lock()
        self._stop.acquire()

    def compiled(self, program: str, function: str) -> None:
        """Note a program for the devices of all processes, which this process has compiled.

        Start the thread.
        """
        self._own.append(
            (
                program,
                function if len(function) <= NAME else f"{function[: NAME // 2]}...{function[-NAME // 2 :]}",
            )
        )
        if len(self._own) == 1:
            self._stopped.acquire()
            _thread.start_new_thread(self._run, ())

    def stop(self) -> None:
        """Publish that this rank leaves the program, and end the thread; wait LEAVE_S at most."""
        self._leaving = True
        if self._own and self._stop.locked():
            self._stop.release()
            self._stopped.acquire(timeout=LEAVE_S)

    def _run(self) -> None:
        try:
            last = False
            while shield.attempt("peers", self._round, time.time_ns()) and not last:
                last = self._stop.acquire(timeout=max(ROUND_S, PER_RANK_S * self._count))
        finally:
            self._stopped.release()

    def _round(self, now: int) -> bool:
        """Publish, and compare in rank 0. Return True; raises what the client raises."""
        client = jax_internals.coordination_client()
        if client is None:
            return False
        self._rounds += 1  # published each time: a rank whose number stays has been killed, or hangs
        value = self._value(len(self._own), self._leaving)
        client.key_value_set(f"{PREFIX}{self._index}", value, allow_overwrite=True)
        if self._index == 0:
            for key, value in client.key_value_dir_get(PREFIX):
                self._read(key, value, now)
            self._compare(now)
        return True

    def _value(self, count: int, leaving: bool) -> str:
        latest = self._own[max(0, count - LATEST) : count]
        return json.dumps([count, leaving, latest, self._rounds], separators=(",", ":"))

    def _read(self, key: str, value: str, now: int) -> None:
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
        """Record the first position at which ranks have compiled different programs, or only few have one."""
        self._known[0] = list(self._own)
        position = 0
        while any(position < len(known) for known in self._known):
            at = {n: known[position] for n, known in enumerate(self._known) if position < len(known)}
            programs = {program for program, _ in at.values() if program}
            if len(programs) > 1:
                self._once(("differ", position), now, position, at, SETTLE_NS if len(at) < self._count else 0)
                break
            if position and len(at) * 2 <= self._count:
                # A rank 0 that leaves does not come to it any more.
                after_ns = 0 if self._leaving and 0 not in at else AHEAD_NS
                behind = [n for n in range(1, self._count) if n not in at and n not in self._left]
                self._once(("ahead", position, tuple(at)), now, position, at, after_ns, behind)
            position += 1
        if self._left and len(self._left) * 2 <= self._count:
            # A rank that waits for one that was killed leaves with an error.
            stay = [n for n in range(1, self._count) if n not in self._left]
            self._once(("left", tuple(self._left)), now, position, {}, AHEAD_NS, stay)

    def _once(
        self,
        what: Any,
        now: int,
        position: int,
        at: dict[int, Program],
        after_ns: int,
        behind: Sequence[int] = (),
    ) -> None:
        """Record it if it has lasted for ``after_ns`` and was not recorded before.

        The ranks ``behind`` must be alive until then: one that was killed compiles nothing more, and makes
        others leave.
        """
        since = self._since.setdefault(what, now)
        if any(self._beats.get(n, (0, 0))[1] < since + after_ns for n in behind):
            return
        if now - since < after_ns or what in self._recorded or len(self._recorded) >= MOST_EVENTS:
            return
        self._recorded.add(what)
        groups: dict[Program | None, list[int]] = {}
        for rank in range(self._count):
            groups.setdefault(at.get(rank), []).append(rank)
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
    """Return a text that is equal for equal programs in all ranks; a callback's address is different in
    each.
    """
    return program if program is not None and not calls_back else f"{zlib.crc32((module or '').encode()):08x}"
