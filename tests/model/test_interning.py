"""What many keys have alike is one object."""

import msgspec

from jaxscope.model.interning import Shared
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame, Key, Leaf, Sharding


def missed(n, rows=8):
    """A call whose facts are decoded anew, as those of each line of a log are."""
    mesh = Sharding("NamedSharding", "P('d')", "0-7", (("d", 8, "Auto"),), "P('d',)", "device")
    leaves = [
        Leaf("x", "jax.Array", (rows, 8), "float32", False, 0),
        Leaf("w", "jax.Array", (8, 8), "float32"),
    ]
    key = Key(arguments=leaves, options={"donate_argnums": "(0,)"}, shardings=[mesh], function_object=1)
    event = ev.Missed(call=n, function="f@a.py:1", key=key, site=Frame("a.py", 3, "main"), full={"c": (1, 2)})
    return msgspec.json.decode(msgspec.json.encode(event), type=ev.Missed)


def test_equal_keys_are_one_object_and_equal_parts_of_other_keys_too():
    shared = Shared()
    one, same, other = missed(1), missed(2), missed(3, rows=4)
    before = msgspec.json.encode([one, same, other])
    for event in (one, same, other):
        shared.of(event)
    assert one.key is same.key and one.site is same.site and one.full is same.full
    assert other.key is not one.key and other.key.options is one.key.options
    assert other.key.arguments[1] is one.key.arguments[1] and other.key.arguments[0] != one.key.arguments[0]
    assert other.key.shardings is one.key.shardings
    assert msgspec.json.encode([one, same, other]) == before


def test_keys_with_equal_hashes_stay_different(monkeypatch):
    monkeypatch.setattr("jaxscope.model.interning.hash", lambda _: 0, raising=False)
    shared = Shared()
    events = [missed(1), missed(2, rows=4), missed(3)]
    for event in events:
        shared.of(event)
    assert [e.key.arguments[0].shape for e in events] == [(8, 8), (4, 8), (8, 8)]


def test_a_log_that_repeats_nothing_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr("jaxscope.model.interning.MOST", 10)
    shared = Shared()
    events = [missed(n, rows=n) for n in range(100)]
    for event in events:
        shared.of(event)
        assert (
            sum(len(values) + len(items) for _, t in shared._tables.values() for _, values, items in t) < 100
        )
    assert [e.key.arguments[0].shape[0] for e in events] == list(range(100))
