"""Split the text of an HLO instruction into operands and attributes, at commas outside of brackets and quoted
strings.

Most functions get the "tail" of an instruction, the part of its line after ``opcode(``, as XLA prints it::

    operand, operand), key=value, key={...}, metadata={...}, backend_config={...json...}

The time is linear in the length of the text, also for a malicious text, and there is no recursion.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

# The regular expressions have possessive quantifiers (Python 3.11), so that they do not backtrack.
# A quoted string, with C escapes.
QUOTED = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BRACKET = re.compile(rf"{QUOTED}|[()\[\]{{}}]", re.DOTALL)
_STOP = re.compile(rf"{QUOTED}|[()\[\]{{}},]", re.DOTALL)
_OPERAND = re.compile(r"%([^\s,(){}%]++)")
COMMENT = re.compile(r"/\*[^*]*+\*/")
_KEY = re.compile(r",\s*+([A-Za-z_][\w.\-]*+)=")
_METADATA = re.compile(rf"metadata=\{{((?:[^\"{{}}]++|{QUOTED}|\{{[^{{}}]*+\}})*+)\}}", re.DOTALL)
_FIELD = re.compile(rf"([A-Za-z_]\w*+)=({QUOTED}|[^\s\"{{}}]++)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_CONTROL = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11}


def number(text: str | None, digits: int = 9) -> int | None:
    """Parse a decimal number of at most ``digits`` digits. Return None if the text is something else."""
    if text and len(text) <= digits and text.isascii() and text.isdigit():
        return int(text)
    return None


def closing(text: str, start: int) -> int:
    """Return the position of the bracket that closes the bracket at ``start - 1``: ``f(a(b)c)``, 2 -> 7. For
    ``start`` 0 the open bracket is in front of the text. Return -1 if no bracket closes it."""
    if start == 0:  # most operand lists contain no brackets
        end = text.find(")")
        if end < 0 or not ("(" in text[:end] or "{" in text[:end] or '"' in text[:end]):
            return end
    depth = 1
    for found in _BRACKET.finditer(text, start):
        sign = found[0]
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
            if not depth:
                return found.start()
    return -1


def split(text: str) -> list[str]:
    """Split a text at the commas outside of brackets and strings: ``a, f(b, c)`` -> ``["a", "f(b, c)"]``;
    ``[]`` for empty text."""
    parts, depth, start = [], 0, 0
    for found in _STOP.finditer(text):
        sign = found[0]
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append(text[start : found.start()].strip())
            start = found.end()
    last = text[start:].strip()
    if last or parts:
        parts.append(last)
    return parts


def operand_text(tail: str) -> str:
    """Return the text of an instruction's operands: ``%a, %b), dim=0`` -> ``%a, %b``. ``tail`` is the part of
    the instruction's line after ``opcode(``."""
    end = closing(tail, 0)
    return tail if end < 0 else tail[:end]


def operands(tail: str) -> list[str]:
    """Return the names of an instruction's operands: ``%a, %b), dim=0`` -> ``["a", "b"]``. For a constant the
    result has its value, for a parameter its number: ``0), ...`` -> ``["0"]``. ``tail`` is the part of the
    instruction's line after ``opcode(``."""
    text = operand_text(tail)
    if "%" in text and '"' not in text:
        return _OPERAND.findall(text)
    # XLA writes ``a``, in older texts ``f32[2]{0} %a``, and ``/*index=5*/`` before every fifth operand.
    if "/*" in text:
        text = COMMENT.sub("", text)
    return [part.rsplit(" ", 1)[-1] for part in split(text) if part]


def attribute(tail: str, key: str) -> str | None:
    """Return the value of the attribute ``key`` of an instruction as text, or None if it is missing. ``tail``
    is the part of the instruction's line after ``opcode(``."""
    if key not in tail:
        return None
    position = closing(tail, 0) + 1
    while position:
        found = _KEY.match(tail, position)
        if found is None:
            return None
        end = _value_end(tail, found.end())
        if found[1] == key:
            return tail[found.end() : end].strip()
        position = end
    return None


def attributes(text: str, until: str | None = None) -> dict[str, str]:
    """Parse ``, key=value, other={...}`` to ``{"key": "value", "other": "{...}"}``. The text begins with a
    comma. Reading stops before the key ``until`` (None: there is no such key), before the first part without
    ``key=``, or at the end. If a key occurs twice, the first counts."""
    result: dict[str, str] = {}
    position = 0
    while (found := _KEY.match(text, position)) and found[1] != until:
        end = _value_end(text, found.end())
        result.setdefault(found[1], text[found.end() : end].strip())
        position = end
    return result


def instruction_attributes(tail: str) -> dict[str, str]:
    """Return the attributes of an instruction that precede ``metadata=``: key -> value as text. ``metadata``
    and the attributes after it, such as ``backend_config``, are not in the result. Without ``metadata`` all
    attributes are. ``tail`` is the part of the instruction's line after ``opcode(``."""
    end = closing(tail, 0)
    return attributes(tail[end + 1 :], until="metadata") if end >= 0 else {}


def _value_end(text: str, start: int) -> int:
    """Return the position at which the value that begins at ``start`` ends: the next comma outside of
    brackets and strings, or the end of ``text``."""
    depth = 0
    for found in _STOP.finditer(text, start):
        sign = found[0]
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        # ", device_ids=" belongs to the mesh in front of it (see groups).
        elif sign == "," and depth <= 0 and not text.startswith(" device_ids=", found.end()):
            return found.start()
    return len(text)


def metadata(tail: str) -> str | None:
    """Return the text between the braces of an instruction's ``metadata={...}``, or None if it is missing.
    ``tail`` is the part of the instruction's line after ``opcode(``."""
    start = tail.find(", metadata={")
    if start < 0:
        return None
    if '"' in tail[:start]:  # a string in an earlier attribute may contain the same text
        value = attribute(tail, "metadata")
        return value[1:-1] if value and value[0] == "{" and value[-1] == "}" else None
    found = _METADATA.match(tail, start + 2)
    return found[1] if found else None


def fields(body: str) -> dict[str, str]:
    r"""Parse the text of an instruction's metadata to a dict, with strings unescaped:
    ``op_name="a\"b" stack_frame_id=7`` -> ``{"op_name": 'a"b', "stack_frame_id": "7"}``."""
    return {k: unquote(v) for k, v in _FIELD.findall(body)}


def unquote(text: str) -> str:
    """Return the content of a quoted string with C escapes decoded; other text unchanged."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    text = text[1:-1]
    if "\\" not in text:
        return text
    # XLA escapes bytes, so a name outside ASCII comes as octal UTF-8.
    raw = _ESCAPE.sub(_unescape, text)
    try:
        return raw.encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return raw


def _unescape(match: re.Match[str]) -> str:
    """Return the character that an escape sequence, a match of ``_ESCAPE``, stands for."""
    octal, hexadecimal, letter = match.groups()
    if octal:
        return chr(int(octal, 8) & 0xFF)
    if hexadecimal:
        return chr(int(hexadecimal, 16))
    return chr(_CONTROL[letter]) if letter in _CONTROL else str(letter)


def backend_config(tail: str) -> dict[str, Any]:
    """Return an instruction's ``backend_config={...}``, parsed as JSON; ``{}`` if it is missing or is not a
    JSON object. ``tail`` is the part of the instruction's line after ``opcode(``."""
    text = attribute(tail, "backend_config")
    if not text:
        return {}
    try:
        value = msgspec.json.decode(unquote(text).encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
