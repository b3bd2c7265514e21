"""Assign the warnings that XLA printed on stderr to programs.

Only warnings about involuntary rematerialization are recorded. A warning does not name its program. It
belongs to the program that was being compiled when the warning was printed. If several programs were being
compiled, the warning is assigned to the one whose module it names, or to none.
"""

from __future__ import annotations

import re

from jaxscope.model.fold import Fold
from jaxscope.model.records import Compilation, Lost, Program
from jaxscope.schema.events import COMPILE

SLACK_NS = 10**6  # inaccuracy of the recorded times of compilations, which are taken in Python
LATE_NS = 10**9  # a warning without a time stamp has the time at which it was read, up to this much later
_NAMED = re.compile(r'op_name="(\w{1,40})\(([^()"]{1,200})\)')


class WarningsByProgram:
    """The warnings of XLA in a run, by program. The warnings are assigned to programs at the first request,
    and again at a request after events were added to the run."""

    def __init__(self, run: Fold) -> None:
        self._run = run
        self._version = -1
        self._texts: dict[str, list[str]] = {}
        self._unplaced = 0
        self._several = False  # whether a program runs on several devices

    def of(self, p: Program) -> list[str] | None:
        """Return the texts of the warnings that XLA printed while it compiled ``p``, each text once. None if
        unknown: XLA's output was not recorded or was muted, or XLA did not compile ``p`` in this run."""
        self._place()
        found = self._texts.get(p.id)
        if found is not None:
            return found
        if not self._audible:
            return None
        here = any(c.compiled is not None and not c.persistent_hit for c in p.compilations)
        return [] if here else None

    def lost(self) -> list[Lost]:
        """Return why warnings of XLA are missing, one entry for each reason. Output of XLA that was not
        recorded is a reason only if a program runs on several devices."""
        self._place()
        found = []
        # XLA prints these warnings only for programs on several devices.
        if self._several and not self._run.stderr:
            reason = (
                "XLA's warnings that it replicates an array on all devices (involuntary rematerialization)"
                " are recorded only with jaxscope run --tee-stderr or --detach"
            )
            found.append(Lost("stderr", reason))
        elif self._several and not self._audible:
            muted = next(e.muted for e in self._run.stderr if e.muted)
            found.append(Lost("stderr", f"{muted} keeps XLA from printing its warnings"))
        if self._unplaced:
            n = self._unplaced
            reason = f"{n} of XLA's warnings could not be assigned to one program"
            found.append(Lost("stderr", reason))
        return found

    @property
    def _audible(self) -> bool:
        """Return whether XLA's output was recorded, and no environment variable keeps XLA from printing
        warnings."""
        return bool(self._run.stderr) and not any(e.muted for e in self._run.stderr)

    def _place(self) -> None:
        """Assign the warnings to programs again, if events were added to the run since the last time."""
        if self._version == self._run.version:
            return
        self._version = self._run.version
        self._texts, self._unplaced = {}, 0
        self._several = self._several or any(
            c.lowered is not None and (c.lowered.num_partitions or 0) > 1
            for c in self._run.compilations.values()
        )
        if not self._run.warnings:
            return
        spans = [(c, s) for c in self._run.compilations.values() if (s := _compiling(c)) is not None]
        for w in self._run.warnings:
            candidates = [(c, s) for c, s in spans if w.program_pid in (None, c.process.pid)]
            during = [c for c, (begin, end) in candidates if begin - SLACK_NS <= w.t_ns <= end + SLACK_NS]
            after = [c for c, (_, end) in candidates if end < w.t_ns <= end + LATE_NS]
            program = _one(during, w.text) or _one(after, w.text)
            if program is None:
                self._unplaced += 1
                continue
            texts = self._texts.setdefault(program, [])
            body = w.text[w.text.find("] ") + 2 :]
            if body not in texts:  # XLA prints it again if the program is compiled again
                texts.append(body)


def _compiling(c: Compilation) -> tuple[int, float] | None:
    """Return (begin, end) of the compilation by XLA in call ``c``, in ns since the epoch; the end is infinite
    if the compilation still runs. None if there was no compilation, or the length of the compilation is
    unknown."""
    if c.phase == COMPILE:
        return c.phase_ns, float("inf")
    ended = c.compiled or (c.failed if c.failed is not None and c.failed.phase == COMPILE else None)
    if ended is None or ended.seconds is None:
        return None
    begun = ended.t_ns - int(ended.seconds * 1e9)
    # The event is written after the program's texts have been read, tens of milliseconds later on a busy
    # machine. The event of the begin has the more exact time.
    return min(begun, c.phase_ns or begun), ended.t_ns


def _one(compilations: list[Compilation], text: str) -> str | None:
    """Return the id of the program to which the warning ``text`` belongs: the only program of
    ``compilations`` (those that ran at the time), or the one whose module the warning names. None if there is
    no such program, or several."""
    ids = {c.program for c in compilations}
    if len(ids) > 1 and (named := _NAMED.search(text)):
        module = f"{named[1]}_{named[2]}"
        ids = {c.program for c in compilations if c.lowered is not None and c.lowered.module == module}
    return ids.pop() if len(ids) == 1 else None
