"""Remove a run directory: the files with names that jaxscope gives, and then the directory if it is empty.

All names that jaxscope uses in a run directory are listed here. Files with other names are not removed. The
targets of links are not removed either, because no directory is opened through a link.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jaxscope.errors import LogError
from jaxscope.log import files, liveness

META, MOST_META = "meta.json", 1 << 20
UPLOAD = "upload.json"  # the state of the upload (launch.upload)
_PART = r"|\.[0-9a-f]{16}\.part|[0-9a-f]{16,64}(\.[a-z]+)?(\.\d+\.[0-9a-f]{6})?\.part"
_FILES = re.compile(
    r"meta\.json|keeper\.json|upload\.json|diverged\.txt|agreed\.json|output\.log|heartbeat" + _PART
)
_WITHIN = {
    "events": re.compile(r"\d+-[0-9a-z]+\.(jsonl|counts|stopped)" + _PART),
    "blobs": re.compile(r"[0-9a-f]{64}\.zst" + _PART),
    "derived": re.compile(r"[0-9a-f]{32}\.msgpack" + _PART),
    "boot": re.compile(r"\d+"),
    "targets": re.compile(
        r"[0-9a-f]{16}\.(mlir|job|done|lost|result|tried)|alive|behind|closed|lock|compiler\.log" + _PART
    ),
}
# JAX's profiler writes into the directory ``profile``: plugins/profile/<time>/<file>.
PROFILE = "profile"
_PROFILE = (
    re.compile("plugins"),
    re.compile("profile"),
    re.compile(r"[0-9_]{1,40}"),
    re.compile(r"[\w.-]{1,200}\.(xplane\.pb|trace\.json\.gz|hlo_proto\.pb|SSTABLE)"),
)
RANKS, SUBS = "ranks", "sub"  # directories of runs within a run
_RUNS = (RANKS, SUBS)
DEPTH = 4  # parts of the longest path to a run within a run: ranks/00002/sub/4x4
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def is_run(path: Path) -> bool:
    """Return whether ``path`` is a run directory that jaxscope created: its ``meta.json`` has a name and a
    start time, because other tools also write a ``meta.json``. If ``meta.json`` is damaged, ``path`` must
    have a directory ``events`` and no files of others. False for a link."""
    if path.is_symlink():
        return False
    try:
        meta: Any = json.loads(files.read(path / META, MOST_META, within=path))
    except OSError:
        return False
    except (ValueError, RecursionError):  # an incomplete file, because the disk was full
        meta = None
    if meta is None:
        return (path / "events").is_dir() and not list(foreign(path))
    return isinstance(meta, dict) and all(
        isinstance(meta.get(key), kind) for key, kind in (("name", str), ("started", (int, float)))
    )


def in_use(path: Path) -> bool:
    """Return whether the run ``path`` is still being recorded: a process writes a log of this run or of one
    of its ranks (``ranks/...``), or watches the recorded program. A process on another machine is noticed
    only if the file system shares locks between machines."""
    if _written(path):
        return True
    try:
        ranks = files.names(path / "ranks", within=path)
    except OSError:
        return False
    return any(_written(path / "ranks" / name) for name in ranks)


def _written(path: Path) -> bool:
    """Return whether a process holds a lock on the heartbeat file or on a log of the run ``path``."""
    beat = liveness.beat_of(path / "heartbeat")
    if beat is not None and beat.going:
        return True
    try:
        logs = [name for name in files.names(path / "events", within=path) if name.endswith(".jsonl")]
    except OSError:
        return False
    return any(liveness.locked(path / "events" / name) for name in logs)


def own_files(path: Path) -> list[Path]:
    """Return the files in the run directory ``path`` with names that jaxscope gives, as paths relative to
    ``path``: ``events/12-ab.jsonl``. Left out are ``meta.json``, incomplete files, profiles and the files of
    runs inside it."""
    found: list[Path] = []
    for part, ours in {"": _FILES, **_WITHIN}.items():
        with contextlib.suppress(OSError):
            for name in files.names(path / part, within=path):
                if ours.fullmatch(name) and not name.endswith(".part") and name != META:
                    found.append(Path(part, name))
    return sorted(found)


def is_own_name(relative: str) -> bool:
    """Return whether ``relative`` is a path that jaxscope gives to a file in a run directory:
    ``events/12-ab.jsonl``, or ``ranks/00002/events/12-ab.jsonl`` in a run inside it. False for incomplete
    files and profiles."""
    parts = relative.split("/")
    depth = 0
    while len(parts) > 2 and parts[0] in _RUNS and depth < DEPTH // 2:
        if parts[1] in ("", ".", "..") or "\0" in parts[1]:
            return False
        parts, depth = parts[2:], depth + 1
    ours = _FILES if len(parts) == 1 else _WITHIN.get(parts[0]) if len(parts) == 2 else None
    return ours is not None and ours.fullmatch(parts[-1]) is not None and not relative.endswith(".part")


def foreign(path: Path) -> Iterator[str]:
    """Yield the paths, relative to ``path``, of the files and directories in the run directory ``path`` that
    jaxscope did not write."""
    with contextlib.suppress(OSError), _opened(path) as fd:
        yield from _walk(fd, "", lambda name, at: None, lambda name, at: None)


def remove(path: Path) -> list[str]:
    """Remove the run directory ``path``, except files that jaxscope did not write. Return the relative paths
    of these files. If there are none, the directory itself is removed. It is not checked whether the run is
    ``in_use``.

    Raises:
      LogError: ``path`` is not a run.
      OSError: something cannot be removed.
    """
    if not is_run(path):
        link = " itself: it is a link" if path.is_symlink() else ""
        raise LogError(f"{path} is not a jaxscope run{link}; nothing was removed", slug="not-a-run")
    with _opened(path) as fd:
        # meta.json is removed last: if this is interrupted, the rest is still a run, and can be removed.
        left = list(_walk(fd, "", _unless_gone(os.unlink), _unless_gone(os.rmdir)))
        _unless_gone(os.unlink)(META, fd)
    if not left:
        with contextlib.suppress(FileNotFoundError):
            path.rmdir()
    return left


Each = Callable[[str, int], None]


def _unless_gone(action: Callable[..., None]) -> Each:
    """Return a function that calls ``action`` (``os.unlink`` or ``os.rmdir``) with a name and the descriptor
    of the directory, and ignores that the file or directory does not exist."""

    def act(name: str, at: int) -> None:
        with contextlib.suppress(FileNotFoundError):  # another process has removed it
            action(name, dir_fd=at)

    return act


def _walk(fd: int, above: str, file: Each, directory: Each) -> Iterator[str]:
    """Call ``file`` for each file that jaxscope wrote in a run directory (except ``meta.json`` of the
    outermost run), and ``directory`` for each directory in it that has no other files, after its contents.
    Yield the relative paths of all other files and directories.

    Args:
      fd: a descriptor of the run directory.
      above: the path of the run directory relative to the outermost run, with a slash at the end; empty for
        the outermost run.
      file, directory: called with (name, descriptor of the directory that contains it).
    """
    for name, kind in _entries(fd):
        if stat.S_ISREG(kind) and _FILES.fullmatch(name):
            if above or name != META:
                file(name, fd)
        elif stat.S_ISDIR(kind) and name == PROFILE:
            yield from _nested(fd, name, f"{above}{name}/", _PROFILE, file, directory)
        elif stat.S_ISDIR(kind) and name in _WITHIN:
            yield from _nested(fd, name, f"{above}{name}/", (_WITHIN[name],), file, directory)
        elif stat.S_ISDIR(kind) and name in _RUNS and above.count("/") < DEPTH:
            with _opened(name, fd) as inner:
                left = list(_subs(inner, f"{above}{name}/", file, directory))
            yield from left
            if not left:
                directory(name, fd)
        else:
            yield above + name


def _nested(
    at: int, name: str, above: str, ours: Sequence[re.Pattern[str]], file: Each, directory: Each
) -> Iterator[str]:
    """Do the same as ``_walk`` for a directory in which the names at each depth must match a pattern.

    Args:
      at: a descriptor of the directory that contains ``name``.
      name: the directory; ``directory`` may be called for it, too.
      above: the path of ``name`` relative to the outermost run, with a slash at the end.
      ours: a pattern for the names at each depth, first for the entries of ``name``. The last is for files,
        the others for directories.
    """
    left: list[str] = []
    with _opened(name, at) as fd:
        for entry, kind in _entries(fd):
            fits = ours[0].fullmatch(entry) is not None
            if fits and len(ours) > 1 and stat.S_ISDIR(kind):
                left += _nested(fd, entry, f"{above}{entry}/", ours[1:], file, directory)
            elif fits and len(ours) == 1 and stat.S_ISREG(kind):
                file(entry, fd)
            else:
                left.append(above + entry)
    yield from left
    if not left:
        directory(name, at)


def _subs(fd: int, above: str, file: Each, directory: Each) -> Iterator[str]:
    """Do the same as ``_walk`` for all runs in a directory ``sub`` or ``ranks``. A directory in it without
    ``meta.json`` is no run: its path is yielded, and nothing in it is touched.

    Args:
      fd: a descriptor of that directory.
      above: its path relative to the outermost run, with a slash at the end.
    """
    for name, kind in _entries(fd):
        if not stat.S_ISDIR(kind):
            yield above + name
            continue
        with _opened(name, fd) as inner:
            ours = any(found == META for found, _ in _entries(inner))
            left = list(_walk(inner, f"{above}{name}/", file, directory)) if ours else [above + name]
        yield from left
        if not left:
            directory(name, fd)


@contextlib.contextmanager
def _opened(path: str | Path, at: int | None = None) -> Iterator[int]:
    """Open the directory ``path``, yield its descriptor, and close it afterwards. ``path`` is relative to the
    directory with the descriptor ``at``, if that is given. A link at ``path`` is an OSError."""
    fd = os.open(path, _OPEN, dir_fd=at)
    try:
        yield fd
    finally:
        os.close(fd)


def _entries(fd: int) -> list[tuple[str, int]]:
    """Return (name, ``st_mode``) of each entry of the directory ``fd``, ``meta.json`` last. Links are not
    followed."""
    found = []
    with os.scandir(fd) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                found.append((entry.name, entry.stat(follow_symlinks=False).st_mode))
    return sorted(found, key=lambda each: each[0] == META)
