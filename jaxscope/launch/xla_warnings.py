"""Find XLA's warnings in a copy of the program's stderr, and write them into the recording as CompilerWarned
events.

XLA prints some warnings only to stderr. The modules ``tee`` and ``keeper`` write the output to its
destination before they search the output, so that no error of the search affects the output.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from jaxscope.log.store import RunDir

if TYPE_CHECKING:
    from jaxscope.log.writer import Writer

# The warnings that are recorded. spmd_partitioner.cc prints them with absl's logging, each in a single write.
# JAX 0.10.2 and 0.12.0.1 print
# "W1121 14:11:54.249111    2316 spmd_partitioner.cc:656] [SPMD] Involuntary full rematerialization. The ...",
# before 2025 "2024-12-21 17:32:07.609345: E external/xla/.../spmd_partitioner.cc:613] [spmd] Involuntary
# ...".
MARK = b"nvoluntary full rematerialization"
_ABSL = re.compile(
    rb"[IWEF](?P<mon>\d\d)(?P<d>\d\d) (?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)\.(?P<us>\d{6}) +(?P<tid>\d{1,10}) "
)
_OLD = re.compile(
    rb"(?P<y>\d{4})-(?P<mon>\d\d)-(?P<d>\d\d) (?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)\.(?P<us>\d{6}): "
)
MAX_LINE = 1 << 18  # a warning can contain a tuple shape of 100 KB, and the source line comes after it
MAX_WARNINGS = 2000
OLDEST_NS = 60 * 10**9  # a time stamp that is older than this is not XLA's
WARNING_LEVEL = 2  # TF_CPP_MIN_LOG_LEVEL from which warnings are not printed


class Listener:
    """Finds XLA's warnings in the program's stderr, and writes an event for each into the recording ``run``,
    at most MAX_WARNINGS. The process that copies stderr uses this class. ``env`` is the program's
    environment."""

    def __init__(self, run: RunDir, env: Mapping[str, str]) -> None:
        self._rest = b""
        self._skipping = False  # in the middle of a line that is too long
        self._heard = 0
        self._writer: Writer | None = None
        with contextlib.suppress(Exception):
            from jaxscope.log.writer import Writer
            from jaxscope.schema.events import StderrWatched

            if run.events.is_dir():
                first = StderrWatched(muted=_muted(env))
                self._writer = Writer(run, lambda forked: first)
                self._writer.open()

    def search(self, data: bytes) -> None:
        """Search ``data``, the next bytes of the program's stderr, for warnings. Raises no exception."""
        if self._writer is None:
            return
        try:
            self._search(data)
        except Exception:  # stderr must be copied whatever happens here
            self._writer = None

    def _search(self, data: bytes) -> None:
        """Split ``data``, the next bytes of the program's stderr, into lines, and write an event for each
        warning."""
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = self._rest + lines[0]
            if self._skipping:
                lines, self._skipping = lines[1:], False
            self._rest = b""
        self._rest += rest
        if len(self._rest) > MAX_LINE:
            self._skipping, self._rest = True, b""
        for line in lines:
            if MARK in line:
                self._record(line)

    def _record(self, line: bytes) -> None:
        """Write an event for the warning in ``line``. A line without XLA's time stamp is ignored."""
        from jaxscope.schema.events import CompilerWarned

        # The line may begin with text that the program itself has printed without a line break.
        before = line.find(MARK)
        stamps = [*_ABSL.finditer(line, 0, before), *_OLD.finditer(line, 0, before)]
        found = max(stamps, key=lambda m: m.start(), default=None)
        if found is None or self._heard >= MAX_WARNINGS or self._writer is None:
            return
        self._heard += 1
        now = time.time_ns()
        self._writer.emit(
            CompilerWarned(
                t_ns=_stamp(found.groupdict(), now) or now,
                text=line[found.start() :].decode("utf-8", "replace"),
                program_pid=_process_of(found.groupdict().get("tid")),
            )
        )


def _muted(env: Mapping[str, str]) -> str | None:
    """Return the setting in ``env`` that keeps XLA from printing warnings: ``TF_CPP_MIN_LOG_LEVEL=2``. None
    if there is none."""
    level = env.get("TF_CPP_MIN_LOG_LEVEL", "")
    return f"TF_CPP_MIN_LOG_LEVEL={level}" if level.isdecimal() and int(level[:4]) >= WARNING_LEVEL else None


def _stamp(fields: dict[str, bytes], now: int) -> int | None:
    """Return the time of XLA's time stamp in a line, in nanoseconds since 1970. None if this time is not in
    the last minute before ``now``, so that XLA has not printed the line just now.

    Args:
      fields: the parts of the stamp (month, day, hour, ...) by the names of the groups in ``_ABSL`` or
        ``_OLD``. The stamp is in local time, and has no year in ``_ABSL``.
      now: the present time in nanoseconds since 1970.
    """
    f = {k: int(v) for k, v in fields.items()}
    year = time.localtime(now / 1e9).tm_year
    for y in (f.get("y", year), year - 1):  # printed before midnight of New Year
        try:
            at = time.mktime((y, f["mon"], f["d"], f["h"], f["m"], f["s"], 0, 0, -1))
        except (ValueError, OverflowError):
            continue
        t = int(at) * 10**9 + f["us"] * 1000
        if -(10**9) < now - t < OLDEST_NS:
            return min(t, now)
    return None


def _process_of(tid: bytes | None) -> int | None:
    """Return the id of the process that the thread ``tid`` belongs to. None if the thread has ended, if
    ``tid`` is None, or if the system is not Linux."""
    if tid is None:
        return None
    try:
        with open(f"/proc/{int(tid)}/status", "rb") as status:  # noqa: PTH123
            for line in status:
                if line.startswith(b"Tgid:"):
                    return int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return None
