"""What the verbs that read a run share: which run and which functions of it are meant, and where the product goes
(stdout, or the file of ``-o``, whole or not at all)."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from jaxscope.errors import JaxscopeError
from jaxscope.log import files, store
from jaxscope.log.store import RunDir
from jaxscope.present.escape import escape

if TYPE_CHECKING:
    from jaxscope.model.records import Function
    from jaxscope.model.run import Run

NAMED = 6  # of the functions that one word means


def chosen(which: str | None) -> RunDir:
    """The run meant by RUN on the command line; says on stderr where the latest is not the newest.

    Raises:
      RunNotFound: there is none.
    """
    found = store.find(which)
    if which == found.name and which != found.path.name and not Path(which).is_dir():
        same = [r for r in store.all_runs() if r.name == which]
        if len(same) > 1:
            this = escape(found.path.name)
            sys.stderr.write(f"{len(same)} runs are called {escape(which)}; showing the newest, {this}\n")
    if which in (None, "", "latest"):
        newest = store.all_runs()[-1]
        if newest.path != found.path:
            sys.stderr.write(
                f"{newest.path.name} is newer but recorded nothing (the program did not import jax); showing {found.path.name}\n"
            )
    return found


def functions(run: Run, text: str) -> tuple[list[Function], int | None]:
    """The functions that FUNCTION or FUNCTION#n on the command line means, and n.

    Says on stderr which they are, where ``text`` is not the whole name of one alone.

    Raises:
      UsageError: there is none.
    """
    from jaxscope.model import function_lookup
    from jaxscope.present.text import Places, function_name

    found, number = function_lookup.find_compilations(run, text)
    typed = text if number is None else text.rpartition("#")[0]
    if len(found) > 1 or not function_lookup.is_called(found[0], typed):
        places = Places(run)
        shown = [
            function_name(f) + (f" ({site})" if (site := places.function(f)) else "") for f in found[:NAMED]
        ]
        more = f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
        text = f"{typed!r} means " + (f"{len(found):,} functions: " if len(found) > 1 else "")
        sys.stderr.write(f"{escape(text + ', '.join(shown) + more)}\n")
    return found, number


def deliver(text: str | Iterable[str], path: Path | None) -> None:
    """Write ``text``, or its pieces one after the other, to ``path``, or to stdout where it is None or ``-``.

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
