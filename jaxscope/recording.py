"""``jaxscope.record``: record a block of code, and read what was recorded.

The modules that read a run are imported only when they are needed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from jaxscope.log import store

if TYPE_CHECKING:
    from jaxscope.capture.session import Session
    from jaxscope.recorded_run import Opened


class Recording:
    """A recording that is started in code, as ``jaxscope.record`` returns it. Use the object as a context
    manager, or call ``start`` and ``stop``. If a recording is active already, as under ``jaxscope run``, no
    new recording begins, and the block is part of the active recording. But if the pytest plugin began the
    active recording, that recording ends, and a new recording begins.

    Args:
      path, name, overwrite: as in ``jaxscope.record``.
      options: the other options of the recording, which are attributes of ``capture.session.Options``.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        name: str | None = None,
        overwrite: bool = False,
        **options: Any,
    ) -> None:
        self._path = Path(path) if path is not None else None
        self._name = name
        self._overwrite = overwrite
        self._options = options
        self._mine = False
        self._run: store.RunDir | None = None

    def start(self) -> Recording:
        """Begin recording, and return this object. Imports jax.

        If the run directory cannot be created, or contains anything other than a run, print a line on stderr
        and record nothing. If it contains a run, create another directory next to it (``exp1-2``); with
        ``overwrite``, replace that run instead.

        Raises:
          UsageError: ``ir`` is not one of none, stats, stablehlo, hlo, all.
        """
        from jaxscope.capture import session
        from jaxscope.errors import LogError, UsageError

        options = session.Options(**self._options)
        if options.ir not in store.IR_CHOICES:
            raise UsageError(
                f"ir={options.ir!r} is not one of {', '.join(store.IR_CHOICES)}", slug="ir-choice"
            )
        active = session.current()
        if active is not None and active.options.passing == "suite":
            session.stop("stop")  # this recording replaces that of a test suite
            active = None
        if active is not None:
            self._join(active)
            return self
        try:
            self._run = self._create()
        except LogError as e:
            sys.stderr.write(f"jaxscope: not recording: {e.message}; the program continues\n")
            return self
        session.start(self._run, how="record", options=options)
        self._mine = True
        return self

    def _join(self, active: Session) -> None:
        """Use ``active``, a recording that was started elsewhere, instead of a new one. Print this on stderr
        if the user named a directory, or if the active recording will be deleted."""
        self._run = active.run
        if active.options.passing:
            sys.stderr.write(
                "jaxscope: an active no_recompiles block records already, and deletes its recording"
                " at its end; begin jaxscope.record() before the block, outside of it\n"
            )
        elif self._path is not None:
            sys.stderr.write(f"jaxscope: already recording to {active.run.path}; this block is part of it\n")

    def _create(self) -> store.RunDir:
        """Create the run directory and return it. If this process belongs to a job of several processes, its
        directory is inside the run directory of the job.

        Raises:
          LogError: the directory cannot be created, or contains something other than a run.
        """
        from jaxscope.capture import notebook_cells
        from jaxscope.launch import job

        launched = job.here()
        notebook = notebook_cells.notebook()
        path, argv = self._path, list(sys.argv) if notebook is None else [notebook]
        script = Path(argv[0] or "session").stem or "session"
        if path is None and self._name is None and launched is None and notebook is not None:
            path = Path(tempfile.mkdtemp(prefix="jaxscope-")) / script
        return job.create_run(
            path if self._overwrite or launched is not None else _free(path),
            launched,
            name=self._name or (self._path.name if self._path else script),
            overwrite=self._overwrite,
            how="record",
            argv=argv,
        )

    def stop(self) -> None:
        """End the recording. Do nothing if ``start`` did not begin one, because another recording was active
        or because it failed, if the recording has ended, or if another one has replaced it."""
        if self._mine:
            from jaxscope.capture import session

            self._mine = False
            active = session.current()
            if active is not None and active.run is self._run:  # another recording may have replaced it
                session.stop("stop")

    def __enter__(self) -> Recording:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def is_empty(self) -> bool:
        """Return whether there is no run directory, because the recording did not start."""
        return self._run is None

    @property
    def path(self) -> Path:
        """Return the run directory.

        Raises:
          UsageError: the recording has not started.
        """
        return self._directory().path

    def read(self) -> Opened:
        """Return what has been recorded so far: functions, compilations, programs, findings.

        Raises:
          UsageError: the recording has not started.
        """
        from jaxscope import recorded_run

        return recorded_run.open_run(self._directory().path)

    def metrics(self) -> list[dict[str, Any]]:
        """Return numbers for dashboards from what has been recorded so far: a dict for each step with a
        trace, lowering, compilation or snapshot of the live arrays, in order of time. What happened while no
        steps were counted is one dict. The keys are the attributes of ``jaxscope.report.scalars.Row``."""
        return self.read().metrics()

    def report(self, *, file: Any = None, everything: bool = False) -> None:
        """Print the report of what has been recorded so far, as ``jaxscope report`` does.

        In a notebook, without arguments, show the HTML report below the cell instead.

        Args:
          file: an open text file; default: stdout.
          everything: whether to shorten fewer lists.
        """
        from jaxscope.capture import notebook_cells

        if file is None and not everything and notebook_cells.notebook() is not None and not self.is_empty:
            notebook_cells.display(self)
            return
        from jaxscope.report import text

        run = self.read()
        text.print_report(run, file=file, directory=run.directory, everything=everything)

    def _repr_html_(self) -> str | None:
        """Return the HTML report of what has been recorded so far, which a notebook shows below the cell;
        None if the recording has not started."""
        return None if self._run is None else self.read()._repr_html_()

    def _directory(self) -> store.RunDir:
        """Return the run directory, or raise UsageError if the recording has not started."""
        from jaxscope.errors import UsageError

        if self._run is None:
            raise UsageError(
                "nothing has been recorded yet",
                hint="use it as: with jaxscope.record() as run: ...",
                slug="not-started",
            )
        return self._run

    def __repr__(self) -> str:
        state = (
            "not started"
            if self._run is None
            else f"recording to {self._run.path}"
            if self._mine
            else str(self._run.path)
        )
        return f"<jaxscope.Recording {state}>"


