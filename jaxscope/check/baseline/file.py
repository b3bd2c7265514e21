"""Read and write baseline files (figures of a run that later runs are compared with). They are JSON with
sorted keys and one value per line, so that git can merge and compare them.

The reader checks all values, because a file may have been merged by hand or come from another person.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from jaxscope.check.baseline.schema import SCHEMA, Baseline
from jaxscope.errors import JaxscopeError
from jaxscope.log import files
from jaxscope.model.metrics import TOLERANCE

NAME = "jaxscope-baseline.json"
MAX_BYTES = 16 << 20
MOST = 1 << 62  # a larger number is a mistake
_AGAIN = "write it again from a good run: jaxscope check --update-baseline"


def _again(name: str) -> str:
    return _AGAIN if name == NAME else f"{_AGAIN} --baseline {shlex.quote(name)}"


class BaselineError(JaxscopeError):
    """A baseline file cannot be read, or must not be written. ``jaxscope check`` then ends with exit code
    2."""


class _Version(msgspec.Struct):
    jaxscope_baseline: int | None = None


def dumps(baseline: Baseline) -> str:
    """Return ``baseline`` as JSON in ASCII, with sorted keys and a newline at the end."""
    data: dict[str, Any] = msgspec.to_builtins(baseline)
    data["jaxscope_baseline"] = baseline.jaxscope_baseline  # msgspec omits it if it is the default
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def loads(data: bytes, name: str = NAME) -> Baseline:
    """Parse ``data``, the bytes of a baseline file. Error messages call the file ``name``.

    Raises:
      BaselineError: the file is no baseline, is damaged, has another format version, or contains impossible
        figures.
    """
    if any(line.startswith((b"<<<<<<< ", b">>>>>>> ")) for line in data.splitlines()):
        raise BaselineError(
            f"{name} contains conflict markers of an unfinished merge",
            hint="keep either side, then " + _again(name),
            slug="baseline-merge",
        )
    try:
        version = msgspec.json.decode(data, type=_Version).jaxscope_baseline
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as e:
        raise _damaged(name, e) from e
    if version is None:
        raise BaselineError(
            f"{name} is not a baseline of jaxscope: it has no jaxscope_baseline",
            hint=f"name another file with --baseline, or {_again(name)}",
            slug="baseline-foreign",
        )
    if version != SCHEMA:
        newer = version > SCHEMA
        raise BaselineError(
            f"{name} has version {version} of the format; this jaxscope reads version {SCHEMA}",
            hint="use the jaxscope that wrote it, or " + _again(name) if newer else _again(name),
            slug="baseline-version",
        )
    try:
        found = msgspec.json.decode(data, type=Baseline)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as e:
        raise _damaged(name, e) from e
    _check(found, name)
    return found


def _damaged(name: str, error: Exception) -> BaselineError:
    return BaselineError(
        f"{name} cannot be read: {error}",
        hint="restore it (git checkout), or " + _again(name),
        slug="baseline-damaged",
    )


def _check(baseline: Baseline, name: str) -> None:
    """Raise BaselineError if a number in ``baseline`` is negative or too large, or a tolerance is unknown."""
    for key, share in baseline.tolerance.items():
        if key not in TOLERANCE:
            raise BaselineError(
                f"{name}: there is no tolerance for {key!r}",
                hint=f"tolerances are known for {', '.join(TOLERANCE)}",
                slug="baseline-tolerance",
            )
        if not 0 <= share <= 10:
            raise BaselineError(
                f"{name}: the tolerance {share} for {key} is out of range",
                hint='it is a share from 0 to 10, for example "memory": 0.05',
                slug="baseline-tolerance",
            )
    for path, n in _figures(msgspec.to_builtins(baseline)):
        if not 0 <= n <= MOST:
            raise BaselineError(
                f"{name}: {path} is {n}, which is impossible",
                hint="restore it (git checkout), or " + _again(name),
                slug="baseline-damaged",
            )


def _figures(value: Any, path: str = "") -> list[tuple[str, int]]:
    """Return (path, integer) for each integer in JSON data: ``{"a": {"b": 3}}`` -> ``[("a.b", 3)]``."""
    if isinstance(value, int) and not isinstance(value, bool):
        return [(path, value)]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for k, v in items for found in _figures(v, f"{path}.{k}" if path else str(k))]


def read(path: Path) -> Baseline:
    """Read the baseline file ``path``.

    Raises:
      BaselineError: the file cannot be read or is too large, or ``loads`` cannot parse it.
    """
    try:
        if not path.is_file():  # reading a pipe would block
            missing = not path.exists()
            raise BaselineError(
                f"there is no baseline at {path}" if missing else f"{path} is not a file",
                hint="write one from the run: jaxscope check --update-baseline --baseline "
                + shlex.quote(str(path))
                if missing
                else "name a file with --baseline",
                slug="baseline-missing",
            )
        with files.open_regular(path) as f:
            data = f.read(MAX_BYTES + 1)
    except OSError as e:
        raise BaselineError(
            f"the baseline {path} cannot be read: {e.strerror or e}", slug="baseline-unreadable"
        ) from e
    except ValueError as e:  # a null byte in the name
        raise BaselineError(f"{str(path)!r} is not a file name", slug="baseline-unreadable") from e
    if len(data) > MAX_BYTES:
        raise BaselineError(
            f"{path} is larger than {MAX_BYTES >> 20} MiB, so it cannot be a baseline",
            hint="name another file with --baseline",
            slug="baseline-too-large",
        )
    return loads(data, path.name)


def looks_like_one(path: Path) -> bool:
    """Return whether the file ``path`` contains ``"jaxscope_baseline"``, so that it is a baseline, even if
    damaged. Only such a file may be overwritten."""
    try:
        with files.open_regular(path) as f:
            return b'"jaxscope_baseline"' in f.read(MAX_BYTES)
    except (OSError, ValueError):
        return False


def permitted(environ: Mapping[str, str]) -> None:
    """Raise BaselineError if the environment variable CI is not empty, ``0`` or ``false``."""
    # Nobody would review a baseline written in CI.
    if environ.get("CI", "").casefold() not in ("", "0", "false"):
        raise BaselineError(
            f"the baseline is not updated in CI (CI={environ['CI']})",
            hint="update it where you can review the change, and commit it: jaxscope check --update-baseline",
            slug="baseline-in-ci",
        )


def write(path: Path, baseline: Baseline, environ: Mapping[str, str]) -> None:
    """Write ``baseline`` to the file ``path``, completely or not at all. ``environ`` are the environment
    variables.

    Raises:
      BaselineError: the environment variable CI forbids it (``permitted``), or ``path`` cannot be written.
    """
    permitted(environ)
    try:
        files.make_directory(path.parent, parents=True, mode=files.SHARED_DIRECTORY)
        files.write(path, dumps(baseline).encode("ascii"), mode=files.SHARED)
    except (OSError, ValueError) as e:
        reason = e.strerror if isinstance(e, OSError) else str(e)
        raise BaselineError(f"cannot write the baseline {path}: {reason}", slug="unwritable") from e
