"""Choose the colors of a line of HLO, StableHLO, Python or program output.

A tokenizer is a function that takes a line and returns spans (start, end, kind). The kind decides
the color: ``value``, ``type``, ``op``, ``collective``, ``attr``, ``string``, ``number``, ``comment``,
``word`` or ``symbol``; in the text of a comparison, ``before`` or ``after``. Text between the spans has no
color. A tokenizer takes linear time, whatever the line contains.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator

from jaxscope.schema import collectives

Span = tuple[int, int, str]
Tokens = Callable[[str], list[Span]]

_COLLECTIVES = "|".join(collectives.KINDS)
# Every alternative is possessive or a fixed string, so that no character is matched twice.
_HLO = re.compile(
    r'(?P<string>"(?:[^"\\]++|\\.)*+"?+)'
    r"|(?P<comment>/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/)?+|//.*+)"
    r"|(?P<value>%[\w.\-]++)"
    r"|(?P<type>\b(?:pred|[su]\d++|bf16|f\d++\w*+|c64|c128|token|opaque)\[[^\]]*+\](?:\{[^{}]*+\})?+)"
    rf"|(?P<collective>(?<![\w.\-%])(?:{_COLLECTIVES})(?:-start|-done)?+(?=\())"
    r"|(?P<op>(?<![\w.\-%])[a-z][a-z0-9\-]*+(?=\())"
    r"|(?P<attr>(?<![\w.\-])[a-z_]++(?==))"
    r"|(?P<word>(?<![\w.\-])(?:HloModule|ENTRY|ROOT|true|false)(?![\w.\-]))"
    r"|(?P<number>(?<![\w.\-])-?+\d++(?:\.\d++)?+(?:e[+-]?+\d++)?+(?![\w.]))"
    r"|[\w.\-]++"
)
_STABLEHLO = re.compile(
    r'(?P<collective>"?+(?:stablehlo|mhlo)\.'
    r'(?:all_reduce|all_gather|reduce_scatter|all_to_all|collective_\w++)"?+)'
    r'|(?P<op>"?+(?:stablehlo|chlo|mhlo|func|sdy|builtin)\.[\w.]++"?+)'
    r'|(?P<string>"(?:[^"\\]++|\\.)*+"?+)'
    r"|(?P<comment>loc\((?:[^()\"]++|\"(?:[^\"\\]++|\\.)*+\"?+)*+\)?+|#loc\d*+|//.*+)"
    r"|(?P<value>%[\w$.\-]++(?:\#\d++)?+)"
    r"|(?P<type>(?:tensor|tuple|vector|complex)<[^<>]*+>|\b[su]?+i\d++\b|\bb?+f\d++\w*+\b)"
    r"|(?P<symbol>@[\w$.\-]++|\#[\w$.\-]++)"
    r"|(?P<word>\b(?:module|return|public|private|dense|applies|across|dims|array|cond|do|true|false)\b)"
    r"|(?P<attr>\b[A-Za-z_][\w.]*+(?= =))"
    r"|(?P<number>(?<![\w.])-?+\d++(?:\.\d++)?+(?:[eE][+-]?+\d++)?+)"
    r"|[\w.]++"
)
_PYTHON = re.compile(
    r"(?P<comment>\#.*+)"
    r"|(?P<string>\b[rbfuRBFU]{0,2}(?:'(?:[^'\\]++|\\.)*+'?+|\"(?:[^\"\\]++|\\.)*+\"?+)"
    r"|'(?:[^'\\]++|\\.)*+'?+|\"(?:[^\"\\]++|\\.)*+\"?+)"
    r"|(?P<symbol>@[\w.]++)"
    r"|(?P<number>(?<![\w.])\d[\d_]*+(?:\.\d++)?+(?:[eE][+-]?+\d++)?+)"
    rf"|(?P<word>\b(?:{'|'.join(keyword.kwlist)})\b)"
    r"|(?P<op>\b[A-Za-z_]\w*+(?=\())"
    r"|\w++"
)


def _with(pattern: re.Pattern[str]) -> Tokens:
    """Return a tokenizer: each named group of ``pattern`` that matches gives a span, whose kind is the name
    of the group."""

    def spans(line: str) -> list[Span]:
        return [(m.start(), m.end(), m.lastgroup) for m in pattern.finditer(line) if m.lastgroup]

    return spans


hlo = _with(_HLO)
stablehlo = _with(_STABLEHLO)
python = _with(_PYTHON)


def plain(line: str) -> list[Span]:
    """Return no spans, because the text of ``line`` has no colors."""
    return []


_SIGN = re.compile(r"(?:^|: )[ ]*+([-+]) ?+\S")


def differences(line: str) -> list[Span]:
    """Return spans (start, end, kind) for a line of a comparison: from ``-`` on, the kind is ``before``, from
    ``+`` on ``after``; in ``name: before → after``, these are the kinds of the two values."""
    sign = _SIGN.search(line)
    if sign is not None:
        return [(sign.start(1), len(line), "before" if sign.group(1) == "-" else "after")]
    arrow = line.find(" → ")
    if arrow < 0:
        return []
    begin = max(line.rfind(": ", 0, arrow) + 2, len(line) - len(line.lstrip()))
    return [(begin, arrow, "before"), (arrow + 3, len(line), "after")] if begin < arrow else []


def matches(line: str, needle: str) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of each occurrence of ``needle`` in ``line``. Upper and lower case are distinguished
    only if the needle has a capital, or if ``line`` has another length in lower case."""
    if not needle:
        return
    if needle == needle.lower():
        low = line.lower()
        line = low if len(low) == len(line) else line  # some letters become two in lower case
    at = line.find(needle)
    while at >= 0:
        yield at, at + len(needle)
        at = line.find(needle, at + len(needle))
