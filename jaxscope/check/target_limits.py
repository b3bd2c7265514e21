"""Check programs that were compiled for targets: whether they exceed a limit, and whether some could not be
compiled.

A target is a machine that need not exist here: jaxscope compiles for it (``--target v5e:4x4``), and nothing
runs on it.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from jaxscope.analysis import machines
from jaxscope.check import program_limits
from jaxscope.check.limits import Limits
from jaxscope.check.unknown import unchecked_note
from jaxscope.errors import UsageError
from jaxscope.log.jobs import EXHAUSTED, OK
from jaxscope.model.function_lookup import matches
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.rules import merging, registry
from jaxscope.rules.targets import too_large
from jaxscope.schema.findings import Finding
from jaxscope.schema.messages import Message, message

LONGEST = 200  # characters of a compiler's message; a longer one is cut


class Aim(msgspec.Struct, frozen=True):
    """The targets (machines to compile for) that a check is about, and the runs to check.

    Attributes:
      runs: the run, then the runs of the same program on other numbers of devices.
      names: the targets on the command line; the runs may have no programs for them.
      tables: target, or pattern of targets (``v5e:*``) -> limits on programs for it.
    """

    runs: Sequence[Run]
    names: Sequence[str] = ()
    tables: Mapping[str, Limits] = {}


def aim(runs: Sequence[Run], targets: Iterable[str], tables: Mapping[str, Limits]) -> Aim:
    """Return the targets (``v5e:4x4``) that a check is about, together with the runs to check.

    Args:
      runs: the run, then the runs of the same program on other numbers of devices.
      targets: the names of targets on the command line.
      tables: the tables ``[tool.jaxscope.check.targets]``: target or pattern (``v5e:*``) -> limits.

    Raises:
      UsageError: a name in ``targets`` is not a target, or one in ``tables`` neither a target nor a pattern.
    """
    names = list(dict.fromkeys(machines.parse(text).name for text in targets))
    for text in tables:
        single_target(text)
    return Aim(runs, names, tables)


def not_recorded(a: Aim, argv: Sequence[str]) -> UsageError | None:
    """Return an error if a target on the command line is not among the targets of the runs of ``a``; else
    None. ``argv``, the program's command line, is for the suggested command that compiles for the target."""
    there = [t.name for run in a.runs for t in run.targets]
    missing = [name for name in a.names if name not in there]
    if not missing:
        return None
    near = difflib.get_close_matches(missing[0], there, 3, 0.5) or there[:3]
    others = f", but for {', '.join(near)}" if near else ""
    return UsageError(
        f"the run was not compiled for {', '.join(missing)}{others}",
        hint=f"record it: {_command(missing, argv)}",
        slug="target-not-recorded",
    )


def _command(targets: Sequence[str], argv: Sequence[str]) -> str:
    words = [w for name in targets for w in ("--target", name)]
    return shlex.join(["jaxscope", "run", *words, "--wait-targets", *(argv or ["train.py"])])


def of_rules(a: Aim, findings: Sequence[Finding], *, rules: bool) -> list[Finding]:
    """Return ``findings``, the findings of the first run, and add findings about programs for targets
    (machines to compile for). If the command line names targets, findings that are only about other targets
    are left out.

    Args:
      a: the targets to check, and the runs.
      rules: True: add findings of the rules in the other runs. False: add only findings about programs that
        do not fit into a target's memory, in all runs.
    """
    every = list(findings)
    if rules:
        every = merging.joined(every, map(registry.findings, a.runs[1:]))
    else:
        every += [f for run in a.runs for f in too_large(run)]
    return [
        f
        for f in every
        if not a.names
        or not merging.of_target_alone(a.runs[0], f)
        or not {*a.names}.isdisjoint(f.contexts.targets)
    ]


