"""Compute the bytes that one device sends for one collective.

With ``n`` devices in a group and the algorithms that reach the lower bound on a ring (Chan, Heimlich,
Purkayastha, van de Geijn: Collective communication, 2007), where ``B`` is the size of the largest
side on one device (result of an all-gather, input of a reduce-scatter, either side of the others):

=====================  ==============================================================
all-reduce             2 (n-1)/n B: a reduce-scatter, then an all-gather
all-gather             (n-1)/n B
reduce-scatter         (n-1)/n B
all-to-all             (n-1)/n B: everything but the own part
collective-permute     B, if any device sends to another one
collective-broadcast   B
ragged-all-to-all      not known: the sizes are data
send                   B; between slices of a TPU what its collective sends, where B is the
                       payload, the input of the collective
recv                   0, its bytes are those of the send
=====================  ==============================================================

A tree or a switch that reduces (NVLS, SHARP) sends less, a latency-bound algorithm more.
"""

from __future__ import annotations


def wire_bytes(
    kind: str,
    result_bytes: int | None,
    group_size: int | None,
    *,
    moves: bool = True,
    transfer: str | None = None,
) -> int | None:
    """Return the bytes sent per device and execution, rounded down; None if something is unknown.

    Args:
      result_bytes: the result on one device (the payload of a send).
      group_size: members of a group.
      transfer: for a send between slices, the collective that it is a part of.
      moves: for a permute, whether any pair has two different ends.
    """
    if kind == "recv":
        return 0
    if result_bytes is None:
        return None
    if kind == "send" and transfer is not None and group_size:
        if transfer == "all-gather":
            result_bytes *= group_size
        elif transfer == "reduce-scatter":
            result_bytes //= group_size
        return wire_bytes(transfer, result_bytes, group_size, moves=moves)
    if kind == "send":
        return result_bytes
    if kind == "collective-permute":
        return result_bytes if moves else 0
    if not group_size:
        return None
    others = group_size - 1
    if kind == "all-reduce":
        return 2 * others * result_bytes // group_size
    if kind in ("all-gather", "all-to-all"):
        return others * result_bytes // group_size
    if kind == "reduce-scatter":
        return others * result_bytes
    if kind == "collective-broadcast":
        return result_bytes if others else 0
    return None
