"""``jaxscope diff``: compare two runs, or two compilations of one function."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

from jaxscope.cli.output import chosen, console_for, deliver, functions, read_run
from jaxscope.errors import RunNotFound, UsageError
from jaxscope.log import ranks as places
from jaxscope.log import remote, store
from jaxscope.log.store import RunDir
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.present.escape import escape

DESCRIPTION = """\
Compare two runs, or two compilations of one function: cache keys, what was traced and compiled and why, and
the operations, fusions, collectives, memory, donation and constants of each program. These differences are
listed by source line where the line is known. The first run or compilation is "before", the second "after".

Functions are matched by file and line, or by name if they moved. Programs are matched by their content, or in
the order in which they were compiled. Seconds are shown, but do not count as a difference. The exit code is
0; with --exit-code it is 1 if anything differs.
"""
EXAMPLES = """\
examples:
  jaxscope diff train-1 train-2                               two runs
  jaxscope diff train-1:train_step train-2:train_step         one function in two runs
  jaxscope diff 'latest:train_step#1' 'latest:train_step#2'   two compilations of one function
  jaxscope diff 'latest:train_step#1' '#2'                    the same, shorter
  jaxscope diff main-run latest --exit-code --format json
"""

OTHERS = 5  # runs named in a hint


class Side(NamedTuple):
    """One of the two things to compare: a whole run, functions of a run, or one compilation.

    Attributes:
      directory: the directory of ``run``.
      functions: the functions of ``run`` to compare; None: all.
      compilation: the compilation to compare; None: the user named none.
    """

    directory: RunDir
    run: Run
    functions: list[Function] | None
    compilation: Compilation | None


def add_parser(subparsers: Any) -> None:
    """Add the command ``jaxscope diff`` and its options to ``subparsers`` (of argparse)."""
    parser = subparsers.add_parser("diff", help="compare two runs", description=DESCRIPTION, epilog=EXAMPLES)
    what = "a run (name, directory or latest), :FUNCTION for one function of it, #n for one compilation"
    parser.add_argument("before", metavar="RUN[:FUNCTION#n]", help=what)
    parser.add_argument(
        "after",
        metavar="RUN[:FUNCTION#m]",
        help="what to compare with the first one",
    )
    parser.add_argument("--all", action="store_true", help="show everything")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 if anything differs")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of stdout")
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Run ``jaxscope diff``: compare two runs or compilations and print the result. Return 1 if they differ
    and ``--exit-code`` is given, else 0.

    Raises:
      JaxscopeError: a run, function or compilation does not exist, or both arguments mean the same.
    """
    from jaxscope.model import diff
    from jaxscope.report import diff as report

    before, after = _sides(args.before, args.after)
    found: diff.RunDiff | diff.CompilationDiff
    if before.compilation is not None and after.compilation is not None:
        found = diff.compilations(before.run, before.compilation, after.run, after.compilation)
    else:
        only = None
        if before.functions is not None and after.functions is not None:
            only = before.functions, after.functions
        found = diff.runs(before.run, after.run, only)
    pair = report.Pair(before.run, before.directory, after.run, after.directory)
    if args.format == "json":
        from jaxscope.report.json_report import dumps

        deliver(dumps(report.as_json(found, pair)), args.output)
    else:
        with console_for(args.output) as page:
            report.render(found, pair, page, everything=args.all)
    return int(args.exit_code and found.differs)


def _sides(first: str, second: str) -> tuple[Side, Side]:
    """Return the two sides that the arguments ``first`` and ``second`` mean. If only one argument names a
    function, it also counts for the other run; if only one names a compilation, the other side gets the
    latest compilation."""
    (run_a, name_a), (run_b, name_b) = _split_argument(first), _split_argument(second)
    if not second.partition("#")[0] and name_b:  # '#2' alone: another compilation of the first function
        run_b, name_b = run_a, f"{(name_a or '').partition('#')[0]}{name_b}"
    if (name_a is None) != (name_b is None):
        # Only one side names a function: compare it with the function of the same name in the other run.
        name_a, name_b = name_a or name_b, name_b or name_a
    directory_a = _directory(run_a, first)
    directory_b = _directory(run_b, second)
    loaded = read_run(directory_a)
    other = loaded if directory_a.path.resolve() == directory_b.path.resolve() else read_run(directory_b)
    a, b = _side(directory_a, loaded, name_a), _side(directory_b, other, name_b)
    if (a.compilation is None) != (b.compilation is None):
        a, b = _latest_of(a), _latest_of(b)
    if a.run is b.run and a.compilation is b.compilation and a.functions == b.functions:
        raise _the_same(first, second, directory_a)
    return a, b


