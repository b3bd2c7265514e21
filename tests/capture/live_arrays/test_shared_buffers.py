"""Which live arrays share memory, from their addresses."""

import pytest

from jaxscope import jax_internals
from jaxscope.capture.live_arrays.shared_buffers import SameSize, SharedBuffers


@pytest.mark.parametrize(
    ("addresses", "within"),
    [
        ([0x306000200, 0x306000200], 1),
        ([0x306000200, 0x307000200], 0),
        ([0, 0], 0),  # memory of a GPU ran out before the arrays were computed
    ],
)
def test_arrays_with_one_address_share_memory(addresses, within, monkeypatch):
    arrays = [[], []]
    found = dict(zip(map(id, arrays), addresses, strict=True))
    monkeypatch.setattr(jax_internals, "buffers", lambda array: [(0, found[id(array)])])
    shared = SharedBuffers()
    shared.search(arrays, [SameSize((0,), 4096, list(found))], named=())
    assert len(shared.within) == within
