"""Parse the text of a compiled module to ``Module``. Parts that cannot be read become ``problems``.

The text is XLA's ``HloModule::ToString``, which JAX 0.8 to 0.12 return for CPU, TPU and GPU and
``--xla_dump_to`` writes. Names may have a ``%``, computations a signature and operands a shape, or not. Other
output may be before and after the module. Each instruction becomes one object; its operands and attributes
are not parsed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jaxscope.analysis.hlo.frames import TABLES, Frames
from jaxscope.analysis.hlo.module import Computation, Instruction, Module, Problem

# name = shape opcode(tail. A tuple's shape ends at the first ")" with " opcode(" behind it.
_INSTRUCTION = re.compile(
    r"^[ \t]*+(ROOT )?%?([^\s=(){},%]++) = (\(.*?\)|[^\s(]\S*+) ([a-z][a-z0-9_\-]*+)\((.*+)$", re.MULTILINE
)
_HEADER = re.compile(r"[ \t]*+(ENTRY )?[ \t]*+%?([^\s=(){},%]++)(?: \(.*\) -> .*)? \{[ \t]*$", re.MULTILINE)
_MODULE = re.compile(r"[ \t]*HloModule ([^\s,]++)(.*+)$", re.MULTILINE)
_TABLE = re.compile(rf"^[ \t]*+({'|'.join(TABLES)})[ \t]*$", re.MULTILINE)
_BLANK = re.compile(r"\n[ \t]*+\n")
_CLOSE = re.compile(r"^[ \t]*\}", re.MULTILINE)
MAX_PROBLEMS = 50
# The most lines of one instruction. A backend_config with line breaks has a few dozen lines.
MAX_LINES = 10_000
_SHOWN = 120


def read(text: str, user_files: Iterable[str] = ()) -> Module:
    """Parse the text of a compiled module. Never raises; a text that is not HLO gives no computations and a
    problem.

    Args:
      text: the HLO, perhaps with other output before and after the module.
      user_files: files that are the user's own although they are in a library's directory.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    problems = _Problems(text)
    modules = _lines_with(text, "HloModule ", _MODULE)
    named = next(modules, None)
    if named is None:
        problems.add(0, "no HloModule line: not the text of a compiled module, or its beginning is missing")
    other = next(modules, None)
    if other is not None:
        problems.add(other.start(), "a second module begins here; only the first is read")
        text = text[: other.start()]
    headers = list(_lines_with(text, " {\n", _HEADER))
    first = headers[0].start() if headers else len(text)
    start = named.end() if named else 0
    frames = Frames(_tables(text, start, first, problems), user_files)
    computations: dict[str, Computation] = {}
    interned: dict[str, str] = {}
    for number, header in enumerate(headers):
        limit = headers[number + 1].start() if number + 1 < len(headers) else len(text)
        name = header[2]
        if name in computations:
            problems.add(header.start(), f"a second computation is named {name}; only the first is read")
            continue
        begin = header.end() + 1
        # Use the last such brace, because a value with line breaks may also have a brace at a line's start.
        end = text.rfind("\n}", header.end(), limit) + 1
        close = _CLOSE.match(text, end) if end else _CLOSE.search(text, min(begin, limit), limit)
        if close is None:
            problems.add(header.start(), f"computation {name} is truncated: its closing brace is missing")
        end = close.start() if close else limit
        instructions = _instructions(text, begin, end, interned, problems)
        computations[name] = Computation(name, header[1] is not None, header.start(), instructions)
        if close:
            _foreign(text, close.end(), limit, problems)
    if not headers and named is not None:
        problems.add(named.start(), "no computation in this text")
    elif headers and not any(c.entry for c in computations.values()):
        problems.add(headers[-1].start(), "no ENTRY computation: the text is truncated")
    _set_lines(text, computations)
    maps = any(word in text for word in ("/shard_map", "pmap(", "xmap("))
    title, rest = (named[1], named[2]) if named else (None, "")
    return Module(title, rest, frames, computations, problems.found, maps)


