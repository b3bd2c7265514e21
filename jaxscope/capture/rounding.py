"""Find host arrays that lose information when JAX converts them to a smaller dtype.

Without ``jax_enable_x64``, ``jnp.asarray`` converts float64 to float32 and int64 to int32, without a warning:
different timestamps become equal, and integers above 2**31 wrap around.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ROWS, COLUMNS = 1000, 8  # the part of an array that is examined
FEWEST = 20  # numbers or pairs that are examined
FAR = 4  # numbers are far from 0 if the largest is more than FAR times their range
ROUNDING = 2.0**-44  # differences below this part of a number are rounding errors of float64
SMALLER = {"float64": "float32", "int64": "int32", "uint64": "uint32"}


def lost(values: Any, dtype: str) -> float | None:
    """Return the share (from 0 to 1) of the information that ``values`` lose when they are converted to
    ``dtype``. For integers, it is the share of the numbers that change. For floats, it is the share of the
    pairs of different neighbors along the first axis that become equal.

    Only the first ROWS and COLUMNS are examined; of floats, only columns whose numbers are far from 0
    compared with their range, such as timestamps. Return None if there are too few numbers or pairs to
    examine, or if ``values`` is not a NumPy array of 64-bit numbers that JAX converts to ``dtype``.
    """
    if type(values) is not np.ndarray or values.ndim == 0 or values.size == 0:
        return None
    if SMALLER.get(values.dtype.name) != dtype:
        return None
    # A view, also of a large array: nothing is copied. Of the dimensions in between, index 0 is taken.
    between: list[int | slice] = [0] * (values.ndim - 2)
    part = values[(slice(ROWS), *between, slice(COLUMNS))[: values.ndim]]
    with np.errstate(all="ignore"):
        small = part.astype(dtype)
    if values.dtype.kind != "f":
        return float((small != part).mean()) if part.size >= FEWEST else None
    # Values that begin near 0, such as a schedule, keep all differences that matter: only those far from 0,
    # such as timestamps, lose them. A difference in the last bits of a float64 is a rounding error.
    rows = slice(None, None, max(1, len(values) // ROWS))
    spread = values[(rows, *between, slice(COLUMNS))[: values.ndim]]
    with np.errstate(all="ignore"):
        spread = np.where(spread == 0, np.nan, spread)  # zeros are often padding
        span = np.fmax.reduce(spread) - np.fmin.reduce(spread)
        far = np.fmax.reduce(np.abs(spread)) > FAR * span
        gaps = np.abs(part[1:] - part[:-1]) > ROUNDING * np.abs(part[1:])
    differ = gaps & far & np.isfinite(part[1:]) & np.isfinite(part[:-1])
    count = int(differ.sum())
    return float((differ & (small[1:] == small[:-1])).sum()) / count if count >= FEWEST else None
