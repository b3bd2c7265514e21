"""The program's output as lines a terminal may be shown: colours and cursor movements taken out, progress
bars as they were last."""

from __future__ import annotations

import re
from pathlib import Path

from jaxscope.log import files
from jaxscope.tui.lines import Growing

FIRST = 16 << 20  # bytes of a long output that are read: its end
CHUNK = 4 << 20  # at one poll

# CSI, OSC (to BEL or ST), other two-letter escapes. What is left of an incomplete one is escaped on drawing.
_CONTROL = re.compile(
    r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\)|[@-Z\\^_=>78])|[\x00\x07\x0e\x0f]"
)


def clean(line: str) -> str:
    """What a person would have seen of the line: after a carriage return the rest is written over it."""
    line = _CONTROL.sub("", line)
    if "\r" in line:
        line = next((part for part in reversed(line.split("\r")) if part), "")
    if "\b" in line:
        kept: list[str] = []
        for c in line:
            if c != "\b":
                kept.append(c)
            elif kept:
                kept.pop()
        line = "".join(kept)
    return line


class Output:
    """``output.log`` followed. ``poll`` takes in what is new and says whether there was any."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = Growing()
        self.skipped = 0  # bytes at the beginning that are not shown
        self._offset = 0
        self._rest = b""
        self._open = False  # is the last line an unfinished one?

    @property
    def exists(self) -> bool:
        return files.is_regular(self.path, within=self.path.parent)

    def poll(self) -> bool:
        try:
            with files.open_regular(self.path, within=self.path.parent) as f:
                size = f.seek(0, 2)
                if not self._offset and size > FIRST:
                    self._offset = self.skipped = size - FIRST
                if size <= self._offset:
                    return False
                f.seek(self._offset)
                data = f.read(CHUNK)
        except OSError:
            return False
        self._offset += len(data)
        *lines, rest = (self._rest + data).split(b"\n")
        made = [clean(line.decode("utf-8", "replace").rstrip("\r")) for line in lines]
        if self._open and made:
            self.lines.replace_last(made.pop(0))
            self._open = False
        self.lines.extend(made)
        self._rest = rest[-65536:]
        if rest:
            last = clean(self._rest.decode("utf-8", "replace"))
            if self._open:
                self.lines.replace_last(last)
            else:
                self.lines.extend([last])
            self._open = True
        return True
