"""Turn a message (the slug of a template and the values of its fields) into text."""

from __future__ import annotations

from jaxscope.present.causes import clause
from jaxscope.present.messages import SHORT, TEMPLATES
from jaxscope.present.text import brief, count, line, listed, seconds, size
from jaxscope.schema.causes import Cause
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Bytes, Count, Field, Message, Names, Parts, Percent, Seconds, Words

# Characters of a cause within a message, because its paths and values can have any length.
CLAUSE = 300


def text(value: Field) -> str:
    """Return the text of a message, or of the value of one of its fields: ``Bytes(1024)`` -> ``1.0 KiB``. The
    text of None is empty.

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
            return _filled(TEMPLATES[value.slug], value)
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
            return listed([*map(text, value.names)], value.most, value.things)
        case Parts():
            return value.between.join(filter(None, map(text, value.parts)))


def short(words: Words) -> str:
    """Return the short form of a message, for a table, or its full text if it has none. ``words`` may also be
    a plain text, which is returned unchanged."""
    if isinstance(words, Message) and words.slug in SHORT:
        return _filled(SHORT[words.slug], words)
    return text(words)


def _filled(template: str, message: Message) -> str:
    return template.format_map({name: text(field) for name, field in message.fields.items()})
