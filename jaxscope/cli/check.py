"""``jaxscope check``: what was asked of a run, and whether it holds. For CI: the exit code says it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from jaxscope.cli import config, held, pinned
from jaxscope.cli.output import chosen
from jaxscope.cli.progress import reading
from jaxscope.errors import UsageError
from jaxscope.log import store

if TYPE_CHECKING:
    from jaxscope.log.store import RunDir
    from jaxscope.model.run import Run
    from jaxscope.report.variants import Variant
    from jaxscope.schema.findings import Finding

CLEAN, FAILED = 0, 1  # 2: wrong usage, an error of ours, or what cannot be checked in this run
FOR_PEOPLE = ("full", "concise")

DESCRIPTION = """\
Hold a recorded run against what you allow: no recompile after step N, budgets for compilations, seconds,
collectives and memory ([tool.jaxscope.check] in pyproject.toml), or against a baseline: a committed file of what
the compiler made of your functions (jaxscope-baseline.json, where there is one). Where nothing is asked for, the
findings of the run are what is checked. What does not fit into a machine that the run was compiled for (run --target)
fails in any case; with --target, limits of programs hold for that machine's programs instead of those that ran.

The exit code is 0 where everything holds, 1 where something does not, 2 for wrong usage and where something that is
asked for cannot be checked in this run (the rest is checked all the same). What is not known is said; with --strict it
fails.
"""
EXAMPLES = """\
examples:
  jaxscope check                              the latest run, with the limits of pyproject.toml
  jaxscope check --no-recompiles-after 2      everything is to be compiled within the first two steps
  jaxscope check --no-recompiles-after 0      nothing is to be compiled at all
  jaxscope check --update-baseline            pin what the latest run compiled, and what became of it; commit the file
  jaxscope check --target v5e:16x16           does what was compiled for it fit, and keep the limits of programs?
  jaxscope check --output-format github       annotations on a pull request; also sarif, junit, json
  jaxscope check --select JX1 --ignore JX107  recompiles, but not those for static values
  jaxscope run --check no-recompiles-after=2 train.py     record and check in one go
"""


def add_parser(subparsers: Any) -> None:
    """Add ``check``."""
    parser = subparsers.add_parser(
        "check", help="hold a run against what is allowed", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument(
        "run", nargs="?", metavar="RUN", help="a run's name, its directory, or latest (default)"
    )
    parser.add_argument(
        "--no-recompiles-after",
        metavar="N",
        type=_count,
        help="nothing may be traced, lowered or compiled after step N; 0: nothing at all",
    )
    parser.add_argument(
        "--allow-cache-hits",
        action="store_true",
        default=None,
        help="compilations that come from the persistent cache do not count",
    )
    parser.add_argument(
        "--strict", action="store_true", default=None, help="notes, and what is not known, fail too"
    )
    parser.add_argument(
        "--baseline",
        metavar="FILE",
        help="compare with this file (default: jaxscope-baseline.json of the project)",
    )
    parser.add_argument(
        "--update-baseline", action="store_true", help="write the baseline from this run first (not in CI)"
    )
    parser.add_argument(
        "--target",
        metavar="TARGET",
        action="append",
        help="hold the programs to the limits that were compiled for it (run --target), not those that ran"
        " (repeatable)",
    )
    for name, what in (("select", "look at these only"), ("ignore", "leave these out")):
        parser.add_argument(
            f"--{name}",
            metavar="JX...",
            type=_codes,
            action="extend",
            help=f"{what}: codes, or how they begin",
        )
    parser.add_argument(
        "--output-format", choices=config.FORMATS, help="of what is written to stdout (default: full)"
    )
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Check, print what was found, say it with the exit code."""
    from jaxscope.model.load import load

    asked = wishes({key: getattr(args, key.replace("-", "_"), None) for key in config.OPTIONS["check"]})
    if args.update_baseline:
        from jaxscope.check.baseline import file

        file.permitted(os.environ)
    held.filter_of(asked)  # which raises what is wrong with it before anything is read
    directory = chosen(args.run)
    _not_of_another_program(args.run, directory)
    with reading(f"reading {directory.path.name}") as progress:
        run = load(directory, progress)
    chosen_codes = held.filter_of(asked, run)
    if args.update_baseline:
        asked["baseline"] = str(pinned.update(run, directory, asked, chosen_codes))
    unchecked: list[UsageError] = []
    found = [*held.findings(run, asked, chosen_codes, directory, unchecked), *held.unfinished(run, directory)]
    wrong = failing(found, strict=bool(asked.get("strict")))
    how = asked.get("output-format") or "full"
    # People read what could not be checked on stderr, beside what is told here; other formats are read without it.
    told = found if how in FOR_PEOPLE else [*map(_not_checked, unchecked), *found]
    sys.stdout.write(written(run, directory, told, how, failed=bool(wrong or unchecked)))
    _summary(found)
    if unchecked:
        raise held.one(unchecked)
    return FAILED if wrong else CLEAN


