"""Print the messages of commands on stderr."""

from __future__ import annotations

import contextlib
import sys


def print_message(*lines: str | None) -> None:
    """Write one message to stderr. The first line says what happened; the others, which are indented, say
    what to do. Lines that are None are skipped."""
    messages = [line for line in lines if line]
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr may be closed, or None
        sys.stderr.write("".join(f"{'  ' if n else 'jaxscope: '}{line}\n" for n, line in enumerate(messages)))
        sys.stderr.flush()
