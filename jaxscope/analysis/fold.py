"""Many differences as few lines: several leaves of one kind become "148 leaves under state.params".

Owns the grouping and the order; the wording belongs to the views.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from jaxscope.analysis.avals import short_aval
from jaxscope.analysis.keys import Difference, Facts, LeafFacts

FOLD_FROM = 3  # two leaves read better as two lines
AVAL_FIELDS = ("type", "dtype", "weak_type", "shape")

_TOKEN = re.compile(r"\[[^\[\]]*\]|\.?[^.\[]+|.", re.DOTALL)


class Folded(msgspec.Struct, frozen=True):
    """One line of what differs.

    Attributes:
      path: of the leaf or static argument, the common prefix of ``count`` leaves, or None (the whole
        call, or leaves without a common prefix: ``count`` tells).
      count: leaves spoken of; 1 for everything else.
      field: a Difference's field, ``aval`` where one leaf is spelled as a whole (``f32[4] -> f32[3]``),
        or ``axis <n>`` where several leaves changed one dimension alike.
    """

    path: str | None
    count: int
    field: str
    before: str | None
    after: str | None


def fold(differences: Sequence[Difference], before: Facts, after: Facts) -> list[Folded]:
    """The lines to print for ``differences`` between two flattened keys, arguments first."""
    by_path: dict[str, list[Difference]] = {}
    rest: list[Folded] = []
    for d in differences:
        if d.path is not None and d.field != "static":
            by_path.setdefault(d.path, []).append(d)
        else:
            rest.append(Folded(d.path, 1, d.field, d.before, d.after))
    groups: dict[tuple[object, ...], list[tuple[str, list[Difference]]]] = {}
    for path, found in by_path.items():
        for kind, part in _kinds(path, found, before, after):
            root = (tokens(path) or [""])[0]
            groups.setdefault((root, *kind), []).append((path, part))
    lines: list[Folded] = []
    for members in groups.values():
        if len(members) < FOLD_FROM:
            for path, part in members:
                lines += _one(path, part, before, after)
        else:
            lines += _several(members, before, after)
    return lines + _telling(rest, bool(lines))


def tokens(path: str) -> list[str]:
    """``state.params['dense'][0]`` -> ``state``, ``.params``, ``['dense']``, ``[0]``."""
    return _TOKEN.findall(path)


def common_prefix(paths: Sequence[str]) -> str | None:
    """The longest prefix of whole path steps; None where there is none."""
    split = [tokens(p) for p in paths]
    shortest = min((len(s) for s in split), default=0)
    n = 0
    while n < shortest and all(s[n] == split[0][n] for s in split):
        n += 1
    return "".join(split[0][:n]) or None if split else None


def excerpt(before: str, after: str, around: int = 24) -> tuple[str, str]:
    """Two long texts cut down to where they differ, ``…`` for what was cut."""
    if max(len(before), len(after)) <= 2 * around:
        return before, after
    low = 0
    top = min(len(before), len(after))
    while low < top and before[low] == after[low]:
        low += 1
    back = 0
    while back < top - low and before[-1 - back] == after[-1 - back]:
        back += 1

    def cut(text: str) -> str:
        start, end = max(0, low - around), min(len(text), len(text) - back + around)
        middle = text[start:end]
        if len(middle) > 6 * around:
            middle = middle[: 5 * around] + "…"
            end = len(text)
        return ("…" if start > 0 else "") + middle + ("…" if end < len(text) else "")

    return cut(before), cut(after)


def _telling(rest: list[Folded], leaves_differ: bool) -> list[Folded]:
    """Drop what others say more plainly: the tree, and what a library's wrapper adds. Cut long texts."""
    plainer = leaves_differ or any(f.field == "call_form" for f in rest)
    told = leaves_differ or any(f.field == "static" and not _of_wrapper(f) for f in rest)
    kept = []
    for f in rest:
        if (f.field == "tree" and plainer) or (_of_wrapper(f) and told):
            continue
        if f.before is not None and f.after is not None:
            a, b = excerpt(f.before, f.after)
            f = Folded(f.path, f.count, f.field, a, b)
        kept.append(f)
    return kept


def _of_wrapper(f: Folded) -> bool:
    """``<equinox.filter_jit>.static``: no argument of the user's, it changes with the fields named before."""
    return f.path is not None and f.path.startswith("<")


def _kinds(
    path: str, found: list[Difference], before: Facts, after: Facts
) -> list[tuple[tuple[object, ...], list[Difference]]]:
    """The changes of one leaf: its aval as one, every other field as one; with what makes two alike."""
    aval = [d for d in found if d.field in AVAL_FIELDS]
    kinds: list[tuple[tuple[object, ...], list[Difference]]] = []
    if aval:
        signature: list[object] = []
        for d in aval:
            signature += (
                [d.field, *(_axes(path, before, after) or (d.before, d.after))]
                if d.field == "shape"
                else [
                    d.field,
                    d.before,
                    d.after,
                ]
            )
        kinds.append((tuple(signature), aval))
    for d in found:
        if d.field == "leaf":
            kinds.append((("leaf", d.before is None), [d]))
        elif d.field not in AVAL_FIELDS:
            kinds.append(((d.field, d.before, d.after), [d]))
    return kinds


def _axes(path: str, before: Facts, after: Facts) -> tuple[tuple[int, str, str], ...] | None:
    """(axis, before, after) of the dimensions that changed; None where the rank did."""
    a, b = before.leaves[path].shape, after.leaves[path].shape
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple((n, str(x), str(y)) for n, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)


def _one(path: str, part: list[Difference], before: Facts, after: Facts) -> list[Folded]:
    if part[0].field not in AVAL_FIELDS:
        return [Folded(path, 1, d.field, d.before, d.after) for d in part]
    changed = {d.field for d in part}
    return [
        Folded(path, 1, "aval", _spell(before.leaves[path], changed), _spell(after.leaves[path], changed))
    ]


def _spell(leaf: LeafFacts, changed: set[str]) -> str:
    return short_aval(
        leaf.shape,
        leaf.dtype,
        # Weakness only where it differs: a Python scalar's is no news beside its type.
        leaf.weak_type if "weak_type" in changed else None,
        leaf.type if "type" in changed else None,
    )


def _several(members: list[tuple[str, list[Difference]]], before: Facts, after: Facts) -> list[Folded]:
    prefix = common_prefix([path for path, _ in members])
    path, part = members[0]
    lines = []
    for d in part:
        axes = _axes(path, before, after) if d.field == "shape" else None
        if axes:
            lines += [Folded(prefix, len(members), f"axis {n}", a, b) for n, a, b in axes]
        elif d.field == "leaf":
            lines.append(Folded(prefix, len(members), "leaf", d.before, d.after))
        else:
            lines.append(Folded(prefix, len(members), d.field, d.before, d.after))
    return lines
