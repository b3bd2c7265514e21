"""Read the program's output as lines without colors and cursor movements, with progress bars in their last
state."""

from __future__ import annotations

from pathlib import Path

from jaxscope.log import files
from jaxscope.present.escape import as_printed
from jaxscope.tui.lines import Growing

FIRST = 16 << 20  # bytes at the end of an output that are read when it is first opened
CHUNK = 4 << 20  # bytes read by one poll


class Output:
    """Follow the file ``output.log`` of a run: the output of the program, as lines.

    Attributes:
      skipped: bytes at the beginning of a long output that were not read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = Growing()
        self.skipped = 0
        self._offset = 0
        self._rest = b""
        self._open = False  # whether the last line is incomplete

    @property
    def exists(self) -> bool:
        return files.is_regular(self.path, within=self.path.parent)

    def poll(self) -> bool:
        """Read what was added to the file, at most CHUNK bytes. Return whether there was anything new."""
        try:
            with files.open_regular(self.path, within=self.path.parent) as f:
                size = f.seek(0, 2)
                if not self._offset and size > FIRST:
                    self._offset = self.skipped = size - FIRST
                if size <= self._offset:
                    return False
                f.seek(self._offset)
                data = f.read(CHUNK)
        except OSError:
            return False
        self._offset += len(data)
        *lines, rest = (self._rest + data).split(b"\n")
        made = [as_printed(line.decode("utf-8", "replace").rstrip("\r")) for line in lines]
        if self._open and made:
            self.lines.replace_last(made.pop(0))
            self._open = False
        self.lines.extend(made)
        self._rest = rest[-65536:]
        if rest:
            last = as_printed(self._rest.decode("utf-8", "replace"))
            if self._open:
                self.lines.replace_last(last)
            else:
                self.lines.extend([last])
            self._open = True
        return True
