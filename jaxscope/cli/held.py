"""What of a run does not hold: under each of its settings, against limits, targets and the baseline."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxscope.cli import config, pinned
from jaxscope.errors import UsageError
from jaxscope.log import store
from jaxscope.report.escape import escape

if TYPE_CHECKING:
    from jaxscope.check import gate
    from jaxscope.check.selection import Filter
    from jaxscope.log.store import RunDir
    from jaxscope.model.run import Run
    from jaxscope.report.variants import Variant
    from jaxscope.schema.findings import Finding


def findings(
    run: Run,
    wishes: dict[str, Any],
    looked_at: Filter | None = None,
    directory: RunDir | None = None,
    unchecked: list[UsageError] | None = None,
    parts: Sequence[Variant] | None = None,
) -> list[Finding]:
    """What does not hold, errors first; where nothing is asked for, what the rules find. What does not fit into a
    target is among it whatever is asked for. Under each setting of ``--vary``, where there are several; the baseline
    is of the first.

    Args:
      directory: of ``run``: the same program under other settings and on other numbers of devices is recorded within it.
      unchecked: takes what of it cannot be checked in this run (its steps are not known, nothing was compiled for a
        target): the rest is checked as if that had not been asked for. None: the first is raised.
      parts: ``run`` and those within it, where they have been read.

    Raises:
      UsageError: see ``unchecked``.
      BaselineError: the baseline cannot be read.
    """
    from jaxscope.check import gate
    from jaxscope.report import told, variants
    from jaxscope.rules import registry

    chosen = filter_of(wishes, run) if looked_at is None else looked_at
    every = variants.of(run, directory) if parts is None else parts
    path = pinned.path_of(wishes)
    lacking: list[UsageError] = []

    def look(runs: Sequence[Variant]) -> list[Finding]:
        its: list[UsageError] = []
        held = _held(
            [v.run for v in runs], wishes, chosen, argv_of(directory), path, its, first=runs[0].run is run
        )
        if runs[0].run is run:
            lacking.extend(its)
            return held
        return held + chosen.keep(gate.not_known(f"this setting cannot be checked: {e.message}") for e in its)

    found = told.of_each(every, look)
    if lacking and unchecked is None:
        raise one(lacking)
    if unchecked is not None:
        unchecked += lacking
    if path is not None:
        several = len(told.groups(every)) > 1
        sys.stderr.write(f"held against {path}{escape(f': {every[0].label}') if several else ''}\n")
    asked = _limited(wishes, steps=not any(e.slug == gate.STEPS_UNKNOWN for e in lacking))
    if path is not None or not asked or wishes.get("select"):
        known = registry.rules()
        found += chosen.unused(
            run,
            lambda code: (not known[code].told or path is not None) and (not known[code].asked or asked),
        )
    return registry.in_order(found)


def _limited(wishes: dict[str, Any], *, steps: bool = True) -> bool:
    """Is there a limit to hold? ``steps``: are they known?"""
    from jaxscope.check import limits

    return bool(
        (steps and wishes.get("no-recompiles-after") is not None)
        or limits.of(wishes)
        or wishes.get("functions")
        or wishes.get("targets")
    )


def _held(
    runs: Sequence[Run],
    wishes: dict[str, Any],
    chosen: Filter,
    argv: list[str],
    path: Path | None,
    lacking: list[UsageError],
    *,
    first: bool,
) -> list[Finding]:
    """What does not hold under one setting, in its run and in those on other numbers of devices.

    Args:
      path: of the baseline, which ``first`` is held against.
      lacking: takes what cannot be checked.
    """
    from jaxscope.check import budgets, gate, limits, target_limits
    from jaxscope.check.baseline import findings as against
    from jaxscope.rules import registry

    run, after = runs[0], wishes.get("no-recompiles-after")
    allowed, functions = limits.of(wishes), wishes.get("functions") or {}
    aim = target_limits.aim(runs, wishes.get("target") or (), wishes.get("targets") or {})
    if (e := target_limits.lacking(aim, argv)) is not None:
        lacking.append(e)
    lacking.extend(_left_out(wishes, chosen))
    late: list[gate.Told] = []
    try:
        allow = bool(wishes.get("allow-cache-hits"))
        if after is not None:
            late = gate.told_after(run, after, allow_cache_hits=allow, keep=chosen.looks_at)
    except UsageError as e:
        if e.slug != gate.STEPS_UNKNOWN:
            raise
        lacking.append(UsageError(f"no recompiles after step {after}: {e.message}", hint=e.hint, slug=e.slug))
        after = None
    limited = _limited(wishes, steps=after is not None)
    rules = first if path is not None else not limited or bool(wishes.get("select"))
    found: list[Finding] = []
    if path is not None and first:
        from jaxscope.check.baseline import file

        baseline = file.read(path)
        found += against.compare(baseline, against.read(run, chosen, pinned.roots(path)), chosen)
    elif path is None and rules:
        found += chosen.keep(registry.findings(run))
    found = chosen.keep(target_limits.of_rules(aim, found, rules=rules))
    if after is not None:
        kept = chosen.keep(t.finding for t in late)
        late = [t for t in late if any(t.finding is f for f in kept)]
        beyond = (allowed, functions) if chosen.takes(budgets.COMPILATIONS) else (limits.Limits(), {})
        found = [*gate.untold(found, kept), *budgets.mentioned(run, *beyond, late)]
    if limited:
        found += chosen.keep(budgets.over(run, allowed, functions, programs=not aim.names, late=late))
    found += chosen.keep(target_limits.held(aim, allowed, functions))
    return found


def _left_out(wishes: dict[str, Any], chosen: Filter) -> list[UsageError]:
    """What is asked for and is not among what ``select`` names: nobody would look at it. ``ignore`` leaves out on
    purpose."""
    from jaxscope.check import budgets, gate
    from jaxscope.check.program_limits import COLLECTIVES, CONSTANTS, MEMORY

    codes = {
        "no-recompiles-after": gate.CODE,
        "max-compilations": budgets.COMPILATIONS,
        "max-compile-seconds": budgets.SECONDS,
        "max-collectives": COLLECTIVES,
        "max-collective-bytes": COLLECTIVES,
        "max-temp-bytes": MEMORY,
        "max-peak-bytes": MEMORY,
        "max-replicated-bytes": MEMORY,
        "max-constant-bytes": CONSTANTS,
    }
    return [
        UsageError(
            f"{name} is asked for, and select leaves out what tells of it, {code}",
            hint=f"add it: --select {code}",
            slug="select-leaves-out",
        )
        for name, code in codes.items()
        if wishes.get(name) is not None and not chosen.selects(code)
    ]


def argv_of(directory: RunDir | None) -> list[str]:
    argv = directory.meta.get("argv") if directory is not None else None
    return [str(word) for word in argv] if isinstance(argv, list) else []


def unfinished(run: Run, directory: RunDir, parts: Sequence[Variant] | None = None) -> list[Finding]:
    """Where the run may have more to say, or the program died; an error where the recording was cut short: what came
    later is not known, so nothing holds. Of the runs within it, too; ``parts``: as in ``findings``."""
    from jaxscope.check import gate
    from jaxscope.model import deaths
    from jaxscope.report import variants

    found = []
    died = deaths.of_run(run)
    if died is not None:
        found.append(gate.cut_short(died.text, died.source, surely=died.surely))
    for v in variants.of(run, directory) if parts is None else parts:
        assert v.directory is not None
        named = f"{v.label}: " if v.run is not run else ""
        found += [gate.unseen(f"{named}{text}") for text in _cut_short(v.run, v.directory)]
        if v.run is run and going_on(run, directory):
            found.append(
                gate.not_known("the run is still going on: what is checked is what it has done so far")
            )
    return found


def going_on(run: Run, directory: RunDir) -> bool:
    from jaxscope.model.load import state

    return state(run, directory) == "running"


def _cut_short(run: Run, directory: RunDir) -> list[str]:
    """Which recordings end before what they record."""
    from jaxscope.model.load import state
    from jaxscope.report.phrases import count

    if run.stopped:
        first = run.stopped[0]
        assert first.stopped is not None
        which = (
            ""
            if len(run.stopped) == 1 and first is run.main
            else f" of {count(len(run.stopped), 'process', 'processes')}"
        )
        return [
            f"the recording{which} stopped ({first.stopped.reason}): what was done from then on is not known"
        ]
    how, main = state(run, directory), run.main
    if how == "lost":
        return ["the run ended without a word: it was killed, or its log is cut short"]
    if how == "exited" and main is not None and run.main_recorded and main.ended is None:
        signal = run.exited is not None and run.exited.signal is not None
        if not signal:  # that is said of its death
            return ["the log of the program has no end: it left by os._exit, or could be recorded no further"]
    return []


def filter_of(wishes: dict[str, Any], run: Run | None = None) -> Filter:
    """What is looked at in ``run``.

    Raises:
      UsageError: a code that does not exist.
    """
    from jaxscope.check.selection import Filter, selection
    from jaxscope.model import sources
    from jaxscope.report.formats.placed import relative

    codes = selection(
        wishes.get("select") or (), wishes.get("ignore") or (), wishes.get("per-file-ignores") or {}
    )
    project = config.load().path
    bases = [str(project.parent)] if project is not None else []
    return Filter(
        codes,
        lambda file: relative(file, [*bases, str(store.here())]),
        sources.text if run is None else sources.of(run),
    )


def one(errors: list[UsageError]) -> UsageError:
    """``errors`` as one, of what was not checked; the rest was."""
    hint = "; ".join(e.hint for e in errors if e.hint) or None
    return UsageError(f"not checked: {'; '.join(e.message for e in errors)}", hint=hint, slug=errors[0].slug)
