"""``jaxscope check``: what was asked of a run, and whether it holds. For CI: the exit code says it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, TextIO

from jaxscope.cli import config
from jaxscope.cli.output import chosen
from jaxscope.cli.progress import reading
from jaxscope.errors import UsageError

if TYPE_CHECKING:
    from jaxscope.log.store import RunDir
    from jaxscope.model.run import Run
    from jaxscope.schema.findings import Finding

CLEAN, FAILED = 0, 1  # 2: wrong usage, or an error of ours

DESCRIPTION = """\
Hold a recorded run against what you allow: no recompile after step N, budgets for compilations, seconds,
collectives and memory ([tool.jaxscope.check] in pyproject.toml). Where nothing is asked for, the findings of
the run are what is checked.

The exit code is 0 where everything holds, 1 where something does not, 2 for wrong usage. What is not known is
said; with --strict it fails.
"""
EXAMPLES = """\
examples:
  jaxscope check                              the latest run, with the limits of pyproject.toml
  jaxscope check --no-recompiles-after 2      everything is to be compiled within the first two steps
  jaxscope check --no-recompiles-after 0      nothing is to be compiled at all
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
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Check, print what was found, say it with the exit code."""
    from jaxscope.model.load import load

    asked = wishes({key: getattr(args, key.replace("-", "_"), None) for key in config.OPTIONS["check"]})
    directory = chosen(args.run)
    with reading(f"reading {directory.path.name}") as progress:
        run = load(directory, progress)
    found = findings(run, asked)
    deliver_text(run, found, sys.stdout)
    return FAILED if failing(found, strict=bool(asked.get("strict"))) else CLEAN


def holds(directory: RunDir, asked: dict[str, Any]) -> bool:
    """Does what was asked for hold in the run that has just ended? What does not is said on stderr.

    Raises:
      UsageError: it cannot be checked in this run.
    """
    from jaxscope.model.load import load

    run = load(directory)
    found = findings(run, asked)
    wrong = failing(found, strict=bool(asked.get("strict")))
    if found:
        deliver_text(run, found, sys.stderr)
    return not wrong


def wishes(given: dict[str, Any]) -> dict[str, Any]:
    """What is asked for, under the names of [tool.jaxscope.check]; what is not asked for is left out."""
    loaded = config.load()
    found = {key: loaded.get("check", key, given.get(key)) for key in config.OPTIONS["check"]}
    return {key: value for key, value in found.items() if value is not None}


def findings(run: Run, wishes: dict[str, Any]) -> list[Finding]:
    """What does not hold, errors first; where nothing is asked for, what the rules find.

    Raises:
      UsageError: what is asked for cannot be checked in this run (its steps are not known).
    """
    from jaxscope.rules import budgets, gate, limits, registry

    found: list[Finding] = []
    after = wishes.get("no-recompiles-after")
    allowed = limits.of(wishes)
    functions = wishes.get("functions") or {}
    if after is None and not allowed and not functions:
        return registry.findings(run)
    if after is not None:
        found += gate.recompiles_after(run, after, allow_cache_hits=bool(wishes.get("allow-cache-hits")))
    found += budgets.over(run, allowed, functions)
    return registry.in_order(found)


def failing(found: list[Finding], *, strict: bool) -> list[Finding]:
    """Those that make a check fail: errors and warnings; with ``strict`` notes too."""
    from jaxscope.schema.findings import NOTE

    return [f for f in found if strict or f.severity != NOTE]


def deliver_text(run: Run, found: list[Finding], stream: TextIO) -> None:
    """The findings on ``stream``, how many there are on stderr."""
    from jaxscope.report import lines
    from jaxscope.report.console import console
    from jaxscope.report.findings import entry
    from jaxscope.report.phrases import Places, count

    places = Places(run, whole=True)
    lines.put(console(stream), (line for f in found for line in entry(f, places)))
    sys.stderr.write(f"{count(len(found), 'finding')}\n" if found else "no findings\n")


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
