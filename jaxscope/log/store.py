"""Manage a run directory: its path, its name, and the texts in it, each stored once.

    .jaxscope/runs/train-20260102-030405-a1b2/
        meta.json                 name, command line and options of the run
        events/<pid>-<id>.jsonl   the append-only log of a process (log.writer)
        events/<pid>-<id>.counts  the numbers of that process that grow on every call (log.counts)
        events/<pid>-<id>.stopped room for its event RecordingStopped; removed at an orderly end
        blobs/<sha256>.zst        StableHLO and HLO texts, by their hash
        boot/<pid>                what a Python process of the program noted when it started
        output.log                the program's output, if jaxscope recorded it
        heartbeat                 a line written every second by the process that watches the program
        targets/                  programs to compile for targets (log.jobs)
        sub/<label>/              a run of the same program with other devices or settings ("sub-run")
        ranks/<rank>/             the recording of one process of a job (log.ranks)

The directories below ``sub`` and ``ranks`` are runs themselves, with the same files.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import time
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from jaxscope.errors import LogError, RunNotFound
from jaxscope.log import files, remote, removal, secret_values

HOME = ".jaxscope"
RANKS, SUBS = removal.RANKS, removal.SUBS  # directories of runs within a run
SCHEMA = 1  # of meta.json and the logs
IR_CHOICES = ("none", "stats", "stablehlo", "hlo", "all")  # which texts of programs a recording stores
ZSTD_LEVEL = 1  # the program waits half as long as at level 3; the files are a sixth larger
# Limits of what is read of a run: larger files are damaged or hostile. docs/limits.md lists all limits.
MAX_TEXT_BYTES = 128 << 20  # bytes of a text; LARGEST_TEXT if the user wants texts of any size
LARGEST_TEXT = 2 << 30
MAX_TEXT_LINES = 4_000_000
MAX_WINDOW = 1 << 26  # bytes that a decompressor may hold; what we write needs 2^19
LATEST = 1e11  # seconds since 1970; a start after this is not a valid time
PIECE = 1 << 20
MOST_NAMED = 8
LAST = ".stopped"  # the suffix of a file beside a log for its last event, if the log has no room for it
LAST_BYTES = 512


def here() -> Path:
    """Return the current directory. If it was removed, return a path at which nothing exists or can be
    created."""
    try:
        return Path.cwd()
    except OSError:
        return Path("/proc/self/cwd")


def runs_home() -> Path:
    """Return the directory that contains the runs: ``$JAXSCOPE_HOME/runs`` if this variable is set, else
    ``.jaxscope/runs`` in the current directory."""
    home = os.environ.get("JAXSCOPE_HOME")
    return (Path(home) if home else here() / HOME) / "runs"


def clean_name(text: str) -> str:
    """Return a file name made from ``text``: ``my run!`` -> ``my-run``. The name has only letters and digits
    of any script, dots, dashes and underscores. It is never empty (``run``), and has at most 60 characters
    and 120 bytes."""
    return _clean(text) or "run"


def _clean(text: str, also: str = "") -> str:
    """Do what ``clean_name`` does, but keep the characters in ``also``, too, and return an empty text if
    nothing of ``text`` can be in a file name."""
    name = re.sub(rf"[^\w.{also}-]+", "-", unicodedata.normalize("NFC", text)).strip("-.")[:60]
    try:
        # File systems allow 255 bytes, and extensions are added to the name.
        name = os.fsencode(name)[:120].decode("utf-8", "ignore")
    except UnicodeError:  # this system's file names cannot have the characters
        name = re.sub(rf"[^A-Za-z0-9._{also}-]+", "-", name).strip("-.")
    return name.rstrip("-.")


def create(
    path: Path | None = None, *, name: str | None = None, overwrite: bool = False, **meta: Any
) -> RunDir:
    """Create a run directory, in which a program is recorded. Other users cannot read it.

    Args:
      path: a directory that does not exist yet, or is empty; None: a new directory under ``runs_home()``,
        named after ``name`` and the time.
      name: the name of the run; None: the name of ``path``, or ``run``.
      overwrite: if ``path`` contains a run, remove that run first.
      meta: further entries of ``meta.json``, as JSON values.

    Raises:
      LogError: the directory cannot be created, or is not empty.
    """
    now = time.time()
    stem = clean_name(name or (path.name if path else "run"))
    path = path or fresh(stem)
    try:
        _ensure_empty(path, overwrite=overwrite)
        make_home(path)
        record = {"schema": SCHEMA, "name": stem if name is None else name, "started": now, **_harmless(meta)}
        _write_first(path / removal.META, (json.dumps(record, indent=1) + "\n").encode())
        for part in ("events", "blobs", "boot"):
            files.make_directory(path / part, within=path)
    except OSError as e:
        raise unwritable(path, e) from e
    return RunDir(path)


def make_home(path: Path) -> None:
    """Create the run directory ``path``, which other users cannot read, and its missing parent directories.
    In ``.jaxscope/runs``, also write ``.jaxscope/.gitignore`` if it is missing. Raises OSError if the
    directory cannot be created."""
    home = path.parent.parent
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.parent.name == "runs" and home.name == HOME and not (home / ".gitignore").exists():
        files.write(home / ".gitignore", "*\n", mode=files.SHARED)
    files.make_directory(path)
    with contextlib.suppress(PermissionError):  # an existing empty directory of another user
        path.chmod(files.PRIVATE_DIRECTORY)


def unwritable(path: Path, e: OSError) -> LogError:
    """Return a LogError that says that the run directory ``path`` cannot be created. ``e`` is the reason."""
    return LogError(
        f"cannot make the run directory {path}: {e.strerror or e}",
        hint="choose a writable place with --out DIR, or set JAXSCOPE_HOME",
        slug="run-unwritable",
    )


def _harmless(meta: dict[str, Any]) -> dict[str, Any]:
    """Return ``meta``, entries of a ``meta.json``, with secrets in the command line and the settings
    replaced."""
    argv, settings = meta.get("argv"), meta.get("settings")
    found = dict(meta)
    if isinstance(argv, list):
        found["argv"] = secret_values.words([str(word) for word in argv])
    if isinstance(settings, dict):
        found["settings"] = {
            name: secret_values.value(name, text) if isinstance(text, str) else text
            for name, text in settings.items()
        }
    return found


def _ensure_empty(path: Path, *, overwrite: bool) -> None:
    """Check that ``path``, where a run directory is to be created, does not exist or is empty. With
    ``overwrite``, remove a run that is there.

    Raises:
      LogError: ``path`` contains something other than a run, or a run that is not replaced: ``overwrite`` is
        False, it is still being recorded, or it has files that jaxscope did not write.
      OSError: ``path`` cannot be read.
    """
    try:
        held = files.names(path)
    except FileNotFoundError:
        return
    if not held:
        return
    if not removal.is_run(path):
        raise LogError(
            f"{path} is not empty and is not a jaxscope run",
            hint="choose a new or an empty directory with --out",
            slug="run-directory-in-use",
        )
    if not overwrite:
        raise LogError(
            f"{path} already contains a recorded run",
            hint="choose another directory with --out, or replace the run: --overwrite",
            slug="run-exists",
        )
    if removal.in_use(path):
        raise LogError(f"{path} is a run that is still being recorded", slug="run-goes-on")
    others = sorted(removal.foreign(path))
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        raise LogError(
            f"{path} contains files that do not belong to the run: {', '.join(others[:3])}{more}",
            hint="choose a new or an empty directory with --out",
            slug="run-directory-in-use",
        )
    removal.remove(path)


def _write_first(path: Path, data: bytes) -> None:
    """Write ``data`` to the new file ``path``. Raises OSError if the file exists already, so that of two
    processes that create the same run only one succeeds."""
    fd = files.descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, within=path.parent)
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(data)
    except OSError:
        files.remove(path, within=path.parent)
        raise


def fresh(name: str) -> Path:
    """Return a path for a new run called ``name`` under ``runs_home()``, without creating it."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime())
    return runs_home() / f"{clean_name(name)}-{stamp}-{os.urandom(2).hex()}"


