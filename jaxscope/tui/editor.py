"""The command that opens the user's editor at a line."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import PurePath

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
_COLON = {"hx", "helix", "subl", "zed"}
_GOTO = {"code", "code-insiders", "codium", "cursor", "windsurf"}


def command(file: str, line: int, environ: Mapping[str, str] | None = None) -> list[str] | None:
    """None: no editor is set. ``$VISUAL`` before ``$EDITOR``; an editor we do not know gets the file alone."""
    known = os.environ if environ is None else environ
    try:
        words = shlex.split(known.get("VISUAL") or known.get("EDITOR") or "")
    except ValueError:
        return None
    if not words:
        return None
    name = PurePath(words[0]).name.removesuffix(".exe")
    if name in _PLUS:
        return [*words, f"+{line}", file]
    if name in _GOTO:
        return [*words, "--goto", f"{file}:{line}"]
    if name in _COLON:
        return [*words, f"{file}:{line}"]
    return [*words, file]
