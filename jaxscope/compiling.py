"""``jaxscope.compile_for``: compile one function for an accelerator that this machine does not have, and read
the result.

The modules that record a run, and the modules that read a run, are imported only when they are needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxscope.errors import JaxscopeError, UsageError
from jaxscope.log import store

if TYPE_CHECKING:
    from jaxscope.analysis.memory_fit import Fit
    from jaxscope.analysis.programs import Texts
    from jaxscope.model.records import Program
    from jaxscope.recorded_run import Opened


class CompiledFor:
    """A program compiled for a target: an accelerator that this machine need not have.

    Attributes:
      run: the run that contains the program, as ``jaxscope.open_run`` returns it.
      path: the directory of ``run``, for commands such as ``jaxscope report PATH``.
      program: the record of the program in ``run``.
      target: the name of the target, such as ``v5e:4x4``.
      state: ok, exhausted (the program does not fit into the memory), failed, crashed (the compiler's process
        ended), late (it took too long), missing (no compiler for the target is installed), or skipped (JAX
        could not lower the function, or the program needs devices that the target does not have).
      error: the message of the compiler, or why the program was skipped; None: no error.
    """

    def __init__(self, run: Opened, directory: store.RunDir, program: Program) -> None:
        self.run = run
        self.program = program
        self._directory = directory
        self.target = program.target or ""
        self.state = program.state
        made, request = program.target_compiled, program.target_lowered
        self.error = made.error if made is not None else request.skipped if request is not None else None

    @property
    def path(self) -> Path:
        """Return the run directory."""
        return self._directory.path

    @property
    def texts(self) -> Texts:
        """Return the analyzed texts of the program: ``texts.stablehlo`` as JAX lowered it, and ``texts.hlo``
        (``texts.hlo.collectives``, ``texts.hlo.fusions``, ...) as it was compiled. A text that does not exist
        is None."""
        return self.run.texts_of(self.program)

    @property
    def fit(self) -> Fit | None:
        """Return how much memory the program needs on one device of the target, and how much the device has.
        None if the compilation failed for another reason than lack of memory."""
        from jaxscope.model import target_programs

        return target_programs.fit(self.run, self.program)

    @property
    def fits(self) -> bool | None:
        """Return whether the program fits into the memory of one device of the target; None if unknown."""
        found = self.fit
        return None if found is None else found.fits

    def text(self, stage: str = "hlo") -> str:
        """Return the text of the program. ``stage`` is ``hlo`` (after XLA's optimizations) or ``stablehlo``
        (as JAX lowered it).

        Raises:
          JaxscopeError: there is no such text, for example because the compilation failed.
        """
        blob = self.program.texts.get(stage)
        if blob is None:
            raise JaxscopeError(
                f"the program for {self.target} has no {stage} text: its state is {self.state}",
                hint=self.error or "",
                slug="no-text",
            )
        return self._directory.text(blob)

    def as_json(self) -> dict[str, Any]:
        """Return the program as dicts, lists and numbers, as in the list ``programs`` of ``jaxscope report
        --format json``."""
        import msgspec

        from jaxscope.report import targets

        found: dict[str, Any] = msgspec.to_builtins(targets.program_json(self.run, self.program))
        return found

    def report(self, *, file: Any = None, everything: bool = False) -> None:
        """Print the text report of the program: memory, collectives, and source lines with their costs.
        ``file`` is a text file or a rich ``Console``; default: stdout. With ``everything``, shorten and fold
        nothing."""
        from rich.console import Console

        from jaxscope.present.text import Places
        from jaxscope.report import targets
        from jaxscope.report.console import console
        from jaxscope.report.layout import put

        lines = targets.whole(self.run, self.program, Places(self.run), everything=everything)
        put(file if isinstance(file, Console) else console(file or sys.stdout), lines)

    def __repr__(self) -> str:
        return f"<jaxscope.CompiledFor {self.target}: {self.state}>"


def compile_for(
    target: str, function: Callable[..., Any], /, *args: Any, out: str | Path | None = None, **kwargs: Any
) -> CompiledFor:
    """Compile ``function`` for ``target``, an accelerator that this machine need not have, and return the
    result. ``function`` is traced but not run. If the compiler fails, no exception is raised: ``state`` and
    ``error`` of the result say so.

    Args:
      target: the name of the accelerator: ``v5e:4x4``, ``2*v5p:4x4x4``, ... (``jaxscope targets`` lists
        them).
      function: a jitted function, or a function that will be jitted without options.
      args, kwargs: the arguments of ``function``: arrays or ``jax.ShapeDtypeStruct``. Their shardings may be
        on CPU devices (as many as the target has: ``--xla_force_host_platform_device_count``) or on a
        ``jax.sharding.AbstractMesh``.
      out: the run directory; default: a new directory under ``.jaxscope/runs``. While a recording is active,
        the result becomes part of this recording, and ``out`` is not used.

    Raises:
      UsageError: there is no such target, its compiler is not installed, or ``function`` cannot be traced
        ahead of time.
      LogError: the run directory cannot be created, or is not empty.
      JaxscopeError: the program is missing from the log of the run.
      OSError: the program cannot be written to the run directory.
      Exception: any exception that is raised while JAX traces ``function``.
    """
    from jaxscope.analysis import machines
    from jaxscope.capture import session
    from jaxscope.schema.events import TargetsWanted
    from jaxscope.targets import client
    from jaxscope.targets.worker import Worker

    wanted = machines.parse(target)
    lacking = client.missing(wanted.platform)
    if lacking is not None:
        raise UsageError(lacking.what, hint=lacking.command, slug="no-compiler")
    jitted = _jitted(function)
    active = session.current()
    if active is None:
        name = f"{getattr(function, '__name__', 'function')}-{wanted.name}"
        directory = store.create(
            Path(out) if out is not None else None, name=name, how="compile", argv=list(sys.argv)
        )
        recording = session.start(directory, how="record", options=session.Options(arrays=False))
    else:
        directory, recording = active.run, active
    try:
        recording.writer.emit(TargetsWanted(targets=[wanted]))
        program = recording.compile_for(wanted, jitted.trace(*args, **kwargs))
    finally:
        if active is None:
            session.stop("stop")
    Worker(directory).once()
    from jaxscope import recorded_run

    run = recorded_run.open_run(directory.path)
    return CompiledFor(run, directory, _program(run, wanted.name, program))


def _jitted(function: Callable[..., Any]) -> Any:
    """Return ``jax.jit(function)``; a jitted function is returned unchanged.

    Raises:
      UsageError: ``function`` is not callable, or it has a method ``lower`` but no ``trace``.
    """
    if hasattr(function, "trace"):
        return function
    if not callable(function) or hasattr(function, "lower"):
        raise UsageError(
            f"{type(function).__name__} has no trace(): pass the function returned by jax.jit",
            slug="not-traceable",
        )
    import jax

    return jax.jit(function)


def _program(run: Opened, target: str, id: str | None) -> Program:
    """Return the program with the id ``id`` in ``run``. If ``run`` has no such program, or ``id`` is None,
    return the latest skipped program for ``target``, which has the reason why it was skipped.

    Raises:
      JaxscopeError: no program for ``target`` was skipped.
    """
    if id is not None and id in run.retargeted:
        return run.retargeted[id]
    skipped = [p for p in run.retargeted.values() if p.target == target and p.state == "skipped"]
    if not skipped:
        raise JaxscopeError(
            f"the program lowered for {target} is missing from the log", slug="log-incomplete"
        )
    return max(skipped, key=lambda p: p.compilations[-1].t_ns)
