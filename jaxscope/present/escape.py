"""Make texts from the user's program (names, paths, reprs, command lines) safe to print.

Control characters, bidi overrides and newlines in them are replaced with readable escapes. Rich still needs
the result as ``Text``, because it would interpret a plain string as markup.
"""

from __future__ import annotations

import re

_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def escape(value: object, limit: int | None = None) -> str:
    """Return ``str(value)`` as one line of printable text: an escape replaces each unprintable character,
    such as a line break. A text of more than ``limit`` characters is first cut to that number, with ``…`` at
    its end; escapes may make it longer."""
    text = value if isinstance(value, str) else str(value)
    if limit is not None and len(text) > limit:
        text = text[: max(0, limit - 1)] + "…"
    # Python's isprintable is False for controls (ESC, CR, BEL, C1), formatting characters (bidi overrides,
    # joiners), surrogates, separators other than the space, and private and unassigned characters. These
    # are the ones that move the cursor or hide other text.
    return text if text.isprintable() else "".join(c if c.isprintable() else _shown(c) for c in text)


def _shown(c: str) -> str:
    """Return the escape that is printed instead of the unprintable character ``c``."""
    code = ord(c)
    if c in _NAMED:
        return _NAMED[c]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# Control sequences of terminals: CSI, OSC (to BEL or ST), other two-letter escapes. An incomplete sequence is
# not removed here, but escaped when it is drawn.
_CONTROL = re.compile(
    r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\)|[@-Z\\^_=>78])|[\x00\x07\x0e\x0f]"
)


def as_printed(line: str) -> str:
    """Return a line of output as a terminal would show it, but without colors. Of the parts between carriage
    returns, only the last one with text is kept. A backspace removes the character before it."""
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
