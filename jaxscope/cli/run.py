"""``jaxscope run``: record a program while it runs, and print a summary at its end.

The package ``launch`` starts the program and waits for it; ``cli.options`` defines the command line.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxscope.cli import check, live, options, sweep, sweep_values, targeting, uploading, view
from jaxscope.cli.stderr import print_message
from jaxscope.cli.sweep import Round
from jaxscope.errors import JaxscopeError, LogError, UsageError
from jaxscope.launch import command, job, program_events, runner
from jaxscope.launch.command import Command
from jaxscope.log import files, ranks, remote, store
from jaxscope.log.liveness import Heartbeat
from jaxscope.log.store import RunDir
from jaxscope.present.escape import escape

if TYPE_CHECKING:
    from jaxscope.model.ranks import Job
    from jaxscope.report.variants import Ended
    from jaxscope.schema.events import Died

CHECK_FAILED = 3
RANKS_IN_SUMMARY = 64  # reading the logs of more ranks would delay the shell's prompt by seconds
END_BYTES = 10_000  # how much of the end of the program's output is searched
IMPORT_S = 0.2  # seconds between two checks whether the program is recorded


def add_parser(subparsers: Any) -> None:
    """Add the commands ``jaxscope run`` and ``jaxscope _follow`` (hidden) to ``subparsers`` (of argparse).
    argparse does not parse the words of ``run``: ``handle`` separates its options from the program's command
    line."""
    # Without a prefix character, argparse keeps all words after `run` as positionals. Its own REMAINDER would
    # parse the program's options before the script's name is known (-m, -c), and versions of Python treat
    # `--` differently.
    verb = subparsers.add_parser("run", help="record a program as it runs", add_help=False, prefix_chars="\0")
    verb.add_argument("words", nargs=argparse.REMAINDER)
    verb.set_defaults(handler=handle)
    follow = subparsers.add_parser("_follow")
    follow.add_argument("directory", type=Path)
    follow.add_argument("pid", type=int)
    follow.set_defaults(handler=live.handle_follow)


def handle(args: argparse.Namespace) -> int:
    """Run ``jaxscope run``. Return the program's exit code after the program's end, with two exceptions:
    CHECK_FAILED if the program succeeded and ``--check`` failed, and live.DIVERGED if
    ``--stop-on-divergence`` ended the job. If a signal ended the program, end this process with the same
    signal. If the program still runs, return 0 with ``--detach``, else the code of ``attach.Left``.

    Raises:
      JaxscopeError: the options are invalid, or the run directory cannot be created (see ``_make_run``).
    """
    parser = options.parser()
    ours, words = options.split(args.words, parser)
    parser.ours, parser.rest = ours, words
    if not args.words:
        parser.print_help(sys.stderr)
        return 2
    try:
        opts = parser.parse_args(sweep_values.joined(ours))
    except SystemExit:  # --help; errors are UsageErrors
        return 0
    program = command.parse(words)
    _complete(opts)
    rounds = sweep.rounds_of(opts, program)
    first = rounds[0]
    limits = _check_options(opts, rounds)
    if opts.detach:
        return _detach(first, opts)
    record = _make_run(first, opts)
    if record is not None and len(rounds) < 2 and _opens_view(program, opts):
        return _attach(first, opts, record, limits)
    upload = uploading.begin(record, opts)
    ended = sweep.run_all(
        rounds,
        record,
        lambda each, where: _once(each, opts, where),
        lambda each: _recording_options(opts, each),
    )
    uploading.finish(upload, record, opts)
    read = _read(record)
    with contextlib.suppress(KeyboardInterrupt, OSError):  # the exit code is returned in any case
        if program.is_python_itself():
            _explain_python(words)
        elif record is not None and not opts.quiet:
            _report(record, ended, read)
    _write_metrics(opts.metrics, record, read)
    if opts.stop_on_divergence and record is not None:
        whole = ranks.whole_of(record)
        if whole is not None and ranks.diverged(whole):
            return live.DIVERGED
    return _checked(record, ended, limits, read)


def _complete(opts: argparse.Namespace) -> None:
    """Fill in ``opts``, the options on the command line, from the configuration. Set ``opts.launched`` to the
    job (a program in several processes) that this process belongs to; None: no job.

    Also check whether the options can be combined.

    Raises:
      JaxscopeError: the options contradict each other, or need a package that is not installed.
    """
    if opts.tui and not view.on_a_terminal():
        print_message("--tui needs a terminal and there is none: the program runs without it")
    options.configure(opts)
    if remote.is_remote(opts.out):
        remote.require(opts.out)
    opts.launched = job.here(opts.job)
    if opts.profile and opts.redact:
        raise UsageError(
            "a profile has the names and paths that --redact leaves out",
            hint="leave out --profile or --redact",
            slug="usage",
        )
    if opts.metrics:
        from jaxscope.report import dashboards

        dashboards.require(opts.metrics)
    if opts.launched is not None:
        _as_one_of_many(opts)


def _check_options(opts: argparse.Namespace, rounds: list[Round]) -> dict[str, Any] | None:
    """Return the options of ``--check``, completed from the configuration, as name -> value; None without
    ``--check``. If there are also targets (accelerators to compile for), set ``opts.wait_targets``.
    ``rounds`` are the executions of the program.

    Raises:
      UsageError: ``--check`` is invalid, or ``--detach`` is given, too.
    """
    if opts.check is None:
        return None
    found = check.options(sweep.checks(opts.check, rounds))
    if opts.detach:
        raise UsageError(
            "--check has to wait for the end of the program, but --detach returns immediately",
            hint="leave out --check, and when the program has ended: jaxscope check",
            slug="usage",
        )
    if rounds[0].targets:
        opts.wait_targets = True  # a program that is not compiled yet cannot be checked
    return found


def _explain_python(words: Sequence[str]) -> None:
    """Tell a user who wrote ``jaxscope run python train.py`` to leave out ``python``. ``words`` are the words
    after ``jaxscope run``."""
    print_message(
        f"jaxscope run starts Python itself: give only the script, without {words[0]}:",
        f"jaxscope run {' '.join(words[1:3])}",
    )


def _as_one_of_many(opts: argparse.Namespace) -> None:
    """Change ``opts`` for one process of a job. If its rank is known and not 0, it prints no summary, writes
    no metrics and opens no terminal interface; else it opens the terminal interface only with ``--tui``."""
    if opts.launched.rank:
        opts.tui, opts.quiet, opts.metrics = False, True, None
    elif opts.tui is None:
        opts.tui = False


def _once(each: Round, opts: argparse.Namespace, record: RunDir | None) -> program_events.Ended:
    """Execute the program once, as ``each`` describes, and return how it ended. If ``each`` has targets,
    their compiler runs meanwhile in another process. ``record`` is the run directory; None: nothing is
    recorded."""
    more = sweep_values.environment(each.settings)
    env = {**os.environ, **more} if record is None else _environment(record, opts, each)
    worker = targeting.begin(record, env) if record is not None and each.targets else None
    ended = runner.run(
        each.program.argv,
        env,
        record,
        tee=opts.tee_stderr,
        companion=_companion(opts, record, summary=not opts.quiet),
    )
    targeting.aborted(each.targets, ended, opts)
    if record is not None and worker is not None:
        interrupted = targeting.end(
            record, worker, wait=bool(opts.wait_targets), quiet=bool(opts.quiet), env=env
        )
        ended = ended._replace(interrupted=ended.interrupted or interrupted)
    return ended


def _companion(
    opts: argparse.Namespace, record: RunDir | None, *, summary: bool = False
) -> runner.Companion | None:
    """Return a function that works in threads of this process while the program runs; None if there is
    nothing to do. Depending on the options, it prints recompiles (``--live``), compares the ranks (processes)
    of a job, and ends the program (``--stop-on-divergence``).

    Args:
      record: the run directory; None: nothing is recorded.
      summary: whether a summary will be printed, so that the modules for it are imported meanwhile.
    """
    if record is None:
        return None
    found: list[runner.Companion] = [live.live(record)] if opts.live else []
    if summary:
        found.append(functools.partial(_import_report, record))
    if opts.launched is not None and opts.compare_ranks is not False:
        most = None if opts.compare_ranks or opts.stop_on_divergence else live.MOST_RANKS
        found.append(
            live.compare_ranks(
                record,
                opts.launched.rank,
                opts.ranks_patience,
                holds=bool(opts.stop_on_divergence),
                most_ranks=most,
            )
        )
        if opts.stop_on_divergence:
            found.append(live.stop_on_divergence(record))
    return live.together(found)


def _import_report(record: RunDir, ended: threading.Event, pid: int) -> None:
    """Import the modules of the summary once something is recorded, to save time after the program's end.
    Return without the import if the program ends before.

    Args:
      record: the run directory.
      ended: is set when the program ends.
      pid: not used; all functions of ``_companion`` have this parameter.
    """
    while not ended.wait(IMPORT_S):
        if record.recorded:
            with contextlib.suppress(Exception):  # it will be raised again, and reported, by the summary
                from jaxscope.report import text, variants  # noqa: F401
            return


def _detach(each: Round, opts: argparse.Namespace) -> int:
    """Start the program in the background, print its run directory, and return 0.

    Raises:
      JaxscopeError: there is no such program, or its directory cannot be created.
    """
    program = each.program
    if not program.runnable:
        raise UsageError(
            f"there is no program {program.words[0]!r}", hint="see: jaxscope run --help", slug="no-program"
        )
    # Here an unusable directory is an error: the program's output is written there.
    record = _create(each, opts)
    env = _environment(record, opts, each)
    from jaxscope.launch import keeper

    if each.targets:
        targeting.begin(record, env)
    uploading.begin(record, opts)
    keeper.start(program.argv, env, record, companion=_companion(opts, record))
    print(record.path, flush=True)  # noqa: T201
    if not opts.quiet:
        print_message(
            f"{program.shown} keeps running without this terminal; its output: {record.output}",
            _how_to_see(record),
        )
    return 0


def _opens_view(program: Command, opts: argparse.Namespace) -> bool:
    """Return whether to open the terminal interface: with ``--tui`` if the terminal can show it, with
    ``--no-tui`` never, else if ``view.by_default`` allows it and nothing else needs the terminal, as
    ``--live`` or a script on stdin does."""
    if opts.tui is None:
        return not opts.live and program.words[0] != "-" and view.by_default()
    return bool(opts.tui) and view.on_a_terminal()


def _attach(each: Round, opts: argparse.Namespace, record: RunDir, limits: dict[str, Any] | None) -> int:
    """Run the program once with the terminal interface open, then print the summary. Return the exit code of
    ``jaxscope run``.

    Args:
      each: how to execute the program: command line, settings and targets.
      record: the run directory.
      limits: the options of ``--check``; None: without ``--check``.
    """
    from jaxscope.cli import attach
    from jaxscope.present.text import WITH_INPUT, wanted_input

    program, env = each.program, _environment(record, opts, each)
    worker = targeting.begin(record, env) if each.targets else None
    upload = uploading.begin(record, opts)
    left = attach.attach(program.argv, env, record)
    if isinstance(left, attach.Left):
        print_message(
            f"{program.shown} {left.words}; its output: {record.output}",
            _how_to_see(record).replace("report", "view", 1),
            None if limits is None else "not checked; when the program has ended: jaxscope check",
        )
        return left.code
    if worker is not None:
        targeting.end(record, worker, wait=bool(opts.wait_targets), quiet=bool(opts.quiet))
    uploading.finish(upload, record, opts)
    if not left.succeeded and wanted_input(_end_of_output(record)):
        print_message("the program reads from stdin, and has no stdin while the view is open", WITH_INPUT)
    read = _read(record)
    if not opts.quiet:
        print_message(f"the program's output: {record.output}")
        _report(record, left, read, unseen=True)
    _write_metrics(opts.metrics, record, read)
    return _checked(record, left, limits, read)


def _end_of_output(record: RunDir) -> str:
    from jaxscope.present.escape import as_printed

    try:
        with files.open_regular(record.output, within=record.path) as f:
            f.seek(max(0, os.fstat(f.fileno()).st_size - END_BYTES))
            end = f.read(END_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(as_printed(line) for line in end.split("\n"))  # Python 3.13 colors its tracebacks


def _make_run(each: Round, opts: argparse.Namespace) -> RunDir | None:
    """Create and return the run directory for ``each``, one execution of the program. Return None if it
    cannot be created or if there is no such program.

    Raises:
      LogError: the directory cannot be created, and ``--out`` or ``--check`` is given.
    """
    if not each.program.runnable:
        return None  # Python itself reports this error
    try:
        return _create(each, opts)
    except LogError as e:
        if opts.out or opts.check is not None:
            raise  # --out names this directory, and --check cannot pass without a recording
        print_message(
            f"not recording: {e.message}",
            f"{e.hint}; the program runs without being recorded" if e.hint else None,
        )
        return None


def _create(each: Round, opts: argparse.Namespace) -> RunDir:
    out = None if remote.is_remote(opts.out) else opts.out  # a run to upload is recorded in .jaxscope/runs
    name, where = opts.name or (None if out else each.program.stem), Path(out) if out else None
    recording_options = _recording_options(opts, each)
    run = job.create_run(
        where,
        opts.launched,
        name=name,
        overwrite=bool(opts.overwrite),
        argv=each.program.words,
        options=recording_options,
        **each.meta(),
    )
    first = Heartbeat(run.heartbeat, hold=False)  # of this process, until the runner or the keeper has one
    first.beat()
    first.close()
    return run


def _recording_options(opts: argparse.Namespace, each: Round) -> dict[str, Any]:
    """Return the options for the recording inside the program: name (such as ``step-function``) -> value.
    Options without a value are not in the result. ``each`` has the targets (accelerators to compile for)."""
    values = {
        "ir": opts.ir,
        "step-function": opts.step_function,
        "wrapper-libraries": opts.wrapper_libraries,
        "arrays": opts.arrays,
        "transfers": opts.transfers,
        "line-times": opts.line_times,
        "redact": opts.redact or None,
        "targets": targeting.as_options(each.targets) if each.targets else None,
        "dry-run": opts.dry_run or None,
        "compare-ranks": False if opts.compare_ranks is False else None,
        "ranks-patience": opts.ranks_patience,
        "stop-on-divergence": opts.stop_on_divergence or None,
        "profile": opts.profile,
    }
    return {name: value for name, value in values.items() if value is not None}


def _environment(record: RunDir, opts: argparse.Namespace, each: Round) -> dict[str, str]:
    """Return the environment of the program. With targets, it makes JAX simulate as many CPU devices as they
    have."""
    recording_options = _recording_options(opts, each)
    env = command.environment(record.path, recording_options, sweep_values.environment(each.settings))
    if each.targets:
        forced = targeting.force(env, each.targets)
        if forced is not None:
            env["JAXSCOPE_OPTIONS"] = json.dumps({**recording_options, "forced-devices": forced})
    return env


def _read(record: RunDir | None) -> Callable[[], Ended]:
    """Return a function that returns the run recorded in ``record``, the same object at each call. Call it
    only if ``record`` is not None."""

    @functools.cache
    def read() -> Ended:
        from jaxscope.report.variants import Ended  # late: reading is not needed to start a program

        assert record is not None
        return Ended(record)

    return read


def _report(
    record: RunDir, ended: program_events.Ended, read: Callable[[], Ended], *, unseen: bool = False
) -> None:
    """Print the summary of the run on stderr, or why nothing was recorded. If this fails, print the error.
    ``unseen``: the terminal interface hid the program's output."""
    try:
        if not _has_report(record, ended, read):
            from jaxscope.launch import recording_check

            seen = recording_check.evidence_of(record, ended.pid)
            print_message(_removed_name(seen.died, read), *recording_check.explain(seen, ended))
            return
        from jaxscope.report import text

        summary = text.summary(record, read().parts, unseen=unseen, job=_other_ranks(record))
    except Exception as e:  # the recording itself is complete: report only the failed summary
        print_message(
            f"recorded in {record.path}, but the summary failed: {type(e).__name__}: {e}",
            _how_to_see(record),
        )
        return
    sys.stderr.write(summary if summary.endswith("\n") else summary + "\n")


