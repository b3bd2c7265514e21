"""Write the parts of a cache key as text."""

from __future__ import annotations

from jaxscope.analysis.avals import short_aval
from jaxscope.analysis.keys import Facts, LeafFacts

Row = dict[str, str]  # name of a part of the key -> its text
LONG = 300  # characters of a static value that are shown
# Parts that every key has: if a key lacks one of them, it was not recorded.
OF_EVERY_CALL = frozenset({"tree", "arguments passed", "function object"})
_NAMES = {"call_form": "arguments passed", "function_object": "function object"}


def key_rows(facts: Facts) -> Row:
    """Return the parts of the cache key ``facts`` as {name: text}: ``{"batch['x']": "f32[64]", "n (static)":
    "2 (int)"}``. The arguments come first, then the static values, then facts about the whole call, such as
    settings of JAX."""
    rows: Row = {}
    for path, leaf in facts.leaves.items():
        rows[path] = _leaf(leaf)
    for path, item in facts.static.items():
        mark = f", id {item.serial}" if item.compares == "identity" and item.serial is not None else ""
        text = item.repr if len(item.repr) <= LONG else f"{item.repr[:LONG]}… (hash {item.hash})"
        rows[f"{path} (static)"] = f"{text} ({item.type}{mark})"
    for name, value in facts.whole.items():
        group, _, rest = name.partition(".")
        if rest:
            rows[f"{'option' if group == 'options' else 'setting'} {rest}"] = value
        else:
            rows[_NAMES.get(name, name)] = f"id {value}" if name == "function_object" else value
    return rows


def _leaf(leaf: LeafFacts) -> str:
    """Return an array-like argument as text: ``f32[64]``, the sharding, and if they are unusual the Python
    type, memory kind and layout."""
    text = short_aval(leaf.shape, leaf.dtype, leaf.weak_type)
    if leaf.type not in ("jax.Array", "ArrayImpl"):
        text = short_aval(leaf.shape, leaf.dtype, leaf.weak_type, leaf.type)
    if leaf.sharding is not None:
        text += f"  {leaf.sharding.text}"
    if leaf.committed is False:
        text += "  uncommitted"
    if leaf.memory_kind not in (None, "device", "unpinned_host"):
        text += f"  {leaf.memory_kind}"
    if leaf.layout is not None and leaf.layout != str(tuple(range(len(leaf.shape or ())))):
        text += f"  layout {leaf.layout}"
    return text


def changed(name: str, was: Row, now: Row) -> bool:
    """Return whether the part ``name`` differs between the cache keys ``was`` and ``now`` (results of
    ``key_rows``). False for a part that every key has (``OF_EVERY_CALL``), if one of the keys lacks it: then
    it was not recorded."""
    if name in OF_EVERY_CALL and not (name in was and name in now):
        return False
    return was.get(name) != now.get(name)
