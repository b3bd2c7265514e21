"""Messages to the user as data: the name of a template and typed values for the fields of the template.

The packages ``rules`` and ``model`` create messages. ``present`` has the templates and writes the text.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from jaxscope.schema.causes import Cause
from jaxscope.schema.keys import Frame


class Bytes(msgspec.Struct, frozen=True, gc=False):
    """A number of bytes in a message to the user, written as ``3.4 MiB``."""

    bytes: float


class Seconds(msgspec.Struct, frozen=True, gc=False):
    """A duration in a message to the user, written as ``28.1 s``; None: unknown."""

    seconds: float | None


class Percent(msgspec.Struct, frozen=True, gc=False):
    """A fraction in a message to the user, written in percent: a ``share`` of 0.12 as ``12%``, one below
    0.005 as ``less than 1%``."""

    share: float


class Count(msgspec.Struct, frozen=True, gc=False):
    """A number with a noun in a message to the user, written as ``1 call`` or ``0.5 calls``. ``one`` is the
    noun in the singular, ``many`` in the plural; None: ``one`` with an s."""

    n: float
    one: str
    many: str | None = None


class Names(msgspec.Struct, frozen=True, gc=False):
    """A list of names in a message to the user, written as ``a, b and c``.

    Attributes:
      most: how many names are written; the others are counted: ``a, b and 4 more``. None: all are written.
      things: the noun for the counted names: with ``lines``, the text is ``a, b and 4 more lines``.
    """

    names: tuple[str | Message | Frame, ...]
    most: int | None = None
    things: str = ""


class Message(msgspec.Struct, frozen=True):
    """A sentence, or a part of one: the name of a template in ``present/messages``, and the values for its
    fields.

    Attributes:
      slug: the name of the template: ``exit-code``.
      fields: the values of the template's fields, by name. A field that is None, such as an optional part of
        the sentence, is written as nothing.
    """

    slug: str
    fields: dict[str, Field] = {}


class Parts(msgspec.Struct, frozen=True):
    """Several parts of a message (texts, numbers, lines, messages, ...), written one after the other. The
    text ``between`` separates them. Parts that are None or an empty text are left out."""

    parts: tuple[Field, ...]
    between: str = ", "


Field: TypeAlias = (
    str | int | float | Bytes | Seconds | Percent | Count | Names | Frame | Cause | Message | Parts | None
)
Words: TypeAlias = Message | str  # a str is shown unchanged


def message(slug: str, /, **fields: Field) -> Message:
    """Return a message to the user, which ``present`` writes as text. ``slug`` is the name of a template in
    ``present/messages`` (``exit-code``). ``fields`` are the values for the template's fields, by name."""
    return Message(slug, fields)
