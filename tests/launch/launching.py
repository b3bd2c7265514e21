"""What tests of ``jaxscope run`` share besides fixtures."""

import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
RUN = [sys.executable, "-m", "jaxscope", "run"]


def until(true, *, seconds=60.0):
    """Wait for ``true()`` and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := true():
            return value
        time.sleep(0.01)
    raise AssertionError(f"not within {seconds} s")
