"""Copy a run to and from a remote store that fsspec supports: S3, Google Cloud Storage and others.

Nothing can be appended to an object in a store. So a file is stored in pieces of PIECE bytes, each an object
of its own: ``events/1-a.jsonl``, ``events/1-a.jsonl+1``, ``+2``, ... When the file grows, only its last piece
is written again. If all files of a run are small, the store has the same files as the run directory. The list
of objects in a store is data from outside. Only names that jaxscope gives to files are used, up to the limits
below, and the downloaded copy is read like any other run.

fsspec, the extra ``jaxscope[remote]``, is imported at the first use.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.util
import itertools
import json
import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jaxscope.errors import JaxscopeError, LogError, RunNotFound
from jaxscope.log import files, removal
from jaxscope.log.removal import RANKS, SUBS

PIECE = 1 << 20  # bytes of a request, and in memory while uploading
BATCH = 16 << 20  # bytes in memory while downloading
CALL_S = 60.0  # time limit of one request, or of one batch of requests
MOST_FILES = 200_000  # files of a run that is downloaded
MOST_BYTES = 8 << 30
MOST_PIECES = 4096  # pieces of a file
KEPT = 8  # downloaded runs that are kept
MOST_ERROR = 300  # characters of an error message
_URL = re.compile(r"[a-z][a-z0-9+.-]*://.+", re.DOTALL)
_GROW = (".jsonl", ".zst", "output.log")  # endings of files whose bytes never change once they are written
_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs"}


def is_remote(text: object) -> bool:
    """Return whether ``text`` is the address of a directory in a remote store, such as
    ``s3://bucket/run``."""
    return isinstance(text, str) and _URL.fullmatch(text) is not None


def require(url: str) -> None:
    """Check that the packages for the remote store of ``url`` are installed: for ``s3://``, fsspec and s3fs.

    Raises:
      JaxscopeError: a package is missing, or fsspec does not support this kind of store.
    """
    for package in ("fsspec", _PACKAGES.get(url.partition(":")[0], "fsspec")):
        if importlib.util.find_spec(package) is None:
            raise JaxscopeError(
                f"{url} needs the Python package {package}, which is not installed",
                hint="pip install 'jaxscope[remote]'",
                slug="remote-missing",
            )
    protocol = url.partition(":")[0]
    if protocol not in _PACKAGES and protocol not in importlib.import_module("fsspec").available_protocols():
        raise JaxscopeError(
            f"fsspec has no store {protocol}://", hint="use s3://, gs:// or file://", slug="remote-unknown"
        )


