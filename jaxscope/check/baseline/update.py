"""A baseline written anew from a run: what people have set in the old one stays."""

from __future__ import annotations

import msgspec

from jaxscope.check.baseline.schema import Baseline


def updated(old: Baseline | None, now: Baseline) -> Baseline:
    """``now``, with the tolerance of ``old``."""
    if old is None:
        return now
    return msgspec.structs.replace(now, tolerance={**now.tolerance, **old.tolerance})
