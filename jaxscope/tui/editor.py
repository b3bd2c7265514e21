"""The command that opens the user's editor at a line.

The file's name comes from the run, and so perhaps from somebody else: an editor takes ``+!command`` for a
command and ``--cmd`` for an option. It is given the absolute name of a file that is there, which begins with
a slash.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePath

from jaxscope.log import files

# What each family of editors calls a line.
_PLUS = {
    "vi",
    "vim",
    "nvim",
    "view",
    "nano",
    "emacs",
    "emacsclient",
    "micro",
    "joe",
    "kak",
    "ne",
    "jed",
    "mg",
}
_DASHES = {"vi", "vim", "nvim", "view"}  # they take what follows -- as a file's name
_COLON = {"hx", "helix", "subl", "zed"}
_GOTO = {"code", "code-insiders", "codium", "cursor", "windsurf"}


def openable(file: str) -> str | None:
    """Return the absolute path of ``file``; None if it is no regular file or the path is not printable."""
    path = Path(file)
    try:
        path = path.absolute()
    except OSError:  # there is no current directory
        return None
    return str(path) if str(path).isprintable() and files.is_regular(path) else None


def command(file: str, line: int, environ: Mapping[str, str] | None = None) -> list[str] | None:
    """Return the command that opens ``file``; None: no editor is set. ``$VISUAL`` has priority over
    ``$EDITOR``. An unknown editor gets only the file, without the line.

    Args:
      file: the result of ``openable``.
    """
    known = os.environ if environ is None else environ
    try:
        words = shlex.split(known.get("VISUAL") or known.get("EDITOR") or "")
    except ValueError:
        return None
    if not words:
        return None
    name = PurePath(words[0]).name.removesuffix(".exe")
    line = max(1, line)
    if name in _PLUS:
        return [*words, f"+{line}", *(["--"] if name in _DASHES else []), file]
    if ":" in file:  # which the others would take for a line
        return [*words, file]
    if name in _GOTO:
        return [*words, "--goto", f"{file}:{line}"]
    if name in _COLON:
        return [*words, f"{file}:{line}"]
    return [*words, file]