class Store:
    """A directory in a remote store such as S3. Paths of objects are relative to this directory.

    All methods raise OSError with the message of the store; the constructor raises JaxscopeError.

    Raises:
      JaxscopeError: a package is missing, fsspec does not support this kind of store, or the directory cannot
        be opened.
    """

    def __init__(self, url: str) -> None:
        require(url)
        self.url = url.rstrip("/")
        protocol = url.partition(":")[0]
        more = {"auto_mkdir": True} if protocol in ("file", "local") else {}
        try:
            fsspec: Any = importlib.import_module("fsspec")
            self._fs, root = fsspec.core.url_to_fs(self.url, skip_instance_cache=True, **more)
        except Exception as e:  # each store's package has errors of its own
            raise JaxscopeError(f"{url} cannot be opened: {one_line(e)}", slug="remote-unreadable") from e
        self._root = str(root).rstrip("/")

    def sizes(self, below: str = "") -> dict[str, int]:
        """Return {path: size in bytes} of the objects in the directory ``below`` of the store, or of all
        objects if ``below`` is empty."""
        start = f"{self._root}/{below}".rstrip("/")
        found = _call(lambda: self._find(start))
        cut = len(self._root) + 1
        return {
            path[cut:]: size
            for path, info in found.items()
            if path.startswith(f"{self._root}/") and isinstance(size := info.get("size"), int) and size >= 0
        }

    def _find(self, start: str) -> dict[str, dict[str, Any]]:
        self._fs.invalidate_cache()
        try:
            return dict(self._fs.find(start, detail=True))
        except FileNotFoundError:
            return {}

    def put(self, objects: dict[str, bytes]) -> None:
        """Write ``objects``, {path: content}, to the store. All contents together must have at most PIECE
        bytes."""
        _call(lambda: self._fs.pipe({f"{self._root}/{name}": data for name, data in objects.items()}))

    def get(self, sizes: dict[str, int]) -> dict[str, bytes]:
        """Return {path: content} of objects in the store. ``sizes`` is {path: number of bytes to read from
        the beginning of the object}. An object that does not exist is missing in the result, unless its
        number of bytes is 0."""
        names = [name for name, size in sizes.items() if size]
        paths = [f"{self._root}/{name}" for name in names]
        ends = [sizes[name] for name in names]
        found = (
            _call(lambda: self._fs.cat_ranges(paths, [0] * len(ends), ends, on_error="return"))
            if names
            else []
        )
        data = {name: b"" for name, size in sizes.items() if not size}
        for name, content in zip(names, found, strict=True):
            if isinstance(content, bytes):
                data[name] = content
            elif not isinstance(content, FileNotFoundError):
                raise OSError(one_line(content))
        return data

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects from the store. ``names`` are their paths."""
        paths = [f"{self._root}/{name}" for name in names]
        if paths:
            _call(lambda: self._fs.rm(paths))


def one_line(error: object) -> str:
    """Return the type and the message of an error on one line, cut to MOST_ERROR characters."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:MOST_ERROR]


def _call(action: Callable[[], Any]) -> Any:
    """Return the result of ``action()``, which uses a remote store. Errors of the store's package become
    OSErrors. In the main thread, an OSError is raised after CALL_S seconds, unless the program uses the timer
    ITIMER_REAL itself; in other threads, there is no time limit."""

    def late(number: int, frame: object) -> None:
        raise TimeoutError(f"no answer for {CALL_S:.0f} s")

    # No time limit if the calling program uses the timer itself.
    timed = threading.current_thread() is threading.main_thread()
    timed = timed and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    before = signal.signal(signal.SIGALRM, late) if timed else None
    try:
        if timed:
            signal.setitimer(signal.ITIMER_REAL, CALL_S)
        return action()
    except OSError:
        raise
    except Exception as e:  # botocore and others have errors of their own
        raise OSError(one_line(e)) from e
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


class Piece(NamedTuple):
    """A part of a file that is to be uploaded to a remote store as one object.

    Attributes:
      name: the path of the object in the store.
      path: the file.
      within: the run directory that contains ``path``.
      offset: where the part begins in the file, in bytes.
      length: the number of bytes of the part.
      stamp: (size of the part, modification time of the file in ns). If a piece with this name and stamp was
        uploaded, the piece is not sent again. The time is 0 for a file whose bytes never change once they are
        written.
    """

    name: str
    path: Path
    within: Path
    offset: int
    length: int
    stamp: tuple[int, int]


