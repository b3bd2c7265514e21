"""The errors that jaxscope raises. Each message states what happened, with the values, and what to do
next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class JaxscopeError(Exception):
    """An error that the user can resolve.

    Args:
      message: what happened, with the values that caused it.
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
    """An option, a name or a value is invalid, on the command line, in the configuration or in a call of
    jaxscope."""


class RunNotFound(JaxscopeError):
    """There is no such run, or no such recording in a run."""


class LogError(JaxscopeError):
    """A run directory cannot be written or read."""


class RecompileError(JaxscopeError):
    """In a block of ``jaxscope.no_recompiles``, something was traced, lowered or compiled after the last
    allowed step. The error is also raised if the step of a compilation is unknown, or if a function to check
    does not exist.

    Attributes:
      findings: a ``schema.findings.Finding`` for each function and cause: what was compiled, on which line,
        and how long it took, the most expensive first. Then follow the findings about unknown steps, and
        about functions that do not exist.
    """

    def __init__(self, message: str, findings: Sequence[Any] = (), *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, slug="recompile")
        self.findings = list(findings)


class NotAsPinned(AssertionError):
    """The programs that a test compiled inside ``with jaxscope.pinned():`` differ from the test's baseline, a
    file with figures of earlier programs. (``jaxscope`` is the pytest fixture.)"""


def to_be_read(excinfo: Any) -> bool:
    """Return whether the exception in ``excinfo`` (pytest's ``ExceptionInfo``) is a ``JaxscopeError`` or a
    ``NotAsPinned``, whose message suffices without a traceback. Modules of jaxscope set ``__tracebackhide__``
    to this function, so that pytest leaves their frames out of the tracebacks of these errors."""
    return isinstance(excinfo.value, (JaxscopeError, NotAsPinned))