class RunDir:
    """The directory of one run (one recording), which need not exist. Each file in it is opened only when it
    is read.

    Attributes:
      everything: whether texts above the usual size are read, too (``--all``).
    """

    def __init__(self, path: Path | str) -> None:
        self.path = here() / path
        self.everything = False
        self._meta: dict[str, Any] = {}

    @property
    def meta(self) -> dict[str, Any]:
        """Return the contents of ``meta.json``. The dict is empty if the file cannot be read. Once the file
        was read, it is not read again."""
        if not self._meta:
            with contextlib.suppress(OSError, ValueError, RecursionError):
                value = json.loads(files.read(self.path / removal.META, removal.MOST_META, within=self.path))
                self._meta = value if isinstance(value, dict) else {}
        return self._meta

    @property
    def name(self) -> str:
        """Return the run's name in ``meta.json``; if there is none, the name of the directory."""
        name = self.meta.get("name")
        return name if isinstance(name, str) and name else self.path.name

    @property
    def argv(self) -> list[str] | None:
        """Return the words of the program's command line. Return None if they are unknown."""
        words = self.meta.get("argv")
        known = isinstance(words, list) and all(isinstance(word, str) for word in words)
        return words if known else None

    @property
    def started(self) -> float:
        """Return when the run started, in seconds since 1970; 0 if unknown."""
        value = self.meta.get("started")
        return float(value) if isinstance(value, (int, float)) and 0 < value < LATEST else 0.0

    @property
    def settings(self) -> list[tuple[str, str]]:
        """Return (name, value) of each environment variable or flag that ``jaxscope run --vary`` set for this
        run; empty if there are none."""
        found = self.meta.get("settings")
        pairs = found.items() if isinstance(found, dict) else ()
        return [(name, value) for name, value in pairs if isinstance(value, str)]

    @property
    def events(self) -> Path:
        return self.path / "events"

    @property
    def output(self) -> Path:
        return self.path / "output.log"

    @property
    def heartbeat(self) -> Path:
        return self.path / "heartbeat"

    def logs(self) -> list[Path]:
        """Return the paths of the event logs, one for each process, in order of their names."""
        try:
            found = [self.events / name for name in files.names(self.events, within=self.path)]
            return sorted(p for p in found if p.suffix == ".jsonl")
        except OSError:
            return []

    @property
    def recorded(self) -> bool:
        """Return whether a process of the program recorded events; for the run of a job, whether a process of
        the job did. Processes that did not import jax record none."""
        for path in self.logs():
            try:
                with files.open_regular(path, within=self.path) as f:
                    if f.read(32).startswith(b'{"kind":"RunStarted"'):
                        return True
            except OSError:
                continue
        return any(each.recorded for each in rank_runs(self))

    def put_text(self, text: str) -> tuple[str, int]:
        """Store ``text``, a program text, in the run, unless the run has it already. Return (the sha256 of
        the text, its size in UTF-8 bytes). The methods ``text`` and ``data`` find the text by its sha256.

        Raises:
          OSError: the disk is full, or the directory cannot be written.
        """
        data = text.encode("utf-8", "surrogatepass")
        blob = hashlib.sha256(data).hexdigest()
        home = texts_of(self)
        target = home / "blobs" / f"{blob}.zst"
        if not target.exists():
            compressed = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(data)
            files.write(target, compressed, within=home)
        return blob, len(data)

    def text(self, blob: str) -> str:
        """Return the text that ``put_text`` stored under the hash ``blob``.

        Raises:
          LogError: the text is missing, damaged or too large.
        """
        data = self.data(blob)
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:  # not written by jaxscope
            return data.decode("utf-8", "backslashreplace")

    def data(self, blob: str, most: int = MAX_TEXT_BYTES) -> bytes:
        """Return the text that ``put_text`` stored under the hash ``blob``, as UTF-8 bytes (a lone surrogate
        has three bytes).

        Raises:
          LogError: the text is missing or damaged, or has more than ``most`` bytes or MAX_TEXT_LINES lines.
            If ``everything`` is set, only LARGEST_TEXT bytes are the limit.
        """
        if not re.fullmatch(r"[0-9a-f]{64}", blob):
            raise LogError(f"{blob[:80]!r} is not the hash of a recorded text", slug="blob-name")
        home = next(
            (h for h in (self.path, texts_of(self)) if (h / "blobs" / f"{blob}.zst").exists()), self.path
        )
        try:
            with files.open_regular(home / "blobs" / f"{blob}.zst", within=home) as f:
                data = _unpacked(f, blob, LARGEST_TEXT if self.everything else most, self.everything)
        except (OSError, zstandard.ZstdError) as e:
            raise LogError(
                f"text {blob[:12]} of {self.path} cannot be read: {e}", slug="blob-unreadable"
            ) from e
        if hashlib.sha256(data).hexdigest() != blob:
            raise LogError(f"text {blob[:12]} of {self.path} is damaged", slug="blob-damaged")
        return data

    def bytes_on_disk(self) -> int:
        """Return the size of all files in this directory and below, in bytes. Links are not followed."""
        total = 0
        for folder, _, names in os.walk(self.path):  # files that are removed meanwhile are skipped
            for name in names:
                with contextlib.suppress(OSError):
                    total += files.status(Path(folder, name), within=Path(folder)).st_size
        return total

    def remove(self) -> list[str]:
        """Delete the files in this directory that have the names of jaxscope's files, then subdirectories
        that are empty, and the directory itself if it is empty. Return the relative paths of everything else
        in it, which is not removed.

        Raises:
          LogError: this directory is not a run, or is a link.
          OSError: something cannot be removed.
        """
        return removal.remove(self.path)