class Upload:
    """Uploads what has changed in a run to a remote store. The run may also be the recording of one process
    inside the run of a job.

    Args:
      path: the run directory.
      url: the address of the run in the store; for the recording of one process, that of the run of its job.
      overwrite: replace another run that the store has at this address.

    Attributes:
      sent: number of bytes sent.
      left: (number of pieces of files, number of bytes) that are not in the store yet, as of the last
        ``measure`` or ``round``.
    """

    def __init__(self, path: Path, url: str, *, overwrite: bool = False) -> None:
        self.sent = 0
        self.left = (0, 0)
        self._path = path
        self._whole = path.parent.parent if path.parent.name == RANKS else None
        self._prefix = f"{RANKS}/{path.name}/" if self._whole is not None else ""
        self._url = url
        self._overwrite = overwrite
        self._store: Store | None = None
        self._there: dict[str, tuple[int, int]] = {}  # stamps of the pieces in the store, by object name

    def measure(self) -> None:
        """Set ``left`` to the number of pieces and bytes that are not in the store yet, without uploading
        anything. Before the first ``round``, it is unknown what the store has: everything counts."""
        self._pending()

    def round(self, progress: Callable[[], None] = lambda: None) -> None:
        """Upload the run's files that have changed since the last call, and those of its sub-runs, without
        profiles and cached analyses. ``progress`` is called after each request to the store.

        Raises:
          OSError: an error of the store.
          JaxscopeError: the store has another run at this address, or cannot be opened.
        """
        if self._store is None:
            store = Store(self._url)
            self._begin(store)
            self._store = store
        pending = self._pending()
        for batch in _batches(pending, PIECE):
            self._store.put({piece.name: _read(piece) for piece in batch})
            for piece in batch:
                self._there[piece.name] = piece.stamp
                self.sent += piece.length
            self.left = self.left[0] - len(batch), self.left[1] - sum(p.length for p in batch)
            progress()

    def again(self) -> None:
        """Make the next call of ``round`` upload the ``.counts`` files again. Their content changes while
        their time and size stay, because they are mapped into memory."""
        self._there = {name: stamp for name, stamp in self._there.items() if ".counts" not in name}

    def _begin(self, store: Store) -> None:
        """Check that the store has no other run at this address; with ``overwrite``, remove the other run.
        Find out which pieces of this run's files the store has.

        Raises:
          LogError: the store has another run at this address.
        """
        meta = f"{self._prefix}{removal.META}"
        own = files.read(self._path / removal.META, removal.MOST_META, within=self._path)
        there = store.sizes(self._prefix)
        if self._whole is not None:
            there.update(store.sizes("blobs"))
            job = files.read(self._whole / removal.META, removal.MOST_META, within=self._whole)
            above = store.get({removal.META: removal.MOST_META}).get(removal.META)
            if above is not None:
                self._not_another(_job(above) == _job(job))
                if _job(above) == _job(job):
                    self._there[removal.META] = _stamp(self._whole / removal.META, self._whole)
        if meta in there and store.get({meta: there[meta]}).get(meta) != own:
            self._not_another(False)
            store.remove(name for name in there if name.startswith(self._prefix) and _own(name) is not None)
            there = {name: size for name, size in there.items() if not name.startswith(self._prefix)}
        self._there.update(
            (name, (size, 0))
            for name, size in there.items()
            if (own_name := _own(name)) is not None and own_name[0].endswith(_GROW)
        )

    def _not_another(self, same: bool) -> None:
        """Raise LogError if the run in the store is not the ``same`` and must not be replaced."""
        if not same and not self._overwrite:
            raise LogError(
                f"{self._url} already contains another recorded run",
                hint="choose another directory, or replace the run: --overwrite",
                slug="run-exists",
            )

    def _pending(self) -> list[Piece]:
        """Return the pieces that are not in the store yet or have changed, and set ``left``."""
        found = [p for p in self._pieces() if self._there.get(p.name) != p.stamp]
        self.left = len(found), sum(p.length for p in found)
        return found

    def _pieces(self) -> Iterator[Piece]:
        """Yield all pieces of the run and its sub-runs; for the recording of one process, also those of the
        files that the processes of the job share."""
        if self._whole is not None:
            yield from _pieces_of(self._whole, "", only=(removal.META, "blobs", "diverged.txt"))
        yield from _pieces_of(self._path, self._prefix)
        with contextlib.suppress(OSError):
            for label in sorted(files.names(self._path / SUBS, within=self._path)):
                yield from _pieces_of(self._path / SUBS / label, f"{self._prefix}{SUBS}/{label}/")


