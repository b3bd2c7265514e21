"""A terminal to run commands in as a person would: what they draw becomes a screen of characters."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
import unicodedata
from pathlib import Path

PATIENCE_S = 120.0  # on a machine that others use too

_SEQUENCE = re.compile(
    r"\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-OQ-WYZ\\`-~])"
)
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[PX^_][^\x1b]*\x1b?|[ -/]*)?\Z")


class Screen:
    """As much of a VT100 as a full-screen program needs: positions, erasing, line feeds."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.cells = [[" "] * columns for _ in range(rows)]
        self.x = self.y = 0
        self._rest = ""

    @property
    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self.cells)

    def feed(self, data: str) -> None:
        data, self._rest = self._rest + data, ""
        at = 0
        while at < len(data):
            if data[at] != "\x1b":
                self._put(data[at])
                at += 1
            elif (found := _SEQUENCE.match(data, at)) is not None:
                if found.group(2):
                    self._obey(found.group(1), found.group(2))
                at = found.end()
            elif _BEGUN.match(data, at):
                self._rest = data[at:]
                return
            else:
                at += 1

    def _put(self, c: str) -> None:
        if c == "\r":
            self.x = 0
        elif c == "\n":
            if self.y == self.rows - 1:
                self.cells = [*self.cells[1:], [" "] * self.columns]
            else:
                self.y += 1
        elif c == "\b":
            self.x = max(0, self.x - 1)
        elif c >= " " and not unicodedata.combining(c):
            if self.x >= self.columns:
                self._put("\r")
                self._put("\n")
            self.cells[self.y][self.x] = c
            self.x += 1
            if unicodedata.east_asian_width(c) in "WF" and self.x < self.columns:
                self.cells[self.y][self.x] = ""
                self.x += 1

    def _obey(self, numbers: str, what: str) -> None:
        if numbers[:1] == "?":
            if what in "hl" and "1049" in numbers:  # to the other screen and back
                self._erase(0, self.rows * self.columns)
                self.x = self.y = 0
            return
        n = [int(p) if p.isdecimal() else 0 for p in numbers.split(";")]
        first = max(1, n[0])
        here, end = self.y * self.columns + self.x, self.rows * self.columns
        if what in "Hf":
            self.y = min(self.rows, first) - 1
            self.x = min(self.columns, max(1, n[1] if len(n) > 1 else 1)) - 1
        elif what in "ABCD":
            self.y = min(self.rows - 1, max(0, self.y + {"A": -first, "B": first}.get(what, 0)))
            self.x = min(self.columns - 1, max(0, self.x + {"D": -first, "C": first}.get(what, 0)))
        elif what == "G":
            self.x = min(self.columns, first) - 1
        elif what == "J":
            self._erase(*((here, end), (0, here + 1), (0, end))[min(n[0], 2)])
        elif what == "K":
            line = self.y * self.columns
            ends = ((here, line + self.columns), (line, here + 1), (line, line + self.columns))
            self._erase(*ends[min(n[0], 2)])

    def _erase(self, begin: int, end: int) -> None:
        for at in range(begin, min(end, self.rows * self.columns)):
            self.cells[at // self.columns][at % self.columns] = " "


class Terminal:
    """A command on a pseudo-terminal."""

    def __init__(self, command: list[str], cwd: Path, env: dict[str, str], size: tuple[int, int] = (120, 40)):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
            os.chdir(cwd)
            os.execvpe(command[0], command, env)
        self.screen = Screen(*size)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._ended = False

    def wait_for(self, *texts: str, seconds: float = PATIENCE_S) -> None:
        """Until all of them stand on the screen at one time."""
        until = time.monotonic() + seconds
        while not all(text in self.screen.text for text in texts):
            missing = [text for text in texts if text not in self.screen.text]
            assert time.monotonic() < until, f"{missing} never appeared:\n{self.screen.text}"
            assert not self._ended, f"it ended without {missing}:\n{self.screen.text}"
            self._read(0.2)

    def _read(self, seconds: float) -> None:
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # how Linux says that it has ended
                data = b""
            self._ended = not data
            self.screen.feed(self._decoder.decode(data))

    def press(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Change the size as a window does; the kernel signals the program."""
        self.screen = Screen(columns, rows)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def code(self, seconds: float = PATIENCE_S) -> int:
        """Its exit code, when it has ended."""
        until = time.monotonic() + seconds
        while not self._ended:
            assert time.monotonic() < until, f"it goes on:\n{self.screen.text}"
            self._read(0.2)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
