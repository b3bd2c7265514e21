"""``jaxscope check``: check a run against limits and a baseline, and report the result with the exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from jaxscope.cli import config
from jaxscope.cli.output import chosen, job_of, read_run
from jaxscope.errors import UsageError
from jaxscope.log import store
from jaxscope.present.escape import escape

if TYPE_CHECKING:
    from jaxscope.check.plan import Plan, Result
    from jaxscope.log.store import RunDir
    from jaxscope.model.ranks import Job
    from jaxscope.model.run import Run
    from jaxscope.report.variants import Variant
    from jaxscope.schema.findings import Finding

CLEAN, FAILED = 0, 1  # 2: wrong usage, an internal error, or an option that cannot be checked in this run
FOR_PEOPLE = ("full", "concise")

DESCRIPTION = """\
Check a recorded run in up to three ways:

  - Nothing is compiled after step N.
  - Limits on compilations, seconds, collectives and memory
    ([tool.jaxscope.check] in pyproject.toml).
  - A baseline: a file in your repository with figures of your
    compiled functions (jaxscope-baseline.json, if it exists).

Without a limit or a baseline, the findings of the run are checked. A program always fails the check if it
does not fit into the memory of a target for which it was compiled (run --target). With --target, limits on
programs apply to the programs compiled for that target instead of those that ran.

Baselines from another JAX minor version, platform or device count are skipped with a note (an error with
--strict).

The exit code is 0 if all checks pass, 1 if one fails, 2 if the command line is wrong or an option cannot be
checked in this run (the others are still checked). A figure that the run does not contain gives a note (an
error if the recording is incomplete). With --strict, notes count as failures. Two kinds of notes never do:
improvements, and notes that depend on measured seconds, because another run may not have them.
"""
EXAMPLES = """\
examples:
  jaxscope check                              the latest run, with the limits of pyproject.toml
  jaxscope check --no-recompiles-after 2      everything must compile within the first two steps
  jaxscope check --no-recompiles-after 0      nothing may compile at all
  jaxscope check --update-baseline            write the baseline from the latest run; commit the file
  jaxscope check --target v5e:16x16           check the programs that were compiled for v5e:16x16
  jaxscope check --output-format github       annotations on a pull request
  jaxscope check --output-format markdown     a table for a comment or a job's summary
  jaxscope check --select JX1 --ignore JX107  findings JX1.., except those for static values
  jaxscope run --check no-recompiles-after=2 train.py     record and check in one command
