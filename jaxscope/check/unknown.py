"""Make findings with the code JX901, about parts of a run that a check could not consider. Notes make a check
fail only with ``--strict``; warnings and errors always do."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import msgspec

from jaxscope.model.function_lookup import matches
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.schema.findings import CERTAIN, ERROR, NOTE, WARNING, Evidence, Finding
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Words, message

CODE = "JX901"


def unchecked_note(text: Words, c: Compilation | None = None) -> Finding:
    """Return a note (JX901) with the title ``text``, which says what a check could not consider. ``c`` is the
    compilation that the note is about; None: the whole run."""
    if c is None:
        return Finding(CODE, NOTE, CERTAIN, text)
    return Finding(
        CODE, NOTE, CERTAIN, text, c.function.id, c.site, [Evidence(text, compilation=c.id, source=c.site)]
    )


def unchecked(text: Words, c: Compilation | None = None, fix: Words | None = None) -> Finding:
    """Return an error (JX901) with the title ``text``, which says what could not be checked and why. ``c`` is
    as in ``unchecked_note``."""
    return msgspec.structs.replace(unchecked_note(text, c), severity=ERROR, fix=fix)


def program_failed(failure: Words, source: Frame | None, *, surely: bool) -> Finding:
    """Return a finding (JX901) that the program failed, so that only the part before the failure was checked.

    Args:
      failure: how the program failed.
      source: the user's line that raised the exception; None: unknown.
      surely: whether this was certainly a failure. True: the finding is a warning. False (the exit code may
        be intended): a note.
    """
    found = unchecked_note(message("checked-until-failure", failure=failure))
    return msgspec.structs.replace(found, severity=WARNING if surely else NOTE, source=source)


def no_such_function(run: Run, pattern: str) -> Iterator[Finding]:
    """Yield an error (JX901) if no recorded function matches ``pattern``, a name or pattern in the options of
    a check, and the program's files define none with this name. Its fix suggests a similar name, if there is
    one."""
    if any(matches(f, pattern) for f in run.functions.values()) or run.defined(pattern):
        return
    names = {f.display_name for f in run.functions.values() if f.user}
    near = difflib.get_close_matches(pattern, names, 1, 0.5)
    text = message("no-such-function", pattern=repr(pattern))
    fix = message("fix-similar-name", name=near[0]) if near else None
    yield unchecked(text, fix=fix)
