"""Declare the codes (JX190, ...) that only ``jaxscope check`` reports, because they need a limit or a
baseline. The package ``jaxscope.check`` computes their findings."""

from __future__ import annotations

from jaxscope.rules.registry import declare
from jaxscope.schema.findings import ERROR, NOTE

declare("JX190", "recompile-after-step", ERROR, needs_limit=True)
declare("JX191", "too-many-compilations", ERROR)
declare("JX291", "too-long-compiling", ERROR)
declare("JX491", "too-much-communication", ERROR)
declare("JX591", "too-much-memory", ERROR)
declare("JX592", "too-large-constants", ERROR)
declare("JX701", "baseline-compilations", ERROR)
declare("JX702", "baseline-communication", ERROR)
declare("JX703", "baseline-fusions", ERROR)
declare("JX704", "baseline-memory", ERROR)
declare("JX705", "baseline-donation", ERROR)
declare("JX706", "baseline-constants", ERROR)
declare("JX707", "baseline-precision", ERROR)
declare("JX708", "baseline-callbacks", ERROR)
declare("JX709", "baseline-loops", ERROR)
declare("JX710", "baseline-unused", NOTE)
declare("JX711", "baseline-improved", NOTE)
declare("JX712", "baseline-elsewhere", NOTE)
declare("JX713", "baseline-flops", ERROR)
declare("JX714", "baseline-transfers", ERROR)
declare("JX901", "not-known", NOTE)
declare("JX902", "unused-ignore", NOTE)
