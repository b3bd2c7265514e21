"""Findings of one program that was run under several settings (``--vary``): each told once, with the settings it is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from jaxscope.report.variants import Variant
from jaxscope.rules import everywhere, registry
from jaxscope.schema.findings import Finding

MOST = 3  # settings named in a title


def groups(variants: Sequence[Variant]) -> dict[str, list[Variant]]:
    """The runs of each setting, on one number of devices or on several, by what tells the setting from the others."""
    everywhere_alike = {
        item for item in variants[0].settings.items() if all(item in v.settings.items() for v in variants)
    }
    found: dict[str, list[Variant]] = {}
    for v in variants:
        label = " ".join(f"{k}={x}" for k, x in v.settings.items() if (k, x) not in everywhere_alike)
        found.setdefault(label, []).append(v)
    return found


def findings(variants: Sequence[Variant]) -> list[Finding]:
    """What the rules find in all of ``variants``, errors first, then by seconds."""
    return of_each(variants, lambda runs: everywhere.findings(runs[0].run, [v.run for v in runs[1:]]))


def of_each(
    variants: Sequence[Variant], look: Callable[[Sequence[Variant]], Sequence[Finding]]
) -> list[Finding]:
    """What ``look`` finds under each setting; what it finds under several is told once. In the order of ``registry``."""
    by_setting = groups(variants)
    found: list[Finding] = []
    for label, runs in by_setting.items():
        free = list(range(len(found)))
        for f in look(runs):
            named = f if len(by_setting) < 2 else msgspec.structs.replace(f, settings=[label])
            at = next((i for i in free if _same(found[i], f)), None)
            if at is None:
                found.append(named)
                continue
            free.remove(at)
            found[at] = msgspec.structs.replace(found[at], settings=[*found[at].settings, label])
    return registry.in_order(
        f if len(f.settings) == len(by_setting) else _named(f, by_setting) for f in found
    )


def _same(a: Finding, b: Finding) -> bool:
    return (a.code, a.severity, a.function, a.source, a.title) == (
        b.code,
        b.severity,
        b.function,
        b.source,
        b.title,
    )


def _named(f: Finding, by_setting: Mapping[str, Sequence[Variant]]) -> Finding:
    """``f`` with its settings in the title: what they have in common where no other setting has it, else one by one."""
    if not f.settings:
        return f
    mine = [by_setting[label][0].settings.items() for label in f.settings]
    common = [item for item in mine[0] if all(item in each for each in mine)]
    alike = [
        label for label, runs in by_setting.items() if all(i in runs[0].settings.items() for i in common)
    ]
    names = [" ".join(f"{k}={v}" for k, v in common)] if alike == f.settings and len(mine) > 1 else f.settings
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return msgspec.structs.replace(f, title=f"{f.title} (with {'; '.join(names[:MOST])}{more})")


def sub_run(f: Finding, variants: Sequence[Variant]) -> int | None:
    """The position among ``sub_runs`` of the run that the ids in the evidence of ``f`` are of; None: the run itself."""
    mine = [
        v
        for label, runs in groups(variants).items()
        if not f.settings or label == f.settings[0]
        for v in runs
    ]
    chosen = next((v for v in mine if _has(v, f)), mine[0])
    n = next(i for i, v in enumerate(variants) if v is chosen)
    return n - 1 if n else None


def _has(v: Variant, f: Finding) -> bool:
    return all(
        (e.compilation is None or e.compilation in v.run.compilations)
        and (e.program is None or e.program in v.run.programs or e.program in v.run.retargeted)
        for e in f.evidence
    )