def _free(path: Path | None) -> Path | None:
    """Return ``path`` if it contains no run, else a free path beside it with a number: ``exp1`` ->
    ``exp1-2``. None for None."""
    number = 2
    found = path
    while path is not None and found is not None and (found / "meta.json").exists():
        found = path.with_name(f"{path.name}-{number}")
        number += 1
    return found


def record(
    path: str | Path | None = None,
    *,
    ir: str = "all",
    name: str | None = None,
    wrapper_libraries: Sequence[str] = (),
    arrays: bool = True,
    transfers: bool = True,
    line_times: bool = True,
    overwrite: bool = False,
    redact: bool = False,
) -> Recording:
    """Return a recording of a block of code, for programs that are not started with ``jaxscope run``::

        with jaxscope.record() as recording:
            train()
        recording.report()

    The recording begins at the ``with`` statement, or at ``recording.start()``. If a recording is active
    then, the block becomes part of that recording, and the options below are not used.

    Args:
      path: the run directory. It may contain another run (see ``overwrite``), but nothing else. Default: a
        new directory under ``.jaxscope/runs``; in a notebook, if there is no ``name``, a temporary directory.
      ir: which program texts of the user's functions to keep: none, stats (no text, but the compiler's
        figures), stablehlo (as lowered), hlo (as compiled), all.
      name: the name of the run; default: the last part of ``path``, or the name of the script.
      wrapper_libraries: further packages that are treated as libraries around JAX, like flax: their lines do
        not count as the user's.
      arrays: record the live arrays at the end of the block and of some steps; without steps, at some calls
        and transfers.
      transfers: count what is copied between host and devices; for copies to the host, methods of JAX's array
        class are replaced meanwhile.
      line_times: measure on which lines the main thread spends its time, by samples of its stack.
      overwrite: if ``path`` contains a run, replace that run. Without this option, another directory is
        created next to ``path`` (``exp1-2``).
      redact: leave out the values of static arguments, lines of source and paths outside the project.
    """
    return Recording(
        path,
        name=name,
        overwrite=overwrite,
        ir=ir,
        wrapper_libraries=list(wrapper_libraries),
        arrays=arrays,
        transfers=transfers,
        line_times=line_times,
        redact=redact,
    )
