"""Numbers that a conversion to a smaller dtype does not keep apart."""

import numpy as np
import pytest

from jaxscope.capture.rounding import COLUMNS, ROWS, lost

TIMES = 1.7e9 + np.arange(3000) * 64.0  # float32 has a number every 128 there
WHOLE = np.arange(3000)


class Mine(np.ndarray):
    pass


@pytest.mark.parametrize(
    ("values", "dtype", "share"),
    [
        (TIMES, "float32", 0.5),
        (np.stack([WHOLE * 1.0, TIMES], axis=1), "float32", 0.5),  # of the second column
        (1.7e9 + WHOLE * 300.0, "float32", 0.0),
        (np.where(WHOLE > 2500, 0.0, TIMES), "float32", 0.5),  # padded
        (TIMES - TIMES[0], "float32", None),  # not far from 0
        (0.05 * (1 + np.cos(np.pi * np.arange(200_000) / 200_000)), "float32", None),  # a schedule
        (1.0 + (WHOLE % 3) * 2.0**-52, "float32", None),  # rounding errors
        (np.random.default_rng(0).normal(size=(500, 3)), "float32", None),
        (np.full(500, np.pi), "float32", None),  # no two neighbors differ
        (np.where(WHOLE % 2, np.nan, np.inf), "float32", None),
        (WHOLE + 2**31 - 500, "int32", 0.5),
        (WHOLE, "int32", 0.0),
        (TIMES.astype(np.float32), "float32", None),  # nothing is converted
        (TIMES, "bfloat16", None),  # the program asked for it
        (TIMES[:5], "float32", None),
        (np.float64(1.7e9), "float32", None),
        (TIMES.view(Mine), "float32", None),  # its methods are the program's
        (list(TIMES), "float32", None),
        (np.zeros((0, 3)), "float32", None),
        (np.zeros((3, 0)), "float32", None),
    ],
)  # fmt: skip
def test_the_share_of_lost_differences(values, dtype, share):
    found = lost(values, dtype)
    assert found == share if share is None else found == pytest.approx(share, abs=0.01)


def test_only_a_part_of_a_large_array_is_examined():
    large = np.broadcast_to(TIMES[: ROWS + 100, None], (ROWS + 100, COLUMNS + 2)).copy()
    large[:ROWS, :COLUMNS] = 1.7e9 + 300.0 * np.arange(ROWS)[:, None]
    assert lost(large, "float32") == 0.0


@pytest.mark.parametrize("shape", [(200,), (200, 1), (200, 5), (200, 3, 9), (200, 2, 2, 4)])
def test_arrays_of_any_number_of_dimensions_are_examined_without_a_copy(shape):
    values = np.broadcast_to(TIMES[:200].reshape(200, *[1] * (len(shape) - 1)), shape)
    assert lost(values, "float64") is None and lost(values, "float32") == pytest.approx(0.5, abs=0.01)