def _unpacked(f: BinaryIO, blob: str, most: int, any_size: bool) -> bytes:
    """Return the decompressed content of ``f``, a compressed text with the hash ``blob``. It is read in
    pieces, so that a hostile file cannot use much memory.

    Raises:
      LogError: the text has more than ``most`` bytes, or (without ``any_size``) more than MAX_TEXT_LINES
        lines.
    """
    pieces, size, lines = [], 0, 0
    with zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(f) as reader:
        while piece := reader.read(PIECE):
            pieces.append(piece)
            size += len(piece)
            lines += piece.count(b"\n")
            if size > most or (lines > MAX_TEXT_LINES and not any_size):
                limit = f"{most >> 20:,} MiB" if size > most else f"{MAX_TEXT_LINES:,} lines"
                hint = None if any_size else "report --all and dump --all read larger ones"
                raise LogError(
                    f"the text {blob[:12]} is larger than {limit}", hint=hint, slug="blob-too-large"
                )
    return b"".join(pieces)


def _is_run(path: Path, within: Path | None = None) -> bool:
    """Return whether the directory ``path`` has a ``meta.json``, as every run has. ``within`` is the run that
    contains ``path``, if any; links below it are not followed."""
    return files.is_regular(path / "meta.json", within=within or path)


def sub_run(run: RunDir, label: str | int) -> Path:
    """Return the path for a new sub-run of ``run``: a further recording of the same program, with other
    devices or settings. Its name is ``label`` as a file name, with ``~2``, ``~3``, ... if this name is taken.
    The directory is not created."""
    stem = _clean(str(label), "=@,+") or "run"
    home = run.path / SUBS
    return next(p for p in (home / (stem + more) for more in _endings()) if not p.exists())


