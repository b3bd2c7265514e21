"""``jaxscope try``: run a program before and after a change, and print whether its figures are better, worse
or equal."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from jaxscope.cli import Parser, options, worktrees
from jaxscope.cli.worktrees import Repository
from jaxscope.errors import JaxscopeError, UsageError
from jaxscope.launch import command
from jaxscope.launch.command import Command
from jaxscope.log import store
from jaxscope.log.store import RunDir

if TYPE_CHECKING:
    from jaxscope.report.trial import Side

USAGE = "jaxscope try [options] (script.py | -m module | -c code) [args...]"
DESCRIPTION = """\
Run a program as it is and with a change, each in a separate checkout in a temporary directory, and compare
the figures of both: each is better, worse or equal. The figures are counts (recompiles, compilations,
copies), bytes and, with --target, bounds on the time of a call. Seconds are not compared, so a busy machine
does not change the result. The stdout of both runs is compared, too.

"Before" is your checkout with its uncommitted changes and new files; files that git ignores are absent in
both. Your checkout is not changed. The program gets no stdin. Both recordings are kept, for jaxscope diff
and show.
"""
EXAMPLES = """\
examples:
  jaxscope try --patch FIX.diff train.py --lr 0.1         before, and with the patch
  jaxscope try --ref faster train.py                      before, and another branch, tag or commit
  jaxscope try --patch FIX.diff --format json train.py    for an agent, or CI
  jaxscope try --ref faster --target v5e:4x4 train.py     also compare the programs for a TPU

exit codes:
  0  better: some figures are better, none is worse, the outputs are equal
  1  worse, or the outputs differ, or the program fails with the change
  2  the command line is wrong, or the patch does not apply
  3  equal: no figure differs
  4  mixed: some figures are better, some are worse
"""
END = 2000  # characters of the program's stderr that are shown where it failed


def add_parser(subparsers: Any) -> None:
    """Add the command ``jaxscope try`` to ``subparsers`` (of argparse). argparse does not parse its words:
    ``handle`` separates its options from the program's own command line."""
    verb = subparsers.add_parser("try", help="compare before and after", add_help=False, prefix_chars="\0")
    verb.add_argument("words", nargs=argparse.REMAINDER)
    verb.set_defaults(handler=handle)


def parser() -> Parser:
    """Return the parser of the options of ``jaxscope try``, without the program's command line."""
    parser = Parser(prog="jaxscope try", usage=USAGE, description=DESCRIPTION, epilog=EXAMPLES)
    change = parser.add_mutually_exclusive_group()
    change.add_argument(
        "--patch", metavar="FILE", type=Path, help="the change as a diff, as git diff writes it"
    )
    change.add_argument("--ref", metavar="COMMIT", help="the changed version: a branch, a tag or a commit")
    parser.add_argument(
        "--target", action="append", metavar="TARGET", help="as jaxscope run --target (repeatable)"
    )
    parser.add_argument("--step-function", metavar="NAME", help="as jaxscope run --step-function")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-5,
        metavar="SHARE",
        help="numbers in the outputs may differ by this relative amount (default: 1e-5)",
    )
    parser.add_argument("--all", action="store_true", help="also show functions whose figures did not change")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of the JSON, and run nothing"
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of stdout")
    return parser


def handle(args: argparse.Namespace) -> int:
    """Run ``jaxscope try``: run the program twice and print the comparison. Return the exit code of the
    result, which ``--help`` lists.

    Raises:
      JaxscopeError: the options are invalid, git failed, or a run recorded nothing.
    """
    from jaxscope.cli.output import console_for, deliver
    from jaxscope.report import trial
    from jaxscope.report.json_report import compact, dumps
    from jaxscope.report.layout import put

    reader = parser()
    ours, words = options.split(args.words, reader)
    try:
        opts = reader.parse_args(ours)
    except SystemExit:  # --help
        return 0
    if opts.schema:
        deliver(dumps(trial.schema()), opts.output)
        return 0
    if opts.patch is None and opts.ref is None:
        raise UsageError(
            "try: give the change as --patch FILE or --ref COMMIT",
            hint="see: jaxscope try --help",
            slug="usage",
        )
    if opts.patch is not None and not opts.patch.is_file():
        raise UsageError(
            f"there is no file {opts.patch}", hint="git diff > FIX.diff writes one", slug="no-patch"
        )
    program = command.parse(words)
    with _ended_in_order(), worktrees.repository() as repository:
        now = repository.uncommitted()
        label = "HEAD" if now == repository.commit_of("HEAD") else "HEAD with uncommitted changes"
        before = _run(repository, now, None, label, program, opts)
        if opts.patch is not None:
            after = _run(repository, now, opts.patch.resolve(), f"with {opts.patch.name}", program, opts)
        else:
            commit = repository.commit_of(opts.ref)
            after = _run(repository, commit, None, opts.ref, program, opts)
    found = trial.compare(before, after, opts.tolerance, everything=opts.all)
    if opts.format == "json":
        deliver(compact(found.page) + "\n", opts.output)
    else:
        with console_for(opts.output) as page:
            put(page, trial.lines(found))
    return trial.EXIT_CODES[found.page.verdict]


