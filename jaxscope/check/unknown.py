"""Make findings with the code JX901, about parts of a run that a check could not consider. Notes make a check
fail only with ``--strict``; warnings and errors always do."""

from __future__ import annotations

import difflib

import msgspec

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


def unchecked(text: Words) -> Finding:
    """Return an error (JX901) with the title ``text``, which says what could not be checked and why."""
    return msgspec.structs.replace(unchecked_note(text), severity=ERROR)


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


def no_such_function(run: Run, pattern: str) -> Finding:
    """Return an error (JX901) that no recorded function matches ``pattern``, a name or pattern in the options
    of a check. Its fix suggests a similar name, if there is one."""
    names = {f.display_name for f in run.functions.values() if f.user}
    near = difflib.get_close_matches(pattern, names, 1, 0.5)
    text = message("no-such-function", pattern=repr(pattern))
    fix = message("fix-similar-name", name=near[0]) if near else None
    return msgspec.structs.replace(unchecked_note(text), severity=ERROR, fix=fix)
