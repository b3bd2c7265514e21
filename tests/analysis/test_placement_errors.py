"""JAX's sentences about arrays that cannot be placed so, as JAX 0.10.2 and 0.12.0.1 say them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis.placement_errors import Apart, Indivisible, Mismatch, read


def named(spec):
    return f"NamedSharding(mesh=Mesh('data': 8, axis_types=(Auto,)), spec={spec}, memory_kind=device)"


DATA, ROWS, BOTH = "P('data',)", "P('data', None)", "P(('a', 'b'),)"
UNEVEN = (
    "implies that array axis 0 is partitioned 8 times, but the dimension size is 17 (full shape: (17, 4), "
)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f"Sharding {named(DATA)} {UNEVEN}per-dimension", Indivisible(0, 8, 17, None)),
        (
            f"One of pjit arguments with pytree key path batch['x'] was given the sharding {named(DATA)} {UNEVEN}",
            Indivisible(0, 8, 17, "batch['x']"),
        ),
        (
            "shard_map applied to the function 'f' was given argument arrays with axis sizes that are not evenly "
            "divisible by the corresponding mesh axis sizes:\n\nThe mesh given has shape (8,)\n\nthe passed args[0] of "
            "shape float32[17,4], where args[0] is bound to f's parameter 'x', corresponds to in_specs of value "
            "P('data',), which maps array axis 0 (of size 17) to mesh axis 'data' (of size 8), but 8 does not",
            Indivisible(0, 8, 17, "args[0]"),
        ),
        (
            "Received incompatible devices for jitted computation. Got argument params['w'] of f with shape "
            "float32[4,4] and with device ids [1] on platform CPU and argument x of f with shape float32[16,4] and "
            "with device ids [0, 1, 2, 3] on platform CPU",
            Apart((("params['w']", "1"), ("x", "0, 1, 2, 3"))),
        ),
        (
            "Received incompatible devices for jitted computation. Got argument x of f.<locals>.g with shape "
            "float32[16,4] and with device ids [1] on platform CPU and sharding_constraint inside jit with device ids "
            "[0, 1] on platform CPU at /tmp/e.py:17:47 (<lambda>)",
            Apart((("x", "1"), ("sharding_constraint inside jit", "0, 1"))),
        ),
        (
            "Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: "
            f"{named(ROWS)},\narg sharding: {named('P()')} for arg type: float32[16,4]",
            Mismatch("P('data')", "P()", "float32[16,4]"),
        ),
        (
            "Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: "
            f"{named(BOTH)},\narg sharding: SingleDeviceSharding(device=CpuDevice(id=3), "
            "memory_kind=device) for arg type: float32[16,4]",
            Mismatch("P(('a', 'b'))", 3, "float32[16,4]"),
        ),
    ],
)
def test_what_jax_refuses_is_understood(message, expected):
    assert read(message) == expected


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Array has been deleted with shape=float32[4,4].",
        "array axis 0 is partitioned 0 times, but the dimension size is 17",
        "array axis 0 is partitioned 4 times, but the dimension size is 16",  # it divides: something else
        "Received incompatible devices for jitted computation. Got argument x of f with device ids [1]",
    ],
)
def test_any_other_message_is_none_of_these(message):
    assert read(message) is None


WORDS = [
    "Received incompatible devices for jitted computation. Got ", "argument x of f ", "with device ids [", "1, 2]",
    "Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: ", "spec=P(", "'a',)",
    ", arg sharding: ", " for arg type: f32[]", "array axis 0 is partitioned ", "(of size 8)", "the passed x of shape ",
]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=30).map("".join))
def test_no_message_is_too_odd(message):
    read(message)
