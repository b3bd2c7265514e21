"""The recording behind a pytest session, and one test's part of it. Knows nothing of pytest."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from jaxscope import parts
from jaxscope.errors import to_be_read
from jaxscope.recording import Recording

if TYPE_CHECKING:
    from jaxscope.capture.blocks import Block
    from jaxscope.capture.session import Session
    from jaxscope.model.records import Compilation
    from jaxscope.opened import Opened
    from jaxscope.pins import Pins
    from jaxscope.schema.findings import Cause
    from jaxscope.schema.steps import Step

__tracebackhide__ = to_be_read


class Suite:
    """One recording for all tests of a process; where one is going on already, that one.

    Args:
      folder: where it is kept, under ``name``; None: nowhere.
      texts: keep the programs' texts.
      pins: the suite's baselines.
    """

    def __init__(self, folder: str | None, name: str, *, texts: bool, pins: Pins) -> None:
        self.pins = pins
        self._temporary = Path(tempfile.mkdtemp(prefix="jaxscope-")) if folder is None else None
        self._where = (self._temporary or Path(str(folder))) / name
        self._ir = "all" if texts else "none"
        self._recording: Recording | None = None

    def start(self) -> None:
        """Begin recording, where nothing records: also again, where a test has recorded something else. Imports jax."""
        from jaxscope.capture import session

        if session.current() is None:
            name = self._where.name
            self._recording = Recording(self._where, ir=self._ir, name=name, arrays=False, passing="suite")
            self._recording.start()

    def stop(self) -> None:
        if self._recording is not None:
            self._recording.stop()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def part(self, test: str) -> Tested:
        return Tested(test, self)


class Tested:
    """What one test compiles, while it is entered; jaxscope's own functions as attributes.

    Raises:
      UsageError: from what asks for the recording, where there is none.
    """

    def __init__(self, test: str, suite: Suite) -> None:
        self._test = test
        self._suite = suite
        self._over = False
        self._earlier: list[Block] = []  # of tries before this one
        self.told: str | None = None  # why a try of the test failed; it is not compiled again in the next
        self.entered = False
        self.raised = False
        self._session: Session | None = None
        self._block: Any = None
        self._failed: list[str] = []

    def __enter__(self) -> Tested:
        from jaxscope.capture import session
        from jaxscope.capture.blocks import Block

        self._suite.start()
        self._session = session.current()
        self.entered, self.raised = True, False
        if self._session is not None:
            self._earlier += [self._block] if self._block is not None else []
            self._failed = parts.failed()
            self._block = Block(self._session.tally, own=False)
            self._session.tally.open(self._block)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from jaxscope.capture import session

        self.raised = error is not None
        if self._session is not None:
            self._over = session.current() is not self._session
            self._session.tally.close(self._block)

    def leave_to_method(self) -> None:
        """What enters it now may never come to it (a ``setUp`` that raises)."""
        self.entered = self.raised = False

    def recorded(self, *, tries: bool = False) -> tuple[Opened, dict[str, Step]]:
        """The whole recording so far, and the compilations of this test in it with its own steps.

        ``tries``: with those of earlier tries of it.
        """
        from jaxscope.errors import UsageError

        if self._session is None:
            raise UsageError(
                "nothing records this test",
                hint="the recording could not be made, or the test stopped it: see stderr",
                slug="not-started",
            )
        run, part = parts.read(self._session, self._block)
        for block in self._earlier if tries else ():
            part = {**parts.read(self._session, block)[1], **part}
        return run, part

    def blind(self) -> str | None:
        """Why what was recorded cannot be relied on; None: it can."""
        if self._session is None:
            return "nothing records it"
        if self._over:
            return "the test began or ended a recording of its own (jaxscope.record)"
        return parts.blind(self._session, self._failed)

    def read(self) -> Opened:
        """The whole recording so far: functions, compilations, programs, findings; also of earlier tests."""
        return self.recorded()[0]

    @property
    def path(self) -> Path:
        """The run directory; it goes with the session, unless ``--jaxscope-dir`` keeps it."""
        self.recorded()
        assert self._session is not None
        return self._session.run.path

    @property
    def compilations(self) -> list[Compilation]:
        """The calls of this test that left JAX's fast path, in order of time."""
        run, part = self.recorded()
        return sorted((run.compilations[i] for i in part if i in run.compilations), key=lambda c: c.call)

    def causes(self, compilation: Compilation) -> list[Cause]:
        """Why ``compilation`` was not served from a cache, the decisive cause first."""
        return self.read().causes(compilation)

    def pinned(self, name: str | None = None) -> Pinned:
        """What is compiled in the block is what this test's baseline says: compilations and their causes,
        collectives, fusions, memory, donation. JAX's caches are cleared first, so that it does not matter what other
        tests have compiled. ``name`` tells several blocks of one test apart.

        Raises:
          NotAsPinned: it is something else (an AssertionError); the message says what, and on which line.
          BaselineError: there is no baseline yet (``--jaxscope-update=new`` writes it), or it cannot be read.
        """
        self.recorded()
        assert self._session is not None
        session = self._session
        return Pinned(
            session, lambda block: self._suite.pins.hold(parts.alone(session, block), self._test, name)
        )

    def __getattr__(self, name: str) -> Any:
        import jaxscope

        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(jaxscope, name)


class Pinned:
    """A block whose part of the recording is judged when it has ended without an error of its own."""

    def __init__(self, session: Session, judge: Callable[[Block], None]) -> None:
        self._session = session
        self._judge = judge
        self._block: Block | None = None

    def __enter__(self) -> None:
        import jax

        from jaxscope.capture.blocks import Block

        clear: Any = jax.clear_caches
        clear()
        self._block = Block(self._session.tally, own=False)
        self._session.tally.open(self._block)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        block, self._block = self._block, None
        if block is not None:
            self._session.tally.close(block)
            if error is None:
                self._judge(block)
