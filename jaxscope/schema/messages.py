"""Sentences as data: the slug of a template and the typed values of its fields.

``present`` has the templates and makes the text; rules and model, which create messages, do not see that
text.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from jaxscope.schema.causes import Cause
from jaxscope.schema.keys import Frame


class Bytes(msgspec.Struct, frozen=True, gc=False):
    """A number of bytes: ``3.4 MiB``."""

    bytes: float


class Seconds(msgspec.Struct, frozen=True, gc=False):
    """A duration: ``28.1 s``; None: unknown."""

    seconds: float | None


class Percent(msgspec.Struct, frozen=True, gc=False):
    """A share of one: ``12%``."""

    share: float


class Count(msgspec.Struct, frozen=True, gc=False):
    """A number of things: ``1 call``, ``0.5 calls``.

    Attributes:
      one: the singular.
      many: the plural; None: ``one`` with an s.
    """

    n: float
    one: str
    many: str | None = None


class Names(msgspec.Struct, frozen=True, gc=False):
    """A list: ``a, b and c``.

    Attributes:
      most: how many are listed; the rest is counted: ``a, b and 4 more``.
      things: what is counted: ``a, b and 4 more lines``.
    """

    names: tuple[str | Message, ...]
    most: int | None = None
    things: str = ""


class Message(msgspec.Struct, frozen=True):
    """One sentence, or a part of one.

    Attributes:
      slug: the name of its template in ``present/messages``.
      fields: the values of the template's fields, by name. A part that may be missing is a field that is
        None.
    """

    slug: str
    fields: dict[str, Field] = {}


class Parts(msgspec.Struct, frozen=True):
    """Several parts one after the other, with ``between`` between them."""

    parts: tuple[Field, ...]
    between: str = ", "


Field: TypeAlias = (
    str | int | float | Bytes | Seconds | Percent | Count | Names | Frame | Cause | Message | Parts | None
)
Words: TypeAlias = Message | str  # a plain text is taken as it is


def message(slug: str, /, **fields: Field) -> Message:
    """Return the message with the template ``slug``."""
    return Message(slug, fields)
