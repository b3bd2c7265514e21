"""Keep the counters of a process (of calls, steps and others) in a small memory-mapped file beside its log.

Storing a number needs no system call: the number is in the kernel's memory at once. So no number is lost when
the program is killed, and other processes read the current value. The file, ``<pid>-<id>.counts``, is an
array of unsigned 64-bit little-endian numbers ("cells"). The field ``cell`` of an event (``Called`` and
others) is the index of its counter. The first cell is no counter: it says which cell counts the training
steps (see ``step_now``).
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import sys
from pathlib import Path
from typing import Any

from jaxscope.log import files

SUFFIX = ".counts"
PAGE = mmap.ALLOCATIONGRANULARITY
WIDTH = 8
MAX_BYTES = 1 << 20  # a larger file is damaged or hostile

# From linux/fs.h: no copy-on-write. With it, btrfs would allocate new blocks when a mapped page changes.
_FS_IOC_SETFLAGS, _FS_NOCOW_FL = 0x40086602, 0x00800000


class Cells:
    """The counters of this process, each in one cell (an unsigned 64-bit number) of a file that is mapped
    into memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # The pages stay mapped until the process ends, because a late call may still store its number.
        self._pages: list[memoryview] = []
        self._taken = 0

    def take(self) -> tuple[int, memoryview, int]:
        """Reserve a cell of the file for one counter. Return (cell, page, index): the index of the cell in
        the file, the mapped page that contains it, and its index in that page. The caller then stores each
        new value by ``page[index] = number``.

        Raises:
          OSError: the file cannot be created or mapped, or is full.
        """
        page, index = divmod(self._taken, PAGE // WIDTH)
        if page == len(self._pages):
            self._pages.append(_page(self._path, page))
        self._taken += 1
        return self._taken - 1, self._pages[page], index


def _page(path: Path, number: int) -> memoryview:
    """Allocate the page with the index ``number`` in the file of counters ``path``, and map it into memory.
    Return it as 64-bit numbers. Raises OSError if the page cannot be allocated or mapped."""
    run = path.parent.parent  # the file is in the run's directory ``events``
    if sys.byteorder != "little" or (number + 1) * PAGE > MAX_BYTES:
        raise OSError(27, "no room for more counts")
    fd = files.descriptor(path, os.O_RDWR | os.O_CREAT, within=run)
    try:
        if number == 0 and sys.platform == "linux":
            try:
                fcntl.ioctl(fd, _FS_IOC_SETFLAGS, _FS_NOCOW_FL.to_bytes(WIDTH, "little"))
            except OSError:  # not supported by this file system
                pass
        # Blocks are allocated before the page is mapped: on a full disk, a store to a page without a block
        # raises SIGBUS, not an exception.
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, number * PAGE, PAGE)
        elif os.pwrite(fd, bytes(PAGE), number * PAGE) != PAGE:
            raise OSError(28, "no room for counts")
        return _mapped(fd, number * PAGE)
    finally:
        os.close(fd)


def _mapped(fd: int, offset: int) -> memoryview:
    """Map one page of the file with the descriptor ``fd``, from ``offset`` bytes on, and return it as 64-bit
    numbers. The page stays mapped until the process ends. Raises OSError if it cannot be mapped."""
    # Python's mmap keeps a duplicate of the descriptor and closes it at the end, even if the program has
    # closed it (os.closerange) and the number now belongs to another file.
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    )
    address = libc.mmap(None, PAGE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, offset)
    if address is None or address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    cells: Any = (ctypes.c_uint64 * (PAGE // WIDTH)).from_address(address)
    return memoryview(cells).cast("B").cast("Q")


def step_now(log: Path) -> int:
    """Return the current training step of the process that writes the log file ``log``, from the ``.counts``
    file beside this log. Return 0 if the process has counted no step.

    The first number in the ``.counts`` file is ``2 * cell + marks``. The number at the index ``cell`` counts
    the steps. If ``marks`` is 1, it counts ended steps, and the current step is one more; if 0, begun
    steps."""
    numbers = read(log)
    where, marks = divmod(numbers[0], 2) if len(numbers) else (0, 0)
    return numbers[where] + marks if 0 < where < len(numbers) else 0


def read(log: Path) -> memoryview:
    """Return the numbers in the ``.counts`` file beside ``log``, in order; empty if that file cannot be read.
    The field ``cell`` of an event in the log is the index of its counter among these numbers."""
    try:
        with files.open_regular(log.with_suffix(SUFFIX), within=log.parent.parent) as f:
            data = f.read(MAX_BYTES)
    except OSError:
        data = b""
    data = data[: len(data) // WIDTH * WIDTH]
    if sys.byteorder != "little":
        data = b"".join(data[i : i + WIDTH][::-1] for i in range(0, len(data), WIDTH))
    return memoryview(data).cast("Q")
