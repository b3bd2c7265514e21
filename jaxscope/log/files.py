"""Open every file that this package writes, and every file of a run directory that it reads.

A run directory, or the repository, may come from another person. Two rules keep both harmless: only regular
files are read (a pipe would block its reader, a device has no end), and a file is written under a random name
and then renamed, so that a link of the final name is replaced and never followed. A pipe or a device is not
replaced: in /dev and below /proc (``-o /dev/stdout``) it is written to, elsewhere it is an error. With
``within``, the directory of a run, no directory below it is reached through a link either: nothing outside of
it is read or changed.

``path`` is a path below ``within``. All functions raise OSError, also for an impossible file name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

PRIVATE = 0o600  # the mode of a run's files; the user's output file (-o) gets SHARED, less the umask
SHARED = 0o666
PRIVATE_DIRECTORY, SHARED_DIRECTORY = 0o700, 0o777
MOST_NAMES = 1_000_000  # in one directory
_AT = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


def write(
    path: Path, data: bytes | str | Iterable[bytes | str], *, within: Path | None = None, mode: int = PRIVATE
) -> None:
    """Write ``data`` to ``path``, completely or not at all, in UTF-8; a lone surrogate is escaped.

    Args:
      mode: the mode of the new file, less the umask.

    Raises:
      OSError: ``path`` cannot be written; an earlier file at ``path`` is unchanged.
    """
    pieces = [data] if isinstance(data, (bytes, str)) else data
    with _directory(path, within) as (directory, name):
        if within is None and _holds_devices(path.parent.resolve()):
            _write_and_close(os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=directory), pieces)
            return
        with contextlib.suppress(FileNotFoundError):
            before = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if not stat.S_ISLNK(before.st_mode):
                _regular(before, path)
        part = f".{os.urandom(8).hex()}.part"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(part, flags, mode, dir_fd=directory)
        try:
            _write_and_close(fd, pieces)
            os.replace(part, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part, dir_fd=directory)
            raise


def _holds_devices(directory: Path) -> bool:
    """Return whether the names in ``directory`` are devices and descriptors; /dev/shm has ordinary files."""
    return directory in (Path("/dev"), Path("/dev/fd")) or directory.is_relative_to("/proc")


def _write_and_close(fd: int, pieces: Iterable[bytes | str]) -> None:
    try:
        for piece in pieces:
            content = piece.encode("utf-8", "backslashreplace") if isinstance(piece, str) else piece
            view = memoryview(content)
            while view:
                view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def open_regular(path: Path, *, within: Path | None = None) -> BinaryIO:
    """Open a regular file for reading. Without ``within``, links are followed, because the user named the
    file.

    Raises:
      OSError: the file does not exist, is not a regular file, or a link below ``within`` leads to it.
    """
    return os.fdopen(descriptor(path, os.O_RDONLY, within=within), "rb")


def read(path: Path, most: int, *, within: Path | None = None) -> bytes:
    """Return the content of a regular file of at most ``most`` bytes.

    Raises:
      OSError: as ``open_regular``; EFBIG: the file is larger.
    """
    with open_regular(path, within=within) as f:
        if os.fstat(f.fileno()).st_size <= most:
            data = f.read(most + 1)  # a file under /proc has size 0
            if len(data) <= most:
                return data
    raise OSError(errno.EFBIG, f"larger than {most:,} bytes", str(path))


def descriptor(path: Path, flags: int, *, within: Path | None = None, mode: int = PRIVATE) -> int:
    """Open a regular file and return its descriptor. With O_CREAT, a missing file is created, and links are
    not followed.

    Raises:
      OSError: as ``open_regular``.
    """
    links = within is None and not flags & os.O_CREAT
    flags |= os.O_CLOEXEC | os.O_NONBLOCK | (0 if links else os.O_NOFOLLOW)
    with _directory(path, within) as (directory, name):
        # Checked before it is opened: opening some devices has an effect.
        with contextlib.suppress(FileNotFoundError):
            _regular(os.stat(name, dir_fd=directory, follow_symlinks=links), path)
        fd = os.open(name, flags, mode, dir_fd=directory)
        try:
            _regular(os.fstat(fd), path)
        except BaseException:
            os.close(fd)
            raise
        return fd


def append(path: Path, *, within: Path | None = None, mode: int = PRIVATE) -> int:
    """Return a descriptor whose writes are appended to ``path``, which is created if it is missing."""
    return descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, within=within, mode=mode)


def extend(path: Path, data: bytes, *, within: Path | None = None) -> None:
    """Append ``data`` to ``path``, which is created if it is missing."""
    fd = append(path, within=within)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def touch(path: Path, *, within: Path | None = None, mode: int = PRIVATE) -> None:
    """Create ``path`` if it is missing, and set the time of its last change to now."""
    fd = descriptor(path, os.O_WRONLY | os.O_CREAT, within=within, mode=mode)
    try:
        os.utime(fd)
    finally:
        os.close(fd)


def make_directory(
    path: Path, *, within: Path | None = None, mode: int = PRIVATE_DIRECTORY, parents: bool = False
) -> None:
    """Create the directory ``path`` if it is missing; with ``parents``, also missing directories between
    ``within`` and ``path``.

    Raises:
      OSError: the directory cannot be created, or something below ``within`` is a link or not a directory.
    """
    if parents:
        above = path.parent
        if above not in (path, within) and not (within is None and above.is_dir()):
            make_directory(above, within=within, mode=mode, parents=True)
    if path == within or (path.name == "" and within is None):
        path.mkdir(mode, exist_ok=True)
        return
    with _directory(path, within) as (directory, name):
        try:
            os.mkdir(name, mode, dir_fd=directory)
        except OSError:  # it is there, or the place is read-only
            os.close(os.open(name, _AT | (0 if within is None else os.O_NOFOLLOW), dir_fd=directory))


def make_new_directory(path: Path, *, within: Path | None = None, mode: int = PRIVATE_DIRECTORY) -> bool:
    """Create the directory ``path`` and return True. Return False if something with that name exists.

    Raises:
      OSError: the directory cannot be created.
    """
    with _directory(path, within) as (directory, name):
        try:
            os.mkdir(name, mode, dir_fd=directory)
        except FileExistsError:
            return False
    return True


def remove(path: Path, *, within: Path | None = None) -> None:
    """Remove a file; a link is removed, not its target."""
    with _directory(path, within) as (directory, name):
        os.unlink(name, dir_fd=directory)


def rename(path: Path, name: str, *, within: Path | None = None) -> None:
    """Rename a file in its directory; a file with the new name is replaced."""
    with _directory(path, within) as (directory, old):
        os.replace(old, _plain(name, path), src_dir_fd=directory, dst_dir_fd=directory)


def status(path: Path, *, within: Path | None = None) -> os.stat_result:
    """Return the size and times of a regular file.

    Raises:
      OSError: as ``open_regular``.
    """
    with _directory(path, within) as (directory, name):
        return _regular(os.stat(name, dir_fd=directory, follow_symlinks=within is None), path)


def is_regular(path: Path, *, within: Path | None = None) -> bool:
    """Return whether ``open_regular`` can open it."""
    try:
        status(path, within=within)
    except OSError:
        return False
    return True


def names(path: Path, *, within: Path | None = None) -> list[str]:
    """Return the names in a directory, unordered; at most MOST_NAMES.

    Raises:
      OSError: ``path`` is not a directory, or a link below ``within`` leads to it.
    """
    with contextlib.ExitStack() as open_until_then:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        if within is None or path == within:
            fd = os.open(path, flags)
        else:
            directory, name = open_until_then.enter_context(_directory(path, within))
            fd = os.open(name, flags | os.O_NOFOLLOW, dir_fd=directory)
        open_until_then.callback(os.close, fd)
        with os.scandir(fd) as entries:
            return [entry.name for entry, _ in zip(entries, range(MOST_NAMES), strict=False)]


@contextlib.contextmanager
def _directory(path: Path, within: Path | None) -> Iterator[tuple[int, str]]:
    """Yield a descriptor of the directory of ``path``, and the file's name. Errors have ``path`` as file
    name."""
    opened: list[int] = []
    try:
        try:
            *between, name = _below(path, within)
            opened.append(os.open(path.parent if within is None else within, _AT))
            for part in between:
                opened.append(os.open(part, _AT | os.O_NOFOLLOW, dir_fd=opened[-1]))
            yield opened[-1], name
        except OSError as e:
            e.filename, e.filename2 = str(path), None
            raise
        except ValueError as e:  # a null byte, or a letter that file names here have not
            raise OSError(errno.EINVAL, "no name of a file", str(path)) from e
    finally:
        for fd in opened:
            os.close(fd)


def _below(path: Path, within: Path | None) -> tuple[str, ...]:
    """Return the names on the way from ``within`` to ``path``; without ``within`` the last one only."""
    parts = path.parts[-1:] if within is None else path.relative_to(within).parts  # ValueError: outside
    if not parts:
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return tuple(_plain(part, path) for part in parts)


def _plain(name: str, path: Path) -> str:
    if name in ("", ".", "..") or "/" in name:
        raise OSError(errno.EINVAL, "no name of a file", str(path))
    return name


def _regular(found: os.stat_result, path: Path) -> os.stat_result:
    if stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        code = errno.ELOOP if stat.S_ISLNK(found.st_mode) else errno.EINVAL
        raise OSError(code, "a link" if code == errno.ELOOP else "no regular file", str(path))
    return found