def _pieces_of(path: Path, prefix: str, only: tuple[str, ...] = ()) -> Iterator[Piece]:
    """Yield the pieces of the files in the run directory ``path``, without those of runs inside it. Their
    names in the store begin with ``prefix``. ``only`` are names of files and subdirectories to which the
    result is restricted; empty: all."""
    for relative in (Path(removal.META), *removal.own_files(path)):
        if relative.parts[0] in ("derived", removal.UPLOAD) or (only and relative.parts[0] not in only):
            continue
        grows = relative.name.endswith(_GROW)
        with contextlib.suppress(OSError):
            status = files.status(path / relative, within=path)
            for n in range(min(-(-status.st_size // PIECE), MOST_PIECES)):
                offset = n * PIECE
                length = min(PIECE, status.st_size - offset)
                name = f"{prefix}{relative.as_posix()}" + (f"+{n}" if n else "")
                stamp = (length, 0 if grows else status.st_mtime_ns)
                yield Piece(name, path / relative, path, offset, length, stamp)


def _stamp(path: Path, within: Path) -> tuple[int, int]:
    status = files.status(path, within=within)
    return status.st_size, status.st_mtime_ns


def _read(piece: Piece) -> bytes:
    with files.open_regular(piece.path, within=piece.within) as f:
        f.seek(piece.offset)
        return f.read(piece.length)


def _job(meta: bytes) -> object:
    """Return the id of the job in ``meta``, the content of a ``meta.json``; None if there is none."""
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(meta)
        return found.get("job") if isinstance(found, dict) else None
    return None


def _batches(pieces: Iterable[Piece], most: int) -> Iterator[list[Piece]]:
    """Group pieces of files into lists, each for one request: of at most ``most`` bytes and 64 pieces. A
    larger piece is in a list by itself."""
    batch: list[Piece] = []
    for piece in pieces:
        if batch and (len(batch) >= 64 or sum(p.length for p in batch) + piece.length > most):
            yield batch
            batch = []
        batch.append(piece)
    if batch:
        yield batch


def _own(name: str) -> tuple[str, int] | None:
    """Return (file, number of the piece) for ``name``, the path of an object in a remote store:
    ``events/1-a.jsonl+2`` -> ``("events/1-a.jsonl", 2)``. None if jaxscope gives no file this name."""
    file, plus, number = name.rpartition("+")
    if not plus or not re.fullmatch(r"[1-9][0-9]{0,3}", number) or int(number) >= MOST_PIECES:
        return (name, 0) if removal.is_own_name(name) else None  # a + may be in the name of a sub-run
    return (file, int(number)) if removal.is_own_name(file) else None


@functools.cache  # a command looks up its run several times
def fetched(url: str, home: Path) -> Path:
    """Download the run (recording) at ``url`` into a directory in ``home``, and return this directory. If
    ``url`` is the address of one process inside the run of a job (``.../ranks/00002``), download the run of
    the job, and return the directory of the process in it.

    A second call in this process with the same arguments downloads nothing.

    Raises:
      RunNotFound: there is no run at ``url``. For the address of one process: there is no run of its job;
        it is not checked whether the process is in the job.
      LogError: the store cannot be read, or the run is too large.
      JaxscopeError: a package is missing, or the store cannot be opened.
    """
    base, rank = url.rstrip("/"), ""
    inner = re.fullmatch(rf"(.+)/{RANKS}/([^/]+)", base)
    if inner is not None:
        base, rank = inner[1], inner[2]
    store = Store(base)
    path = home / f"{_name(base)}-{hashlib.sha256(base.encode('utf-8', 'replace')).hexdigest()[:12]}"
    try:
        if not store.get({removal.META: removal.MOST_META}):
            raise RunNotFound(f"there is no run in {base}", slug="run-not-found")
        _make_room_for(home, path)
        _download(store, path)
    except OSError as e:
        raise LogError(f"{base} cannot be read: {e}", slug="remote-unreadable") from e
    return path / RANKS / rank if rank else path


def _name(url: str) -> str:
    return re.sub(r"[^\w.-]+", "-", url.rpartition("/")[2], flags=re.ASCII).strip("-.")[:60] or "run"


def _make_room_for(home: Path, path: Path) -> None:
    """Create the directory ``path`` in ``home`` for a download, if it is missing. Remove the oldest other
    downloads in ``home``, so that at most KEPT remain, ``path`` included."""
    files.make_directory(path, parents=True)
    files.write(home / ".gitignore", "*\n", mode=files.SHARED)
    others = [p for p in home.iterdir() if p != path and removal.is_run(p)]
    for old in sorted(others, key=lambda p: p.stat().st_mtime)[: max(0, len(others) + 1 - KEPT)]:
        with contextlib.suppress(OSError, LogError):
            removal.remove(old)


def _download(store: Store, path: Path) -> None:
    """Download the run in ``store`` into the directory ``path``, without cached analyses. Logs and texts of
    an earlier download that have not grown stay; files that the store does not have are removed.

    Raises:
      LogError: the run is too large.
      OSError: an error of the store, or a file cannot be written.
    """
    pieces: dict[str, dict[int, int]] = {}  # file -> number of the piece -> size
    for name, size in store.sizes().items():
        file, number = _own(name) or ("", 0)
        if file and not file.startswith("derived/"):
            pieces.setdefault(file, {})[number] = size
    total = sum(sum(sizes.values()) for sizes in pieces.values())
    if len(pieces) > MOST_FILES or total > MOST_BYTES:
        raise LogError(
            f"{store.url} contains {len(pieces):,} files with {total / 1e9:.1f} GB: at most {MOST_FILES:,}"
            f" and {MOST_BYTES / 1e9:.1f} GB are downloaded",
            slug="remote-too-large",
        )
    whole: dict[str, list[int]] = {}
    for file, sizes in pieces.items():
        # If a piece is missing, the pieces after it cannot be used.
        whole[file] = [sizes[n] for n in itertools.takewhile(sizes.__contains__, itertools.count())]
        # Logs and program texts of an earlier download that have not grown are not downloaded again.
        there = files.is_regular(path / file, within=path) and file.endswith(_GROW)
        if there and files.status(path / file, within=path).st_size == sum(whole[file]):
            del whole[file]
    _remove_others(path, pieces)
    small: dict[str, int] = {}
    for file, lengths in whole.items():
        if len(lengths) > 1:
            names = [file, *(f"{file}+{n}" for n in range(1, len(lengths)))]
            _write(path, file, (store.get({n: s}).get(n, b"") for n, s in zip(names, lengths, strict=True)))
            continue
        if small and sum(small.values()) + sum(lengths) > BATCH:
            _write_all(path, store.get(small))
            small = {}
        small.update((file, size) for size in lengths)
    _write_all(path, store.get(small))


def _remove_others(path: Path, there: Iterable[str]) -> None:
    """Remove the files of the downloaded run ``path`` that are not in ``there``, the files of the run in the
    store: they are from another run, which was at the same address."""
    kept = {removal.META, *there}
    runs = [
        path,
        *(p for folder in (RANKS, SUBS) if (path / folder).is_dir() for p in (path / folder).iterdir()),
    ]
    for run in runs:
        for relative in removal.own_files(run):
            file = (run / relative).relative_to(path)
            if file.as_posix() not in kept and relative.parts[0] != "derived":
                with contextlib.suppress(OSError):
                    files.remove(path / file, within=path)


def _write_all(path: Path, contents: dict[str, bytes]) -> None:
    for file, data in contents.items():
        _write(path, file, [data])


def _write(path: Path, file: str, pieces: Iterable[bytes]) -> None:
    target = path.joinpath(*file.split("/"))
    if target.parent != path:
        files.make_directory(target.parent, within=path, parents=True)
    files.write(target, pieces, within=path)
