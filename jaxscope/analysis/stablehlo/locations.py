"""Parse MLIR's locations into JAX's name of an operation and the Python frames that created the operation.

JAX writes ``"jit(f)/jvp()/add"(callsite("inner"("a.py":3:4 to :9) at "outer"("a.py":7:1 to :5)))``. This is
the name of the operation (JAX's name stack), and in parentheses a chain of call sites, innermost first, each
with the name and the line of a Python function. Without full tracebacks
(``jax_include_full_tracebacks_in_locations``) the parentheses contain only one line and no function's name.
``"add:"("jit(f)/add"(...))`` repeats the primitive's name. Format: MLIR's builtin location attributes.
"""

from __future__ import annotations

import re

import msgspec

from jaxscope.analysis.stablehlo import lexing
from jaxscope.schema.keys import Frame

MAX_FRAMES = 100  # JAX's default; bounds the time for a text in which each location adds a frame to another
MAX_NESTED = 100  # the deepest nesting of locations that are written inside one another without #loc names

QUOTED = r'"((?:[^"\\]|\\.)*)"'
NAMED = re.compile(rf"{QUOTED}\((#[\w$.-]+)\)")
CALLSITE = re.compile(r"callsite\((#[\w$.-]+) at (#[\w$.-]+)\)")
FILE = re.compile(rf"{QUOTED}:(\d{{1,9}}):(\d{{1,9}})(?: to (?:\d{{1,9}})?:\d{{1,9}})?")
NAME = re.compile(QUOTED)
ALIAS = re.compile(r"#[\w$.-]+")


class Place(msgspec.Struct, frozen=True):
    """The origin of an operation of a lowered program.

    Attributes:
      name: JAX's name stack and primitive: ``jit(f)/jvp()/add``; None: unknown.
      frames: the Python frames, innermost first; the function is "" if the location does not name it.
      span: the innermost frame's file, line and columns as text. The columns distinguish two calls on one
        line.
    """

    name: str | None = None
    frames: tuple[Frame, ...] = ()
    span: str = ""


NOWHERE = Place()


class _Node(msgspec.Struct, frozen=True):
    """A parsed location. A location may contain other locations, each of which is a ``_Node`` too.

    Attributes:
      kind: ``file`` (a line), ``function`` (a name and a line) or ``place`` (anything else). The location
        around a ``function`` decides whether this name is the name of a Python function or of an operation.
      place: the origin that is known from this location.
    """

    kind: str
    place: Place


UNKNOWN = _Node("place", NOWHERE)


