"""Open every file that this package writes, and every file of a run directory that it reads.

A run directory, or the repository, may come from another person. Two rules make such files harmless. First,
only regular files are read, because a pipe would block its reader, and a device has no end. Second, a file is
written under a random name and then renamed, so that a link with the final name is replaced, not followed. A
pipe or a device is not replaced: writing to it is an error, except in /dev and below /proc (``-o
/dev/stdout``).

In all functions, ``path`` is the file, and ``within`` is the run directory that contains it. No directory
between the two is reached through a link, so nothing outside the run is read or changed. If ``within`` is
None, links are followed, unless the function says otherwise. If a file cannot be accessed, ``is_regular``
returns False, and the other functions raise OSError.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

# Modes before the umask: a run's files are private, the user's output file (-o) is not.
PRIVATE = 0o600
SHARED = 0o666
PRIVATE_DIRECTORY, SHARED_DIRECTORY = 0o700, 0o777
MOST_NAMES = 1_000_000  # in one directory
_AT = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


def write(
    path: Path, data: bytes | str | Iterable[bytes | str], *, within: Path | None = None, mode: int = PRIVATE
) -> None:
    """Write ``data`` to the file ``path``, completely or not at all. Texts are written in UTF-8, with lone
    surrogates escaped. The new file gets ``mode`` less the umask. A link at ``path`` is replaced, not
    followed.

    ``within`` is the run directory that contains ``path``; links below it are not followed. None: links in
    the directories of ``path`` are followed, and a file in /dev or /proc (``/dev/stdout``) is written to
    directly.

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
    """Return whether ``directory`` contains devices or descriptors instead of files, such as /dev and /proc.
    A file there cannot be replaced by renaming. /dev/shm has ordinary files: False."""
    return directory in (Path("/dev"), Path("/dev/fd")) or directory.is_relative_to("/proc")


def _write_and_close(fd: int, pieces: Iterable[bytes | str]) -> None:
    """Write ``pieces`` one after the other to the file with the descriptor ``fd``, and close it, also after
    an error. Texts are written in UTF-8, with lone surrogates escaped."""
    try:
        for piece in pieces:
            content = piece.encode("utf-8", "backslashreplace") if isinstance(piece, str) else piece
            view = memoryview(content)
            while view:
                view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def open_regular(path: Path, *, within: Path | None = None) -> BinaryIO:
    """Open the regular file ``path`` for reading. ``within`` is the run directory that contains ``path``;
    links below it are not followed. None: links are followed.

    Raises:
      OSError: the file does not exist, is not a regular file, or is reached through a link below ``within``.
    """
    return os.fdopen(descriptor(path, os.O_RDONLY, within=within), "rb")


def read(path: Path, most: int, *, within: Path | None = None) -> bytes:
    """Return the content of the regular file ``path``, which may have at most ``most`` bytes. ``within`` is
    the run directory that contains ``path``; links below it are not followed. None: links are followed.

    Raises:
      OSError: the file does not exist, is not a regular file, or is reached through a link below ``within``.
        If the file is too large, the error's number is EFBIG.
    """
    with open_regular(path, within=within) as f:
        if os.fstat(f.fileno()).st_size <= most:
            data = f.read(most + 1)  # not all, because files under /proc claim to have size 0
            if len(data) <= most:
                return data
    raise OSError(errno.EFBIG, f"larger than {most:,} bytes", str(path))


def descriptor(path: Path, flags: int, *, within: Path | None = None, mode: int = PRIVATE) -> int:
    """Open the regular file ``path`` with the ``flags`` of ``os.open``, and return its descriptor. With
    O_CREAT, a missing file is created with ``mode`` less the umask, and a link at ``path`` is an error.

    ``within`` is the run directory that contains ``path``; links below it are not followed. None: links are
    followed (with O_CREAT, only in the directories of ``path``).

    Raises:
      OSError: the file cannot be opened, is not a regular file, or is reached through a link below
        ``within``.
    """
    links = within is None and not flags & os.O_CREAT
    flags |= os.O_CLOEXEC | os.O_NONBLOCK | (0 if links else os.O_NOFOLLOW)
    with _directory(path, within) as (directory, name):
        # Check before opening, because opening some devices has an effect.
        with contextlib.suppress(FileNotFoundError):
            _regular(os.stat(name, dir_fd=directory, follow_symlinks=links), path)
        fd = os.open(name, flags, mode, dir_fd=directory)
        try:
            _regular(os.fstat(fd), path)
        except BaseException:
            os.close(fd)
            raise
        return fd


def append(path: Path, *, within: Path | None = None) -> int:
    """Open the file ``path`` for appending, and create it with PRIVATE (less the umask) if it is missing.
    Return its descriptor. ``within`` is the run directory that contains ``path``; links below it are not
    followed. None: links in the directories of ``path`` are followed. A link at ``path`` is an OSError."""
    return descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, within=within)


def extend(path: Path, data: bytes, *, within: Path | None = None) -> None:
    """Append ``data`` to the file ``path``, and create the file if it is missing. ``within`` is the run
    directory that contains ``path``; links below it are not followed. None: links in the directories of
    ``path`` are followed. A link at ``path`` is an OSError."""
    _write_and_close(append(path, within=within), [data])


def touch(path: Path, *, within: Path | None = None) -> None:
    """Set the modification time of the file ``path`` to now, and create it with PRIVATE (less the umask) if
    it is missing. ``within`` is the run directory that contains ``path``; links below it are not followed.
    None: links in the directories of ``path`` are followed. A link at ``path`` is an OSError."""
    fd = descriptor(path, os.O_WRONLY | os.O_CREAT, within=within)
    try:
        os.utime(fd)
    finally:
        os.close(fd)


