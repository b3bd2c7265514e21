"""The run directory, followed: a thread reads what is new ten times a second, the screen's own thread folds
it a little at a time, and a third draws conclusions when there is time. Nothing here knows a terminal.
"""

from __future__ import annotations

import contextlib
import operator
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence

from jaxscope.analysis.programs import NOTHING, Texts
from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.model import causes
from jaxscope.model.load import Batch, Tail, state
from jaxscope.model.programs import circumstances, read_texts
from jaxscope.model.records import Program
from jaxscope.model.run import Run
from jaxscope.present.text import Places
from jaxscope.report import variants
from jaxscope.report.variants import Variant
from jaxscope.rules import merging, registry
from jaxscope.schema.findings import Finding
from jaxscope.tui.worker_process import Others

PERIOD_S = 0.1
SLICE = 500  # events folded at once: about 5 ms
FOLD_S = 0.01  # of every period: the rest is for keys and drawing
APART_BYTES = 2_000_000  # a larger text is read by another process: one regular expression holds all threads
COMPARE_S = 0.005  # of comparing keys at a time
KEY_S = 0.15  # after a key the screen has the machine for itself, but for
YIELD_S = 0.03  # one slice in as much time
BREAK_S = 0.001  # between two slices while no key comes
TELL_S = 1.0  # how often it is shown how far that has come
UNFINISHED = 200
REST = 4  # conclusions are drawn again after this many times what they took


