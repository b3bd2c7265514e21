"""The errors jaxscope raises: what happened with the values, then the next command to type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class JaxscopeError(Exception):
    """An error a person can act on.

    Args:
      message: what happened, with the values.
      hint: the next command or edit, or None.
      slug: a short name, stable between versions, for the documentation and for tests.
    """

    def __init__(self, message: str, *, hint: str | None = None, slug: str = "error") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.slug = slug

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(JaxscopeError):
    """The command line or the configuration asks for something that does not exist. Exit code 2."""


class RunNotFound(JaxscopeError):
    """No run directory under that name."""


class LogError(JaxscopeError):
    """A run directory that cannot be written or read at all."""


class RecompileError(JaxscopeError):
    """Something was traced, lowered or compiled where that was ruled out.

    Attributes:
      findings: what, why, on which line, and what it cost, each a ``schema.findings.Finding``; the most
        expensive first.
    """

    def __init__(self, message: str, findings: Sequence[Any] = (), *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, slug="recompile")
        self.findings = list(findings)


class NotAsPinned(AssertionError):
    """What was compiled in ``pinned()`` is not what the test's baseline says."""


def to_be_read(excinfo: Any) -> bool:
    """Is ``excinfo`` (pytest's) an error that says all there is to say? As ``__tracebackhide__`` of a module it keeps
    the module's lines out of the failure: of any other error they are shown."""
    return isinstance(excinfo.value, (JaxscopeError, NotAsPinned))
