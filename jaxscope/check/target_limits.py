"""A run held to what was asked of it for machines that are not there: which of its programs for them have more than
is allowed, and which nobody compiled.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from jaxscope.analysis import machines
from jaxscope.check import program_limits
from jaxscope.check.budgets import remaining
from jaxscope.check.gate import not_known
from jaxscope.check.limits import Limits
from jaxscope.errors import UsageError
from jaxscope.log.jobs import EXHAUSTED, OK
from jaxscope.model.names import matches, number_of
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.rules import everywhere, registry
from jaxscope.rules.programs import name_of
from jaxscope.rules.targets import too_large
from jaxscope.schema.findings import Finding

WORDS = 200  # of a compiler's message


class Aim(msgspec.Struct, frozen=True):
    """What a check looks at of absent machines.

    Attributes:
      runs: the run, and the same program on other numbers of devices.
      names: targets that were asked for, recorded or not (lacking); empty: none was.
      tables: limits by target, as written.
    """

    runs: Sequence[Run]
    names: Sequence[str] = ()
    tables: Mapping[str, Limits] = {}


def aim(runs: Sequence[Run], asked: Iterable[str], tables: Mapping[str, Limits]) -> Aim:
    """
    Args:
      asked: names of targets.
      tables: ``[tool.jaxscope.check.targets]``.

    Raises:
      UsageError: a name of ``asked`` or ``tables`` is no target.
    """
    names = list(dict.fromkeys(machines.parse(text).name for text in asked))
    for text in tables:
        alone(text)
    return Aim(runs, names, tables)


def lacking(a: Aim, argv: Sequence[str]) -> UsageError | None:
    """Nothing was compiled for a target that was asked for. ``argv``: the program's words, for the command that
    records it."""
    there = [t.name for run in a.runs for t in run.targets]
    missing = [name for name in a.names if name not in there]
    if not missing:
        return None
    near = difflib.get_close_matches(missing[0], there, 3, 0.5) or there[:3]
    others = f"; it was for {', '.join(near)}" if near else ""
    return UsageError(
        f"the run was not compiled for {', '.join(missing)}{others}",
        hint=f"record it: {_command(missing, argv)}",
        slug="target-not-recorded",
    )


def _command(targets: Sequence[str], argv: Sequence[str]) -> str:
    words = [w for name in targets for w in ("--target", name)]
    return shlex.join(["jaxscope", "run", *words, "--wait-targets", *(argv or ["train.py"])])


def of_rules(a: Aim, found: Sequence[Finding], *, rules: bool) -> list[Finding]:
    """``found`` of the run, with what the rules find of its targets, here and on other numbers of devices.

    Where targets were asked for, of those only. ``rules``: all of the rules, else what does not fit.
    """
    said = list(found)
    if rules:
        said = everywhere.joined(said, map(registry.findings, a.runs[1:]))
    else:
        said += [f for run in a.runs for f in too_large(run)]
    return [
        f
        for f in said
        if not a.names or not everywhere.of_target_alone(a.runs[0], f) or not {*a.names}.isdisjoint(f.targets)
    ]


def held(a: Aim, limits: Limits, functions: Mapping[str, Limits]) -> list[Finding]:
    """Where programs for targets have more than is allowed, or it is not known.

    Of targets that were asked for all limits hold; where none was, those of its own table hold for each that was
    recorded.
    """
    found: list[Finding] = []
    for run in a.runs:
        for name in (t.name for t in run.targets):
            if name in a.names:
                found += [*_over(run, name, limits, functions, a.tables), *_unknown(run, name)]
            elif not a.names and tables_for(name, a.tables):
                found += [*_over(run, name, Limits(), {}, a.tables), *_unknown(run, name)]
    there = {t.name for run in a.runs for t in run.targets}
    missing = [one for text in a.tables if (one := alone(text)) is not None and one not in there]
    found += [
        not_known(f"limits are set for {one}, and the run was not compiled for it")
        for one in missing
        if not a.names
    ]
    return found


def tables_for(name: str, tables: Mapping[str, Limits]) -> list[Limits]:
    """The limits of ``[tool.jaxscope.check.targets]`` that mean ``name``."""
    found = []
    for text, limits in tables.items():
        one = alone(text)
        if one == name or (one is None and fnmatchcase(name, text)):
            found.append(limits)
    return found


def alone(text: str) -> str | None:
    """The one target that ``text`` names, as in ``2*v5e:4x4``; None: it is a pattern, as ``v5e:*`` is.

    Raises:
      UsageError: it is neither.
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
    """Where the programs of ``run`` for the target ``name`` have more than is allowed, or it is not known.

    Args:
      limits: of each program, save those that a function's or the target's own take the place of.
      functions: by name or pattern of a function.
      tables: by name or pattern of a target.
    """
    own = tables_for(name, tables)
    for f in _users(run):
        special = [*(allowed for text, allowed in functions.items() if matches(f, text)), *own]
        for allowed in [*special, remaining(limits, special)]:
            yield from program_limits.of_target(run, f, name, allowed)


def _unknown(run: Run, name: str) -> Iterator[Finding]:
    """What a check of the programs for ``name`` cannot look at, and why."""
    mine = [p for p in run.retargeted.values() if p.target == name]
    for p in mine:
        if p.state not in (OK, EXHAUSTED):
            c = p.compilations[0] if p.compilations else None
            who = f"{name_of(c.function)}#{number_of(run, c)}" if c is not None else p.module or "a program"
            yield not_known(f"{who} for {name}: what becomes of it is not known, {_why(p)}", c)
    lowered = {c.function.id for p in mine for c in p.compilations}
    for f in _users(run):
        if f.compiled and f.id not in lowered:
            yield not_known(f"{name_of(f)} was compiled, and not for {name}", f.compilations[-1])
    if not mine:
        yield not_known(f"no function of yours was lowered for {name}")


def _users(run: Run) -> list[Function]:
    return [f for f in run.functions.values() if f.user]


def _why(p: Program) -> str:
    said = " ".join((p.made.error or "").split())[:WORDS] if p.made is not None else ""
    if p.state == "skipped":
        return f"it was not lowered: {(p.asked.skipped or '')[:WORDS] if p.asked is not None else ''}"
    if p.state in ("waiting", "compiling"):
        whose = " of another run" if p.behind else ""
        still = "still being compiled" if p.state == "compiling" else f"still waiting for the compiler{whose}"
        return f"it is {still} (jaxscope run --wait-targets waits)"
    return f"it was not compiled ({p.state}): {said or 'no reason was given'}"