class Feed:
    """Follow a growing run, and compute its findings.

    Attributes:
      ready: whether the beginning is read, so that ``run`` can be used.
      progress: (done, total) bytes of the beginning.
      version: a number that grows when ``run``, ``findings`` or ``texts`` changed.
      findings: the findings of this run and of the runs inside it, each once.
      texts: the program texts that are read so far, by program id.
      trouble: why findings could not be computed.
      key_at: time of the last key press, by the monotonic clock.
      parts: the runs inside it: the same program on other numbers of devices. They may be added later.
    """

    def __init__(self, directory: RunDir, *, whole: bool = True) -> None:
        """Follow the run in ``directory``; with ``whole``, also the runs within it."""
        self.directory = directory
        self.parts: list[Feed] = []
        self._whole = whole
        self.tail = Tail(directory)
        self.ready = False
        self.paused = False
        self.progress = (0, 0)
        self.version = 0
        self.state = "running"
        self.findings: list[Finding] = []
        self._own: list[Finding] = []  # of this run alone
        self._joined: list[list[Finding]] = []  # what ``findings`` was made of
        self.concluded = -1  # the version of the run that the findings are of
        self.texts: dict[str, Texts] = {}
        self.trouble: str | None = None
        self._folded = self._of_parts = 0
        self.key_at = 0.0
        self._compared = 0  # compilations, in the order in which they came
        self._batches: deque[Batch] = deque()
        self._lock = threading.Lock()  # held while the run changes, or while rules read it
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.others = Others()
        self._places: dict[bool, tuple[tuple[int, int], Places]] = {}

    @property
    def run(self) -> Run:
        return self.tail.run

    def places(self, *, whole: bool = False) -> Places:
        """Return the short names of files, computed again only if the run has grown: it reads every call."""
        known = self._places.get(whole)
        size = (len(self.run.functions), len(self.run.compilations))
        if known is None or known[0] != size:
            known = self._places[whole] = (size, Places(self.run, whole=whole))
        return known[1]

    @property
    def running(self) -> bool:
        return self.state == "running"

    @property
    def cut_off(self) -> bool:
        """Return whether the run has ended without the end of its log."""
        return not self.running and self.run.main_recorded and not self.run.complete

    @property
    def recordings(self) -> list[Feed]:
        """This run and those within it, as far as they can be looked at."""
        return [self, *(part for part in self.parts if part.ready)]

    def key(self) -> None:
        """Somebody typed: what goes on in other threads gives way for a moment."""
        self.key_at = time.monotonic()

    @property
    def typed(self) -> bool:
        """Return whether a key was pressed just now."""
        return time.monotonic() < self.key_at + KEY_S

    def _give_way(self) -> bool:
        """Between two slices of work; True: it is to end."""
        return self._stop.wait(YIELD_S if self.typed else BREAK_S)

    def start(self) -> None:
        for work in (self._follow, self._conclude):
            thread = threading.Thread(target=work, daemon=True, name=f"jaxscope{work.__name__}")
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        self._stop.set()
        self.others.stop()  # they would read a text to its end that is not needed any more
        for thread in self._threads:
            thread.join(1.0)
        for part in self.parts:
            part.stop()

    def take(self) -> bool:
        """Add the events that have arrived to the run, for at most FOLD_S seconds.

        It is called by the thread that draws. Returns whether to redraw.
        """
        grown = self._take()
        if not self.paused:
            for part in self.parts:
                part.take()
            versions = sum(part.version for part in self.parts)
            if versions != self._of_parts:
                self._of_parts = versions
                self.version += 1
                grown = True
        return grown

    def _take(self) -> bool:
        if self.paused or not self.ready or not self._batches or not self._lock.acquire(blocking=False):
            return False
        try:
            end = time.monotonic() + FOLD_S
            while self._batches and time.monotonic() < end:
                batch = self._batches[0]
                if self.tail.take(batch, SLICE)[1]:
                    self._batches.popleft()
            grown = self.run.version != self._folded
            self._folded = self.run.version
            self.version += grown
            return grown
        finally:
            self._lock.release()

    def read(self, program: Program) -> Texts:
        """Return the analysed texts of ``program``. Slow: never call it in the thread that draws."""
        known = self.texts.get(program.id)
        if known is not None:
            return known
        if sum(program.text_bytes.values()) > APART_BYTES:
            # It leaves what it read beside the run, where it is then found.
            with contextlib.suppress(Exception):
                heard = self.run.overheard.of(program) if program.asked is None else None
                around = circumstances(program, heard)
                self.others.call(
                    read_texts,
                    self.directory,
                    program.texts.get("hlo"),
                    program.texts.get("stablehlo"),
                    around,
                )
        if self._stop.is_set():
            return NOTHING
        return self.run.texts_of(program)

    @contextlib.contextmanager
    def still(self) -> Iterator[Run]:
        """Yield the run and keep it unchanged meanwhile. Never call it in the thread that draws."""
        with self._lock:
            yield self.run

    def _follow(self) -> None:
        def note_progress(done: int, total: int) -> None:
            self.progress = done, total

        self.tail.poll(note_progress)
        self.state = state(self.run, self.directory)
        self.ready = True
        self.version += 1
        self._look_within()
        while not self._stop.wait(PERIOD_S):
            if self.paused or len(self._batches) > 50:
                continue
            batch = self.tail.read()
            self.state = state(self.run, self.directory)
            if batch.news or self.running:  # time passes for what is in progress
                self._batches.append(batch)
            self._look_within()
        with contextlib.suppress(Exception):
            self._batches.clear()

    def _look_within(self) -> None:
        """Start a feed for each new run within this one, as a sweep has for each number of devices."""
        known = {part.directory.path for part in self.parts}
        for directory in store.sub_runs(self.directory) if self._whole else []:
            if directory.path not in known and not self._stop.is_set():
                part = Feed(directory, whole=False)
                part.others = self.others
                part.start()
                self.parts.append(part)

    def _conclude(self) -> None:
        rested = 0.0
        while not self._stop.wait(PERIOD_S):
            if self.ready and not self.paused:
                self._join()
            if not self.ready or self.run.version == self.concluded or self.paused:
                continue
            try:
                if time.monotonic() < rested:
                    self._compare()  # or the screens would, where a key waits for it
                    continue
                began = time.thread_time()
                self._draw_conclusions()
                rested = time.monotonic() + REST * (time.thread_time() - began)
                self.trouble = None
            except Exception as e:  # a rule that fails must not end the view
                self.trouble = f"{type(e).__name__}: {e}"
                self.concluded = self.run.version
            self.version += 1

    def _draw_conclusions(self) -> None:
        for program in list(self.run.programs.values()):
            if self._stop.is_set():
                return
            if program.texts and program.id not in self.texts:
                complete = program.compiled is not None and "hlo" in program.texts
                found = self.read(program)
                if complete or not self.running:
                    self.texts[program.id] = found
                    self.version += 1
        for program in list(self.run.retargeted.values()):
            if self._stop.is_set():
                return
            if program.made is not None and program.id not in self.texts:
                self.texts[program.id] = self.read(program)
                self.version += 1
        version = self.run.version
        if not self._compare():
            return
        own: list[Finding] = []
        for rule in registry.rules().values():  # between two of them the run may grow
            if rule.needs_limit:
                continue
            with self._lock:
                own += rule.check(self.run)
            if self._give_way():
                return
        self._own = registry.in_order(own)
        self._join()
        self.version += 1
        self.concluded = version

    def _join(self) -> None:
        """Merge the findings of this run with those of the runs within it."""
        its = self.recordings
        found = [feed._own for feed in its]
        if len(found) == len(self._joined) and all(map(operator.is_, found, self._joined)):
            return
        own = {id(feed.run): said for feed, said in zip(its, found, strict=True)}

        def look(runs: Sequence[Variant]) -> list[Finding]:
            first, *others = (own[id(v.run)] for v in runs)
            return merging.joined(first, others)

        self.findings = variants.of_each(self._variants(its), look)
        self._joined = found
        self.version += 1

    def whose(self, finding: Finding) -> Feed:
        """Return the feed of the run that holds the evidence of ``finding``."""
        its = self.recordings
        n = variants.sub_run(finding, self._variants(its))
        return its[0 if n is None else n + 1]

    @staticmethod
    def _variants(its: Sequence[Feed]) -> list[Variant]:
        return [variants.one(feed.run, feed.directory) for feed in its]

    def _compare(self) -> bool:
        """Compute the cause of each compilation, a few at a time, so that the run can grow and keys work.

        First, as the rules are quick where it is done, and the lists show each as soon as it is known.
        """
        compilations = list(self.run.compilations.values())
        shown = time.monotonic()
        while self._compared < len(compilations):
            with self._lock:
                end = time.monotonic() + COMPARE_S
                while self._compared < len(compilations) and time.monotonic() < end:
                    causes.of(self.run, compilations[self._compared])
                    self._compared += 1
            if time.monotonic() > shown + TELL_S:
                shown = time.monotonic()
                self.version += 1
            if self._give_way():
                return False
        with self._lock:
            for c in compilations[-UNFINISHED:]:  # what went on then may have come further
                causes.of(self.run, c)
        return True
