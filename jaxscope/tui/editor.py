"""Make the command that opens the user's editor at a line.

The file name comes from a run directory, which another person may have written. Editors execute a name such
as ``+!command``, and take ``--cmd`` as an option. So an editor only gets the absolute path of an existing
file, which begins with a slash.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePath

from jaxscope.log import files

# Editors by how a line is passed: ``+12 FILE``, ``FILE:12`` or ``--goto FILE:12``.
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
_DASHES = {"vi", "vim", "nvim", "view"}  # for these, all arguments after -- are files
_COLON = {"hx", "helix", "subl", "zed"}
_GOTO = {"code", "code-insiders", "codium", "cursor", "windsurf"}


def openable(file: str) -> str | None:
    """Return the absolute path of ``file``, which is safe to pass to an editor. None if there is no such
    regular file, or if the path has unprintable characters."""
    path = Path(file)
    try:
        path = path.absolute()
    except OSError:  # there is no current directory
        return None
    return str(path) if str(path).isprintable() and files.is_regular(path) else None


def command(file: str, line: int, environ: Mapping[str, str] | None = None) -> list[str] | None:
    """Return the command that opens ``file`` in the user's editor: ``["vim", "+12", "--", "/a/train.py"]``.
    The editor is ``$VISUAL`` or else ``$EDITOR``. None if neither is set, or if the value cannot be parsed.

    Args:
      file: the path of the file, a result of ``openable``.
      line: the line to go to; left out if the editor is unknown, or if it could misread a colon in ``file``.
      environ: the environment variables; None: those of this process.
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
    if ":" in file:  # the other editors would take what follows the colon for a line
        return [*words, file]
    if name in _GOTO:
        return [*words, "--goto", f"{file}:{line}"]
    if name in _COLON:
        return [*words, f"{file}:{line}"]
    return [*words, file]
