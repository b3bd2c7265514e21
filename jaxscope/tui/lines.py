"""Store texts of any size as lines that can be indexed by number and searched.

``Lines`` is for a text that does not change. It stores the bytes of the text and where each line begins.
``Growing`` is for a program's output, which grows at its end.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np

from jaxscope.tui.tokens import matches

LONGEST = 4_000  # characters of one line that are shown
LONGEST_BYTES = 4 * (LONGEST + 1)
MOST_MATCHES = 100_000
MOST_LINES = 500_000  # of a growing text: older lines are dropped
_BREAK = ord("\n")
_SLICE = 1 << 20  # bytes indexed at once: between two slices other threads can run
_LOOKED = 1 << 18  # bytes searched at once: a slice in which every line matches takes 5 ms


class Lined(Protocol):
    """The interface of a text as numbered lines, which the pane ``TextView`` shows. ``Lines`` and ``Growing``
    implement it.

    Attributes:
      longest: characters of the longest line, perhaps a few more.
    """

    longest: int

    def __len__(self) -> int: ...
    def __getitem__(self, line: int) -> str: ...
    def search(self, needle: str, first: int = 0) -> Iterator[list[int]]:
        """Yield the numbers of the lines that contain ``needle``, from line ``first`` on, in several lists.
        Each list is the result of a few milliseconds of work and may be empty. Upper and lower case are
        distinguished only if the needle has a capital."""


class Lines:
    """The lines of a text that does not change. The text is kept as bytes, and each line is decoded when it
    is read."""

    def __init__(self, text: str | bytes) -> None:
        # Bytes, because decoding 100 MB at once would block all other threads.
        self.data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        points = np.frombuffer(self.data, np.uint8)
        found = [np.zeros(1, np.uint64)]
        for at in range(0, len(points), _SLICE):
            found.append((np.flatnonzero(points[at : at + _SLICE] == _BREAK) + (at + 1)).astype(np.uint64))
        made = np.concatenate(found)
        longest = int(np.diff(made, append=np.uint64(len(points))).max())
        if len(made) > 1 and made[-1] == len(points):
            made = made[:-1]  # a line break at the end begins no further line
        self._starts = array("Q", made.tobytes())
        self.longest = min(LONGEST, longest)

    def __len__(self) -> int:
        return len(self._starts) if self.data else 0

    def __getitem__(self, line: int) -> str:
        """Return a line without its line break. A line with more than LONGEST characters is cut and ends in
        ``…``."""
        begin = self._starts[line]
        end = self._starts[line + 1] - 1 if line + 1 < len(self._starts) else len(self.data)
        text = _decoded(self.data[begin : min(end, begin + LONGEST_BYTES)])
        return text[:LONGEST] + "…" if len(text) > LONGEST else text.rstrip("\r\n")

    def search(self, needle: str, first: int = 0) -> Iterator[list[int]]:
        if not needle or first >= len(self):
            return
        fold = needle == needle.lower()
        wanted = needle.encode("utf-8", "surrogatepass")
        line, begin = first, self._starts[first]
        while begin < len(self.data):
            # A slice consists of whole lines, so that no match is cut at its end.
            last = bisect_right(self._starts, begin + _LOOKED)
            stop = self._starts[last] if last < len(self._starts) else len(self.data)
            piece = self.data[begin:stop]
            found: list[int] = []
            if piece.isascii():
                low = piece.lower() if fold else piece
                at = low.find(wanted)
                while at >= 0:
                    n = bisect_right(self._starts, begin + at) - 1
                    found.append(n)
                    after = self._starts[n + 1] if n + 1 < len(self._starts) else stop
                    at = low.find(wanted, after - begin)
            else:  # some letters become two in lower case, which moves positions: search line by line
                texts = _decoded(piece).split("\n")
                found = [
                    n for n, text in zip(range(line, last), texts, strict=False) if any(matches(text, needle))
                ]
            yield found
            line, begin = last, stop


def _decoded(data: bytes) -> str:
    """Decode ``data`` as UTF-8; invalid bytes become replacement characters."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:  # the file is no text, or the cut is inside a letter
        return data.decode("utf-8", "replace")


class Growing:
    """Lines that are added at the end of a text. Beyond MOST_LINES, the oldest are dropped, and the numbers
    of the others become smaller.

    Attributes:
      longest: characters of the longest line so far.
      dropped: number of lines dropped so far.
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._lines: list[str] = []
        self.longest = 0
        self.dropped = 0
        self.extend(lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, line: int) -> str:
        return self._lines[line]

    def extend(self, lines: Iterable[str]) -> None:
        for line in lines:
            shown = line if len(line) <= LONGEST else line[:LONGEST] + "…"
            self._lines.append(shown)
            self.longest = max(self.longest, len(shown))
        if len(self._lines) > MOST_LINES:
            over = len(self._lines) - MOST_LINES + MOST_LINES // 10
            del self._lines[:over]
            self.dropped += over

    def replace_last(self, line: str) -> None:
        """Replace the last line, which was incomplete, with ``line``."""
        if self._lines:
            self._lines.pop()
        self.extend([line])

    def search(self, needle: str, first: int = 0) -> Iterator[list[int]]:
        at = first
        while needle and at < len(self._lines):
            yield [n for n, line in enumerate(self._lines[at : at + 2_000], at) if any(matches(line, needle))]
            at += 2_000
