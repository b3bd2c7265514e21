"""Follow a run directory while the program writes it.

One thread reads new events ten times a second. The thread that draws the screen adds these events to the run,
a few at a time. A third thread computes the findings again when the run has changed. Nothing here uses a
terminal.
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
from jaxscope.tui.worker_process import WorkerProcesses

PERIOD_S = 0.1
SLICE = 500  # events added to the run at once: about 5 ms
FOLD_S = 0.01  # seconds of each period in which events are added; the rest is for keys and drawing
# A larger text is parsed in another process, because a regular expression blocks all threads of this one.
APART_BYTES = 2_000_000
COMPARE_S = 0.005  # seconds of comparing cache keys at a time
KEY_S = 0.15  # for this time after a key, the threads here pause longer between two slices of work:
YIELD_S = 0.03  # the longer pause
BREAK_S = 0.001  # the pause otherwise
TELL_S = 1.0  # how often the screens show the causes computed so far
UNFINISHED = 200  # latest compilations whose causes are computed again
REST = 4  # the pause between two computations of findings, as a multiple of the duration of the first


class Feed:
    """Follow a run (the recording of one program) while the program writes it, and compute its findings.

    The directory of a run may contain further runs of the same program, with other settings or numbers of
    devices. They are called sub-runs.

    Attributes:
      ready: whether the events that existed at the start are read, so that ``run`` can be used.
      progress: (bytes read, all bytes) of these first events.
      version: a number that grows when ``run``, ``findings`` or ``texts`` changed.
      findings: the findings of this run and its sub-runs; equal ones are merged.
      texts: the analyzed program texts by program id, as far as they are read.
      trouble: why findings could not be computed; None: there was no error.
      key_at: time of the last key press, by the monotonic clock.
      sub_feeds: the feeds of the sub-runs; more may be added later.
    """

    def __init__(self, directory: RunDir, *, whole: bool = True) -> None:
        """Follow the run in ``directory``; with ``whole``, also the runs inside its directory (sub-runs)."""
        self.directory = directory
        self.sub_feeds: list[Feed] = []
        self._whole = whole
        self.tail = Tail(directory)
        self.ready = False
        self.paused = False
        self.progress = (0, 0)
        self.version = 0
        self.state = "running"
        self.findings: list[Finding] = []
        self._own: list[Finding] = []  # without those of the sub-runs
        self._joined: list[list[Finding]] = []  # the lists that ``findings`` was merged from
        self.concluded = -1  # the version of the run for which the findings were computed
        self.texts: dict[str, Texts] = {}
        self.trouble: str | None = None
        self._folded = self._of_parts = 0
        self.key_at = 0.0
        self._compared = 0  # number of compilations whose causes are known, in the order of their events
        self._batches: deque[Batch] = deque()
        self._lock = threading.Lock()  # locked while the run changes, or while rules read it
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.processes = WorkerProcesses()
        self._places: dict[bool, tuple[tuple[int, int], Places]] = {}

    @property
    def run(self) -> Run:
        return self.tail.run

    def places(self, *, whole: bool = False) -> Places:
        """Return an object that shortens the file names of the run; a new one if the run has grown. With
        ``whole``, file names keep their path below the working directory."""
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
        """Return whether the program has ended without a complete log, for example because it was killed."""
        return not self.running and self.run.main_recorded and not self.run.complete

    @property
    def recordings(self) -> list[Feed]:
        """Return this feed and the feeds of its sub-runs, as far as their first events are read."""
        return [self, *(part for part in self.sub_feeds if part.ready)]

    def key(self) -> None:
        """Record that a key was pressed, so that the threads that read events and compute findings leave more
        time for the screen."""
        self.key_at = time.monotonic()

    @property
    def typed(self) -> bool:
        """Return whether a key was pressed within the last KEY_S seconds."""
        return time.monotonic() < self.key_at + KEY_S

    def _give_way(self) -> bool:
        """Pause long work for a moment, so that other threads can run. The pause is longer if a key was just
        pressed. Return whether the feed is to stop."""
        return self._stop.wait(YIELD_S if self.typed else BREAK_S)

    def start(self) -> None:
        """Start the threads that read events and compute findings."""
        for work in (self._follow, self._conclude):
            thread = threading.Thread(target=work, daemon=True, name=f"jaxscope{work.__name__}")
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """End the threads, waiting at most a second for each, the worker processes and the feeds of the
        sub-runs."""
        self._stop.set()
        self.processes.stop()  # these processes would continue to read texts that nobody needs
        for thread in self._threads:
            thread.join(1.0)
        for part in self.sub_feeds:
            part.stop()

    def take(self) -> bool:
        """Add new events to this run and its sub-runs, for at most FOLD_S seconds in each. Return whether to
        redraw. Only the thread that draws may call this, so that no run changes while it is drawn."""
        grown = self._take()
        if not self.paused:
            for part in self.sub_feeds:
                part.take()
            versions = sum(part.version for part in self.sub_feeds)
            if versions != self._of_parts:
                self._of_parts = versions
                self.version += 1
                grown = True
        return grown

    def _take(self) -> bool:
        """Add new events to this run without its sub-runs; none while rules hold the lock. Return whether the
        run changed."""
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
        """Return the analyzed texts of ``program``; NOTHING if the feed was stopped meanwhile. This may take
        seconds, so the thread that draws must not call it."""
        known = self.texts.get(program.id)
        if known is not None:
            return known
        if sum(program.text_bytes.values()) > APART_BYTES:
            # The other process saves its result in the run directory, where texts_of finds it below.
            with contextlib.suppress(Exception):
                heard = self.run.overheard.of(program) if program.target_lowered is None else None
                around = circumstances(program, heard)
                self.processes.call(
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
    def locked_run(self) -> Iterator[Run]:
        """Yield the run, which does not change until the ``with`` statement ends. The thread that draws must
        not use this method: it would wait for rules that hold the same lock for a long time."""
        with self._lock:
            yield self.run

    def _follow(self) -> None:
        """Read the log until the feed is stopped: first all events, then new ones every PERIOD_S seconds.
        Runs in a thread."""

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
            if batch.news or self.running:  # an empty batch still updates the times of what is in progress
                self._batches.append(batch)
            self._look_within()
        self._batches.clear()

    def _look_within(self) -> None:
        """Start a feed for each new run inside the directory of this run, such as those that ``--vary``
        records."""
        known = {part.directory.path for part in self.sub_feeds}
        for directory in store.sub_runs(self.directory) if self._whole else []:
            if directory.path not in known and not self._stop.is_set():
                part = Feed(directory, whole=False)
                part.processes = self.processes
                part.start()
                self.sub_feeds.append(part)

    def _conclude(self) -> None:
        """Compute the findings whenever the run has changed, with pauses, until the feed is stopped. Runs in
        a thread."""
        rested = 0.0
        while not self._stop.wait(PERIOD_S):
            if self.ready and not self.paused:
                self._join()
            if not self.ready or self.run.version == self.concluded or self.paused:
                continue
            try:
                if time.monotonic() < rested:
                    self._compare()  # otherwise the screens would compute the causes, while a key waits
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
        """Read new program texts, then compute the causes of new compilations and all findings. Return early
        if the feed is stopped."""
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
            if program.target_compiled is not None and program.id not in self.texts:
                self.texts[program.id] = self.read(program)
                self.version += 1
        version = self.run.version
        if not self._compare():
            return
        own: list[Finding] = []
        for rule in registry.rules().values():  # the run may grow between two rules
            if rule.needs_limit:
                continue
            with self._lock:
                own += rule.check(self.run)
            if self._give_way():
                return
        with self._lock:
            self._own = registry.of_one_run(self.run, own)
        self._join()
        self.version += 1
        self.concluded = version

    def _join(self) -> None:
        """Merge the findings of this run and its sub-runs into ``findings``, if the findings of any of these
        runs have changed."""
        feeds = self.recordings
        found = [feed._own for feed in feeds]
        if len(found) == len(self._joined) and all(map(operator.is_, found, self._joined)):
            return
        own = {id(feed.run): findings for feed, findings in zip(feeds, found, strict=True)}

        def merged(runs: Sequence[Variant]) -> list[Finding]:
            first, *others = (own[id(v.run)] for v in runs)
            return merging.joined(first, others)

        self.findings = variants.of_each(self._variants(feeds), merged)
        self._joined = found
        self.version += 1

    def feed_of(self, finding: Finding) -> Feed:
        """Return the feed of the run that has the evidence of ``finding``: this feed, or the feed of a
        sub-run."""
        feeds = self.recordings
        n = variants.sub_run(finding, self._variants(feeds))
        return feeds[0 if n is None else n + 1]

    @staticmethod
    def _variants(feeds: Sequence[Feed]) -> list[Variant]:
        return [variants.variant_of(feed.run, feed.directory) for feed in feeds]

    def _compare(self) -> bool:
        """Compute the causes of each new compilation, a few at a time, so that keys and new events do not
        wait. Return False if the feed is to stop."""
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
            for c in compilations[-UNFINISHED:]:  # some were in progress when they were compared
                causes.of(self.run, c)
        return True