def _write_metrics(where: str | None, record: RunDir | None, read: Callable[[], Ended]) -> None:
    """Write the numbers of each step to a file or a dashboard. If this fails, print a message and return,
    because jaxscope ends with the exit code of the program.

    Args:
      where: the file or dashboard (``--metrics``); None: write nothing.
      record: the run directory; None: nothing was recorded, and nothing is written.
      read: returns the recorded run.
    """
    if where is None or record is None:
        return
    try:
        from jaxscope.cli.output import deliver_metrics

        deliver_metrics(read().parts[0].run, record.path.name, where)
    except Exception as e:
        print_message(f"--metrics: {escape(str(e))}")


def _removed_name(died: Died | None, read: Callable[[], Ended]) -> str | None:
    """Return a hint about what to write instead if the program failed because it used a name that the
    installed JAX does not have; else None. ``died`` is the exception that ended the program, or None."""
    if died is None:
        return None
    from jaxscope.present.failures import removed
    from jaxscope.present.spans import plain

    return escape(plain(removed(read().parts[0].run))) or None


def _other_ranks(record: RunDir) -> Job | None:
    """Return what all ranks (processes) of the job of ``record`` have recorded so far. None if ``record``
    belongs to no job or is the only rank, or if the job has more than RANKS_IN_SUMMARY ranks."""
    whole = ranks.whole_of(record)
    if whole is None or not 1 < len(store.rank_runs(whole)) <= RANKS_IN_SUMMARY:
        return None
    from jaxscope.model import ranks as read

    return read.read(whole)


