"""Indices that are padded with -1 and used where an index out of range is dropped."""

import pytest

from jaxscope.analysis.padded_indices import find

GRAPH = """
def edges(n):
    pad = (0, 8 - n)
    return np.pad(range(n), pad, constant_values=-1), np.pad(range(n), pad, constant_values=-1)

def spread(h, senders, receivers):
    moved = h[senders]
    return h.at[receivers].add(moved, mode="drop")

senders, receivers = edges(5)
print(spread(h, senders, receivers))
"""
USE = 'h.at[receivers].add(moved, mode="drop")'


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (("", ""), [("spread", 8, "receivers", 4, "add", "drop")]),
        (("drop", "fill"), [("spread", 8, "receivers", 4, "add", "fill")]),
        (
            ('mode="drop"', "mode=lax.GatherScatterMode.FILL_OR_DROP"),
            [("spread", 8, "receivers", 4, "add", "drop")],
        ),
        ((USE, 'jnp.take(h, receivers, mode="fill")'), [("spread", 8, "receivers", 4, "take", "fill")]),
        (
            (USE, 'h.at[graph.receivers].set(moved, mode="drop")'),
            [("spread", 8, "receivers", 4, "set", "drop")],
        ),
        (
            (USE, 'h.at[graph["receivers"], 0].set(moved, mode="drop")'),
            [("spread", 8, "receivers", 4, "set", "drop")],
        ),
        (("constant_values=-1", "constant_values=99"), []),
        ((', mode="drop"', ""), []),  # the default: nothing says that -1 should be left out
        (('mode="drop"', 'mode="clip"'), []),
        (('mode="drop"', 'mode="drop", wrap_negative_indices=False'), []),
        (("moved = h[senders]", "moved = h[senders] * mask[:, None]"), []),
        (("moved = h[senders]", "moved = jnp.where(receivers >= 0, h[senders], 0)"), []),
        (("senders, receivers = edges(5)", "receivers, senders = [edges(5)]"), []),
        (("moved = h[senders]", "receivers = jnp.argsort(senders)\n    moved = h[senders]"), []),
        (("print(spread", "print((0 <= receivers).sum(), spread"), []),
        (("return h.at", "total = h.at"), [("spread", 8, "receivers", 4, "add", "drop")]),
        (
            (
                'return h.at[receivers].add(moved, mode="drop")',
                'return h.at[receivers].add(moved, mode="drop")[:-1]',
            ),
            [],
        ),
        (("return h.at", "return jnp.zeros(n + 1).at"), []),
        ((USE, 'present * jnp.take(h, receivers, mode="fill")'), []),
    ],
)
def test_a_padded_index_that_is_not_left_out_is_found(change, found):
    assert find(GRAPH.replace(*change)) == found


@pytest.mark.parametrize(
    "pads",
    [
        "i = jnp.full(8, -1)",
        "i = np.full((8, 2), fill_value=-1)",
        "i = jnp.where(mask, n, -1)",
        "i = jnp.nonzero(mask, size=8, fill_value=-1)",
        "i = jnp.asarray(np.pad(n, 8, constant_values=-1))",
        "batch = {'i': np.full(8, -1)}",
        "batch = Batch(i=np.full(8, -1))",
        "i, k = np.full(8, -1), 3",
    ],
)
def test_each_way_to_pad_is_known(pads):
    assert [one.padded for one in find(f'{pads}\nx = x.at[i].set(y, mode="drop")')] == [1]


def test_a_file_that_cannot_be_parsed_has_no_such_line():
    assert find("mode = (:") == [] and find(None) == []
