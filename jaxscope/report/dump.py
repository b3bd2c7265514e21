"""Write the recorded StableHLO, HLO and cache keys of compilations to files: ``train_step.4.stablehlo.mlir``,
``train_step.4.hlo.txt``, ``train_step.4.key.json``.

No file is written outside the given directory, whatever names the program's functions have.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from jaxscope.errors import JaxscopeError, LogError
from jaxscope.log import files
from jaxscope.log.store import RunDir, clean_name
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.present.text import function_name
from jaxscope.report.json_report import compilation_json, dumps, function_json

STAGES = (("stablehlo", "stablehlo.mlir"), ("hlo", "hlo.txt"))  # stage -> end of the file name


class Written(msgspec.Struct, frozen=True):
    """The files that were written for one compilation.

    Attributes:
      function, number: the name of the function, and the number of the compilation among those of the
        function.
      files: the files that were written.
      absent: the texts (``stablehlo``, ``hlo``) that the run does not have, each with the reason:
        ``hlo: this call was not compiled``.
    """

    function: str
    number: int
    files: list[Path]
    absent: list[str]


class Names:
    """Chooses a file name for each function: without unsafe characters, and not the same as that of another
    function."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._of: dict[str, str] = {}

    def stem(self, f: Function) -> str:
        """Return the first part of the file names for the function ``f``: ``train_step``, or
        ``train_step-line88`` if another function has the first name already. Every call with the same
        function returns the same text."""
        known = self._of.get(f.id)
        if known is None:
            name = clean_name(f.display_name.replace("<lambda>", "lambda"))
            name = name.lstrip(".") or "function"
            known = name
            for tail in (
                f"line{f.seen.line}" if f.seen.line is not None else "2",
                *map(str, range(2, 100_000)),
            ):
                # Names that differ only in upper and lower case count as equal, because they are one file on
                # macOS.
                if known.casefold() not in self._taken:
                    break
                known = f"{name}-{tail}"
            self._taken.add(known.casefold())
            self._of[f.id] = known
        return known


def dump(
    run: Run, directory: RunDir, functions: Sequence[Function], out: Path, number: int | None = None
) -> Iterator[Written]:
    """Write the StableHLO, HLO and cache key of the compilations of ``functions`` to files in the directory
    ``out``, and yield what was written for each compilation. The result is a generator: it writes the files
    of a compilation only when the caller takes that entry.

    Args:
      number: write only the compilation with this number of each function; None: write all.

    Raises:
      JaxscopeError: ``out`` or a file in it cannot be written.
    """
    try:
        files.make_directory(out, parents=True, mode=files.SHARED_DIRECTORY)
    except OSError as e:
        raise JaxscopeError(
            f"cannot write to {out}: {e.strerror}",
            hint="choose another directory with -o",
            slug="dump-unwritable",
        ) from e
    names = Names()
    for f in functions:
        for n, c in run.numbered(f):
            if number is None or n == number:
                yield _one(run, directory, f, n, c, out / f"{names.stem(f)}.{n}")


def _one(run: Run, directory: RunDir, f: Function, n: int, c: Compilation, base: Path) -> Written:
    """Write the files of the compilation ``c``, which has the number ``n`` among those of ``f``: the texts of
    its program, also as lowered and compiled for targets (machines given with ``--target``), and its cache
    key. Each file name is that of ``base`` with an ending."""
    written: list[Path] = []
    absent: list[str] = []
    program = run.programs.get(c.program) if c.program else None
    for stage, ending in STAGES:
        blob = program.texts.get(stage) if program is not None else None
        if blob is None:
            absent.append(f"{stage}: {why_not(run, c, stage)}")
            continue
        try:
            text = directory.data(blob)
        except LogError as e:
            absent.append(f"{stage}: {e.message}")
            continue
        written.append(_write(base.with_name(f"{base.name}.{ending}"), text))
    for p in run.retargeted.values():
        for stage, ending in STAGES if c in p.compilations else ():
            if stage in p.texts:
                with contextlib.suppress(
                    LogError
                ):  # a damaged text is reported elsewhere; the other texts are still written
                    text = directory.data(p.texts[stage])
                    name = f"{base.name}.{_file_name(p.target)}.{ending}"
                    written.append(_write(base.with_name(name), text))
    record = {"compilation": compilation_json(run, c, n), "function": function_json(f)}
    written.append(
        _write(base.with_name(f"{base.name}.key.json"), dumps(record).encode("utf-8", "surrogatepass"))
    )
    return Written(function_name(f), n, written, absent)


def _file_name(target: str | None) -> str:
    """Return the part of a file name that stands for a target (a machine to compile for): ``2*v5e:4x4`` gives
    ``2xv5e-4x4``; None gives ``target``. Unsafe characters are replaced, because the log may come from an
    attacker."""
    return re.sub(r"[^A-Za-z0-9.-]", "_", (target or "target").replace("*", "x").replace(":", "-"))[:60]


def why_not(run: Run, c: Compilation, stage: str) -> str:
    """Return why the run lacks a text of the program of the call ``c``: ``this call was not lowered``.
    ``stage`` names the missing text: ``stablehlo`` or ``hlo``."""
    phase = "lowered" if stage == "stablehlo" else "compiled"
    if c.phase is not None and phase not in c.reached:
        return "the log ends before this text was produced"
    if c.failed is not None and phase not in c.reached:
        return f"the {c.failed.phase} phase ended in an exception"
    if phase not in c.reached:
        return f"this call was not {phase}"
    started = c.process.started
    ir = started.ir if started is not None else None
    if ir is not None and ir not in ("all", stage):
        return f"not kept: recorded with --ir {ir}"
    if not c.function.user:
        return "not kept: texts are kept for functions of yours, not for library-internal and eager ones"
    lost = next(
        (d for d in run.degraded if stage in d.seam or d.seam in ("lower_frame", "compile_frame", "log")),
        None,
    )
    return f"not captured: {lost.reason}" if lost is not None else "not captured"


def _write(path: Path, content: bytes) -> Path:
    """Write ``content`` to the file ``path``, completely or not at all, and return ``path``. A symbolic link
    at ``path`` is replaced; its target stays unchanged.

    Raises:
      JaxscopeError: the file cannot be written.
    """
    try:
        files.write(path, content, mode=files.SHARED)
    except OSError as e:
        raise JaxscopeError(
            f"cannot write {path}: {e.strerror}",
            hint="choose another directory with -o",
            slug="dump-unwritable",
        ) from e
    return path
