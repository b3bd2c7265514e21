"""Split paths of arguments into steps, find common prefixes of paths, and shorten two long texts to the part
in which they differ.

A path names a leaf or a container of a call's arguments: ``state.params['dense'][0]``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

FOLD_FROM = 3  # if so many leaves have the same change, they are shown as one line, otherwise one by one

AROUND = 24  # equal characters that are kept beside a difference
_TOKEN = re.compile(r"\[[^\[\]]*\]|\.?[^.\[]+|.", re.DOTALL)


def tokens(path: str) -> list[str]:
    """Split a path: ``state.params['dense'][0]`` -> ``state``, ``.params``, ``['dense']``, ``[0]``."""
    return list(_tokens(path))


@functools.lru_cache(8_192)  # a run names the same few arguments in each of its keys
def _tokens(path: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(path))


def root(path: str) -> str:
    """Return the argument that a path begins with: ``state.params['w']`` -> ``state``."""
    return split(path)[0]


@functools.lru_cache(8_192)
def split(path: str) -> tuple[str, str]:
    """Split a path into the argument with which it begins and the rest: ``state.params['w']`` -> (``state``,
    ``.params['w']``)."""
    steps = _tokens(path) or ("",)
    return steps[0], "".join(steps[1:])


def common_prefix(paths: Sequence[str]) -> str | None:
    """Return the longest prefix, in whole steps, that all paths have: ``state.params`` for
    ``state.params['a']`` and ``state.params['b']``. Return None if they have no common prefix."""
    split = [tokens(p) for p in paths]
    shortest = min((len(s) for s in split), default=0)
    n = 0
    while n < shortest and all(s[n] == split[0][n] for s in split):
        n += 1
    return "".join(split[0][:n]) or None if split else None


def excerpt(before: str, after: str) -> tuple[str, str]:
    """Shorten two texts to the section in which they differ: (excerpt of ``before``, excerpt of ``after``).
    Around the section, at most AROUND equal characters are kept on each side. ``…`` stands for text that
    is left out, also at the end of a long section. If neither text is longer than 2 * AROUND, both are
    returned unchanged."""
    if max(len(before), len(after)) <= 2 * AROUND:
        return before, after
    low = 0
    top = min(len(before), len(after))
    while low < top and before[low] == after[low]:
        low += 1
    back = 0
    while back < top - low and before[-1 - back] == after[-1 - back]:
        back += 1

    def cut(text: str) -> str:
        start, end = max(0, low - AROUND), min(len(text), len(text) - back + AROUND)
        middle = text[start:end]
        if len(middle) > 6 * AROUND:
            middle = middle[: 5 * AROUND] + "…"
            end = len(text)
        return ("…" if start > 0 else "") + middle + ("…" if end < len(text) else "")

    return cut(before), cut(after)


def below(path: str, roots: set[str]) -> bool:
    """Return whether ``path`` is inside one of the paths ``roots``: ``state.a[0]`` is below ``state.a``. A
    path is not below itself."""
    return any(path != r and path.startswith(r) and path[len(r)] in ".[" for r in roots)


def of_result(path: str | None) -> str:
    """Return the path of a result, for a message: ``result['w']`` for ``['w']``; ``result`` for an empty path
    or None.
    """
    return f"result{'' if not path or path[0] in '[.' else ' '}{path or ''}"