def _lines_with(text: str, mark: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield the match of ``pattern`` at the beginning of each line that contains ``mark``. Lines that
    ``pattern`` does not match are skipped."""
    # Ten times faster than to match the pattern at the beginning of every line.
    at = text.find(mark)
    while at >= 0:
        found = pattern.match(text, text.rfind("\n", 0, at) + 1)
        if found:
            yield found
        end = text.find("\n", at)  # yield a line once, even if it contains the mark several times
        at = text.find(mark, end) if end >= 0 else -1


def _instructions(
    text: str, begin: int, end: int, interned: dict[str, str], problems: _Problems
) -> list[Instruction]:
    """Return the instructions in ``text[begin:end]``, a computation. ``interned`` has one copy of each shape
    and opcode, for all computations. Lines that cannot be read are added to ``problems``."""
    rows = _INSTRUCTION.findall(text, begin, end)
    if len(rows) != text.count("\n", begin, end):
        rows = _carefully(text, begin, end, problems)
    once = interned.setdefault
    return [
        Instruction(bool(root), name, once(shape, shape), once(opcode, opcode), tail)
        for root, name, shape, opcode, tail in rows
    ]


def _carefully(text: str, begin: int, end: int, problems: _Problems) -> list[tuple[str, ...]]:
    """Return (root, name, shape, opcode, tail) of each instruction in ``text[begin:end]``, a computation in
    which not every line is an instruction. Lines that cannot be read are added to ``problems``."""
    rows: list[list[str]] = []
    parts: list[list[str]] = []
    opened = 0  # braces of the last instruction; counted, not parsed: a few in strings do no harm here
    position = begin
    for line in text[begin:end].split("\n"):
        found = _INSTRUCTION.match(line)
        if found:
            rows.append([found[1] or "", *found.groups()[1:]])
            parts.append([found[5]])
            opened = line.count("{") - line.count("}")
        elif opened > 0 and len(parts[-1]) < MAX_LINES:  # a backend_config with line breaks
            parts[-1].append(line)
            opened += line.count("{") - line.count("}")
        elif line.strip() and not line.lstrip().startswith(("//", "/*")):
            problems.add(position, f"not an instruction: {line.strip()}")
        position += len(line) + 1
    for row, tail in zip(rows, parts, strict=True):
        row[-1] = "\n".join(tail)
    return [tuple(row) for row in rows]


def _tables(text: str, start: int, end: int, problems: _Problems) -> dict[str, str]:
    """Return the tables of Python frames in ``text[start:end]``: name -> text without the heading. Other
    lines are added to ``problems``."""
    found = list(_TABLE.finditer(text, start, end))
    tables: dict[str, str] = {}
    for number, table in enumerate(found):
        limit = found[number + 1].start() if number + 1 < len(found) else end
        # A table ends at the first blank line.
        blank = _BLANK.search(text, table.end(), limit)
        stop = blank.start() if blank else limit
        tables.setdefault(table[1], text[table.end() + 1 : stop])
        _foreign(text, stop, limit, problems)
    _foreign(text, start, found[0].start() if found else end, problems)
    return tables


def _foreign(text: str, begin: int, end: int, problems: _Problems) -> None:
    """Add a problem for each line of ``text[begin:end]`` that belongs to no computation and no table."""
    between = text[begin:end]
    if not between.strip():
        return
    position = begin
    for line in between.split("\n"):
        stripped = line.strip()
        if stripped and not stripped.startswith(("//", "/*", ", execution_thread", "}")):
            problems.add(position, f"this line belongs to no computation: {stripped}")
        position += len(line) + 1


def _set_lines(text: str, computations: dict[str, Computation]) -> None:
    """Convert ``Computation.line`` of all computations from an offset in ``text`` to a line number."""
    line, position = 1, 0
    for computation in computations.values():
        line += text.count("\n", position, computation.line)
        position = max(position, computation.line)
        computation.line = line


class _Problems:
    """The lines of a text that could not be read, with line numbers, at most MAX_PROBLEMS of them. Further
    lines are only counted: the last entry then ends with ``(and 7 more)``."""

    def __init__(self, text: str) -> None:
        self.found: list[Problem] = []
        self._text = text
        self._more = 0

    def add(self, position: int, text: str) -> None:
        """Add a problem for the line at the offset ``position``. ``text`` is cut to 120 characters."""
        if len(self.found) < MAX_PROBLEMS:
            line = self._text.count("\n", 0, position) + 1
            self.found.append(Problem(line, text[:_SHOWN]))
        else:
            self._more += 1
            last = self.found[MAX_PROBLEMS - 1]
            note = f"{last.text.partition(' (and ')[0]} (and {self._more} more)"
            self.found[MAX_PROBLEMS - 1] = Problem(last.line, note)
