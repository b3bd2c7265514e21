"""The kinds of collectives, as XLA spells their opcodes."""

from __future__ import annotations

# In the order of messages; also ``collectives[].kind`` in the JSON report.
KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
    "ragged-all-to-all",
    "send",
    "recv",
)