def findings(a: Aim, limits: Limits, functions: Mapping[str, Limits]) -> list[Finding]:
    """Return an error for each limit that a program for a target (a machine to compile for) exceeds, and a
    note for each limit that cannot be checked. If the command line names targets, only programs for these
    targets are checked, against all limits. Otherwise only the limits in ``a.tables`` are checked.

    Args:
      a: the targets to check, and the runs.
      limits: the limits of each program.
      functions: name or pattern of functions -> their limits.
    """
    found: list[Finding] = []
    for run in a.runs:
        for name in (t.name for t in run.targets):
            if name in a.names:
                found += [*_over(run, name, limits, functions, a.tables), *_unknown(run, name)]
            elif not a.names and tables_for(name, a.tables):
                found += [*_over(run, name, Limits(), {}, a.tables), *_unknown(run, name)]
    there = {t.name for run in a.runs for t in run.targets}
    missing = [one for text in a.tables if (one := single_target(text)) is not None and one not in there]
    found += [
        unchecked_note(message("target-not-compiled-for", target=one)) for one in missing if not a.names
    ]
    return found


def tables_for(name: str, tables: Mapping[str, Limits]) -> list[Limits]:
    """Return the limits in ``tables`` that apply to the target ``name``: the limits of the target itself, and
    the limits of patterns that match it. ``tables`` is a dict: target or pattern (``v5e:*``) -> limits."""
    found = []
    for text, limits in tables.items():
        one = single_target(text)
        if one == name or (one is None and fnmatchcase(name, text)):
            found.append(limits)
    return found


def single_target(text: str) -> str | None:
    """Return the name of the single target that ``text``, a key of ``[tool.jaxscope.check.targets]``, means
    (``2*v5e:4x4``); None: ``text`` is a pattern (``v5e:*``).

    Raises:
      UsageError: ``text`` is neither a target nor a pattern.
    """
    try:
        return machines.parse(text).name
    except UsageError as e:
        if any(c in text for c in "*?["):
            return None
        raise UsageError(
            f'[tool.jaxscope.check.targets."{text[:60]}"]: {e.message}', hint=e.hint, slug=e.slug
        ) from e


def _over(
    run: Run, name: str, limits: Limits, functions: Mapping[str, Limits], tables: Mapping[str, Limits]
) -> Iterator[Finding]:
    """Yield an error for each limit that a program of ``run`` for the target ``name`` exceeds, and a note for
    each that cannot be checked. The limits in ``functions`` for the program's function, and those in
    ``tables`` for the target, replace the same limits in ``limits``."""
    own = tables_for(name, tables)
    for f in _users(run):
        special = [*(allowed for text, allowed in functions.items() if matches(f, text)), *own]
        for allowed in [*special, limits.without(special)]:
            yield from program_limits.of_target(run, f, name, allowed)


def _unknown(run: Run, name: str) -> Iterator[Finding]:
    """Yield notes (JX901) about what was not compiled for the target ``name``: one for each program that was
    planned, and one for each of the user's compiled functions that has no program for this target. Yield one
    more if no program has this target."""
    programs = [p for p in run.retargeted.values() if p.target == name]
    for p in programs:
        if p.state not in (OK, EXHAUSTED):
            c = p.compilations[0] if p.compilations else None
            program = (
                f"{c.function.display_name}#{run.number(c)}" if c is not None else p.module or "a program"
            )
            text = message("program-for-target-unknown", program=program, target=name, reason=_why(p))
            yield unchecked_note(text, c)
    lowered = {c.function.id for p in programs for c in p.compilations}
    for f in _users(run):
        if f.compiled and f.id not in lowered:
            text = message("function-not-compiled-for", function=f.display_name, target=name)
            yield unchecked_note(text, f.compilations[-1])
    if not programs:
        yield unchecked_note(message("nothing-lowered-for", target=name))


def _users(run: Run) -> list[Function]:
    return [f for f in run.functions.values() if f.user]


def _why(p: Program) -> Message:
    """Return a message that says why a program was not compiled for a target: it was skipped, waits, is being
    compiled, or the compiler failed."""
    if p.state == "skipped":
        reason = (p.target_lowered.skipped or "")[:LONGEST] if p.target_lowered is not None else ""
        return message("target-program-skipped", reason=reason)
    if p.state == "compiling":
        return message("target-program-compiling")
    if p.state == "waiting":
        return message("target-program-waiting", behind=message("of-another-run") if p.waits_for else None)
    error = (
        " ".join((p.target_compiled.error or "").split())[:LONGEST] if p.target_compiled is not None else ""
    )
    return message("target-program-failed", state=p.state, reason=error or message("no-reason-given"))
