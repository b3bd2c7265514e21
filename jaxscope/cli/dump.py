"""``jaxscope dump``: write program texts and cache keys, a timeline or a graph of a program as files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from jaxscope.cli.output import chosen, deliver, functions, read_run
from jaxscope.errors import RunNotFound, UsageError

DESCRIPTION = """\
Write what was recorded of each compilation as files that you can open: the StableHLO that JAX made
(NAME.1.stablehlo.mlir), the HLO that XLA produced (NAME.1.hlo.txt), and the cache key (NAME.1.key.json). The
number is the one that `jaxscope report` shows. Without FUNCTION: all your functions.

With --perfetto, write the run as a timeline instead: the phases of every call, steps, waits for copies and
the bytes of live arrays; each rank of a job is a process in it. ui.perfetto.dev and chrome://tracing open it.

With --graph, write the program of one compilation as a graph: its instructions with bytes, flops, the line
and the sharding, grouped by fusion and loop. The file extension selects the format: .graphml (networkx,
yEd, Gephi), .dot (Graphviz), .json (Model Explorer). Without FUNCTION: your slowest function; without #n:
the latest.
"""
EXAMPLES = """\
examples:
  jaxscope dump -o out                       everything of the latest run
  jaxscope dump latest train_step -o out     one function
  jaxscope dump latest 'train_step#2' -o out one compilation of it
  jaxscope dump --perfetto run.json          the latest run as a timeline
  jaxscope dump latest step --graph g.dot    a program as a graph
"""


def add_parser(subparsers: Any) -> None:
    """Add the command ``jaxscope dump`` and its options to ``subparsers`` (of argparse)."""
    parser = subparsers.add_parser(
        "dump", help="texts and keys as files", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument(
        "run", nargs="?", metavar="RUN", help="a run's name, its directory, or latest (default)"
    )
    parser.add_argument(
        "function", nargs="?", metavar="FUNCTION[#n]", help="a name, file:line; #n for one compilation"
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, help="the directory to write the texts and keys to"
    )
    parser.add_argument(
        "--graph", metavar="FILE", type=Path, help="write a program as a graph: .graphml, .dot or .json"
    )
    parser.add_argument(
        "--perfetto", metavar="FILE", type=Path, help="write a timeline in the Trace Event Format"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="also functions of libraries and operations outside jit, and larger texts (up to 2 GiB)",
    )
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Run ``jaxscope dump``: write the files and print their names. Return 1 if there is nothing to write to
    ``--output``, else 0.

    Raises:
      UsageError: none of ``--output``, ``--perfetto`` and ``--graph`` is given.
    """
    if args.output is None and args.perfetto is None and args.graph is None:
        raise UsageError(
            "dump: the following arguments are required: -o/--output, --perfetto or --graph",
            hint="see: jaxscope dump --help",
            slug="usage",
        )
    if args.perfetto is not None:
        _timeline(args)
    if args.graph is not None:
        _graph(args)
    return 0 if args.output is None else _texts(args)


def _timeline(args: argparse.Namespace) -> None:
    """Write the file of ``--perfetto``, a timeline of all processes of the run. If RUN names one rank
    (process of a job), write only this one."""
    from jaxscope.log import ranks as places
    from jaxscope.log import store
    from jaxscope.present.escape import escape
    from jaxscope.report import timeline

    directory = chosen(args.run)
    whole = places.whole_of(directory)
    named = whole is not None and store.find(args.run).path == directory.path  # RUN is one rank
    recorded = []
    for each in store.rank_runs(whole) if whole is not None and not named else [directory]:
        rank = int(each.path.name) if whole is not None and each.path.name.isdecimal() else None
        recorded.append(timeline.Recorded(read_run(each), each, rank))
    deliver(timeline.pieces(recorded), args.perfetto)
    if str(args.perfetto) != "-":
        print(escape(str(args.perfetto)))  # noqa: T201


def _graph(args: argparse.Namespace) -> None:
    """Write the file of ``--graph``: the instructions of one program as a graph. Without FUNCTION, take the
    slowest of the user's functions that have a compiled text; without #n, the latest program of the function
    with such a text.

    Raises:
      UsageError: there is no such compilation, it has no compiled text, or the ending of the file is no known
        format.
    """
    from jaxscope.analysis.hlo import graph
    from jaxscope.present.escape import escape
    from jaxscope.report import graph as report

    write = report.format_of(args.graph)
    directory = chosen(args.run)
    directory.everything = args.all
    run = read_run(directory)
    if args.function:
        found, number = functions(run, args.function)
    else:
        found = sorted((f for f in run.functions.values() if f.user), key=lambda f: (-f.seconds, f.id))
        number = None
    programs = (
        (f"{f.display_name}#{n}", run.programs[c.program])
        for f in found
        for n, c in reversed(run.numbered(f))
        if c.program in run.programs and number in (None, n)
    )
    name, program = next(((n, p) for n, p in programs if "hlo" in p.texts), (None, None))
    if name is None or program is None:
        raise UsageError(
            f"no compiled text of {args.function or 'your functions'} was kept",
            hint="see what was compiled: jaxscope report; texts are kept with --ir all or --ir hlo",
            slug="no-program-text",
        )
    text = directory.data(program.texts["hlo"]).decode("utf-8", "replace")
    deliver(write(graph.of(text), name), args.graph)
    if str(args.graph) != "-":
        print(escape(f"{args.graph}: {name}"))  # noqa: T201


def _texts(args: argparse.Namespace) -> int:
    """Write program texts and cache keys into the directory of ``--output``, and print the names of the
    files. Return 1 if there is nothing to write, else 0."""
    from jaxscope.present.escape import escape
    from jaxscope.present.text import count
    from jaxscope.report.dump import dump

    try:
        directory = chosen(args.run)
    except RunNotFound as e:
        if args.function is None and args.run and e.slug == "run-not-found":
            # Users type `jaxscope dump train_step -o out` by mistake: RUN is missing.
            e.hint = (
                f"for a function of the latest run: jaxscope dump latest {args.run} -o"
                f" {args.output}; {e.hint}"
            )
        raise
    directory.everything = args.all
    run = read_run(directory)
    if args.function:
        chosen_functions, number = functions(run, args.function)
    else:
        everyone = sorted(run.functions.values(), key=lambda f: (-f.seconds, f.id))
        chosen_functions, number = [f for f in everyone if f.user or args.all], None
    written = absent = 0
    reasons: dict[str, int] = {}
    for made in dump(run, directory, chosen_functions, args.output, number):
        for path in made.files:
            print(escape(str(path)))  # noqa: T201
        written += len(made.files)
        absent += bool(made.absent)
        for reason in made.absent:
            reasons[reason] = reasons.get(reason, 0) + 1
    for reason, n in sorted(reasons.items(), key=lambda item: -item[1])[:8]:
        sys.stderr.write(f"no {escape(reason)} ({count(n, 'compilation')})\n")
    if not args.function and not args.all:
        left = sum(len(run.numbered(f)) for f in run.functions.values() if not f.user)
        if left:
            sys.stderr.write(
                f"{count(left, 'compilation')} of library functions and operations outside jit not written:"
                " --all writes them, too\n"
            )
    if not written:
        sys.stderr.write("nothing was compiled in this run\n")
    return 0 if written else 1
