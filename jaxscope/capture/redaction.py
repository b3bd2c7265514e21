"""What ``--redact`` leaves out of a recording: static values, lines of source, paths outside the project.

Applied to each event and text on its way to the disk: nothing of what is left out is ever written. A value that is left
out has a mark that is another one for another value, and says nothing of it: the key is this process's own.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from jaxscope.schema.events import AnyEvent

OUTSIDE = "<outside>"
_KEEP = re.compile(r"/lib(?:64)?/python\d[\d.]*t?/.*|/(?:site|dist)-packages/.*", re.DOTALL)
# An absolute path where one can begin: not a scope like jit(f)/add.
_PATH = re.compile(r"""(?:(?<=^)|(?<=[\s"'=(@,\[<]))/(?:[^\s"'(),;<>\[\]{}|:]+)""")
_NODE = re.compile(r"\w\[")  # static data of a container: CustomNode(Model[...], [*])
_VALUES = {"repr", "before", "after"}  # of a static argument; of what a function reads from outside
_SOURCE = {"text"}  # of a transfer: the expression as it stands in the file
_ROOTS = (".git", "pyproject.toml", "setup.py", ".hg")


def project(script: str) -> list[str]:
    """Where the user's own files lie: the projects of the current directory and of ``script``."""
    found = []
    for place in (_cwd(), Path(os.path.abspath(script)).parent if script else None):  # noqa: PTH100
        if place is not None and place not in (Path(place.anchor), Path.home()):
            root = next((p for p in (place, *place.parents) if any((p / r).exists() for r in _ROOTS)), place)
            found.append(str(root if root != Path.home() else place))
    return list(dict.fromkeys(found))


def _cwd() -> Path | None:
    try:
        return Path.cwd()
    except OSError:
        return None


class Redaction:
    """Leaves out what may not be written. ``roots``: directories whose paths stay."""

    def __init__(self, roots: Iterable[str]) -> None:
        self._roots = tuple(f"{root.rstrip('/')}/" for root in roots)
        self._key = secrets.token_bytes(16)

    def event(self, event: AnyEvent) -> Any:
        """``event`` as it may be written, as plain data."""
        said = msgspec.to_builtins(event)
        found: dict[str, Any] = {name: self._value(said["kind"], name, value) for name, value in said.items()}
        if found.get("signature"):
            found["signature"] = None  # it has the values of defaults
        return found

    def text(self, text: str) -> str:
        """A program's text without paths outside the project."""
        return _PATH.sub(lambda m: self._path(m[0]), text)

    def _value(self, kind: str, name: str, value: Any) -> Any:
        if isinstance(value, str):
            if name in _VALUES:
                return self._mark(value)
            if name in _SOURCE and kind == "Transferred":
                return None
            if name in ("tree", "out_tree"):
                return self._tree(value)
            if name in ("file", "cwd", "function") and value.startswith("/"):
                return self._path(value)
            return self.text(value)
        if isinstance(value, dict):
            static = "compares" in value and "repr" in value
            found = {self.text(k): self._value(kind, k, v) for k, v in value.items()}
            if static and value.get("hash") is not None:
                found["hash"] = int(self._digest(str(value["hash"])), 16)
            return found
        if isinstance(value, (list, tuple)):
            return [self._value(kind, "" if name in _VALUES else name, v) for v in value]
        return value

    def _path(self, path: str) -> str:
        if path.startswith(self._roots) or f"{path}/" in self._roots:
            return path
        kept = _KEEP.search(path)
        return OUTSIDE + (kept[0] if kept else f"/{path.rpartition('/')[2]}")

    def _tree(self, text: str) -> str:
        """A tree's description without the static data of its containers."""
        made, at = "", 0
        while (match := _NODE.search(text, at)) is not None:
            end = _closing(text, match.end() - 1)
            inner = text[match.end() : end]
            made += text[at : match.end()] + (self._mark(inner) if inner else "")
            at = end
        return made + text[at:]

    def _mark(self, value: str) -> str:
        return f"<left out {self._digest(value)}>"

    def _digest(self, value: str) -> str:
        return hashlib.blake2s(
            value.encode("utf-8", "surrogatepass"), key=self._key, digest_size=6
        ).hexdigest()


def _closing(text: str, at: int) -> int:
    """Where the bracket at ``at`` closes, else the end."""
    depth = 0
    for n in range(at, len(text)):
        depth += (text[n] == "[") - (text[n] == "]")
        if not depth:
            return n
    return len(text)
