"""``jaxscope report``: print a run as text for people, or as JSON or HTML."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxscope.cli.output import chosen, console_for, deliver, deliver_metrics, functions, job_of, read_run
from jaxscope.errors import UsageError

if TYPE_CHECKING:
    from jaxscope.log.store import RunDir
    from jaxscope.model.ranks import Job
    from jaxscope.model.run import Run

DESCRIPTION = """\
Print what a run traced, lowered and compiled, the slowest functions first, and what changed each time a
function recompiled. If the run is not finished, print what it has recorded so far.
"""
EXAMPLES = """\
examples:
  jaxscope report                          the latest run
  jaxscope report train-20260102-0304      a run by name (or the beginning of it), or its directory
  jaxscope report --function train_step    one function in full, with its cache keys
  jaxscope report --function train.py:88   the function defined there
  jaxscope report --rank 37                one process (rank) of a job with many processes
  jaxscope report --all                    also compilations of libraries and of eager operations
  jaxscope report --html run.html          one file to open or send: works offline, without a server
  jaxscope report --format json -o run.json
  jaxscope report --format json --brief    the verdict, findings and fixes in at most 8 KB, for an agent
  jaxscope report --metrics -o run.jsonl   seconds of compiling, recompiles by cause and bytes, by step
  jaxscope report --schema                 the JSON Schema of the JSON report (--brief: of the brief report)
"""


def add_parser(subparsers: Any) -> None:
    """Add the command ``jaxscope report`` and its options to ``subparsers`` (of argparse)."""
    parser = subparsers.add_parser(
        "report", help="what was compiled and why", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument(
        "run", nargs="?", metavar="RUN", help="a run's name, its directory, or latest (default)"
    )
    parser.add_argument(
        "--function", metavar="NAME", help="one function in full: name, name#3, file or file:line"
    )
    parser.add_argument(
        "--rank", type=int, metavar="N", help="report only rank N of a job with many processes"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="show everything, and read larger program texts (up to 2 GiB)",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument(
        "--brief",
        action="store_true",
        help="with --format json: at most 8 KB; jaxscope show prints the other parts, one at a time",
    )
    parser.add_argument(
        "--html", metavar="FILE", type=Path, help="write the report as one HTML file that needs no network"
    )
    parser.add_argument(
        "--metrics",
        action="store_true",
        help="print numbers per step as JSON lines, or write them with -o FILE.csv, -o tensorboard:DIR or"
        " -o wandb",
    )
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of the JSON report")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of stdout")
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Run ``jaxscope report``: write the report to stdout or to a file. Return 0.

    Raises:
      JaxscopeError: the options cannot be combined, there is no such run, or the file cannot be written.
    """
    _check(args)
    if args.schema:
        deliver(_schema(args.brief), args.output)
        return 0
    directory = chosen(args.run, args.rank)
    directory.everything = args.all
    run = read_run(directory)
    if args.metrics:
        deliver_metrics(run, directory.path.name, None if args.output is None else str(args.output))
        return 0
    job = job_of(args.run, directory) if args.rank is None and not args.function else None
    if args.html is not None:
        from jaxscope.report import html

        deliver(html.pieces(run, directory, job, everything=args.all), args.html)
    elif args.format == "json":
        deliver(_json(run, directory, job, short=args.brief), args.output)
    else:
        _text(args, run, directory, job)
    return 0


def _check(args: argparse.Namespace) -> None:
    """Check that the options can be combined.

    Raises:
      UsageError: two options exclude each other, or an option needs another one.
    """
    if args.schema:
        if args.run:
            raise UsageError("--schema is the same for every run: leave RUN out", slug="usage")
        return
    if args.brief and args.format != "json":
        hint = "jaxscope report --format json --brief"
        raise UsageError("--brief is for the JSON report", hint=hint, slug="usage")
    if args.html is not None and (args.function or args.output or args.format == "json"):
        hint = "leave out --function, --format and -o"
        text = "--html cannot be combined with --function, --format json or -o"
        raise UsageError(text, hint=hint, slug="usage")
    if args.function and args.format == "json" and not args.metrics:
        raise UsageError(
            "--function is for the text report; JSON contains every function",
            hint="jaxscope report --format json | jq '.compilations[] | select(.function |"
            ' startswith("NAME"))\'',
            slug="usage",
        )


def _schema(brief_one: bool) -> str:
    """Return the JSON Schema of the JSON report, or of the brief JSON report (``brief_one``)."""
    from jaxscope.report import brief, contract
    from jaxscope.report.json_report import dumps

    return dumps(brief.schema() if brief_one else contract.schema())


def _json(run: Run, directory: RunDir, job: Job | None, *, short: bool) -> str | Iterable[str]:
    """Return the JSON report of ``run``, as texts to write one after the other; with ``short``, the brief
    report of at most 8 KB. ``job`` has the recordings of all processes of the job; None: report ``run``
    alone."""
    from jaxscope.report.json_report import pieces

    if not short:
        return pieces(run, directory, job)
    from jaxscope.report import brief
    from jaxscope.report.text import which

    return brief.dumps(brief.brief(run, directory, which(directory).strip(), job))


def _text(args: argparse.Namespace, run: Run, directory: RunDir, job: Job | None) -> None:
    """Write the text report to stdout or to the file of ``--output``: of one function if ``--function``
    names one, else of the run. ``job`` has all processes of the job, to compare them; None: report ``run``
    alone."""
    with console_for(args.output) as page:
        if args.function:
            from jaxscope.report.function import render_function

            functions(run, args.function)
            render_function(run, args.function, page, directory, everything=args.all)
        else:
            from jaxscope.report.text import render

            render(run, page, directory, everything=args.all, job=job)
