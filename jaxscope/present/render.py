"""Turn a message (the slug of a template and the values of its fields) into text."""

from __future__ import annotations

import string
from collections.abc import Iterator

from jaxscope.present.causes import clause
from jaxscope.present.imported_names import ImportedNames
from jaxscope.present.messages import SHORT, TEMPLATES
from jaxscope.present.text import brief, count, line, listed, seconds, size
from jaxscope.schema.causes import BODY, Cause, NewFunction
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Bytes, Count, Field, Message, Names, Parts, Percent, Seconds, Words

# Characters of a cause within a message, because its paths and values can have any length.
CLAUSE = 300


def text(value: Field, names: ImportedNames | None = None) -> str:
    """Return the text of ``value``, a message or the value of one of its fields: ``Bytes(1024)`` -> ``1.0
    KiB``. The text of None is empty. Names from the user's program are not escaped. ``names`` writes the
    names in templates, such as ``jax.jit``; None: they stay as they are.

    Raises:
      KeyError: there is no such template, or the template has a field that the message lacks.
    """
    match value:
        case None:
            return ""
        case str():
            return value
        case bool() | float():
            return str(value)
        case int():
            return f"{value:,}"
        case Message():
            return _filled(TEMPLATES[value.slug], value, names)
        case Cause():
            return brief(clause(value), CLAUSE)
        case Frame():
            return line(value)
        case Bytes():
            return size(value.bytes)
        case Seconds():
            return seconds(value.seconds)
        case Percent():
            return "less than 1%" if 0 < value.share < 0.005 else f"{value.share:.0%}"
        case Count():
            return count(value.n, value.one, value.many)
        case Names():
            return listed([text(one, names) for one in value.names], value.most, value.things)
        case Parts():
            return value.between.join(filter(None, (text(part, names) for part in value.parts)))


def short(words: Words) -> str:
    """Return the short form of a message, for a table, or its full text if it has none. ``words`` may also be
    a plain text, which is returned unchanged."""
    if isinstance(words, Message) and words.slug in SHORT:
        return _filled(SHORT[words.slug], words)
    return text(words)


def frames(words: Words, *, shortened: bool = False) -> Iterator[Frame]:
    """Yield the lines of code that the text of the message ``words`` contains; with ``shortened``, those of
    its short form. A plain text yields nothing."""
    if isinstance(words, Message):
        template = SHORT[words.slug] if shortened and words.slug in SHORT else TEMPLATES[words.slug]
        for _, name, _, _ in string.Formatter().parse(template):
            yield from _frames_of(words.fields[name]) if name else ()


def _frames_of(value: Field) -> Iterator[Frame]:
    """Yield the lines of code that the text of ``value``, the value of a field of a message, contains."""
    match value:
        case Frame():
            yield value
        case Message():
            yield from frames(value)
        case Cause(detail=NewFunction(form=form, line=Frame() as created)) if form != BODY:
            yield created
        case Names():
            for name in value.names[: value.most]:
                yield from _frames_of(name)
        case Parts():
            for part in value.parts:
                yield from _frames_of(part)


def _filled(template: str, message: Message, names: ImportedNames | None = None) -> str:
    """Return ``template`` with the fields of ``message`` as texts in place of its braces. ``names`` is that
    of ``text``."""
    fields = {name: text(field, names) for name, field in message.fields.items()}
    return (template if names is None else names.written(template)).format_map(fields)