class Locations:
    """Translate the locations of one module to names and Python frames. Each location is parsed once.

    Args:
      aliases: ``#loc`` name -> the text of its location.

    Attributes:
      unread: texts of locations that could not be parsed.
    """

    def __init__(self, aliases: dict[str, str]) -> None:
        self._aliases = aliases
        self._known: dict[str, _Node] = {}
        self._places: dict[str, Place] = {}
        self.unread: set[str] = set()

    def place(self, text: str) -> Place:
        """Return the origin of an operation from its location ``text``, which is what ``loc(...)`` contains:
        ``#loc5`` or a location written out. If the location cannot be parsed, add it to ``unread`` and return
        ``NOWHERE``."""
        found = self._places.get(text)
        if found is None:
            node = self._resolve(text)
            found = node.place
            if node.kind == "function":  # no location contains it, so the name is that of the operation
                found = _renamed(found, found.frames[0].function, "")
            self._places[text] = found
        return found

    def _resolve(self, text: str) -> _Node:
        """Parse the location ``text`` and all locations to which it refers, and return it. This is done
        without recursion, because a chain of references may be longer than Python's recursion limit."""
        waiting = [text]
        entered: set[str] = set()
        while waiting:
            current = waiting[-1]
            if current in self._known:
                waiting.pop()
                continue
            needs = [] if current in entered else self._needs(current)
            entered.add(current)
            needs = [n for n in needs if n not in self._known and n not in entered]
            if needs:  # a location that is entered and still unknown is in a cycle: it resolves to nowhere
                waiting += needs
                continue
            self._known[current] = self._read(current)
            waiting.pop()
        return self._known.get(text, UNKNOWN)

    def _needs(self, text: str) -> list[str]:
        """Return the locations that must be parsed before ``text``: what a ``#loc`` name stands for, else the
        ``#loc`` names in the text."""
        if text.startswith("#"):
            target = self._aliases.get(text)
            return [] if target is None else [target]
        if "#" not in text:
            return []
        return ALIAS.findall(lexing.STRING.sub("", text))

    def _read(self, text: str) -> _Node:
        """Parse the location ``text`` after those to which it refers. Add it to ``unread`` if it cannot be
        parsed."""
        if not text or text == "unknown":
            return UNKNOWN
        if text.startswith("#"):
            return self._known.get(self._aliases.get(text, ""), UNKNOWN)
        if found := NAMED.fullmatch(text):  # nearly every location has one of the next three forms
            return _named(lexing.unquote(found[1]), self._read(found[2]))
        if found := CALLSITE.fullmatch(text):
            return _callsite(self._read(found[1]), self._read(found[2]))
        if found := FILE.fullmatch(text):
            return _file(found)
        try:
            node, end = self._parse(text, 0, 0)
            if text[end:].strip():
                raise _Unread
        except _Unread:
            self.unread.add(text[:200])
            return UNKNOWN
        return node

    def _parse(self, text: str, at: int, depth: int) -> tuple[_Node, int]:
        """Parse the location that begins at index ``at`` of ``text``, inside ``depth`` other locations.
        Return (location, index of its end). Raise ``_Unread`` if no location begins there."""
        if depth > MAX_NESTED:
            raise _Unread
        if found := ALIAS.match(text, at):
            return self._read(found[0]), found.end()
        if text.startswith("unknown", at):
            return UNKNOWN, at + 7
        if text.startswith("callsite(", at):
            callee, end = self._parse(text, at + 9, depth + 1)
            caller, end = self._parse(text, _after(text, end, " at "), depth + 1)
            return _callsite(callee, caller), _after(text, end, ")")
        if found := FILE.match(text, at):
            return _file(found), found.end()
        if found := NAME.match(text, at):
            name = lexing.unquote(found[1])
            if not text.startswith("(", found.end()):
                return _Node("place", Place(name)), found.end()
            child, end = self._parse(text, found.end() + 1, depth + 1)
            return _named(name, child), _after(text, end, ")")
        if text.startswith("fused", at):
            return self._fused(text, at + 5, depth)
        raise _Unread

    def _fused(self, text: str, at: int, depth: int) -> tuple[_Node, int]:
        """Parse the locations of operations that were fused into one, ``fused[a, b]``. Return (location,
        index after the closing bracket). The result is the first location with Python frames, else the first
        with a name.

        Args:
          at: the index in ``text`` after the word ``fused``.
          depth: the number of other locations around this location.
        """
        if text.startswith("<", at):
            end = lexing.closing(text, at)
            if end < 0:
                raise _Unread
            at = end + 1
        at = _after(text, at, "[")
        best = UNKNOWN
        while True:
            node, at = self._parse(text, at, depth + 1)
            if not best.place.frames and (node.place.frames or not best.place.name):
                best = node
            if text.startswith("]", at):
                return best, at + 1
            at = _after(text, at, ", ")


class _Unread(Exception):
    """Raised for a text that is not a location as MLIR prints it."""


def _after(text: str, at: int, expected: str) -> int:
    """Return the index after the text ``expected``, which must begin at index ``at`` of ``text``. Raise
    ``_Unread`` if it does not."""
    if not text.startswith(expected, at):
        raise _Unread
    return at + len(expected)


def _file(match: re.Match[str]) -> _Node:
    """Return the location of a line, ``"a.py":3:4``, from a match of ``FILE``. Line 0 gives an unknown
    origin."""
    line = int(match[2])
    frame = Frame(file=lexing.unquote(match[1]), line=line, function="")
    return _Node("file", Place(None, (frame,), match[0]) if line else NOWHERE)


def _renamed(place: Place, name: str | None, function: str) -> Place:
    """Return ``place`` with other names, and with its innermost frame only, for a location such as
    ``"f"("a.py":3:4)``.

    Args:
      name: the name of the operation, or None if it is unknown.
      function: the name of the Python function of the frame, or "" if it is unknown.
    """
    frame = place.frames[0]
    return Place(name, (Frame(file=frame.file, line=frame.line, function=function),), place.span)


def _callsite(callee: _Node, caller: _Node) -> _Node:
    """Join the locations of a call site: the name of ``callee``, and its frames before those of
    ``caller``."""
    frames = (callee.place.frames + caller.place.frames)[:MAX_FRAMES]
    return _Node("place", Place(callee.place.name, frames, callee.place.span or caller.place.span))


def _named(name: str, child: _Node) -> _Node:
    """Return the location ``"name"(child)``. If ``child`` is a line, ``name`` may be the name of a Python
    function or of an operation (kind ``function``). Else ``name`` is the name of an operation; if it ends
    with a colon (``add:``), the longer name in ``child`` is kept."""
    place = child.place
    if child.kind == "file" and place.frames:
        return _Node("function", _renamed(place, None, name))
    if not name.endswith(":"):
        return _Node("place", Place(name, place.frames, place.span))
    primitive = name[:-1]
    if child.kind == "function" and place.frames[0].function.rpartition("/")[2] == primitive:
        return _Node("place", _renamed(place, place.frames[0].function, ""))
    return _Node("place", Place(place.name or primitive, place.frames, place.span))