def make_directory(
    path: Path, *, within: Path | None = None, mode: int = PRIVATE_DIRECTORY, parents: bool = False
) -> None:
    """Create the directory ``path`` with ``mode`` (less the umask) if it is missing; with ``parents``, also
    the missing directories above it. ``within`` is the run directory that contains ``path``; links below it
    are not followed. None: links are followed.

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
        except OSError:  # it exists, or the place is read-only: opening it distinguishes these
            os.close(os.open(name, _AT | (0 if within is None else os.O_NOFOLLOW), dir_fd=directory))


def make_new_directory(path: Path, *, within: Path | None = None) -> bool:
    """Create the directory ``path`` with PRIVATE_DIRECTORY (less the umask), and return True. If something
    with that name exists, create nothing and return False. ``within`` is the run directory that contains
    ``path``; links below it are not followed. None: links in the directories of ``path`` are followed.

    Raises:
      OSError: the directory cannot be created.
    """
    with _directory(path, within) as (directory, name):
        try:
            os.mkdir(name, PRIVATE_DIRECTORY, dir_fd=directory)
        except FileExistsError:
            return False
    return True


def remove(path: Path, *, within: Path | None = None) -> None:
    """Remove the file ``path``. If ``path`` is a link, the link is removed, not its target. ``within`` is the
    run directory that contains ``path``; links below it are not followed. None: links in the directories of
    ``path`` are followed."""
    with _directory(path, within) as (directory, name):
        os.unlink(name, dir_fd=directory)


def rename(path: Path, name: str, *, within: Path | None = None) -> None:
    """Give the file ``path`` the new name ``name`` in the same directory. An earlier file with the name
    ``name`` is replaced. ``within`` is the run directory that contains ``path``; links below it are not
    followed. None: links in the directories of ``path`` are followed."""
    with _directory(path, within) as (directory, old):
        os.replace(old, _file_name(name, path), src_dir_fd=directory, dst_dir_fd=directory)


def status(path: Path, *, within: Path | None = None) -> os.stat_result:
    """Return the ``os.stat_result`` (size and times) of the regular file ``path``. ``within`` is the run
    directory that contains ``path``; links below it are not followed. None: links are followed.

    Raises:
      OSError: the file does not exist, is not a regular file, or is reached through a link below ``within``.
    """
    with _directory(path, within) as (directory, name):
        return _regular(os.stat(name, dir_fd=directory, follow_symlinks=within is None), path)


def is_regular(path: Path, *, within: Path | None = None) -> bool:
    """Return whether ``path`` is a regular file. ``within`` is the run directory that contains ``path``: the
    result is False for a file that is reached through a link below it. None: links are followed."""
    try:
        status(path, within=within)
    except OSError:
        return False
    return True


def names(path: Path, *, within: Path | None = None) -> list[str]:
    """Return the names of the entries of the directory ``path``, in no particular order; at most MOST_NAMES.
    ``within`` is the run directory that contains ``path``; links below it are not followed. None: links are
    followed.

    Raises:
      OSError: ``path`` is not a directory, or is reached through a link below ``within``.
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
    """Open the directory that contains ``path``, yield (descriptor of the directory, name of ``path`` in the
    directory), and close the directory afterwards. Links below ``within`` are not followed.

    An OSError that is raised in the ``with`` block gets ``path`` as its file name; a ValueError becomes an
    OSError."""
    opened: list[int] = []
    try:
        try:
            *between, name = _below(path, within)
            opened.append(os.open(path.parent if within is None else within, _AT))
            for part in between:
                opened.append(os.open(part, _AT | os.O_NOFOLLOW, dir_fd=opened[-1]))
            yield opened[-1], name
        except OSError as e:  # also one that is raised in the ``with`` block of the caller
            e.filename, e.filename2 = str(path), None
            raise
        except ValueError as e:  # a null byte, or a character that cannot be in a file name here
            raise OSError(errno.EINVAL, "not a valid file name", str(path)) from e
    finally:
        for fd in opened:
            os.close(fd)


def _below(path: Path, within: Path | None) -> tuple[str, ...]:
    """Return the parts of ``path`` below the directory ``within``: ``("events", "1-a.jsonl")``; if ``within``
    is None, only the last part.

    Raises:
      OSError: there is no part, or a part is no name (``..``).
      ValueError: ``path`` is outside of ``within``.
    """
    parts = path.parts[-1:] if within is None else path.relative_to(within).parts  # ValueError: outside
    if not parts:
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return tuple(_file_name(part, path) for part in parts)


def _file_name(name: str, path: Path) -> str:
    """Return ``name``, a part of ``path``. Raises OSError if ``name`` is not the name of a single file, such
    as ``..`` or ``a/b``."""
    if name in ("", ".", "..") or "/" in name:
        raise OSError(errno.EINVAL, "not a valid file name", str(path))
    return name


def _regular(file_status: os.stat_result, path: Path) -> os.stat_result:
    """Return ``file_status``, the status of the file ``path``. Raises OSError if the file is not a regular
    one."""
    if stat.S_ISDIR(file_status.st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(file_status.st_mode):
        code = errno.ELOOP if stat.S_ISLNK(file_status.st_mode) else errno.EINVAL
        raise OSError(code, "is a link" if code == errno.ELOOP else "not a regular file", str(path))
    return file_status
