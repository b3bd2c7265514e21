"""Facts as data: old logs decode, every kind survives the way to disk and back."""

import msgspec
import pytest

from jaxscope.schema import events as ev

KINDS = ev.AnyEvent.__args__


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_every_kind_decodes_from_its_name_alone(kind):
    text = msgspec.json.encode({"kind": kind.__name__})
    assert msgspec.json.decode(text, type=ev.AnyEvent) == kind()
    assert msgspec.json.decode(msgspec.json.encode(kind()), type=ev.AnyEvent) == kind()


def test_fields_that_say_nothing_take_no_room():
    assert msgspec.json.encode(ev.Step(index=3)) == b'{"kind":"Step","index":3}'


def test_events_cannot_be_changed():
    with pytest.raises(AttributeError):
        ev.Step(index=1).index = 2
