"""What commands say besides their product: on stderr, what happened and then what to do."""

from __future__ import annotations

import contextlib
import sys


def say(*lines: str | None) -> None:
    """One message on stderr: what happened, then what to do."""
    said = [line for line in lines if line]
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr may be closed, or none
        sys.stderr.write("".join(f"{'  ' if n else 'jaxscope: '}{line}\n" for n, line in enumerate(said)))
        sys.stderr.flush()
