"""Find the run and the functions that the command line names, and write output to stdout or to a file. Many
commands use this module."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from jaxscope.errors import JaxscopeError
from jaxscope.log import files, store
from jaxscope.log.store import RunDir
from jaxscope.present.escape import escape

if TYPE_CHECKING:
    from rich.console import Console

    from jaxscope.model.ranks import Job
    from jaxscope.model.records import Function
    from jaxscope.model.run import Run

NAMED = 6  # functions listed in the message about an ambiguous name


def chosen(run_name: str | None, rank: int | None = None) -> RunDir:
    """Return the directory of the run that the command line calls ``run_name``; None: the newest run that
    recorded anything. In the run of a job, return the directory of the process with the number ``rank``;
    None: of the first process that recorded anything.

    Print a note on stderr if several runs have this name, or if ``latest`` skips a newer run that recorded
    nothing.

    Raises:
      RunNotFound: there is no such run or rank.
    """
    found = store.find(run_name)
    if run_name == found.name and run_name != found.path.name and not Path(run_name).is_dir():
        same = [r for r in store.all_runs() if r.name == run_name]
        if len(same) > 1:
            this = escape(found.path.name)
            sys.stderr.write(f"{len(same)} runs are called {escape(run_name)}; showing the newest, {this}\n")
    if run_name in (None, "", "latest"):
        newest = store.all_runs()[-1]
        if newest.path != found.path:
            sys.stderr.write(
                f"{newest.path.name} is newer but recorded nothing (the program did not import jax);"
                f" showing {found.path.name}\n"
            )
    return store.one_process(found, rank)


def job_of(run_name: str | None, directory: RunDir) -> Job | None:
    """Return the recordings of all ranks (processes) of a job. Return None if the command line names a single
    rank, or a run of one process.

    Args:
      run_name: the word on the command line that names the run; None: the newest run.
      directory: the directory that ``chosen`` returned for this word.
    """
    if directory.path.parent.name != store.RANKS or store.find(run_name).path == directory.path:
        return None
    from jaxscope.cli.progress import reading
    from jaxscope.model import ranks

    whole = ranks.job_of(directory)
    if whole is None:
        return None
    number = len(store.rank_runs(whole))
    with reading("reading", unit="ranks") as progress:
        step = None if progress is None else lambda n: progress(n, number)
        return ranks.read(whole, step)


def read_run(directory: RunDir) -> Run:
    """Read the run in ``directory``. If this takes long, a line on stderr shows the progress."""
    from jaxscope.cli.progress import reading
    from jaxscope.model.load import load

    with reading(f"reading {directory.path.name}") as progress:
        return load(directory, progress)


def functions(run: Run, text: str) -> tuple[list[Function], int | None]:
    """Return (the functions that ``text`` names, the number of the compilation): ``step#2`` -> ``([step],
    2)``. The number is None if ``text`` has none.

    If ``text`` is not the whole name of a single function, the functions are printed on stderr.

    Raises:
      UsageError: no function matches, or none that matches has a compilation with this number.
    """
    from jaxscope.model import function_lookup
    from jaxscope.present.text import Places, function_name

    found, number = function_lookup.find_compilations(run, text)
    typed = text if number is None else text.rpartition("#")[0]
    if len(found) > 1 or not function_lookup.is_called(found[0], typed):
        places = Places(run)
        names = [(function_name(f), places.function(f) or "") for f in found[:NAMED]]
        shown = []
        for f, name in zip(found, names, strict=False):
            called = next((places.frame(c.site) for c in f.compilations if c.site is not None), "")
            site = f"{name[1]}, called at {called}" if names.count(name) > 1 and called else name[1]
            shown.append(name[0] + (f" ({site})" if site else ""))
        more = f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
        text = f"{typed!r} means " + (f"{len(found):,} functions: " if len(found) > 1 else "")
        sys.stderr.write(f"{escape(text + ', '.join(shown) + more)}\n")
    return found, number


def deliver_metrics(run: Run, name: str, where: str | None) -> None:
    """Write numbers for each step of a run: compile seconds, recompiles, bytes. ``where`` is a file
    (``.jsonl``, ``.csv``) or a dashboard (``tensorboard:DIR``, ``wandb``); None or ``-``: stdout. A dashboard
    calls the run ``name``.

    Raises:
      JaxscopeError: the file cannot be written, or the package of the dashboard is missing.
    """
    from jaxscope.report import dashboards, scalars

    if where is None or where == "-":
        deliver(scalars.lines(run), None)
    elif dashboards.is_file(where):
        deliver(dashboards.text(run, where), Path(where))
    else:
        dashboards.write(run, name, where)


@contextlib.contextmanager
def console_for(path: Path | None) -> Iterator[Console]:
    """Yield a console that prints to stdout if ``path`` is None or ``-``. Otherwise its text goes to the file
    ``path``, without colors, when the ``with`` statement ends. The file is written completely or not at all.

    Raises:
      JaxscopeError: the file cannot be written.
    """
    from jaxscope.report.console import console

    if path is None or str(path) == "-":
        yield console(sys.stdout)
        return
    buffer = io.StringIO()
    yield console(buffer)
    deliver(buffer.getvalue(), path)


def deliver(text: str | Iterable[str], path: Path | None) -> None:
    """Write ``text``, or several texts one after the other, to the file ``path``; None or ``-``: to stdout. A
    file is written completely or not at all.

    Raises:
      JaxscopeError: the file cannot be written.
    """
    pieces = [text] if isinstance(text, str) else text
    if path is None or str(path) == "-":
        sys.stdout.writelines(pieces)
        return
    try:
        files.write(path, pieces, mode=files.SHARED)
    except OSError as e:
        raise JaxscopeError(
            f"cannot write {path}: {e.strerror}", hint="choose another file with -o", slug="unwritable"
        ) from e
