"""A baseline written anew from a run: all of it, or only what is new, or without what is gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from jaxscope.model.baseline.comparing import elsewhere
from jaxscope.model.baseline.facts import Baseline
from jaxscope.model.baseline.file import BaselineError

ALL, NEW, TRIM = "all", "new", "trim"


def updated(old: Baseline | None, now: Baseline, how: str = ALL) -> Baseline:
    """``now``, with what is kept of ``old``; its tolerance always is.

    Args:
      how: all: as ``now`` is. new: entries that ``old`` has not are added. trim: entries that ``now`` has not
        are taken out.

    Raises:
      BaselineError: ``new`` or ``trim`` of a baseline of another environment.
    """
    if old is None:
        return now
    now = msgspec.structs.replace(now, tolerance={**now.tolerance, **old.tolerance})
    if how == ALL:
        return now
    different = elsewhere(old, now)
    if different:
        raise BaselineError(
            f"the baseline is of {' and '.join(different)}: it cannot be updated in part",
            hint="write all of it: jaxscope check --update-baseline",
            slug="baseline-elsewhere",
        )
    parts: dict[str, Mapping[str, Any]] = {}
    for name in ("functions", "eager", "findings", "transfers"):
        before, after = getattr(old, name), getattr(now, name)
        if before is None or after is None:  # one of them does not know
            continue
        parts[name] = {**after, **before} if how == NEW else {k: v for k, v in before.items() if k in after}
    return msgspec.structs.replace(old, **parts)
