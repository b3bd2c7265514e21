"""Write line numbers for messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Message, Names, message

LINES = 4  # line numbers in one title
SERIES = 3  # the fewest numbers that are written as ``14 to 16``


def line_numbers(lines: Iterable[int], most: int = LINES) -> Names:
    """Return line numbers for a message, with three or more numbers in a row as one part: ``14 to 17, 20 and
    2 more``. At most ``most`` parts are named; the lines of the others are counted."""
    parts: list[list[int]] = []
    for n in sorted(set(lines)):
        if parts and parts[-1][-1] == n - 1:
            parts[-1].append(n)
        else:
            parts.append([n])
    names: list[str | Message] = []
    for part in parts:
        if len(part) >= SERIES and len(names) < most:
            names.append(message("lines-from-to", first=str(part[0]), last=str(part[-1])))
        else:
            names += [str(n) for n in part]
    return Names(tuple(names), most)


def on_lines(lines: Names) -> Message:
    """Return ``on line 16`` or ``on lines 16 and 17``."""
    one = len(lines.names) == 1
    return message("on-line", line=lines.names[0]) if one else message("on-lines", lines=lines)


def known_lines(at: Sequence[str | Frame], most: int) -> Message:
    """Return ``line 16`` or ``lines 16 and 17`` for the lines ``at``, of which at most ``most`` are named."""
    lines = Names(tuple(at), most, "lines")
    return message("lines-known" if len(at) > 1 else "line-known", lines=lines)
