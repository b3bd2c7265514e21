"""Collect the runs of one program with other settings (``run --vary``) or numbers of devices, and the
programs that each function has in these runs."""

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
    """One of several runs of a program with different settings (``run --vary``) or numbers of devices.

    Attributes:
      settings: the values that ``run --vary`` gave the program: name of an option or environment variable ->
        its value.
    """

    run: Run
    directory: RunDir | None
    settings: dict[str, str]

    @property
    def label(self) -> str:
        """Return the values that ``run --vary`` gave the program, as text: ``MESH=4x4 --remat=full``; empty
        if there are none."""
        return store.label_of(self.directory) if self.directory is not None else ""


class Column(NamedTuple):
    """A column of the table that compares programs: the program that a function has in one run. ``target`` is
    the machine for which it was compiled (``v5e:4x4``); None: this machine."""

    variant: Variant
    program: Program
    target: str | None


def of(run: Run, directory: RunDir | None) -> list[Variant]:
    """Return ``run`` itself, then its sub-runs: the runs inside its directory, in which the same program ran
    with other settings (``run --vary``) or another number of devices."""
    subs = store.sub_runs(directory) if directory is not None else ()
    return [variant_of(run, directory), *(variant_of(load(sub), sub) for sub in subs)]


class Ended:
    """A run that has just ended, and its sub-runs (the same program with other settings or numbers of
    devices). The logs are only loaded when they are first needed."""

    def __init__(self, directory: RunDir) -> None:
        self.directory = directory

    @functools.cached_property
    def parts(self) -> list[Variant]:
        """Return the run itself, then its sub-runs (the same program with other settings or numbers of
        devices)."""
        return of(load(self.directory), self.directory)

    @property
    def something(self) -> bool:
        """Return whether the run has anything to report: at least one call that missed one of JAX's
        caches."""
        every = self.parts[0].run.compilations.values()
        return any(c.missed is not None or c.reached_phases for c in every)


def variant_of(run: Run, directory: RunDir | None) -> Variant:
    """Return the Variant for ``run``, with the settings that are stored in its directory."""
    return Variant(run, directory, dict(directory.settings) if directory is not None else {})


def by_function(variants: Sequence[Variant]) -> list[tuple[Function, list[Column]]]:
    """Return the user's functions, those with the longest compilations first, each with its latest programs
    to compare: those for each target (a machine to compile for, ``v5e:4x4``) in each run, or if no run has
    any, those for this machine in each of several runs. Functions of different runs are the same if they have
    the same id.

    ``variants`` are the run, then its sub-runs (the same program with other settings or numbers of devices).
    """
    found: dict[str, tuple[Function, list[Column]]] = {}
    elsewhere = any(v.run.retargeted for v in variants)
    for v in variants:
        for f, programs in of_run(v.run) if elsewhere else _here(v.run) if len(variants) > 1 else ():
            columns = found.setdefault(f.id, (f, []))[1]
            columns += [Column(v, p, p.target if elsewhere else None) for p in programs]
    return sorted(found.values(), key=lambda item: (-item[0].seconds, item[0].id))


def _here(run: Run) -> Iterable[tuple[Function, list[Program]]]:
    """Yield (function, [its latest program for this machine]) for each function of the user that has such a
    program."""
    for f in run.functions.values():
        latest = next(
            (run.programs[c.program] for c in reversed(f.compilations) if c.program in run.programs), None
        )
        if f.user and latest is not None:
            yield f, [latest]


# -- what is found in them -------------------------------------------------------------------------------


def groups(variants: Sequence[Variant]) -> dict[str, list[Variant]]:
    """Return ``variants`` grouped by the values that ``run --vary`` gave the program: the values as text
    (``--remat=full``), without those that are the same in all runs -> the runs with these values.
    ``variants`` are the run, then its sub-runs (the same program with other settings or numbers of
    devices)."""
    everywhere_alike = {
        item for item in variants[0].settings.items() if all(item in v.settings.items() for v in variants)
    }
    found: dict[str, list[Variant]] = {}
    for v in variants:
        label = " ".join(f"{k}={x}" for k, x in v.settings.items() if (k, x) not in everywhere_alike)
        found.setdefault(label, []).append(v)
    return found


def findings(variants: Sequence[Variant]) -> list[Finding]:
    """Return the findings in all runs, in the order of reports; in runs with other numbers of devices, only
    those about targets (machines to compile for, ``v5e:4x4``). A finding that several runs have is returned
    once. ``variants`` are the run, then its sub-runs (the same program with other settings or numbers of
    devices)."""
    return of_each(variants, lambda runs: merging.findings(runs[0].run, [v.run for v in runs[1:]]))


def of_each(
    variants: Sequence[Variant], findings_of: Callable[[Sequence[Variant]], Sequence[Finding]]
) -> list[Finding]:
    """Return the findings for each setting (values that ``run --vary`` gave the program). If several settings
    have the same finding, it is returned once, with the names of these settings.

    Args:
      variants: the run, then its sub-runs (the same program with other settings or numbers of devices).
      findings_of: a function that takes the runs with one setting and returns their findings.
    """
    by_setting = groups(variants)
    found = {label: findings_of(runs) for label, runs in by_setting.items()}
    return merging.of_settings(found, {label: runs[0].settings for label, runs in by_setting.items()})


def sub_run(f: Finding, variants: Sequence[Variant]) -> int | None:
    """Return the run to which the ids in the evidence of the finding ``f`` belong: its position in the
    report's list ``sub_runs``, or None for the run of the report itself. ``variants`` are the run of the
    report, then the runs in ``sub_runs``."""
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
    """Return whether the run ``v`` has all compilations and programs to which the evidence of ``f``
    refers."""
    return all(
        (e.compilation is None or e.compilation in v.run.compilations)
        and (e.program is None or e.program in v.run.programs or e.program in v.run.retargeted)
        for e in f.evidence
    )
