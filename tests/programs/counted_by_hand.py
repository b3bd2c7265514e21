"""Runs programs, and holds every look at the live arrays against a count of JAX's own live arrays and their
buffers.

    python counted_by_hand.py PROGRAM...

Each look is followed at once by the count: every part of every live array by device and address, each buffer
once. It makes JAX keep the parts, which the next look finds. Prints what differs, and how many looks there
were.
"""

import gc
import os
import runpy
import sys

import jax

from jaxscope.capture.live_arrays import look
from jaxscope.model import arrays as model

gc.disable()
take = look.Look.take
looks = []


def by_hand():
    """(live arrays, bytes by device), each buffer once."""
    live = jax.live_arrays()
    held = {d.id: {} for d in jax.local_devices()}
    for array in live:
        for shard in array.addressable_shards:
            try:
                held[shard.device.id][shard.data.unsafe_buffer_pointer()] = (
                    shard.data.on_device_size_in_bytes()
                )
            except RuntimeError as e:  # the token of an ordered effect has no size
                assert "UNIMPLEMENTED" in str(e), e
    return len(live), {d: sum(sizes.values()) for d, sizes in held.items()}


def counted(self, *args, **more):
    jax.block_until_ready(jax.live_arrays())  # what memory a pending array shares is unknown
    event = take(self, *args, **more)
    seen = model.read(None, event)
    count, held = by_hand()
    looks.append(event.why)
    if (event.count + event.parts, seen.by_device) != (count, held):
        print(
            "differs:",
            program,
            event.why,
            (event.count, event.parts, seen.by_device),
            (count, held),
            flush=True,
        )
    return event


look.Look.take = counted
out = os.dup(1)
for program in sys.argv[1:]:
    sys.argv = [program]
    sys.path.insert(0, os.path.dirname(program))  # noqa: PTH120
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123  what the programs print is no matter
        os.dup2(nowhere.fileno(), 1)
        try:
            runpy.run_path(program, run_name="__main__")
        finally:
            sys.stdout.flush()
            os.dup2(out, 1)
    jax.clear_caches()
print("looks:", len(looks), "each:", ",".join(sorted(set(looks))))
