"""Record a whole pytest session, and return the part of the recording that belongs to one test.

This module does not import pytest.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from jaxscope import recorded_part
from jaxscope.errors import UsageError, to_be_read
from jaxscope.recording import Recording

if TYPE_CHECKING:
    from jaxscope.capture.session import Session
    from jaxscope.capture.steps.scope import RecordingScope
    from jaxscope.model.records import Compilation
    from jaxscope.recorded_run import Opened
    from jaxscope.report.contract import Cause
    from jaxscope.schema.steps import Step
    from jaxscope.testing.baselines import Baselines

__tracebackhide__ = to_be_read


class SuiteRecording:
    """One recording for all tests that a process runs. If the process is already being recorded when the
    tests begin, that recording is used.

    Args:
      folder: the directory in which the run directory ``name`` is created; None: a temporary directory, which
        is removed at the end.
      texts: whether to keep the StableHLO and HLO of programs.
      baselines: the baseline files of the suite (saved figures of what each test compiles).
    """

    def __init__(self, folder: str | None, name: str, *, texts: bool, baselines: Baselines) -> None:
        self.baselines = baselines
        self._temporary = Path(tempfile.mkdtemp(prefix="jaxscope-")) if folder is None else None
        self._path = (self._temporary or Path(str(folder))) / name
        self._ir = "all" if texts else "none"
        self._recording: Recording | None = None

    def start(self) -> None:
        """Begin a recording, unless the process is already being recorded. This imports jax. Call this method
        before each test, because a test may have ended the recording."""
        from jaxscope.capture import session

        if session.current() is None:
            name = self._path.name
            self._recording = Recording(self._path, ir=self._ir, name=name, arrays=False, passing="suite")
            self._recording.start()

    def stop(self) -> None:
        """End the recording that ``start`` began, and remove a temporary directory."""
        if self._recording is not None:
            self._recording.stop()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


class TestRecording:
    """The recording of what one test compiles; ``test`` is its pytest id. The object is the value of the
    fixture ``jaxscope``, and a context manager in which the body of the test runs.

    The functions of the package ``jaxscope`` (``step``, ``watch``, ...) are also attributes of this object.

    Attributes:
      failure: why the marks let an earlier attempt of the test (``--reruns``) fail, as text; None: they did
        not.
      entered: whether the body of the test has begun.
      raised: whether the body of the test ended with an exception.

    Raises:
      UsageError: a method needs the recording, and there is none.
    """

    __test__ = False

    def __init__(self, test: str, suite: SuiteRecording) -> None:
        # JAX keeps the compiled programs: a later attempt compiles nothing and must fail for the same reason.
        self.failure: str | None = None
        self.entered = False
        self.raised = False
        self._test = test
        self._suite = suite
        self._session: Session | None = None
        self._ended = False
        self._block: Any = None
        self._earlier_blocks: list[RecordingScope] = []  # the test bodies of earlier attempts
        self._failed_parts: list[str] = []

    def __enter__(self) -> TestRecording:
        from jaxscope.capture import session
        from jaxscope.capture.steps.scope import RecordingScope

        self._suite.start()
        self._session = session.current()
        self.entered, self.raised = True, False
        if self._session is not None:
            self._earlier_blocks += [self._block] if self._block is not None else []
            self._failed_parts = recorded_part.failed()
            self._block = RecordingScope(self._session.tracker, own=False)
            self._session.tracker.open(self._block)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from jaxscope.capture import session

        self.raised = error is not None
        if self._session is not None:
            self._ended = session.current() is not self._session
            self._session.tracker.close(self._block)

    def reset(self) -> None:
        """Forget how an earlier attempt of the test ended: the next attempt may fail before the body of the
        test begins (in a ``setUp``)."""
        self.entered = self.raised = False

    def recorded(self, *, tries: bool = False) -> tuple[Opened, dict[str, Step]]:
        """Return (the whole recording so far, {id of a call of this test: its training step}), as
        ``recorded_part.read`` does. The first step is the first of the test. With ``tries``, the calls of
        earlier attempts of this test (``--reruns``) are included.

        Raises:
          UsageError: the test is not recorded.
        """
        if self._session is None:
            raise UsageError(
                "this test is not recorded",
                hint="the recording could not begin, or the test ended it: see stderr",
                slug="not-started",
            )
        run, part = recorded_part.read(self._session, self._block)
        for block in self._earlier_blocks if tries else ():
            part = {**recorded_part.read(self._session, block)[1], **part}
        return run, part

    def unreliable(self) -> str | None:
        """Return why the recording of this test may lack compilations, as text; None if it is complete."""
        if self._session is None:
            return "the test is not recorded"
        if self._ended:
            return "the test began or ended a recording of its own (jaxscope.record)"
        return recorded_part.why_unreliable(self._session, self._failed_parts)

    def read(self) -> Opened:
        """Return the whole recording so far, including earlier tests, with its findings."""
        return self.recorded()[0]

    @property
    def path(self) -> Path:
        """Return the run directory, which is removed at the end of the pytest session, unless
        ``--jaxscope-dir`` is given or the process was already being recorded before the tests."""
        self.recorded()
        assert self._session is not None
        return self._session.run.path

    @property
    def compilations(self) -> list[Compilation]:
        """Return the calls in this test that JAX traced, lowered or compiled, or that missed its fast path
        (the C++ cache of jit), in order of time."""
        run, part = self.recorded()
        return sorted((run.compilations[i] for i in part if i in run.compilations), key=lambda c: c.call)

    def causes(self, compilation: Compilation) -> list[Cause]:
        """Return why JAX did not find the call ``compilation`` in a cache: all causes, the decisive one
        first."""
        return self.read().causes(compilation)

    def pinned(self, name: str | None = None) -> Pinned:
        """Return a context manager that compares what its ``with`` block compiles with the test's baseline
        (saved figures of an earlier run), or with ``--jaxscope-update`` writes the baseline. Nothing is
        compared if the block raises an exception. If the test has several such blocks, each needs a ``name``
        of its own. JAX's caches are cleared when the block begins.

        Raises:
          UsageError: the test is not recorded; or, when the block ends, it compiled none of the user's
            functions.
          NotAsPinned: when the block ends, a figure differs (an AssertionError); the message names the
            change and its line.
          BaselineError: when the block ends, there is no baseline yet (``--jaxscope-update=new`` writes it),
            or it cannot be read or written.
        """
        self.recorded()
        assert self._session is not None
        return Pinned(self._session, self._suite.baselines, self._test, name)

    def __getattr__(self, name: str) -> Any:
        import jaxscope

        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(jaxscope, name)


class Pinned:
    """The context manager that ``TestRecording.pinned`` returns. ``test`` is the pytest id of the test, and
    ``name`` the name of the block in the test; None: the test has only one such block."""

    def __init__(self, session: Session, baselines: Baselines, test: str, name: str | None) -> None:
        self._session = session
        self._baselines = baselines
        self._test, self._name = test, name
        self._block: RecordingScope | None = None

    def __enter__(self) -> None:
        import jax

        from jaxscope.capture.steps.scope import RecordingScope

        clear: Any = jax.clear_caches  # earlier tests have no influence
        clear()
        self._block = RecordingScope(self._session.tracker, own=False)
        self._session.tracker.open(self._block)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        block, self._block = self._block, None
        if block is not None:
            self._session.tracker.close(block)
            if error is None:
                self._baselines.check(recorded_part.alone(self._session, block), self._test, self._name)
