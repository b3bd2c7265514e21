"""Remove values of static arguments and captured variables, source lines and paths outside the project from a
recording (``--redact``).

Each event and text is redacted before it is written to disk. A removed value is replaced by a keyed hash, so
that different values remain distinguishable. The key is random and never leaves this process.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from jaxscope.schema.events import AnyEvent

OUTSIDE = "<outside>"
_KEEP = re.compile(r"/lib(?:64)?/python\d[\d.]*t?/.*|/(?:site|dist)-packages/.*", re.DOTALL)
# An absolute path. It begins after a space, a quote or a bracket, unlike the / of a scope such as jit(f)/add.
_PATH = re.compile(r"""(?:(?<=^)|(?<=[\s"'=(@,\[<]))/(?:[^\s"'(),;<>\[\]{}|:]+)""")
_NODE = re.compile(r"\w\[")  # where static data of a container begins: CustomNode(Model[...], [*])
# Fields with a value of the program: of a static argument, of a variable that a function captures.
_VALUES = {"repr", "before", "after"}
_SOURCE = {"text"}  # a field with source code: the expression of a transfer, a notebook's cell
_ROOTS = (".git", "pyproject.toml", "setup.py", ".hg")


def project(script: str) -> list[str]:
    """Return the directories of the project, whose paths a redacted recording keeps. There are at most two:
    one for the current directory and one for the directory of ``script``, the program's file (empty: none).

    From each of these two, the search goes upwards to the nearest directory that has a ``.git``, a
    ``pyproject.toml`` or the like. If there is none, or it is the home directory, the directory where the
    search began is returned. No search begins in the root or the home directory.
    """
    projects = []
    for folder in (cwd(), Path(os.path.abspath(script)).parent if script else None):  # noqa: PTH100
        if folder is not None and folder not in (Path(folder.anchor), Path.home()):
            above = (folder, *folder.parents)
            root = next((p for p in above if any((p / r).exists() for r in _ROOTS)), folder)
            projects.append(str(root if root != Path.home() else folder))
    return list(dict.fromkeys(projects))


def cwd() -> Path | None:
    """Return the current directory; None if it has been removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


class Redaction:
    """Removes values of static arguments and captured variables, source lines and paths outside the project
    from events; from texts only these paths. ``roots`` are the directories of the project."""

    def __init__(self, roots: Iterable[str]) -> None:
        self._roots = tuple(f"{root.rstrip('/')}/" for root in roots)
        self._key = os.urandom(16)

    def event(self, event: AnyEvent) -> Any:
        """Return ``event`` as plain data, without values of static arguments and captured variables, source
        lines and paths outside the project."""
        data = msgspec.to_builtins(event)
        redacted: dict[str, Any] = {name: self._value(data["kind"], name, v) for name, v in data.items()}
        if redacted.get("signature"):
            redacted["signature"] = None  # it contains the default values
        if data["kind"] == "Rounded" and data.get("argument") is None:
            redacted["text"] = None  # an expression; else the name of a function
        return redacted

    def text(self, text: str) -> str:
        """Return ``text``, a program as StableHLO or HLO, with paths outside the project shortened."""
        return _PATH.sub(lambda m: self._path(m[0]), text)

    def _value(self, kind: str, name: str, value: Any) -> Any:
        """Return ``value``, the field ``name`` of an event of the kind ``kind`` (``Missed``), with secrets
        removed or replaced. Dicts and lists are redacted item by item."""
        if isinstance(value, str):
            if name in _VALUES and kind != "Rounded":  # a Rounded event has dtypes in these fields
                return self._mark(value)
            if name in _SOURCE and kind in ("Transferred", "SourceSeen"):
                return None
            if name in ("tree", "out_tree"):
                return self._tree(value)
            if name in ("file", "cwd", "function") and value.startswith("/"):
                return self._path(value)
            return self.text(value)
        if isinstance(value, dict):
            static = "compares" in value and "repr" in value
            redacted = {self.text(k): self._value(kind, k, v) for k, v in value.items()}
            if static and value.get("hash") is not None:
                redacted["hash"] = int(self._digest(str(value["hash"])), 16)
            if static:
                redacted["defined"] = None  # it names the value
            return redacted
        if isinstance(value, (list, tuple)):
            return [self._value(kind, "" if name in _VALUES else name, v) for v in value]
        return value

    def _path(self, path: str) -> str:
        """Return ``path`` without directories outside the project: ``/home/ann/x.py`` -> ``<outside>/x.py``.
        A path in the project is unchanged. The path of an installed package or of Python itself keeps its
        end: ``<outside>/lib/python3.11/json/a.py``."""
        if path.startswith(self._roots) or f"{path}/" in self._roots:
            return path
        kept = _KEEP.search(path)
        return OUTSIDE + (kept[0] if kept else f"/{path.rpartition('/')[2]}")

    def _tree(self, text: str) -> str:
        """Return ``text``, a PyTreeDef as text, with hashes in place of the static data of its nodes:
        ``CustomNode(Model[<left out 1f0c9a3b52d4>], [*])``."""
        redacted, at = "", 0
        while (match := _NODE.search(text, at)) is not None:
            end = _closing(text, match.end() - 1)
            inner = text[match.end() : end]
            redacted += text[at : match.end()] + (self._mark(inner) if inner else "")
            at = end
        return redacted + text[at:]

    def _mark(self, value: str) -> str:
        """Return the text that replaces the removed ``value``: ``<left out 1f0c9a3b52d4>``. It contains a
        hash, so that different values get different texts."""
        return f"<left out {self._digest(value)}>"

    def _digest(self, value: str) -> str:
        """Return a hash (12 hexadecimal digits) of the removed ``value``. It depends on the random key of
        this recording, so that the value cannot be guessed from it."""
        return hashlib.blake2s(
            value.encode("utf-8", "surrogatepass"), key=self._key, digest_size=6
        ).hexdigest()


def _closing(text: str, at: int) -> int:
    """Return the position in ``text`` of the bracket that closes the ``[`` at ``at``; the length of ``text``
    if none does."""
    depth = 0
    for n in range(at, len(text)):
        depth += (text[n] == "[") - (text[n] == "]")
        if not depth:
            return n
    return len(text)