def _run(
    repository: Repository,
    commit: str,
    patch: Path | None,
    label: str,
    program: Command,
    opts: argparse.Namespace,
) -> Side:
    """Run and record ``program`` in a temporary checkout of ``commit``, changed by the diff ``patch`` (None:
    unchanged). Return the recorded run, its findings and its output. ``label`` is the name of this version in
    the report.

    Raises:
      JaxscopeError: git failed, nothing was recorded, or the program imported code of the user's own
        checkout.
    """
    from jaxscope.model.load import load
    from jaxscope.report import trial, variants
    from jaxscope.report.text import which

    record = RunDir(store.fresh(store.clean_name(f"try-{program.stem}")))
    with repository.checked_out(commit, patch) as folder:
        if not folder.is_dir():
            raise UsageError(
                f"{label} has no directory {repository.below}",
                hint="start it in another directory",
                slug="usage",
            )
        words = [_in_tree(program.words[0], repository), *program.words[1:]]
        environment = {**os.environ, "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0")}
        path = [*repository.python_path(), *filter(None, [os.environ.get("PYTHONPATH")])]
        if path:
            environment["PYTHONPATH"] = os.pathsep.join(path)
        done = subprocess.run(
            [sys.executable, "-m", "jaxscope", "run", "--no-tui", "-q", "-o", str(record.path),
             *_passed_on(opts), *words],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
        output, errors = (b.decode("utf-8", "replace") for b in (done.stdout, done.stderr))
        if done.returncode:
            sys.stderr.write(f"{label}: exit code {done.returncode}\n{errors[-END:]}\n")
        if not record.recorded:
            raise JaxscopeError(
                f"{label}: nothing was recorded (exit code {done.returncode}): {errors.strip()[-END:]}",
                hint="does it import jax? Files that git ignores, such as data, are absent in the checkout",
                slug="try-not-recorded",
            )
        run = load(record)  # now, because findings read the source files, which are removed with the checkout
        _own_checkout_unused(run, repository)
        findings = variants.findings(variants.of(run, record))
    return trial.Side(label, which(record).strip(), run, findings, done.returncode, output)


def _passed_on(opts: argparse.Namespace) -> list[str]:
    words = [word for target in opts.target or () for word in ("--target", target)]
    words += ["--wait-targets"] if opts.target else []
    return [*words, "--step-function", opts.step_function] if opts.step_function else words


def _in_tree(word: str, repository: Repository) -> str:
    """Return ``word``, the first word of the program's command line. The absolute path of a file in the
    user's checkout becomes the path of the same file in the temporary checkout."""
    path = Path(word)
    if path.is_absolute() and path.is_relative_to(repository.root):
        return str(repository.tree / path.relative_to(repository.root))
    return word


def _own_checkout_unused(run: Any, repository: Repository) -> None:
    """Check that the program of ``run`` imported no files of the user's checkout instead of those of the
    temporary checkout, which have the change to try.

    Raises:
      JaxscopeError: a function of the run is defined in the user's checkout.
    """
    for f in run.functions.values():
        path = Path(f.seen.file or "")
        if f.user and path.is_absolute() and path.is_relative_to(repository.root):
            raise JaxscopeError(
                f"the program imported {path} of your checkout, in place of the version to try",
                hint="if a package is installed from the checkout, put the directory that contains it (in the"
                " checkout) into PYTHONPATH",
                slug="try-own-checkout",
            )


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Make SIGTERM raise KeyboardInterrupt while the ``with`` statement runs, so that the temporary checkouts
    are removed."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
