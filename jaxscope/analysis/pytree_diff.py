"""Compare the pytrees of two calls: leaves and containers that appeared, disappeared or changed kind (list,
dict, ...), and the call form (which arguments are passed by position and which by keyword).

``analysis.causes`` decides which of the differences explains a cache miss.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.keys import Facts, array_type, static_value, union
from jaxscope.analysis.levels import TRACE
from jaxscope.analysis.paths import FOLD_FROM, below, common_prefix, root, tokens
from jaxscope.schema.causes import CallForm, Cause, Container, Leaves, TreeText, Value
from jaxscope.schema.findings import CERTAIN, LIKELY

_KEYWORDS = re.compile(r"keywords: (.*)$")


def structure(before: Facts, after: Facts, signature: str | None, *, statics_differ: bool) -> list[Cause]:
    """Return the causes of a cache miss in the structure of the arguments: leaves and containers that were
    added or removed, containers of another kind or with another order of their keys, and another call form.

    Args:
      before, after: the cache keys of the earlier call and of the call that missed a cache.
      signature: the function's parameters as text; None: unknown.
      statics_differ: whether static values differ. If so, a difference in the text of the tree is no cause,
        because it may only follow from them.
    """
    alike = before.whole is after.whole and before.nodes == after.nodes
    if alike and [*before.leaves] == [*after.leaves]:
        return []
    came = [p for p in after.leaves if p not in before.leaves]
    went = [p for p in before.leaves if p not in after.leaves]
    nodes = _nodes(before, after, {*came, *went})
    forms = before.whole.get("call_form"), after.whole.get("call_form")
    if forms[0] != forms[1] and None not in forms:
        same = _same_arguments(before, after, came, went, signature)
        if same is not None:
            return [same]
    found = [Cause("tree", TRACE, path, _container(a), _container(b), CERTAIN) for path, a, b in nodes]
    covered = {path for path, _, _ in nodes}
    covered |= {p for p in went if p in after.nodes} | {p for p in came if p in before.nodes}
    came = [p for p in came if not below(p, covered)]
    went = [p for p in went if not below(p, covered)]
    for paths, is_new, has, lacks in ((came, True, after, before), (went, False, before, after)):
        for node, members in _whole_nodes(paths, has, lacks).items():
            found.append(_leaves(node, len(members), came=is_new))
            paths[:] = [p for p in paths if p not in members]
    if len(came) + len(went) >= FOLD_FROM:
        found += _came_and_went(came, went, before, after)
    else:
        found += [
            Cause("tree", TRACE, p, _instead(before, p), array_type(after.leaves[p]), CERTAIN) for p in came
        ]
        found += [
            Cause("tree", TRACE, p, array_type(before.leaves[p]), _instead(after, p), CERTAIN) for p in went
        ]
    if found or statics_differ:
        return found
    x, y = before.whole.get("tree"), after.whole.get("tree")
    if x == y or x is None or y is None or "tree" in before.unread | after.unread:
        return []
    inside = _reordered([*before.leaves], [*after.leaves])
    if inside is None:
        return [Cause("tree", TRACE, None, TreeText(x), TreeText(y), CERTAIN)]
    old, new = (TreeText(", ".join(_keys(inside, facts.leaves)), order=True) for facts in (before, after))
    return [Cause("tree", TRACE, inside, old, new, CERTAIN)]


def _reordered(before: list[str], after: list[str]) -> str | None:
    """Return the container, such as ``batch``, whose keys have another order in the second call; None if
    there is none. ``before`` and ``after`` are the paths of the leaves in the two calls, in order. Both have
    the same paths."""
    pair = next(((a, b) for a, b in zip(before, after, strict=False) if a != b), None)
    return common_prefix(pair) if pair is not None else None


def _keys(node: str, paths: Iterable[str]) -> list[str]:
    """Return the keys of the container at the path ``node``, in the order of the leaves ``paths``. For
    ``batch`` and the paths ``batch['x'][0]`` and ``batch['y']``, return ``["'x'", "'y'"]``."""
    n = len(tokens(node))
    steps = dict.fromkeys(tokens(p)[n] for p in paths if below(p, {node}))
    return [step.removeprefix(".").removeprefix("[").removesuffix("]") for step in steps]


def _leaves(prefix: str | None, count: int, *, came: bool) -> Cause:
    """Return the cause of a cache miss if several leaves appeared or disappeared together.

    Args:
      prefix: the common path of the leaves; None: they have none.
      count: the number of leaves.
      came: True if they appeared, False if they disappeared.
    """
    a, b = (None, Leaves(count)) if came else (Leaves(count), None)
    return Cause("tree", TRACE, prefix, a, b, CERTAIN, count)


def _container(kind: str | None) -> Container | None:
    return None if kind is None else Container(kind)


def _whole_nodes(paths: list[str], has: Facts, lacks: Facts) -> dict[str, list[str]]:
    """Group leaves by the outermost container around them that only the call with the key ``has`` passes:
    path of the container -> paths of its leaves. Containers with one leaf are not in the result.

    Args:
      paths: the paths of the leaves that only the key ``has`` contains.
      has: the key with these leaves.
      lacks: the other key.
    """
    groups: dict[str, list[str]] = {}
    for p in paths:
        steps = tokens(p)
        for n in range(1, len(steps)):
            node = "".join(steps[:n])
            if node in has.nodes and node not in lacks.nodes:
                groups.setdefault(node, []).append(p)
                break
    return {node: members for node, members in groups.items() if len(members) > 1}


def _instead(facts: Facts, path: str) -> Value | None:
    """Return the container or the static value that a call passes at ``path``, where the other call passes a
    leaf. Return None if it passes neither. ``facts`` is the cache key of the call."""
    node = facts.nodes.get(path)
    if node is not None:
        return Container(node)
    item = facts.static.get(path)
    return static_value(item) if item is not None else None


def _nodes(before: Facts, after: Facts, moved: set[str]) -> list[tuple[str, str | None, str | None]]:
    """Return (path, kind before, kind after) of each outermost container whose kind differs between two keys,
    such as a list that became a tuple. A kind is None if the key has no container at the path.

    Differences that added or removed leaves or static values already explain are left out. ``moved`` has the
    paths of the leaves that only one key has.
    """
    if not (before.nodes and after.nodes) or before.nodes == after.nodes:
        return []
    found: list[tuple[str, str | None, str | None]] = []
    for path in sorted(union(before.nodes, after.nodes), key=lambda p: len(tokens(p))):
        a, b = before.nodes.get(path), after.nodes.get(path)
        if a == b or below(path, {p for p, _, _ in found}):
            continue
        if (a is None or b is None) and (
            path in moved
            or any(below(m, {path}) for m in moved)
            or path in before.static.keys() | after.static.keys()
        ):
            continue  # the leaves are causes already
        if (a or "").partition(" ")[0] == (b or "").partition(" ")[0] and any(
            below(m, {path}) for m in moved
        ):
            continue  # an ordered dict with other keys: the leaves are causes already
        found.append((path, a, b))
    return found


def _same_arguments(
    before: Facts, after: Facts, came: list[str], went: list[str], signature: str | None
) -> Cause | None:
    """Return the cause of a cache miss if both calls pass the same arguments, but one passes an argument by
    keyword instead of by position, or writes out a default. Return None if the arguments differ.

    Args:
      before, after: the two cache keys.
      came: the paths of the leaves that only ``after`` has.
      went: the paths of the leaves that only ``before`` has.
      signature: the function's parameters as text, which shows whether an omitted static argument equals its
        default; None: unknown.
    """
    x, y = before.whole["call_form"], after.whole["call_form"]
    moved = sorted({*_keywords(x)} ^ {*_keywords(y)})
    scalars = [*came, *went]
    statics = [p for p in union(before.static, after.static) if (p in before.static) != (p in after.static)]
    for p in scalars:
        leaf = after.leaves.get(p) or before.leaves.get(p)
        if leaf is None or leaf.type not in ("float", "int", "bool", "complex"):
            return None  # an additional array is another argument, not another call form
    for p in statics:
        item = after.static.get(p) or before.static.get(p)
        default = _default_of(signature, p)
        if item is None or (default is not None and default != item.repr):
            return None
    paths = [*scalars, *statics, *moved]
    path = paths[0] if len(set(paths)) == 1 else None
    return Cause("call_form", TRACE, path, CallForm(x), CallForm(y), LIKELY if scalars else CERTAIN)


def _keywords(form: str) -> list[str]:
    """Return the names of the arguments that a call passes by keyword:
    ``2 positional, keywords: mask, scale`` -> ``["mask", "scale"]``."""
    match = _KEYWORDS.search(form)
    return [k.strip() for k in match.group(1).split(",")] if match else []


def _default_of(signature: str | None, name: str) -> str | None:
    """Return the default of the parameter ``name`` as text: ``2.0`` for ``s`` and the signature
    ``(x, s=2.0, *, mode='fast')``. Return None if the parameter has no default, or if the signature is
    unknown."""
    if signature is None:
        return None
    match = re.search(rf"[(\s,]{re.escape(name)}(?::[^=,]*)?\s?=\s?([^,)]+)", signature)
    return match.group(1).strip() if match else None


def _came_and_went(came: list[str], went: list[str], before: Facts, after: Facts) -> list[Cause]:
    """Return the causes of a cache miss for leaves that appeared (``came``) or disappeared (``went``): one
    for each leaf, or one for ``FOLD_FROM`` (3) or more leaves of one argument together."""
    found = []
    for paths, is_new, facts in ((came, True, after), (went, False, before)):
        groups = grouped((root(p), p) for p in paths)
        for members in groups.values():
            if len(members) < FOLD_FROM:
                for p in members:
                    leaf = array_type(facts.leaves[p])
                    old, new = (None, leaf) if is_new else (leaf, None)
                    found.append(Cause("tree", TRACE, p, old, new, CERTAIN))
            else:
                found.append(_leaves(common_prefix(members), len(members), came=is_new))
    return found
