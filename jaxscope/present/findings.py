"""Write a finding as text: its title, its fix, its evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import PurePath

import msgspec

from jaxscope.present.imported_names import ImportedNames
from jaxscope.present.render import frames, short, text
from jaxscope.present.spans import Span
from jaxscope.present.text import Places, line, seconds
from jaxscope.schema.findings import CERTAIN, ERROR, NOTE, Contexts, Evidence, Finding, fix_of
from jaxscope.schema.keys import Frame, same_line
from jaxscope.schema.messages import Message, Names, Parts, message

NAMED = 3  # targets or settings that a title names


def stable_id(f: Finding) -> str:
    """Return an id that the same finding also has in other runs: ``JX101-0123456789ab``."""
    return f"{f.code}-{hashlib.sha256(repr(f.identity).encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def title(f: Finding) -> str:
    """Return the title of a finding. If only some targets (machines), settings or compilations have the
    finding, the title ends with their names: ``... (for v5e:4x4)``. At most NAMED targets and settings are
    named."""
    return text(f.title) + _contexts(f.contexts)


def sentence(f: Finding) -> str:
    """Return the title of a finding; if the finding is not certain, it begins with "it seems that"."""
    return title(f) if f.certainty == CERTAIN else f"it seems that {title(f)}"


def mark(f: Finding) -> Span:
    """Return (glyph, style) for the severity of a finding: ``✖`` error, ``▲`` warning, ``·`` note."""
    return {ERROR: ("✖", "error"), NOTE: ("·", "note")}.get(f.severity, ("▲", "warning"))


def headline(f: Finding) -> str:
    """Return the short title of a finding, for a table. It ends with the same names as ``title``."""
    return short(f.title) + _contexts(f.contexts)


def subject(f: Finding) -> str:
    """Return what distinguishes a finding from others of its rule and function, as text: ``batch['x'] ·
    train.py:12``."""
    return " · ".join(_parts(f.identity.subject, None if f.source is None else f.source.file))


def _parts(value: object, file: str | None) -> Iterator[str]:
    """Yield the parts of ``value``, the subject of a finding, as texts. ``file`` is the finding's source
    file, of which only the last part is written."""
    if isinstance(value, Frame):
        yield line(value)
    elif isinstance(value, str):
        yield PurePath(value).name if value == file else value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _parts(part, file)
    elif isinstance(value, (set, frozenset)):
        yield from sorted(found for part in value for found in _parts(part, file))
    elif isinstance(value, Message):
        yield text(value)
    elif isinstance(value, msgspec.Struct):
        yield from _parts(msgspec.structs.astuple(value), file)
    elif value is not None:
        yield str(value)


def place(f: Finding, places: Places, *, shortened: bool = False) -> str | None:
    """Return the line of the finding ``f``, which is printed beside its title: ``train.py:31``. None if the
    line is unknown, or if the title already contains it.

    Args:
      places: shortens file names.
      shortened: whether the short title (``headline``) is printed.
    """
    where = places.frame(f.source)
    named = [line(o) for o in frames(f.title, shortened=shortened) if same_line(o, f.source)]
    return None if where is None or where in named else where


def cost(f: Finding) -> str:
    """Return the seconds that a finding costs as ``9.6 s``, or as ``up to 9.6 s`` if the fix may save less.
    Empty if the finding costs no time, or if the time is unknown."""
    if not f.seconds:
        return ""
    return f"up to {seconds(f.seconds)}" if f.at_most else seconds(f.seconds)


def fix_text(f: Finding) -> str | None:
    """Return the text of a finding's fix: what the user can do. None if no fix is known. Functions of JAX and
    NumPy have the names by which the user's file imports them; the text ends with the import statements that
    the file lacks."""
    fix = fix_of(f)
    if fix is None:
        return None
    names = ImportedNames(fix.imported)
    words = text(fix.words, names)
    if not names.missing:
        return words
    return text(message("fix-with-imports", fix=words, imports="; ".join(names.missing)))


def evidence(e: Evidence) -> str:
    """Return ``e``, one observation that supports a finding, as text. If the observation belongs to a target
    (a machine, ``--target``) or to a setting of ``run --vary``, the text names it: ``for v5e:4x4: ...``."""
    found = text(e.text)
    if e.target is not None:
        return text(message("evidence-for-target", target=e.target, evidence=found))
    if e.setting is not None:
        return text(message("evidence-with-setting", setting=e.setting, evidence=found))
    return found


def _contexts(c: Contexts) -> str:
    """Return the end of a title, which names compilations, targets and settings: ``" (for v5e:4x4)"``; empty
    if there are none."""
    parts: list[Message] = []
    if c.programs:
        programs = Names(tuple(f"#{n}" for n in c.programs))
        noun = "compilation" if len(c.programs) == 1 else "compilations"
        if c.latest is None:
            parts.append(message("in-programs", noun=noun, programs=programs))
        else:
            latest = f"#{c.latest}"
            parts.append(message("in-programs-not-latest", noun=noun, programs=programs, latest=latest))
    if c.targets and not c.in_title:
        targets = Parts(tuple(c.targets[:NAMED])), _more(c.targets)
        named = Parts(targets, between="")
        parts.append(
            message("also-for-targets", targets=named) if c.ran else message("for-targets", targets=named)
        )
    if c.named:
        settings = Parts((Parts(tuple(c.named[:NAMED]), between="; "), _more(c.named)), between="")
        parts.append(message("with-settings", settings=settings))
    return "".join(map(text, parts))


def _more(names: list[str]) -> str:
    """Return how many ``names`` are beyond the first NAMED: ``" and 2 more"``; empty if there are none."""
    return f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
