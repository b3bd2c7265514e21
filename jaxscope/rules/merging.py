"""Merge equal findings of several forms of one program into one finding that names the forms. A form is the
program that ran, the program for a target, or the program with a setting of ``run --vary``.

Two findings are equal if their ``identity`` is equal. Their figures and words may differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from jaxscope.model.run import Run
from jaxscope.rules import registry
from jaxscope.schema.findings import Contexts, Evidence, Finding, Identity


def grouped(several: Iterable[Iterable[Finding]]) -> list[list[tuple[int, Finding]]]:
    """Return groups of equal findings. Each member is (the number of its list in ``several``, the finding).
    Groups are in the order in which they first occur. A group has at most one finding of each list."""
    groups: dict[tuple[Identity, int], list[tuple[int, Finding]]] = {}
    for n, found in enumerate(several):
        # The second of several equal findings in a list is grouped with the second in another list.
        times: Counter[Identity] = Counter()
        for f in found:
            times[f.identity] += 1
            groups.setdefault((f.identity, times[f.identity]), []).append((n, f))
    return list(groups.values())


# -- targets -------------------------------------------------------------------------


def findings(run: Run, further: Sequence[Run] = ()) -> list[Finding]:
    """Return the findings of the rules in ``run``, together with the findings about targets in the
    ``further`` runs of the same program on other numbers of devices, in the order of reports. Equal findings
    become one that names all their targets."""
    found = registry.findings(run)
    if not further:
        return found
    return registry.in_order(joined(found, map(registry.findings, further)), registry.least_seconds(run))


def joined(own_findings: Sequence[Finding], further: Iterable[Sequence[Finding]]) -> list[Finding]:
    """Return ``own_findings``, the findings of a run, merged with the findings about targets of ``further``
    runs of the same program. Findings of these runs that are about no target are left out."""
    several = [own_findings, *([f for f in other if f.contexts.targets] for other in further)]
    merged = []
    for (_, first), *rest in grouped(several):
        for _, f in rest:
            first = for_targets(first, f.contexts.targets, f.evidence, ran=first.contexts.ran)
        merged.append(first)
    return merged


def for_targets(f: Finding, names: Iterable[str], evidence: Iterable[Evidence] = (), *, ran: bool) -> Finding:
    """Return the finding ``f``, extended by the targets ``names`` (machines for which a program was only
    compiled) whose programs have the problem, too, and by ``evidence`` about them. ``ran``: whether the
    program that ran on this machine has the problem."""
    targets = list(dict.fromkeys([*f.contexts.targets, *names]))
    contexts = msgspec.structs.replace(f.contexts, ran=ran or not targets, targets=targets)
    return msgspec.structs.replace(f, contexts=contexts, evidence=[*f.evidence, *evidence])


def of_target(name: str | None) -> Contexts:
    """Return the ``contexts`` of a finding, which say in which programs the problem occurs: in the program
    compiled for the target ``name`` (a machine), which the finding's title already names. If ``name`` is
    None, the problem is in the program that ran."""
    return Contexts() if name is None else Contexts(ran=False, targets=[name], in_title=True)


def of_target_alone(run: Run, f: Finding) -> bool:
    """Return whether the finding ``f`` is about programs compiled for targets, and about no program that
    ran."""
    ran = any(e.program is None or e.program in run.programs for e in f.evidence)
    return bool(f.contexts.targets) and not ran


# -- settings --------------------------------------------------------------------------------------------


def of_settings(
    findings_by_label: Mapping[str, Sequence[Finding]], settings: Mapping[str, Mapping[str, str]]
) -> list[Finding]:
    """Merge equal findings of several settings of ``run --vary``, and return them in the order of reports.
    ``findings_by_label`` has the findings, in this order, by the label of their setting (``MESH=4x4``);
    ``settings`` is label -> name of a varied variable -> its value."""
    labels = list(findings_by_label)
    if len(labels) < 2:
        return [f for each in findings_by_label.values() for f in each]
    return registry.in_order(
        _under([(labels[n], f) for n, f in members], settings)
        for members in grouped(findings_by_label.values())
    )


def _under(members: Sequence[tuple[str, Finding]], settings: Mapping[str, Mapping[str, str]]) -> Finding:
    """Merge equal findings of several settings of ``run --vary`` into one: the most severe of them, which
    then names all these settings, its own first. Other titles become evidence.

    Args:
      members: (label of the setting, finding) of each of the equal findings.
      settings: label of a setting -> name of a varied variable -> its value.
    """
    label, first = min(members, key=lambda member: registry.severity_order(member[1]))
    others = [(other, f) for other, f in members if f is not first]
    differing = [Evidence(f.title, setting=other) for other, f in others if f.title != first.title]
    contexts = msgspec.structs.replace(
        first.contexts,
        settings=[label, *(other for other, _ in others)],
        named=_named([other for other, _ in members], settings),
    )
    return msgspec.structs.replace(first, contexts=contexts, evidence=[*first.evidence, *differing])


def _named(labels: Sequence[str], settings: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return short names for the settings of ``run --vary`` whose labels are ``labels``; an empty list if
    these are all settings of the run. ``settings`` is label -> name of a varied variable -> its value.

    If no other setting has all the values that these settings share, the list has one name with these values:
    ``["DEPTH=2"]`` for ``DEPTH=2 WIDTH=8`` and ``DEPTH=2 WIDTH=16``. Otherwise it is ``labels``.
    """
    if len(labels) == len(settings):
        return []
    first, *rest = (settings[label].items() for label in labels)
    common = [item for item in first if all(item in other for other in rest)]
    alike = [label for label, values in settings.items() if all(item in values.items() for item in common)]
    return [" ".join(f"{k}={v}" for k, v in common)] if alike == list(labels) and rest else list(labels)
