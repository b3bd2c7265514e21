"""Where a verb's product goes: stdout, or the file of ``-o``, whole or not at all."""

from __future__ import annotations

import sys
from pathlib import Path

from jaxscope.errors import JaxscopeError
from jaxscope.log import store
from jaxscope.log.store import RunDir


def chosen(which: str | None) -> RunDir:
    """The run meant by RUN on the command line; says on stderr where the latest is not the newest.

    Raises:
      RunNotFound: there is none.
    """
    found = store.find(which)
    if which in (None, "", "latest"):
        newest = store.all_runs()[-1]
        if newest.path != found.path:
            sys.stderr.write(
                f"{newest.path.name} is newer, but nothing is recorded in it (no import of jax); this is {found.path.name}\n"
            )
    return found


def deliver(text: str, path: Path | None) -> None:
    """Write ``text`` to ``path``, or to stdout where it is None or ``-``.

    Raises:
      JaxscopeError: the file cannot be written.
    """
    if path is None or str(path) == "-":
        sys.stdout.write(text)
        return
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8", errors="backslashreplace")
        part.replace(path)
    except OSError as e:
        part.unlink(missing_ok=True)
        raise JaxscopeError(
            f"cannot write {path}: {e.strerror}", hint="choose another file with -o", slug="unwritable"
        ) from e