def _the_same(first: str, second: str, directory: RunDir) -> UsageError:
    name = store.address(directory)
    others = [store.address(r) for r in reversed(store.all_runs()) if r.path != directory.path and r.recorded]
    if first == second or "#" in second:
        what = f"{first} and {second} are the same"
    else:
        what = f"{first} and {second} are the same run, {name}"
    more = f" and {len(others) - OTHERS} more" if len(others) > OTHERS else ""
    return UsageError(
        f"diff: {what}, so there is nothing to compare",
        hint=f"other runs: {', '.join(others[:OTHERS])}{more}"
        if others
        else "there is no other run; within one run: jaxscope diff 'latest:FUNCTION#1' '#2'",
        slug="diff-same",
    )


def _split_argument(text: str) -> tuple[str, str | None]:
    """Split an argument of ``jaxscope diff`` into (run, function): ``train-1:step#2`` -> ``("train-1",
    "step#2")``, ``#2`` -> ``("", "#2")``. The function is None if none is given. A colon inside the name of
    an existing run directory does not split."""
    if text.startswith("#"):
        return "", text
    if (Path(text) / "meta.json").is_file():
        return text, None
    if remote.is_remote(text):
        at = text.find(":", text.rindex("/"))
        return (text, None) if at < 0 else (text[:at], text[at + 1 :] or None)
    at = -1
    while (at := text.find(":", at + 1)) >= 0:
        if (Path(text[:at]) / "meta.json").is_file():
            return text[:at], text[at + 1 :] or None
    run, _, function = text.partition(":")
    return run, function or None


def _directory(run: str, typed: str) -> RunDir:
    """Return the directory of the run ``run`` (empty: the newest). For the run of a job, print which rank
    (process) is compared. ``typed`` is the whole argument, for a hint."""
    try:
        found = chosen(run or None)
    except RunNotFound as e:
        if e.slug == "run-not-found" and ":" not in typed and "/" not in typed:
            # `jaxscope diff train_step#1 train_step#2` is easily typed.
            e.hint = f"for a function of the latest run: jaxscope diff 'latest:{typed}' ...; {e.hint}"
        raise
    whole = places.whole_of(found)
    if whole is not None and store.find(run or None).path == whole.path:
        others = len(store.rank_runs(whole))
        name, place = escape(store.address(whole)), escape(found.path.name)
        sys.stderr.write(f"{name} has {others:,} ranks; {name}/{place} is compared\n")
    return found


def _side(directory: RunDir, run: Run, name: str | None) -> Side:
    if name is None:
        return Side(directory, run, None, None)
    found, number = functions(run, name)
    if number is None:
        return Side(directory, run, found, None)
    # There is one: ``functions`` raises if the number is that of no compilation.
    compilation = next(c for f in found for n, c in run.numbered(f) if n == number)
    return Side(directory, run, found, compilation)


def _latest_of(side: Side) -> Side:
    """Return ``side`` with a compilation: the one that it has, or else the latest one of its function.

    Raises:
      UsageError: the function was never compiled.
    """
    if side.compilation is not None:
        return side
    for f in side.functions or ():
        if numbered := side.run.numbered(f):
            return side._replace(compilation=numbered[-1][1])
    raise UsageError(
        f"the function was never traced, lowered or compiled in {side.directory.path.name}",
        hint=f"see what was compiled: jaxscope report {side.directory.path.name}",
        slug="compilation-not-found",
    )
