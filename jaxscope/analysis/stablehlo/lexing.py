"""Split a line of StableHLO, as MLIR's printer writes it, into its parts: result names, operation, operands,
attributes, types, location.

The printer writes one operation, or the beginning or end of one region, on each line. Brackets inside strings
and the ``>`` of an arrow do not count as brackets.
"""

from __future__ import annotations

import re

# A string that does not end runs to the end of the line: otherwise each of its quotes would be tried as a
# beginning, and a hostile line full of quotes would take quadratic time.
STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?$)')
TOKEN = re.compile(STRING.pattern + r"|->|[()\[\]{}<>,]")
ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
OPENING, CLOSING = "([{<", ")]}>"
OPERATION = re.compile(r'(?:(%[^=]*?) = )?("?)([A-Za-z_][\w$.-]*)\2')
VALUE = re.compile(r"%[\w$.-]++(?:#\d++)?+")
OPERAND = re.compile(VALUE.pattern + r"(?! =|:)")  # possessive: no shorter name may match instead
DEFINED = re.compile(r"(%[\w$.-]++)(?=: | =)")
MAX_TRIES = 20  # the most positions at which a line's location may begin that are tried
SIMPLE_TYPE = re.compile(r"tensor<[^<>]*>")
NAME_ONLY = re.compile(r'"(?:[^"\\]|\\.)*"')


def unquote(text: str) -> str:
    r"""Return the content of an MLIR string literal: ``"a\22b"`` -> ``a"b``. The quotes may be missing. The
    escapes are ``\"``, ``\\`` and a backslash with two hex digits, which are one byte of UTF-8."""
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        text = text[1:-1]
    if "\\" not in text:
        return text
    raw = text.encode("utf-8", "surrogatepass")

    def byte(match: re.Match[bytes]) -> bytes:
        return bytes([int(match[1], 16)]) if len(match[1]) == 2 else match[1]

    return ESCAPE.sub(byte, raw).decode("utf-8", "replace")


def closing(text: str, start: int) -> int:
    """Return the index of the bracket that closes the bracket at index ``start``, or -1 if there is none."""
    depth = 0
    for token in TOKEN.finditer(text, start):
        kind = token[0]
        if kind in OPENING:
            depth += 1
        elif kind in CLOSING:
            depth -= 1
            if depth <= 0:
                return token.start()
    return -1


def split(text: str) -> list[str]:
    """Split a text at the commas outside of brackets and strings, without empty parts: ``a, f<b, c>`` ->
    ``["a", "f<b, c>"]``."""
    if not any(c in text for c in '"([{<'):
        return [piece for p in text.split(",") if (piece := p.strip())]
    pieces, depth, begin = [], 0, 0
    for token in TOKEN.finditer(text):
        kind = token[0]
        if kind == ",":
            if depth == 0:
                pieces.append(text[begin : token.start()].strip())
                begin = token.end()
        elif kind in OPENING:
            depth += 1
        elif kind in CLOSING:
            depth -= 1
    pieces.append(text[begin:].strip())
    return [p for p in pieces if p]


def attributes(text: str) -> dict[str, str]:
    """Parse ``{a = 1 : i32, b, "c d" = "x"}``, with or without braces, to a dict: name -> value as text. An
    attribute without a value, such as ``b``, has an empty text."""
    text = text.strip()
    if text.startswith("{"):
        end = closing(text, 0)
        text = text[1 : end if end > 0 else len(text)]
    found: dict[str, str] = {}
    for piece in split(text):
        name, equals, value = piece.partition(" = ")
        found[unquote(name.strip())] = value.strip() if equals else ""
    return found


def dictionary(text: str) -> dict[str, str]:
    """Parse the attributes of an operation to a dict: name -> value as text. ``text`` is the line after the
    operation's name: ``%0 <{a = 1 : i64}> {b}`` gives ``{"a": "1 : i64", "b": ""}``. Braces inside other
    brackets are not read."""
    found: dict[str, str] = {}
    depth = 0
    skip = 0
    for token in TOKEN.finditer(text):
        if token.start() < skip:
            continue
        kind = token[0]
        if kind == "{" and depth == 0:
            end = closing(text, token.start())
            found.update(attributes(text[token.start() : end + 1 if end > 0 else len(text)]))
            skip = end if end > 0 else len(text)
            depth += 1
        elif kind == "<" and depth == 0 and text.startswith("<{", token.start()):
            continue
        elif kind in OPENING:
            depth += 1
        elif kind in CLOSING:
            depth = max(0, depth - 1)
    return found


def location(line: str) -> tuple[str, str]:
    """Split a line that ends with ``loc(...)`` into (the line without the location, the text in the
    parentheses). The second text is empty if there is no location."""
    if not line.endswith(")"):
        return line, ""
    at = line.rfind(" loc(")
    if at >= 0 and line.startswith("#", at + 5) and line.find(")", at) == len(line) - 1:
        return line[:at], line[at + 5 : -1]  # the location is a #loc name, as in nearly every line
    for _ in range(MAX_TRIES):
        if at < 0:
            break
        if closing(line, at + 4) == len(line) - 1:
            return line[:at], line[at + 5 : -1]
        at = line.rfind(" loc(", 0, at)  # the one found was inside a string
    return line, ""


def signature(line: str) -> tuple[str, str]:
    """Split an operation's line, without its location, into the part before its types, and the types:
    ``%0 = f %a : T`` -> (``%0 = f %a``, ``T``). The second text is empty if the line has no types."""
    at = line.rfind(" : ")
    if at < 0:
        return line, ""
    if line.find("}", at) < 0 and line.find('"', at) < 0:
        return line[:at], line[at + 3 :]  # the usual case: nothing but types can follow
    depth, found = 0, -1
    ends = list(TOKEN.finditer(line))
    edges = [(t.start(), 1 if t[0] in OPENING else -1) for t in ends if t[0] in OPENING or t[0] in CLOSING]
    strings = [(t.start(), t.end()) for t in ends if t[0].startswith('"')]
    at, k, s = line.find(" : "), 0, 0
    while at >= 0:
        while k < len(edges) and edges[k][0] < at:
            depth += edges[k][1]
            k += 1
        while s < len(strings) and strings[s][1] <= at:
            s += 1
        if depth <= 0 and not (s < len(strings) and strings[s][0] < at):
            found = at
        at = line.find(" : ", at + 3)
    return (line, "") if found < 0 else (line[:found], line[found + 3 :])


def types(text: str) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Parse the types of an operation to (types of the operands, types of the results): ``(A, B) -> C`` gives
    ``(("A", "B"), ("C",))``. The short form ``A, B`` does not say which types are the operands', and gives
    (None, all types)."""
    before, arrow, after = text.partition("->")
    if not arrow:
        return None, tuple(_types(text))
    return tuple(_types(_bare(before))), tuple(_types(_bare(after)))


def _bare(text: str) -> str:
    """Remove the parentheses around a text, if one pair encloses all of it: ``(A, B)`` -> ``A, B``."""
    text = text.strip()
    return text[1:-1] if text.startswith("(") and closing(text, 0) == len(text) - 1 else text


def _types(text: str) -> list[str]:
    """Split a list of types at its commas, ``tensor<2xf32>, tensor<i1>``."""
    if text.count("<") == text.count("tensor<") and "(" not in text:
        simple = SIMPLE_TYPE.findall(text)
        if len(simple) == text.count(">"):
            rest = SIMPLE_TYPE.sub("", text)
            if not rest.strip(", "):
                return simple
    return split(text)