def _endings() -> Iterator[str]:
    """Yield an empty text, ``~2``, ``~3``, ..."""
    yield ""
    for n in itertools.count(2):
        yield f"~{n}"


def sub_runs(run: RunDir) -> list[RunDir]:
    """Return the sub-runs of ``run``, in the order in which they were started: recordings of the same program
    with other devices or settings. The list is empty if ``run`` is a sub-run itself."""
    if run.path.parent.name == SUBS and parent_of(run) is not None:
        return []
    return sorted(_inside(run, SUBS), key=lambda r: (r.started, len(r.path.name), r.path.name))


def rank_runs(run: RunDir) -> list[RunDir]:
    """Return the recordings of the processes (ranks) inside ``run``, the run of a job, in order of their
    names. Empty if there are none. Recordings of an earlier job in the same directory are left out."""
    return list(_rank_runs(run))


def _rank_runs(run: RunDir) -> Iterator[RunDir]:
    """Yield what ``rank_runs`` returns, reading each directory only when it is needed."""
    job = None
    for place in _inside(run, RANKS):
        job = run.meta.get("job") if job is None else job
        if place.meta.get("job", job) == job:
            yield place


def _inside(run: RunDir, folder: str) -> Iterator[RunDir]:
    """Yield the runs in the directory ``folder`` (``sub`` or ``ranks``) of ``run``, in order of their
    names."""
    try:
        names = sorted(files.names(run.path / folder, within=run.path))
    except OSError:
        return
    yield from (RunDir(p) for p in (run.path / folder / n for n in names) if _is_run(p, run.path))


