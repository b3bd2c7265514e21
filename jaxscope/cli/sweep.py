"""Execute the program of ``jaxscope run`` once or several times. Each execution is called a round. There is
one round for each combination of a setting of ``--vary`` and a number of devices of the targets (accelerators
to compile for).

The first round is recorded in the run directory, the others in directories inside it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from jaxscope.cli import config, sweep_values, targeting
from jaxscope.cli.stderr import print_message
from jaxscope.cli.sweep_values import Setting
from jaxscope.errors import UsageError
from jaxscope.launch.command import Command
from jaxscope.launch.program_events import Ended
from jaxscope.log import secret_values, store
from jaxscope.log.store import RunDir
from jaxscope.present.escape import escape


class Round(NamedTuple):
    """One execution of the program.

    Attributes:
      label: a name that is unique among the rounds of a run, such as ``MESH=4x4@16``; empty without
        ``--vary`` if all targets have the same number of devices.
      program: the command line of the program, with the flags that ``--vary`` sets in this round.
      settings: the environment variables and flags that ``--vary`` sets in this round.
      targets: the targets (accelerators) to compile for; all have the same number of devices.
    """

    label: str
    program: Command
    settings: list[Setting]
    targets: list[Any]

    @property
    def shown(self) -> str:
        """Return the name of this round in messages: ``MESH=4x4, on 16 devices for v5e:4x4``. Empty if it has
        neither settings nor targets."""
        parts = [" ".join(f"{s.name}={s.value}" for s in self.settings)] if self.settings else []
        if self.targets:
            names = ", ".join(t.name for t in self.targets)
            parts.append(f"on {self.targets[0].devices:,} devices for {names}")
        return ", ".join(parts)

    def meta(self) -> dict[str, Any]:
        """Return what ``meta.json`` in the run directory has about this round, as a dict of JSON values."""
        return {"settings": dict(self.settings)} if self.settings else {}


def rounds_of(opts: argparse.Namespace, program: Command) -> list[Round]:
    """Return all rounds (executions of the program): one for each combination of a ``--vary`` setting and a
    number of devices of the targets. Rounds with the same setting follow each other.

    Raises:
      UsageError: a target or a value of ``--vary`` is invalid, or the options cannot be combined.
    """
    groups = targeting.of_options(opts) or [[]]
    combinations = sweep_values.settings(opts.vary or [])
    found = []
    for settings in combinations:
        for targets in groups:
            label = " ".join(f"{s.name}={secret_values.value(*s)}" for s in settings)
            if len(groups) > 1:
                label += f"{'@' if label else ''}{targets[0].devices}"
            found.append(Round(label, sweep_values.program(program, settings), settings, targets))
    if len(found) > 1:
        _require_repeatable(opts, program, len(groups) > 1)
    return found


def _require_repeatable(opts: argparse.Namespace, program: Command, sizes: bool) -> None:
    """Check that the program can be executed several times. ``sizes``: targets have different numbers of
    devices; otherwise ``--vary`` is the reason.

    Raises:
      UsageError: ``--detach`` or ``--tui`` is given, or the program is read from stdin.
    """
    what = (
        "targets with different device counts need one run each"
        if sizes
        else "--vary runs the script once for each value"
    )
    if opts.detach or opts.tui:
        option = "--detach" if opts.detach else "--tui"
        raise UsageError(
            f"{what}, one after the other, which does not work with {option}",
            hint=f"leave out {option}, or give one {'size' if sizes else 'value'}; afterwards: jaxscope view",
            slug="usage",
        )
    if program.words[0] == "-":
        raise UsageError(
            f"{what}, but a program on stdin can be read only once",
            hint="give a file instead of -",
            slug="usage",
        )


def checks(spec: str, rounds: list[Round]) -> dict[str, Any]:
    """Parse ``spec``, the value of ``--check``: ``"max-compile-seconds=60"`` -> ``{"max-compile-seconds":
    60}``. If ``spec`` has no ``target``, add it with the names of all targets of ``rounds``."""
    names = list(dict.fromkeys(t.name for each in rounds for t in each.targets))
    found = config.check_spec(spec)
    return {"target": names, **found} if names else found


def run_all(
    rounds: list[Round],
    record: RunDir | None,
    once: Callable[[Round, RunDir | None], Ended],
    options: Callable[[Round], dict[str, Any]],
) -> Ended:
    """Execute ``rounds`` in order. Return how the first failed round ended; if none failed, how the last one
    ended.

    The rounds after a failed one still run. After Ctrl-C or a signal to this process, no further round runs.
    If nothing is recorded, only the first round runs.

    Args:
      record: the run directory, for the first round; None: nothing is recorded.
      once: executes one round and records it in the given directory.
      options: takes a round and returns its recording options.

    Raises:
      LogError: the directory of a round cannot be created. This round and later ones are not run.
    """
    failed = ended = None
    for n, each in enumerate(rounds, 1):
        if len(rounds) > 1 and record is not None:
            sys.stderr.write(f"jaxscope: {n} of {len(rounds)}: {escape(each.shown)}\n")
            sys.stderr.flush()
        where = record if n == 1 else _within(record, each, options(each))
        ended = once(each, where)
        if failed is None and not ended.succeeded:
            failed = ended
        left = len(rounds) - n
        if record is None:
            break
        if ended.interrupted:
            if left:
                print_message(f"interrupted: {left} of {len(rounds)} not run")
            return ended if failed is None else failed
    assert ended is not None
    return ended if failed is None else failed


def _within(record: RunDir | None, each: Round, options: dict[str, Any]) -> RunDir:
    """Create and return the run directory of ``each``, a round after the first, inside the run directory
    ``record``. ``options`` are the recording options of this round.

    Raises:
      LogError: the directory cannot be created.
    """
    assert record is not None
    return store.create(
        store.sub_run(record, each.label),
        name=f"{record.name}@{each.label}",
        argv=each.program.words,
        options=options,
        **each.meta(),
    )
