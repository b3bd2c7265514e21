"""JX701 to JX714: a run is not what its baseline says. JX902: a comment that leaves nothing out.

Only their explanations: model.baseline compares, and rules.selection knows the comments.
"""

from __future__ import annotations

from jaxscope.rules.registry import declare
from jaxscope.schema.findings import ERROR, NOTE

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
declare("JX902", "unused-ignore", NOTE)