def parent_of(run: RunDir) -> RunDir | None:
    """Return the run that contains ``run`` in its directory ``sub`` or ``ranks``. Return None if no other run
    contains ``run``."""
    above = run.path.parent.parent
    inside = run.path.parent.name in (SUBS, RANKS) and _is_run(above)
    return RunDir(above) if inside else None


def texts_of(run: RunDir) -> Path:
    """Return the run directory whose ``blobs`` contain the program texts of ``run``: for the recording of one
    process of a job, that of the run of the job; otherwise the directory of ``run`` itself."""
    parent = parent_of(run) if run.path.parent.name == RANKS else None
    return run.path if parent is None else parent.path


def one_process(run: RunDir, rank: int | None = None) -> RunDir:
    """Return the recording of one process in ``run``, the run of a job. ``rank`` is the number of the process
    in the job.

    If ``rank`` is None, return the first recording that has events, or the first of all if none has. If
    no processes are recorded inside ``run``, because it is the recording of one process, return ``run``.

    Raises:
      RunNotFound: there is no such rank.
    """
    if rank is None:
        recorded = next((p for p in _rank_runs(run) if p.recorded), None)
        return recorded or next(_rank_runs(run), run)
    places = rank_runs(run)
    found = [p for p in places if p.path.name == f"{rank:05}"]
    if not found:
        have = ", ".join(p.path.name.lstrip("0") or "0" for p in places[:MOST_NAMED])
        more = f" and {len(places) - MOST_NAMED} more" if len(places) > MOST_NAMED else ""
        raise RunNotFound(
            f"{run.path.name} has no rank {rank}",
            hint=f"it has {have}{more}" if places else "this run has one process only: leave out --rank",
            slug="rank-not-found",
        )
    return found[0]


def address(run: RunDir) -> str:
    """Return a text by which a command finds ``run``: the name of its directory if that is in
    ``runs_home()``, else its path, or ``RUN/NAME`` for a run inside another run. For the process of a job
    that ``one_process`` selects by default, return the address of the run of the job."""
    parent = parent_of(run)
    if parent is not None and run.path.parent.name == RANKS and one_process(parent).path == run.path:
        return address(parent)
    if parent is not None:
        return f"{address(parent)}/{_name_within(run, [parent, *sub_runs(parent), *rank_runs(parent)])}"
    return run.path.name if run.path.parent == here() / runs_home() else str(run.path)


def all_runs(home: Path | None = None) -> list[RunDir]:
    """Return the runs in the directory ``home`` (default: ``runs_home()``), oldest first."""
    home = runs_home() if home is None else home
    try:
        found = [RunDir(p) for p in home.iterdir() if _is_run(p)]
    except OSError:
        return []

    return sorted(found, key=lambda r: (r.started, r.path.name))