def _has_report(record: RunDir, ended: program_events.Ended, read: Callable[[], Ended]) -> bool:
    """Return whether the run ``record`` has anything to report.

    Args:
      ended: how the program ended.
      read: returns the recorded run.
    """
    if not record.recorded:
        from jaxscope.launch import recording_check

        if not recording_check.evidence_of(record, ended.pid).something:
            return False
    return read().something


def _checked(
    record: RunDir | None,
    ended: program_events.Ended,
    limits: dict[str, Any] | None,
    read: Callable[[], Ended],
) -> int:
    """Run the check, if any, and return the exit code of ``jaxscope run``: CHECK_FAILED if the program
    succeeded, and the check failed or was not possible, else the program's exit code. If a signal ended the
    program, end this process with the same signal.

    Args:
      record: the run directory; None: nothing was recorded.
      ended: how the program ended.
      limits: the options of the check; None: no check.
      read: returns the recorded run.
    """
    if limits is None or not ended.succeeded:
        return ended.leave()
    try:
        # A program without jax has nothing to check, and a program that could not be recorded looks the same.
        if record is None or not _has_report(record, ended, read):
            raise UsageError(
                "nothing was recorded, so nothing can be checked",
                hint="check a program that imports jax in the Python that jaxscope run starts",
                slug="not-recorded",
            )
        passed = check.passes(record, limits, read().parts)
    except JaxscopeError as e:
        print_message(f"--check: {escape(e.message)}", escape(e.hint) if e.hint else None)
        return CHECK_FAILED
    except Exception as e:  # an unfinished check has not passed
        print_message(f"--check failed with an error: {type(e).__name__}: {escape(e)}")
        return CHECK_FAILED
    return 0 if passed else CHECK_FAILED


def _how_to_see(record: RunDir) -> str:
    return f"jaxscope report {store.address(record)}"
