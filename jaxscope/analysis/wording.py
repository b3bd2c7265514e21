"""A cause in words: one constructor a kind, each a clause that stands on its own.

``batch['ids'] is now i32[32,511], before i32[32,512]``. Owns the wording only; which cause it is has been
decided. Values are data: views escape them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from jaxscope.analysis import meshes
from jaxscope.analysis.avals import short_aval, type_text
from jaxscope.analysis.keys import LeafFacts
from jaxscope.analysis.spelling import excerpt
from jaxscope.schema.findings import CERTAIN, LIKELY, Cause
from jaxscope.schema.keys import Sharding, Static

SEE_FIELDS = "(see the fields above)"  # what capture writes for the whole beside its parts
FORMS = {
    "lambda": "a lambda made anew",
    "partial": "a functools.partial made anew",
    "method": "a bound method taken anew",
    "callable": "an object made anew",
}


def now_before(what: str, after: str | None, before: str | None) -> str:
    return f"{what} is now {'nothing' if after is None else after}, before {'nothing' if before is None else before}"


# -- leaves ----------------------------------------------------------------------------------------------


def aval(kind: str, level: str, path: str, old: LeafFacts, new: LeafFacts, changed: set[str]) -> Cause:
    """Shape, rank, dtype, weak type or key type of one array argument."""
    both = {"weak_type", "dtype"} & changed and (old.type != new.type)

    def spell(leaf: LeafFacts) -> str:
        return short_aval(
            leaf.shape,
            leaf.dtype,
            leaf.weak_type if kind == "weak_type" else None,
            leaf.type if both else None,
        )

    a, b = spell(old), spell(new)
    text = now_before(path, b, a)
    if kind == "weak_type" and not both:
        text = f"{path} is {'now' if new.weak_type else 'no longer'} weakly typed: {b}, before {a}"
    if kind == "weak_type":
        a, b = (f"{x}, not weak" if not leaf.weak_type else x for x, leaf in ((a, old), (b, new)))
    return Cause(kind, level, path, a, b, CERTAIN, text)


def weak_type(
    level: str, path: str, old: LeafFacts, new: LeafFacts, changed: set[str], *, told: bool
) -> Cause:
    """``told``: another cause says what the array is now and was before."""
    cause = aval("weak_type", level, path, old, new, changed)
    if not told:
        return cause
    text = f"{path} is {'now' if new.weak_type else 'no longer'} weakly typed"
    return msgspec.structs.replace(cause, text=text)


def memory_kind(level: str, path: str, old: LeafFacts, new: LeafFacts) -> Cause:
    text = f"{path} lies in {new.memory_kind} memory, before in {old.memory_kind} memory"
    return Cause("memory_kind", level, path, old.memory_kind, new.memory_kind, CERTAIN, text)


def committed(level: str, path: str, old: LeafFacts, new: LeafFacts) -> Cause:
    where = new.sharding.text if new.sharding is not None else "its device"
    if new.committed:
        text = f"{path} is now committed to {where}, before it was not committed to any device"
    else:
        was = old.sharding.text if old.sharding is not None else "a device"
        text = f"{path} is no longer committed to a device, before it was committed to {was}"
    return Cause("committed", level, path, _committed(old), _committed(new), CERTAIN, text)


def _committed(leaf: LeafFacts) -> str:
    return "committed" if leaf.committed else "uncommitted"


def layout(level: str, path: str, old: LeafFacts, new: LeafFacts) -> Cause:
    text = f"{path} has the layout {new.layout} (major to minor), before {old.layout}"
    return Cause("layout", level, path, old.layout, new.layout, CERTAIN, text)


def sharding(kind: str, level: str, path: str, old: LeafFacts, new: LeafFacts) -> Cause:
    a, b = sharding_texts(old.sharding, new.sharding)
    if kind == "device":
        text = f"{path} is on device {b}, before on {a}"
    elif kind == "equal_sharding":
        text = f"{path} is sharded {b}, before {a}: the same placement, spelled differently"
    else:
        text = f"{path} is sharded {b or 'in no way'}, before {a or 'in no way'}"
    return Cause(kind, level, path, a, b, CERTAIN, text)


def sharding_texts(a: Sharding | None, b: Sharding | None) -> tuple[str | None, str | None]:
    """Two shardings as text; where those would be equal, with what tells them apart."""
    x, y = (s.text if s is not None else None for s in (a, b))
    if a is None or b is None or x != y:
        return x, y
    if a.devices != b.devices:
        return f"{x} devices {a.devices}", f"{y} devices {b.devices}"
    told = [(n, getattr(a, n), getattr(b, n)) for n in ("kind", "spec", "mesh", "memory_kind")]
    differ = [(n, p, q) for n, p, q in told if p != q]
    return (
        f"{x} ({', '.join(f'{n} {p}' for n, p, _ in differ)})",
        f"{y} ({', '.join(f'{n} {q}' for n, _, q in differ)})",
    )


def argument_kind(level: str, path: str, old: LeafFacts, new: LeafFacts, *, compiled: bool) -> Cause:
    """``compiled``: the call went further than the fast path, for another cause."""
    a, b = type_text(old.type), type_text(new.type)
    text = f"{path} is {_one(b)}, before {_one(a)}" + ("" if compiled else "; nothing was compiled")
    return Cause("argument_kind", level, path, a, b, CERTAIN, text)


def _one(name: str) -> str:
    """``an int``, ``a numpy array``; what is not known has no article."""
    return name if name == "?" else f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"


# -- containers and static values ------------------------------------------------------------------------


def leaf(level: str, path: str, old: LeafFacts | None, new: LeafFacts | None, instead: str | None) -> Cause:
    """A leaf that came or went; ``instead``: what stands in its place on the other side."""
    a, b = (None if x is None else _spell(x) for x in (old, new))
    if instead is not None:
        a, b = a or instead, b or instead
        return Cause("tree", level, path, a, b, CERTAIN, now_before(path, b, a))
    text = f"{path} is new: {b}" if a is None else f"{path} is no longer passed (it was {a})"
    return Cause("tree", level, path, a, b, CERTAIN, text)


def leaves(level: str, prefix: str | None, count: int, *, came: bool) -> Cause:
    where = f" under {prefix}" if prefix else ""
    text = f"{count} leaves{where} are {'new' if came else 'no longer passed'}"
    a, b = (None, f"{count} leaves") if came else (f"{count} leaves", None)
    return Cause("tree", level, prefix, a, b, CERTAIN, text, count)


def _spell(x: LeafFacts) -> str:
    return short_aval(x.shape, x.dtype, None, None if x.dtype else x.type)


def node(level: str, path: str, before: str | None, after: str | None) -> Cause:
    """Another kind of container."""
    return Cause("tree", level, path, before, after, CERTAIN, now_before(path, a_kind(after), a_kind(before)))


def a_kind(kind: str | None) -> str | None:
    if kind is None or kind == "None":
        return kind
    return f"a {kind}" if kind[0] not in "aeiouAEIOU" else f"an {kind}"


def tree_text(level: str, before: str, after: str, *, order: bool) -> Cause:
    a, b = excerpt(before, after)
    what = "the order of the keys" if order else "the container structure of the arguments"
    return Cause("tree", level, None, a, b, CERTAIN, now_before(what, b, a))


def static_value(level: str, path: str, was: Static, now: Static) -> Cause:
    a, b = _values(was, now)
    return Cause("static_value", level, path, a, b, CERTAIN, now_before(f"the static value {path}", b, a))


def tree_static(level: str, path: str, was: Static, now: Static) -> Cause:
    a, b = _values(was, now)
    return Cause("tree_static", level, path, a, b, CERTAIN, now_before(f"{path} (static data)", b, a))


def static_unseen(level: str, path: str, was: Static, now: Static, *, tree: bool) -> Cause:
    """Another value whose text, as far as it was kept, is the same: its hash tells."""
    what = f"{path} (static data)" if tree else f"the static value {path}"
    alike = f"as far as it was recorded it looks the same: {brief(now.repr)}"
    text = f"{what} is another value than before; {alike}"
    certainty = CERTAIN if now.type in ("str", "bytes") else LIKELY
    return Cause("tree_static" if tree else "static_value", level, path, was.repr, now.repr, certainty, text)


def brief(text: str, room: int = 120) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


def static_came_or_went(
    level: str, path: str, was: Static | None, now: Static | None, *, tree: bool
) -> Cause:
    a, b = (None if s is None else brief(s.repr) for s in (was, now))
    kind = "tree_static" if tree else "static_value"
    what = f"{path} (static data)" if tree else f"the static value {path}"
    text = f"{what} is new: {b}" if a is None else f"{what} is gone (it was {a})"
    return Cause(kind, level, path, a, b, CERTAIN, text)


def opaque_static(level: str, path: str, was: Static, now: Static) -> Cause:
    """Static data without a name differs."""
    owner = path.partition(".")[0].strip("<>") if path.startswith("<") else None
    text = (
        f"static data of the arguments that {owner} compares differs"
        if owner
        else f"static data of {path} differs"
    )
    text += "; no attribute of theirs that was read does"
    a, b = (None, None) if was.repr == SEE_FIELDS else _values(was, now)
    return Cause("tree_static", level, None if owner else path, a, b, LIKELY, text)


def static_identity(
    level: str, path: str, was: Static, now: Static, *, tree: bool, unstable_hash: bool
) -> Cause:
    kind = now.type.rpartition(".")[2]
    what = f"{path} (static data)" if tree else f"the static value {path}"
    if unstable_hash:
        why = f"{kind} hashes differently each time although it compares equal"
    elif kind in ("function", "PjitFunction", "method", "builtin_function_or_method"):
        why = "functions compare by identity"
    elif now.compares == "parts":
        why = "a function or an object in it compares by identity, and is another one"
    else:
        why = f"{kind} defines no __eq__ and __hash__, so it compares by identity"
    text = f"{what} is a new object that looks the same, {brief(now.repr)}: {why}"
    return Cause("static_identity", level, path, _numbered(was), _numbered(now), CERTAIN, text)


def static_identities(members: Sequence[Cause], parent: str) -> Cause:
    c = members[0]
    text = f"{parent} (static data) was made anew: {len(members)} functions in it are new objects that look the same; functions compare by identity"
    return msgspec.structs.replace(
        c, path=parent, before=c.before, after=c.after, text=text, count=len(members)
    )


def _numbered(s: Static) -> str:
    if s.serial is not None:
        return f"{brief(s.repr)} (object #{s.serial})"
    return brief(s.repr)


def _values(was: Static, now: Static) -> tuple[str, str]:
    a, b = excerpt(was.repr, now.repr)
    if was.type != now.type and a != b and not was.repr.startswith("<"):
        return f"{a} ({_short(was.type)})", f"{b} ({_short(now.type)})"
    if was.type != now.type:
        return f"{a} ({was.type})", f"{b} ({now.type})"
    return a, b


def _short(kind: str) -> str:
    return kind.rpartition(".")[2]


# -- the call and the function ---------------------------------------------------------------------------

_KEYWORDS = re.compile(r"keywords: (.*)$")


def keywords(form: str) -> list[str]:
    """Names in ``2 positional, keywords: mask, scale``."""
    match = _KEYWORDS.search(form)
    return [k.strip() for k in match.group(1).split(",")] if match else []


def default_of(signature: str | None, name: str) -> str | None:
    """The default of a parameter in ``(x, s=2.0, *, mode='fast')`` as text; None where it has none."""
    if signature is None:
        return None
    match = re.search(rf"[(\s,]{re.escape(name)}(?::[^=,]*)?\s?=\s?([^,)]+)", signature)
    return match.group(1).strip() if match else None


def call_form(level: str, before: str, after: str, path: str | None, *, certain: bool) -> Cause:
    what = f"{path} is passed differently" if path else "the same arguments are passed differently"
    text = f"{what}: now {after}, before {before}"
    return Cause("call_form", level, path, before, after, CERTAIN if certain else LIKELY, text)


def new_function(
    level: str,
    before: str | None,
    after: str | None,
    form: str,
    wrappers: Sequence[str],
    qualname: str,
    made_at: str | None,
    made_there: bool,
) -> Cause:
    """Another function object of the same definition; likely where the line that makes it is."""
    what = function_object(form, wrappers, qualname)
    text = f"the jitted function is another object than before, {what}"
    if made_at:
        text += f" at {made_at}" if made_there else f", probably at {made_at}"
    a, b = (None if x is None else f"function object #{x}" for x in (before, after))
    return Cause("new_function", level, None, a, b, CERTAIN if made_there or not made_at else LIKELY, text)


def function_object(form: str, wrappers: Sequence[str], qualname: str) -> str:
    """``a lambda made anew``, ``jax.grad(f) applied anew``, ``a function defined anew in main``."""
    outer = [w for w in wrappers if w != "functools.partial"]
    if outer:
        return f"{outer[0]}(...) applied anew"
    if form in FORMS:
        return FORMS[form]
    owner, mark, _ = qualname.rpartition(".<locals>.")
    if mark:
        return f"a function defined anew on each call of {owner.replace('.<locals>', '')}"
    return "defined or wrapped anew"


def eager_parameters(level: str) -> Cause:
    text = (
        "the operation is applied with other parameters (an axis, a dtype, a size) that are part of its key"
    )
    return Cause("static_value", level, None, None, None, LIKELY, text)


def option(level: str, name: str, before: str | None, after: str | None) -> Cause:
    a, b = ("not set" if x is None else x for x in (before, after))
    text = f"the same function is jitted with another {name}: now {b}, before {a}"
    return Cause("options", level, name, before, after, CERTAIN, text)


def setting(level: str, name: str, before: str | None, after: str | None, *, mesh: bool) -> Cause:
    if mesh:
        text = now_before(meshes.called(name), *meshes.spelled(after, before))
        return Cause("mesh", level, "context", before, after, CERTAIN, text)
    if not name:  # the settings behind the ids are lost
        lost = "a setting of JAX differs; which, the log has lost"
        return Cause("config", level, None, None, None, CERTAIN, lost)
    text = now_before(f"the setting {name}", _unset(after), _unset(before))
    return Cause("config", level, name, before, after, CERTAIN, text)


def _unset(value: str | None) -> str:
    return "none" if value in (None, "None", "()", "") else str(value)


def transform(level: str, entry: str, before: str) -> Cause:
    if entry == before:
        text = "grad, vmap or another transform made a program of its own of it"
        return Cause("transform", level, None, None, None, CERTAIN, text)
    words = {
        "transform": "called under grad, vmap or another transform",
        "nested": "called inside another trace",
        "call": "called directly",
        "aot": "lowered ahead of time",
    }
    a, b = words.get(before, before), words.get(entry, entry)
    return Cause("transform", level, None, a, b, CERTAIN, f"it is {b}, before it was {a}")


def aot(level: str, before: str, number: int | None, *, differs: bool) -> Cause:
    which = f" (#{number})" if number else ""
    if before != "aot":
        text = "it is asked for ahead of time, by .lower(), .trace() or .eval_shape()"
    elif differs:
        text = f"what was prepared ahead of time{which} is for other arguments: this call does not use it"
    else:
        text = f"it was prepared ahead of time{which} and is called as an ordinary function now"
    a, b = ("ahead of time", "an ordinary call") if before == "aot" else ("an ordinary call", "ahead of time")
    return Cause("aot", level, None, a, b, CERTAIN, text)


# -- no difference ---------------------------------------------------------------------------------------


def cleared(level: str, times: int) -> Cause:
    often = "" if times == 1 else f" {times} times"
    text = f"JAX's caches were cleared{often} since the same call (jax.clear_caches() or .clear_cache())"
    return Cause("cleared", level, None, None, None, CERTAIN, text)


def evicted(level: str, full: dict[str, tuple[int, int]]) -> Cause:
    which = ", ".join(f"{n} {size:,} of {room:,}" for n, (size, room) in sorted(full.items()))
    text = f"nothing in the key differs; it seems to have been pushed out of a full cache ({which} entries)"
    return Cause("evicted", level, None, None, None, LIKELY, text)


REF_EFFECTS = frozenset({"Accum", "Read", "Write"})  # of reading and writing jax.Refs


def effects(names: Sequence[str]) -> Cause:
    kinds = sorted({n.partition("<")[0] for n in names})
    what = f" ({', '.join(kinds)})" if kinds else ""
    if kinds and REF_EFFECTS.issuperset(kinds):
        text = f"its jax.Refs{what} keep this function off the fast path, by design; nothing was compiled"
        return Cause("effects", "fast_path", None, None, None, CERTAIN, text)
    text = f"callbacks, debug prints or Refs{what} keep this function off the fast path; nothing was compiled"
    return Cause("effects", "fast_path", None, None, None, CERTAIN, text)


def unknown(level: str, leaves: int, statics: int, missing: Sequence[str] = ()) -> Cause:
    looked = [f"{leaves} array argument{'s' * (leaves != 1)}"] if leaves else []
    looked += [f"{statics} static value{'s' * (statics != 1)}"] if statics else []
    looked += ["containers", "jit options", "settings", "the function object", "whether caches were cleared"]
    text = f"nothing that was recorded differs from the nearest earlier call; looked at {', '.join(looked)}"
    if missing:
        text += f"; not recorded: {', '.join(missing)}"
    return Cause("unknown", level, None, None, None, CERTAIN, text)