def find(run_name: str | None = None) -> RunDir:
    """Return the run that a user means by ``run_name``: a directory, the name of a run in ``runs_home()``,
    the beginning of its directory's name, or ``latest``.

    ``latest`` (or None) means the newest run that recorded anything, or the newest of all if none did. Of
    several runs with the same name, the newest is returned. ``RUN/NAME`` is a run inside another run:
    ``latest/MESH=4x4``. A run in a store (``s3://...``) is downloaded.

    Raises:
      RunNotFound: there is no such run (the error's hint has similar names), or several names begin with
        ``run_name``.
      JaxscopeError: the store cannot be read.
    """
    if run_name is not None and remote.is_remote(run_name):
        return RunDir(remote.fetched(run_name, runs_home().parent / "remote"))
    runs = all_runs()
    if run_name in (None, "", "latest"):
        if runs:
            return next((r for r in reversed(runs) if r.recorded), runs[-1])
        raise RunNotFound(
            f"no run is recorded under {runs_home()}",
            hint="record one: jaxscope run train.py",
            slug="no-runs",
        )
    assert run_name is not None
    path = Path(run_name)
    if _is_run(path):
        return RunDir(path)
    if "/" in run_name and not path.is_dir():
        inside = _within(run_name)
        if inside is not None:
            return inside
    named = [r for r in runs if run_name == r.path.name] or [r for r in runs if run_name == r.name]
    if named:
        return named[-1]
    begun = [r for r in runs if r.path.name.startswith(run_name)]
    if len(begun) > 1:
        shown = ", ".join(r.path.name for r in begun[-MOST_NAMED:])
        more = f" and {len(begun) - MOST_NAMED} more" if len(begun) > MOST_NAMED else ""
        raise RunNotFound(
            f"{run_name!r} is the beginning of {len(begun)} names of runs",
            hint=f"give the whole name of one: {shown}{more}",
            slug="run-ambiguous",
        )
    if begun:
        return begun[0]
    raise _not_found(run_name, runs)


def _not_found(run_name: str, runs: list[RunDir]) -> RunNotFound:
    """Return the RunNotFound error for ``run_name``, which is the name of no run. Its hint has the similar
    names among ``runs``."""
    if Path(run_name).is_dir():
        return RunNotFound(
            f"{run_name} is a directory, but not a jaxscope run (no meta.json in it)",
            hint="see what is recorded: jaxscope runs",
            slug="not-a-run",
        )
    import difflib

    near = difflib.get_close_matches(run_name, [r.path.name for r in runs] + [r.name for r in runs], 3, 0.6)
    return RunNotFound(
        f"no run called {run_name!r} under {runs_home()}",
        hint="did you mean " + ", ".join(dict.fromkeys(near)) + "?"
        if near
        else "see what is recorded: jaxscope runs",
        slug="run-not-found",
    )


def _within(run_name: str) -> RunDir | None:
    """Return the run that is inside another run and has the address ``run_name``, ``RUN/NAME``. Return None
    if RUN cannot be found.

    Raises:
      RunNotFound: the run RUN exists, but not exactly one run in it is called NAME or begins with NAME.
    """
    for at in (i for i, c in enumerate(run_name) if c == "/"):
        head, tail = run_name[:at], run_name[at + 1 :].strip("/")
        if _is_run(Path(head)):
            parent = RunDir(Path(head))
        elif head == "latest":
            parent = find()
        elif head and "/" not in head:
            try:
                parent = find(head)
            except RunNotFound:
                return None
        else:
            continue
        every = [parent, *sub_runs(parent), *rank_runs(parent)]
        names = {id(r): {label_of(r), *([] if r is parent else [r.path.name])} - {""} for r in every}
        for fits in (str.__eq__, str.startswith):
            found = [r for r in every if tail and any(fits(name, tail) for name in names[id(r)])]
            if len(found) == 1:
                return found[0]
        have = [_name_within(r, every) for r in every if names[id(r)]]
        raise RunNotFound(
            f"no run called {tail!r} within {parent.path.name}",
            hint=f"within it: {', '.join(have)}"
            if have
            else "this run has no runs within it: leave out / and what follows",
            slug="run-not-found",
        )
    return None


def _name_within(run: RunDir, every: Sequence[RunDir]) -> str:
    """Return the name by which a user selects ``run``, one of the runs ``every`` (a run and the runs inside
    it): its ``--vary`` settings (``MESH=4x4``) if they are printable and no other run in ``every`` has them,
    else the directory's name."""
    label = label_of(run)
    alone = parent_of(run) is None or sum(label_of(r) == label for r in every) == 1
    return label if label.isprintable() and label and alone else run.path.name


def label_of(run: RunDir) -> str:
    """Return the environment variables and flags that ``--vary`` set for ``run``, as text: ``MESH=4x4
    --remat=full``. The text is empty if ``--vary`` set none."""
    return " ".join(f"{name}={value}" for name, value in run.settings)
