"""``jaxscope show``: print one part of the JSON report, given by its path."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from jaxscope.cli.output import chosen, deliver, job_of, read_run

DESCRIPTION = """\
Print one part of the JSON report of a run as JSON, at most 4 KB of it: the part at the path (value), the
paths of what was left out (left_out), related parts (below) and further commands (next). A path is a list of
keys, separated by /. A function is given by its name or by file:line, a compilation by its number, a finding
by its code and position, a program by the beginning of its id. If the value is the id of a program or of a
compilation, the path continues into it: compilations/2/program is the program. `/` in a name is written ~1.
"""
EXAMPLES = """\
examples:
  jaxscope show latest                                        the keys of the report
  jaxscope show latest findings                               the codes, and how many of each
  jaxscope show latest findings/JX101/0                       one finding with its evidence
  jaxscope show latest findings/JX101/0/evidence/0/compilation
  jaxscope show latest functions/train_step/compilations/2/key
  jaxscope show latest functions/train.py:88/programs/0 --all
"""


def add_parser(subparsers: Any) -> None:
    """Add the command ``jaxscope show`` and its options to ``subparsers`` (of argparse)."""
    parser = subparsers.add_parser(
        "show", help="one part of the JSON report", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("run", metavar="RUN", help="a run's name, its directory, or latest")
    parser.add_argument(
        "path", nargs="?", default="", metavar="PATH", help="which part of the report (default: its keys)"
    )
    parser.add_argument(
        "--rank", type=int, metavar="N", help="the report of rank N of a job with many processes"
    )
    parser.add_argument("--all", action="store_true", help="the whole value, however long")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of stdout")
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Run ``jaxscope show``: print the part of the JSON report at the given path. Return 0.

    Raises:
      JaxscopeError: there is no such run, or no such path.
    """
    from jaxscope.report import show
    from jaxscope.report.drill import Document
    from jaxscope.report.json_report import compact
    from jaxscope.report.text import which

    directory = chosen(args.run, args.rank)
    directory.everything = args.all
    run = read_run(directory)
    job = job_of(args.run, directory) if args.rank is None else None
    found = show.show(Document(run, directory, job), args.path, which(directory).strip(), everything=args.all)
    deliver(compact(found) + "\n", args.output)
    return 0