def _not_checked(e: UsageError) -> Finding:
    from jaxscope.check import gate
    from jaxscope.schema.findings import ERROR

    return msgspec.structs.replace(gate.not_known(f"not checked: {e.message}"), severity=ERROR, fix=e.hint)


def _not_of_another_program(which: str | None, directory: RunDir) -> None:
    """``latest`` passes over runs in which nothing was recorded: of the same program it may.

    Raises:
      UsageError: the newest run is of another program, and has nothing to check.
    """
    if which not in (None, "", "latest"):
        return
    newest = store.all_runs()[-1]
    this, other = _program(directory), _program(newest)
    if newest.path == directory.path or not (this and other) or this == other:
        return
    raise UsageError(
        f"check: nothing is recorded in the newest run, {newest.path.name}; the latest that has something,"
        f" {directory.path.name}, is of another program",
        hint=f"to check that one: jaxscope check {directory.path.name}",
        slug="check-nothing-recorded",
    )


def holds(directory: RunDir, asked: dict[str, Any], parts: Sequence[Variant] | None = None) -> bool:
    """Does what was asked for hold in the run that has just ended? What does not is said on stderr.

    Args:
      parts: the run and those within it, where they have been read.

    Raises:
      UsageError: some of it cannot be checked in this run; what does not hold of the rest has been said.
    """
    from jaxscope.model.load import load

    run = load(directory) if parts is None else parts[0].run
    unchecked: list[UsageError] = []
    found = [
        *held.findings(run, asked, None, directory, unchecked, parts),
        *held.unfinished(run, directory, parts),
    ]
    wrong = failing(found, strict=bool(asked.get("strict")))
    if found:
        deliver_text(run, found, sys.stderr)
    if unchecked:
        raise held.one(unchecked)
    return not wrong


def wishes(given: dict[str, Any]) -> dict[str, Any]:
    """What is asked for, under the names of [tool.jaxscope.check]; what is not asked for is left out."""
    loaded = config.load()
    found = {key: loaded.get("check", key, given.get(key)) for key in config.OPTIONS["check"]}
    in_file = loaded.values.get("check", {}).get("baseline")
    if in_file is not None and given.get("baseline") is None and found["baseline"] == in_file:
        found["baseline"] = pinned.configured(loaded, in_file)
    return {key: value for key, value in found.items() if value is not None}


def _program(directory: RunDir) -> list[str]:
    """The script, or ``-m`` and the module; empty where nobody knows."""
    words = held.argv_of(directory)
    return words[: 2 if words[:1] in (["-m"], ["-c"]) else 1]


def failing(found: list[Finding], *, strict: bool) -> list[Finding]:
    """Those that make a check fail: errors and warnings; with ``strict`` notes too, save good news."""
    from jaxscope.check.baseline import findings as against

    return against.failing(found, strict=strict)


def written(run: Run, directory: RunDir, found: list[Finding], how: str, *, failed: bool) -> str:
    """The findings in one of the formats."""
    from jaxscope.model import sources
    from jaxscope.report.formats import concise, data, full, github, junit, sarif
    from jaxscope.report.formats.placed import place
    from jaxscope.rules import registry

    main = run.main
    cwd = main.started.cwd if main is not None and main.started is not None else ""
    bases = [str(store.here()), cwd]
    placed = place(found, bases)
    rules = registry.rules()
    if how == "json":
        return data.render(placed, run=directory.name, failed=failed)
    if how == "sarif":
        return sarif.render(placed, rules, bases)
    if how == "github":
        return github.render(placed, {code: r.name for code, r in rules.items()})
    if how == "concise":
        return concise.render(placed)
    return junit.render(placed) if how == "junit" else full.render(placed, sources.of(run))


def deliver_text(run: Run, found: list[Finding], stream: TextIO) -> None:
    """The findings on ``stream``, how many there are on stderr."""
    from jaxscope.report import lines
    from jaxscope.report.console import console
    from jaxscope.report.findings import entry
    from jaxscope.report.phrases import Places

    places = Places(run, whole=True)
    lines.put(console(stream), (line for f in found for line in entry(f, places)))
    _summary(found)


def _summary(found: list[Finding]) -> None:
    from jaxscope.report.phrases import count
    from jaxscope.schema.findings import NOTE

    notes = sum(f.severity == NOTE for f in found)
    told = [count(len(found) - notes, "finding")] if len(found) > notes else ["no findings"]
    told += [count(notes, "note")] if notes else []
    sys.stderr.write(", ".join(told) + "\n")


def _codes(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _count(text: str) -> int:
    try:
        n = int(text)
    except ValueError:
        n = -1
    if n < 0:
        raise UsageError(
            f"check: --no-recompiles-after {text}: the step is 0, 1, 2, ...",
            hint="0 allows no compilation at all; 1 allows what the first step compiles",
            slug="gate-after",
        )
    return n
