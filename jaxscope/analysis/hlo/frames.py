"""Resolve a ``stack_frame_id`` to Python frames with the four tables of a module.

XLA prints these tables between the ``HloModule`` line and the first computation since JAX 0.8::

    FileNames            FunctionNames     FileLocations                          StackFrames
    1 "/home/me/m.py"    1 "train.<loc>"   1 {file_name_id=1 function_name_id=1   1 {file_location_id=1
                                              line=17 end_line=17 column=0 ...}      parent_frame_id=1}

Ids count from 1. **The printed parent is one too high**: ``parent_frame_id=1`` is "no parent" and
``parent_frame_id=5`` is frame 4. Evidence: of five functions that call one another, JAX 0.8.2, 0.10.2 and
0.12.0.1 print ``5 {file_location_id=5 parent_frame_id=5}`` for the innermost, whose caller is frame 4. If a
row of the table has the parent 0, or no parent, the printed parents are used unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from jaxscope.analysis.hlo.lexing import unquote
from jaxscope.schema.keys import Frame

TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_NAME = re.compile(r"^[ \t]*+(\d{1,12}) (\".*\")[ \t]*$", re.MULTILINE)
_ROW = re.compile(r"^[ \t]*+(\d{1,12}) \{([^{}\n]*+)\}", re.MULTILINE)
_FIELD = re.compile(r"(\w++)=(\d{1,12})\b")
# The most frames of a stack that are read. Real stacks are shorter, because Python limits recursion.
MAX_DEPTH = 10_000
# Files that are not the user's: installed packages, the standard library, code without a file.
_LIBRARY = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages)/|/lib(?:64)?/python\d[^/]*/|^<frozen |^<string>$"
)


def in_library(file: str) -> bool:
    """Return whether the file belongs to an installed package or to Python itself, or is ``<string>``."""
    return bool(_LIBRARY.search(file.replace("\\", "/")))


class Frames:
    """Find the Python frames of a ``stack_frame_id``, a number in the metadata of an instruction, and the one
    frame to which the instruction is attributed.

    Args:
      tables: name of a table (``FileNames``, ...) -> the text of the table without its heading.
      user_files: files that are the user's own although they are in a library's directory.

    Attributes:
      lines: the frames to which instructions were attributed so far, each once.
    """

    def __init__(self, tables: dict[str, str], user_files: Iterable[str] = ()) -> None:
        self._tables = tables
        self._own = frozenset(user_files)
        self._read: tuple[dict[int, Frame], dict[int, tuple[int, int]]] | None = None
        self._attributed: dict[int, int] = {}
        self._known: dict[
            int, tuple[Frame | None, Frame | None]
        ] = {}  # id -> (innermost frame of the user, innermost frame)
        self._numbers: dict[Frame, int] = {}
        self.lines: list[Frame] = []

    def _load(self) -> tuple[dict[int, Frame], dict[int, tuple[int, int]]]:
        """Return (locations, stacks). ``locations`` is id of a row in ``FileLocations`` -> frame, ``stacks``
        is ``stack_frame_id`` -> (id of the location, id of the parent). The tables are read only once."""
        if self._read is None:
            names = {int(i): unquote(n) for i, n in _NAME.findall(self._tables.get("FileNames", ""))}
            functions = {int(i): unquote(n) for i, n in _NAME.findall(self._tables.get("FunctionNames", ""))}
            locations: dict[int, Frame] = {}
            for number, row in _ROW.findall(self._tables.get("FileLocations", "")):
                f = dict(_FIELD.findall(row))
                file = names.get(int(f.get("file_name_id", 0)))
                if file is not None:
                    function = functions.get(int(f.get("function_name_id", 0)), "")
                    locations[int(number)] = Frame(file=file, line=int(f.get("line", 0)), function=function)
            stacks: dict[int, tuple[int, int]] = {}
            for number, row in _ROW.findall(self._tables.get("StackFrames", "")):
                f = dict(_FIELD.findall(row))
                stacks[int(number)] = (int(f.get("file_location_id", 0)), int(f.get("parent_frame_id", 0)))
            if not any(parent == 0 for _, parent in stacks.values()):
                stacks = {number: (place, parent - 1) for number, (place, parent) in stacks.items()}
            self._read = locations, stacks
        return self._read

    def __len__(self) -> int:
        """Return the number of rows in the table ``StackFrames``."""
        return len(self._load()[1])

    def stack(self, frame_id: int) -> list[Frame]:
        """Return the frames of a ``stack_frame_id``, innermost first; empty if the id is unknown."""
        locations, stacks = self._load()
        result: list[Frame] = []
        seen: set[int] = set()
        while frame_id in stacks and frame_id not in seen and len(seen) < MAX_DEPTH:
            seen.add(frame_id)
            place, frame_id = stacks[frame_id]
            if place in locations:
                result.append(locations[place])
        return result

    def _nearest(self, frame_id: int) -> Frame | None:
        """Return the innermost frame of the stack ``frame_id`` in a file of the user, else the innermost
        frame; None if the id is unknown."""
        locations, stacks = self._load()
        passed: list[int] = []
        while frame_id in stacks and frame_id not in self._known:
            self._known[frame_id] = None, None  # also where a stack goes in a circle
            passed.append(frame_id)
            frame_id = stacks[frame_id][1]
        own, first = self._known.get(frame_id, (None, None))
        for id in reversed(passed):  # also store the results for the outer frames
            frame = locations.get(stacks[id][0])
            if frame is not None:
                own, first = frame if self._is_own(frame.file) else own, frame
            self._known[id] = own, first
        return own or first

    def attributed_frame(self, frame_id: int) -> Frame | None:
        """Return the frame to which an instruction with this ``stack_frame_id`` is attributed: the innermost
        frame in the user's files, or the innermost frame if all files are in libraries. Return None if the id
        is unknown."""
        number = self.attributed_index(frame_id)
        return None if number < 0 else self.lines[number]

    def attributed_index(self, frame_id: int) -> int:
        """Return the index in ``self.lines`` of the frame to which an instruction with this
        ``stack_frame_id`` is attributed, or -1 if the id is unknown. Equal frames have the same index."""
        try:
            return self._attributed[frame_id]
        except KeyError:
            number, frame = -1, self._nearest(frame_id)
            if frame is not None:
                number = self._numbers.setdefault(frame, len(self.lines))
                if number == len(self.lines):
                    self.lines.append(frame)
            self._attributed[frame_id] = number
            return number

    def _is_own(self, file: str) -> bool:
        """Return whether the file is the user's."""
        return file in self._own or not in_library(file)
