"""The kinds of collectives, as XLA spells their opcodes."""

from __future__ import annotations

# Messages list collectives in this order. The names are also the values of ``collectives[].kind`` in the
# JSON report.
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
