"""What the operations outside jit of one line belong to."""

from types import SimpleNamespace

import pytest

from jaxscope.model import payers


def line(*compilations):
    """A line that compiled operations with arguments of these shapes, in this order."""
    keys = [SimpleNamespace(arguments=[SimpleNamespace(shape=s) for s in shapes]) for shapes in compilations]
    matmul = SimpleNamespace(seen=SimpleNamespace(name="matmul"))
    return SimpleNamespace(compilations=[SimpleNamespace(key=key, function=matmul) for key in keys])


@pytest.mark.parametrize(
    ("compilations", "follows"),
    [
        # the layers of a net, and what it computes after each
        ([[(8, 32), (32, 64)], [(8, 64)], [(8, 64), (64, 96)], [(8, 96)], [(8, 96), (96, 128)]], True),
        # batches of other sizes, for one net
        ([[(64, 8), (8, 16)], [(64, 16)], [(29, 8), (8, 16)], [(29, 16)], [(17, 8), (8, 16)]], False),
        # a series that grows
        ([[(12,), (1,)], [(13,)], [(13,), (1,)], [(14,)], [(14,), (1,)], [(15,)]], False),
        ([[(12, 12)], [(13, 13)], [(14, 14)]], False),
        ([[(8, 32), (32, 64)], [(8, 64), (64, 96)]], False),  # one new size proves nothing
        ([], False),
    ],
)
def test_the_widths_of_layers_follow_from_each_other_and_sizes_of_data_do_not(compilations, follows):
    assert payers._each_size_follows(line(*compilations)) is follows
