"""``jaxscope launch``: run a program as the processes of one job, all on this machine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from jaxscope.cli import options
from jaxscope.errors import JaxscopeError, UsageError
from jaxscope.log import remote

MOST = 256
USAGE = "jaxscope launch -n N [options of run] (script.py | -m module) [args...]"
DESCRIPTION = """\
Start N processes of one job on this machine's CPU, and record them into one run. Each process is a rank: the
program calls jax.distributed.initialize(), which finds its rank, the number of processes and the
coordinator's address in the environment (jaxscope sets JAX_PROCESS_ID, JAX_NUM_PROCESSES and
JAX_COORDINATOR_ADDRESS, too). Each line of output begins with the rank. The first rank that fails ends the
job, and its exit code is that of the command. Use this command for tests and for learning; on a cluster use
the launcher of the cluster: srun jaxscope run train.py.
"""
EXAMPLES = """\
examples:
  jaxscope launch -n 4 train.py --lr 0.1
  jaxscope launch -n 2 --ir none -o out/job train.py
afterwards:
  jaxscope report                         what all ranks did, and where some differ
"""


def add_parser(subparsers: Any) -> None:
    """Add the command ``jaxscope launch`` to ``subparsers`` (of argparse). argparse does not parse its words:
    ``handle`` separates the options of ``jaxscope run`` from the program's own command line."""
    verb = subparsers.add_parser(
        "launch", help="run a job on this machine", add_help=False, prefix_chars="\0"
    )
    verb.add_argument("words", nargs=argparse.REMAINDER)
    verb.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Run ``jaxscope launch``: run the job and print its summary. Return the exit code of the first process
    that failed, 0 if none failed, or 2 if nothing follows ``launch`` on the command line.

    Raises:
      JaxscopeError: the options are invalid, or no program is named.
    """
    from jaxscope.launch import ranks

    parser = options.parser()
    parser.prog, parser.usage, parser.description, parser.epilog = (
        "jaxscope launch",
        USAGE,
        DESCRIPTION,
        EXAMPLES,
    )
    parser.add_argument("-n", "--ranks", type=int, required=False, metavar="N", help="number of processes")
    ours, words = options.split(args.words, parser)
    parser.ours, parser.rest = ours, words
    if not args.words:
        parser.print_help(sys.stderr)
        return 2
    try:
        opts = parser.parse_args(ours)
    except SystemExit:  # --help
        return 0
    if opts.ranks is None or not 0 < opts.ranks <= MOST:
        raise UsageError(
            f"launch: -n is the number of processes, from 1 to {MOST}",
            hint="for example: jaxscope launch -n 4 train.py",
            slug="usage",
        )
    if not words:
        raise UsageError("launch: nothing to run", hint=f"usage: {USAGE}", slug="nothing-to-run")
    if opts.detach or opts.tui or opts.vary:
        raise UsageError(
            "launch: --detach, --tui and --vary are for one process", hint="leave them out", slug="usage"
        )
    if remote.is_remote(opts.out):
        remote.require(opts.out)
    own = _without_ranks(ours)
    code, job = ranks.run(
        [sys.executable, "-m", "jaxscope", "run", "--no-tui", "--quiet", *own, "--", *words],
        opts.ranks,
        opts.job,
    )
    if not opts.quiet:
        _summary(job, opts.out)
    return code


def _without_ranks(ours: list[str]) -> list[str]:
    """Return the options ``ours`` without ``-n`` and ``--ranks``, for the ``jaxscope run`` of each process of
    the job."""
    found = iter(ours)
    kept = []
    for word in found:
        if word in ("-n", "--ranks"):
            next(found, None)
        elif not word.startswith("--ranks=") and not (word[:2] == "-n" and word[2:].isdigit()):
            kept.append(word)
    return kept


def _summary(job: str, out: str | None) -> None:
    """Print on stderr the summary of the newest run of the job with the id ``job``. The run is looked for in
    ``out`` (``--out``), or in the directory of all runs if ``out`` is None or an address (``s3://...``)."""
    from jaxscope.log import ranks, store
    from jaxscope.model import ranks as read
    from jaxscope.report import text

    at_home = out is None or remote.is_remote(out)
    runs = store.all_runs() if at_home else [r for r in ranks.launches(Path(out or "")) if r.path.exists()]
    found = next((r for r in reversed(runs) if r.meta.get("job") == job), None)
    if found is None or not found.recorded:
        sys.stderr.write("jaxscope: no rank imported jax: nothing was recorded\n")
        return
    try:
        summary = text.summary(store.one_process(found), job=read.read(found))
    except JaxscopeError as e:
        summary = f"jaxscope: {e.message}"
    sys.stderr.write(summary if summary.endswith("\n") else summary + "\n")
