"""Compute the bytes that one device sends for one collective.

The formulas are for ``n`` devices in a group and the algorithms that reach the lower bound on a ring (Chan,
Heimlich, Purkayastha, van de Geijn: Collective communication, 2007). ``B`` is the bytes of the larger of
operand and result on one device: the result of an all-gather, the operand of a reduce-scatter.

=====================  ==============================================================
all-reduce             2 (n-1)/n B: a reduce-scatter, then an all-gather
all-gather             (n-1)/n B
reduce-scatter         (n-1)/n B
all-to-all             (n-1)/n B: everything but the device's own part
collective-permute     B, if any device sends to another one
collective-broadcast   B, if the group has several devices
ragged-all-to-all      unknown: the sizes depend on data
send                   B. Between the slices of a TPU a send is a part of another collective:
                       then it is the bytes of that collective
recv                   0: its bytes are counted at the send
=====================  ==============================================================

A tree, or a switch that reduces (NVLS, SHARP), sends less; an algorithm for low latency sends more.
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
    """Return the bytes that one device sends in one execution of a collective, rounded down. Return None if
    they are unknown.

    Args:
      kind: the kind of the collective: ``all-gather``, ...
      result_bytes: bytes of the result on one device; for a send, bytes of the data that is sent; None:
        unknown.
      group_size: number of devices in a group; None: unknown.
      moves: for a permute, whether any pair (source, target) has two different devices.
      transfer: for a send between TPU slices, the kind of collective that the send is a part of; else None.
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