"""


def add_parser(subparsers: Any) -> None:
    """Add the command ``jaxscope check`` and its options to ``subparsers`` (of argparse)."""
    parser = subparsers.add_parser(
        "check", help="check a run against limits and a baseline", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument(
        "run", nargs="?", metavar="RUN", help="a run's name, its directory, or latest (default)"
    )
    _add_checks(parser)
    _add_output(parser)
    parser.set_defaults(handler=handle)


def _add_checks(parser: argparse.ArgumentParser) -> None:
    """Add the options that determine what is checked."""
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
        help="ignore programs that were loaded from the persistent cache",
    )
    parser.add_argument("--strict", action="store_true", default=None, help="notes count as failures, too")
    parser.add_argument(
        "--baseline",
        metavar="FILE",
        help="compare with this file (default: jaxscope-baseline.json in the project's directory)",
    )
    parser.add_argument(
        "--update-baseline",
        action="store_true",
        help="write the baseline from this run, then check against it (not in CI)",
    )
    parser.add_argument(
        "--target",
        metavar="TARGET",
        action="append",
        help="check the programs compiled for TARGET (run --target) against the limits, instead of the"
        " programs that ran (repeatable)",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    """Add the options that determine which findings are reported, and how."""
    for name, what in (("select", "report only these findings"), ("ignore", "do not report these findings")):
        parser.add_argument(
            f"--{name}",
            metavar="JX...",
            type=_codes,
            action="extend",
            help=f"{what}: codes, prefixes of codes, or names of rules",
        )
    parser.add_argument(
        "--output-format",
        choices=config.FORMATS,
        metavar="FORMAT",
        help=f"format of stdout: {', '.join(config.FORMATS)} (default: full)",
    )


def handle(args: argparse.Namespace) -> int:
    """Run ``jaxscope check``: check the run (after writing the baseline, with ``--update-baseline``) and
    print the findings. Return 0 if the run passes, else 1.

    Raises:
      JaxscopeError: there is no such run, or the baseline file cannot be read or written.
      UsageError: the options are invalid, or one of them cannot be checked in this run. In the second case,
        the findings of the other options are printed first.
    """
    given = {key: getattr(args, key.replace("-", "_"), None) for key in config.OPTIONS["check"]}
    plan = _plan(options(given))
    plan.filter()  # raises before anything is read
    if args.update_baseline:
        from jaxscope.check.baseline import file

        file.permitted(os.environ)
    directory = chosen(args.run)
    _same_program(args.run, directory)
    run = read_run(directory)
    job = job_of(args.run, directory)
    if args.update_baseline:
        from jaxscope.present.text import count

        path, functions = plan.update_baseline(run, directory)
        sys.stderr.write(f"{path}: {count(functions, 'function')} written; commit it\n")
    result = _checked(plan, run, directory, job=job)
    wrong = result.failing(strict=bool(plan.options.get("strict")))
    how = plan.options.get("output-format") or "full"
    # Formats for people have the unchecked options on stderr; other formats need them as findings.
    unchecked = [] if how in FOR_PEOPLE else [_not_checked(e) for e in result.unchecked]
    failed = bool(wrong or result.unchecked)
    sys.stdout.write(written(run, directory, [*unchecked, *result.findings], how, failed=failed))
    _summary(result.findings)
    _raise_unchecked(result)
    return FAILED if wrong else CLEAN


def _plan(options: dict[str, Any]) -> Plan:
    from jaxscope.check.plan import Plan

    path = config.load().path
    return Plan(options, path.parent if path is not None else None)


def _checked(
    plan: Plan,
    run: Run,
    directory: RunDir,
    parts: Sequence[Variant] | None = None,
    job: Job | None = None,
) -> Result:
    result = plan.check(run, directory, parts, job)
    if result.baseline is not None:
        setting = f" ({escape(result.setting)})" if result.setting else ""
        sys.stderr.write(f"compared with {result.baseline}{setting}\n")
    return result


def _raise_unchecked(result: Result) -> None:
    from jaxscope.check.plan import one_error

    if result.unchecked:
        raise one_error(result.unchecked)


def _not_checked(e: UsageError) -> Finding:
    from jaxscope.check import unknown
    from jaxscope.schema.messages import message

    return unknown.unchecked(message("not-checked", error=e.message), fix=e.hint)


def _same_program(run_name: str | None, directory: RunDir) -> None:
    """Check that ``latest`` on the command line means a run of the program that the user ran last. ``latest``
    is the newest run that recorded anything; newer runs that recorded nothing are skipped.

    Args:
      run_name: the run on the command line; nothing is checked unless it is ``latest``, empty or None.
      directory: the directory of the run that ``latest`` means.

    Raises:
      UsageError: the newest run recorded nothing and is known to be of another program.
    """
    if run_name not in (None, "", "latest"):
        return
    newest = store.one_process(store.all_runs()[-1])
    this, other = _program(directory), _program(newest)
    if newest.path == directory.path or not (this and other) or this == other:
        return
    raise UsageError(
        f"check: the latest run, {newest.path.name}, recorded nothing; the latest run that recorded"
        f" something, {directory.path.name}, is of another program",
        hint=f"to check {directory.path.name}: jaxscope check {directory.path.name}",
        slug="check-nothing-recorded",
    )


def passes(directory: RunDir, options: dict[str, Any], parts: Sequence[Variant] | None = None) -> bool:
    """Check a run that has just ended, and print the findings on stderr. Return whether the run passes.

    Args:
      options: the options of the check, by their names in ``[tool.jaxscope.check]`` of pyproject.toml.
      parts: the run and the runs inside its directory (``run --vary``), if they are already read; None: read
        them.

    Raises:
      UsageError: some options cannot be checked in this run. The findings of the other options are printed
        first.
    """
    from jaxscope.model.load import load

    run = load(directory) if parts is None else parts[0].run
    result = _checked(_plan(options), run, directory, parts)
    if result.findings:
        deliver_text(run, result.findings, sys.stderr)
    _raise_unchecked(result)
    return not result.failing(strict=bool(options.get("strict")))


def options(command_line: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the check, as name in ``[tool.jaxscope.check]`` -> value. ``command_line`` has
    the options on the command line. An option that is None or missing there comes from its environment
    variable, or else from pyproject.toml. There, a relative ``baseline`` is relative to the directory of this
    file. Options without a value are not in the result."""
    loaded = config.load()
    found = {key: loaded.get("check", key, command_line.get(key)) for key in config.OPTIONS["check"]}
    configured = loaded.values.get("check", {}).get("baseline")
    if command_line.get("baseline") is None and configured is not None and found["baseline"] == configured:
        found["baseline"] = str(loaded.path.parent / configured) if loaded.path is not None else configured
    return {key: value for key, value in found.items() if value is not None}


