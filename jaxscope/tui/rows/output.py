"""The program's output as lines a terminal may be shown: colours and cursor movements taken out, progress
bars as they were last."""

from __future__ import annotations

from pathlib import Path

from jaxscope.log import files
from jaxscope.present.escape import as_printed
from jaxscope.tui.lines import Growing

FIRST = 16 << 20  # bytes of a long output that are read: its end
CHUNK = 4 << 20  # at one poll


class Output:
    """Follow ``output.log``. ``poll`` reads new lines and returns whether there were any."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = Growing()
        self.skipped = 0  # bytes at the beginning that are not shown
        self._offset = 0
        self._rest = b""
        self._open = False  # is the last line an unfinished one?

    @property
    def exists(self) -> bool:
        return files.is_regular(self.path, within=self.path.parent)

    def poll(self) -> bool:
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
