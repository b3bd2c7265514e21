"""Collect the runs of one program with several settings or numbers of devices, and the programs of each
function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.model.load import load
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.model.target_programs import of_run
from jaxscope.rules import merging
from jaxscope.schema.findings import Finding


class Variant(NamedTuple):
    """One run of the program.

    Attributes:
      run: the run.
      directory: its directory; None: unknown.
      settings: its settings of ``--vary``: option or variable -> value.
    """

    run: Run
    directory: RunDir | None
    settings: dict[str, str]

    @property
    def label(self) -> str:
        """Return the settings as text: ``MESH=4x4 --remat=full``; empty without settings."""
        return store.label_of(self.directory) if self.directory is not None else ""


class Column(NamedTuple):
    """A function's program in one run: one column of a comparison.

    Attributes:
      variant: the run.
      program: the program.
      target: the target; None: the devices on which the program ran.
    """

    variant: Variant
    program: Program
    target: str | None


def of(run: Run, directory: RunDir | None) -> list[Variant]:
    """Return ``run`` itself, then the runs inside its directory: those with other settings or numbers of
    devices.
    """
    subs = store.sub_runs(directory) if directory is not None else ()
    return [one(run, directory), *(one(load(sub), sub) for sub in subs)]


class Ended:
    """A run that has just ended, and the runs inside its directory. They are loaded when they are first
    needed.
    """

    def __init__(self, directory: RunDir) -> None:
        self.directory = directory

    @functools.cached_property
    def parts(self) -> list[Variant]:
        """The run itself, then the runs inside its directory."""
        return of(load(self.directory), self.directory)

    @property
    def something(self) -> bool:
        """Return whether at least one call missed a cache of JAX."""
        every = self.parts[0].run.compilations.values()
        return any(c.missed is not None or c.reached_phases for c in every)


def one(run: Run, directory: RunDir | None) -> Variant:
    return Variant(run, directory, dict(directory.settings) if directory is not None else {})


def by_function(variants: Sequence[Variant]) -> list[tuple[Function, list[Column]]]:
    """Return the user's functions, slowest first, each with its latest program for each target in each run.

    If nothing was compiled for targets but there are several runs, the programs are those that ran. Functions
    with the same id in several runs are one function.
    """
    found: dict[str, tuple[Function, list[Column]]] = {}
    elsewhere = any(v.run.retargeted for v in variants)
    for v in variants:
        for f, programs in of_run(v.run) if elsewhere else _here(v.run) if len(variants) > 1 else ():
            columns = found.setdefault(f.id, (f, []))[1]
            columns += [Column(v, p, p.target if elsewhere else None) for p in programs]
    return sorted(found.values(), key=lambda item: (-item[0].seconds, item[0].id))


def _here(run: Run) -> Iterable[tuple[Function, list[Program]]]:
    for f in run.functions.values():
        latest = next(
            (run.programs[c.program] for c in reversed(f.compilations) if c.program in run.programs), None
        )
        if f.user and latest is not None:
            yield f, [latest]


# -- what is found in them -------------------------------------------------------------------------------


def groups(variants: Sequence[Variant]) -> dict[str, list[Variant]]:
    """Group the runs by their settings. A key has the settings that are not equal in all runs:
    ``--remat=full``.

    Runs that differ only in the number of devices are one group.
    """
    everywhere_alike = {
        item for item in variants[0].settings.items() if all(item in v.settings.items() for v in variants)
    }
    found: dict[str, list[Variant]] = {}
    for v in variants:
        label = " ".join(f"{k}={x}" for k, x in v.settings.items() if (k, x) not in everywhere_alike)
        found.setdefault(label, []).append(v)
    return found


def findings(variants: Sequence[Variant]) -> list[Finding]:
    """Return the findings of the rules in all of ``variants``, errors first, then by seconds."""
    return of_each(variants, lambda runs: merging.findings(runs[0].run, [v.run for v in runs[1:]]))


def of_each(
    variants: Sequence[Variant], findings_of: Callable[[Sequence[Variant]], Sequence[Finding]]
) -> list[Finding]:
    """Call ``findings_of`` for the runs of each setting, and merge equal findings of several settings.

    Args:
      findings_of: returns the findings of the runs with one setting.
    """
    by_setting = groups(variants)
    found = {label: findings_of(runs) for label, runs in by_setting.items()}
    return merging.of_settings(found, {label: runs[0].settings for label, runs in by_setting.items()})


def sub_run(f: Finding, variants: Sequence[Variant]) -> int | None:
    """Return to which of ``variants`` the ids in the evidence of ``f`` belong, as an index in ``sub_runs``.

    None: to the run itself.
    """
    same_settings = [
        v
        for label, runs in groups(variants).items()
        if not f.contexts.settings or label == f.contexts.settings[0]
        for v in runs
    ]
    chosen = next((v for v in same_settings if _has(v, f)), same_settings[0])
    n = next(i for i, v in enumerate(variants) if v is chosen)
    return n - 1 if n else None


def _has(v: Variant, f: Finding) -> bool:
    return all(
        (e.compilation is None or e.compilation in v.run.compilations)
        and (e.program is None or e.program in v.run.programs or e.program in v.run.retargeted)
        for e in f.evidence
    )