def _program(directory: RunDir) -> list[str]:
    """Return the words that name the program of a run, such as ``["train.py"]`` or ``["-m",
    "package.train"]``. Empty if unknown."""
    from jaxscope.check.plan import argv_of

    words = argv_of(directory)
    return words[: 2 if words[:1] in (["-m"], ["-c"]) else 1]


def written(run: Run, directory: RunDir, findings: list[Finding], output_format: str, *, failed: bool) -> str:
    """Return ``findings`` as text in the format ``output_format``, one of ``config.FORMATS``: ``json``,
    ``github``, ... Some formats state whether the check ``failed``."""
    from jaxscope.model import sources
    from jaxscope.report.formats import concise, data, full, github, gitlab, junit, markdown, sarif
    from jaxscope.report.formats.placed import place
    from jaxscope.rules import registry

    main = run.main
    cwd = main.started.cwd if main is not None and main.started is not None else ""
    bases = [str(store.here()), cwd]
    placed = place(findings, bases)
    rules = registry.rules()
    renders = {
        "full": lambda: full.render(placed, sources.of(run)),
        "concise": lambda: concise.render(placed),
        "json": lambda: data.render(placed, run=directory.name, failed=failed),
        "github": lambda: github.render(placed, {code: r.name for code, r in rules.items()}),
        "gitlab": lambda: gitlab.render(placed),
        "markdown": lambda: markdown.render(placed, run=directory.name, failed=failed),
        "sarif": lambda: sarif.render(placed, rules, bases),
        "junit": lambda: junit.render(placed),
    }
    return renders[output_format]()


def deliver_text(run: Run, findings: list[Finding], stream: TextIO) -> None:
    """Print the findings on ``stream`` as text for people, and their number on stderr."""
    from jaxscope.present.text import Places
    from jaxscope.report import layout
    from jaxscope.report.console import console
    from jaxscope.report.findings import entry

    places = Places(run, whole=True)
    layout.put(console(stream), (line for f in findings for line in entry(f, places)))
    _summary(findings)


def _summary(findings: list[Finding]) -> None:
    from jaxscope.present.text import count
    from jaxscope.schema.findings import NOTE

    notes = sum(f.severity == NOTE for f in findings)
    parts = [count(len(findings) - notes, "finding")] if len(findings) > notes else ["no findings"]
    parts += [count(notes, "note")] if notes else []
    sys.stderr.write(", ".join(parts) + "\n")


def _codes(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _count(text: str) -> int:
    try:
        n = int(text)
    except ValueError:
        n = -1
    if n < 0:
        raise UsageError(
            f"check: --no-recompiles-after {text}: the step must be 0, 1, 2, ...",
            hint="0 allows no compilation; 1 allows those of the first step",
            slug="gate-after",
        )
    return n
