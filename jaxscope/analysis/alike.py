"""Leaves that changed alike are one cause: ``148 leaves under state.params have dtype bf16, before f32``.

Pure; works on the causes of single leaves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from jaxscope.analysis.spelling import FOLD_FROM, common_prefix, root
from jaxscope.schema.findings import Cause

_SHAPE = re.compile(r"\[([^\]]*)\]")


def folded(found: list[tuple[str, Cause]]) -> list[Cause]:
    """Leaves below one argument that changed alike are one cause from FOLD_FROM on."""
    groups: dict[tuple[object, ...], list[tuple[str, Cause]]] = {}
    for path, c in found:
        change = _change(c)
        groups.setdefault((root(path), c.kind, c.level, change), []).append((path, c))
    single: list[Cause] = []
    for members in groups.values():
        if len(members) < FOLD_FROM:
            single += [c for _, c in members]
        else:
            single.append(_several([c for _, c in members], common_prefix([p for p, _ in members])))
    return single


# -- what remains ----------------------------------------------------------------------------------------


def _change(c: Cause) -> object:
    """What makes two leaves' changes alike: for shapes the axes that changed, not the whole shape."""
    if c.kind == "shape" and c.before and c.after:
        axes = _axes(c.before, c.after)
        return axes if axes is not None else (c.before, c.after)
    if c.kind in ("dtype", "weak_type", "prng"):
        return _bare(c.before), _bare(c.after)
    return c.before, c.after


def _several(members: Sequence[Cause], prefix: str | None) -> Cause:
    """Leaves that changed alike, as one cause with the path they have in common."""
    c = members[0]
    n = len(members)
    where = f"{n} leaves under {prefix}" if prefix else f"{n} leaves"
    a, b = c.before, c.after
    if c.kind == "shape" and (axes := _axes(a or "", b or "")):
        a, b = (", ".join(f"axis {i}: {x[j]}" for i, x in axes) for j in (0, 1))
        if len(axes) == 1:
            index, (x, y) = axes[0]
            text = f"axis {index} of {where} is now {y}, before {x}"
        else:
            text = f"{where} changed shape: now {b}, before {a}"
    elif c.kind in ("dtype", "prng"):
        a, b = _bare(a), _bare(b)
        text = f"{where} have dtype {b}, before {a}"
    elif c.kind == "weak_type":
        weak = "not weak" not in (b or "")
        text = f"{where} are {'now' if weak else 'no longer'} weakly typed"
    elif c.kind == "committed":
        text = f"{where} are {'now' if b == 'committed' else 'no longer'} committed to a device"
    else:
        text = f"{where}: now {b}, before {a}"
    return msgspec.structs.replace(c, path=prefix, before=a, after=b, text=text, count=n)


def _axes(before: str, after: str) -> tuple[tuple[int, tuple[str, str]], ...] | None:
    """(axis, (before, after)) of the dimensions that differ in two spelled avals of one rank."""
    a, b = _SHAPE.search(before), _SHAPE.search(after)
    if a is None or b is None:
        return None
    x, y = a.group(1).split(","), b.group(1).split(",")
    if len(x) != len(y):
        return None
    return tuple((i, (p, q)) for i, (p, q) in enumerate(zip(x, y, strict=True)) if p != q)


def _bare(text: str | None) -> str | None:
    """``bf16`` of ``bf16[4,8]``."""
    return None if text is None else _SHAPE.sub("", text, count=1)
