"""Texts from the program under study (names, paths, reprs, argv) made safe to print.

They are data: a control character, a bidi override or a newline in one shows as an escape. What is
returned must still be given to Rich as ``Text``, never as markup.
"""

from __future__ import annotations

import re

_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def escape(value: object, limit: int | None = None) -> str:
    """Return ``value`` as one line of printable text, cut with ``…`` after ``limit`` characters."""
    text = value if isinstance(value, str) else str(value)
    if limit is not None and len(text) > limit:
        text = text[: max(0, limit - 1)] + "…"
    # Not printable, in Python's sense, are controls (ESC, CR, BEL, C1), formatting characters (bidi
    # overrides, joiners), surrogates, separators other than the space, private and unassigned ones:
    # exactly what moves the cursor or hides what stands there.
    return text if text.isprintable() else "".join(c if c.isprintable() else _shown(c) for c in text)


def _shown(c: str) -> str:
    code = ord(c)
    if c in _NAMED:
        return _NAMED[c]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# CSI, OSC (to BEL or ST), other two-letter escapes. What is left of an incomplete one is escaped on drawing.
_CONTROL = re.compile(
    r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\)|[@-Z\\^_=>78])|[\x00\x07\x0e\x0f]"
)


def as_printed(line: str) -> str:
    """Return the line of an output as a terminal showed it, without colours: what follows a carriage return
    is written over what precedes it.
    """
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
