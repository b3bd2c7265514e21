"""Keep JSON within a number of bytes: cut texts, and leave out keys and entries that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from jaxscope.report.json_report import compact

T = TypeVar("T")
MARK = "..."
LEAST = 200  # with fewer bytes left, an object or list is left out, not shortened


def size(value: Any) -> int:
    """Return the number of bytes that ``value`` takes as JSON."""
    return len(compact(value))


def cut(text: str, most: int) -> str:
    """Return ``text`` if it takes at most ``most`` bytes as JSON, including the quotes. Otherwise return its
    beginning with ``...`` at the end, so that both together take at most ``most`` bytes."""
    if len(text) <= most and size(text) <= most:
        return text
    low, high = 0, min(len(text), most)
    while low < high:  # search for the length, because a character with escapes takes 1 to 12 bytes
        middle = (low + high + 1) // 2
        if size(text[:middle] + MARK) <= most:
            low = middle
        else:
            high = middle - 1
    return text[:low] + MARK


def first_that_fit(values: Iterable[T], room: int, shorter: Callable[[T], T] | None = None) -> list[T]:
    """Return the values from the beginning of ``values`` that take at most ``room`` bytes as JSON, each with
    a comma. The list ends before the first value that does not fit.

    Args:
      shorter: makes a value smaller; called for each value that does not fit, which is then tried again.
        None: values cannot be made smaller.
    """
    kept: list[T] = []
    for value in values:
        took = size(value) + 1
        if took > room and shorter is not None:
            value = shorter(value)
            took = size(value) + 1
        if took > room:
            break
        kept.append(value)
        room -= took
    return kept


def fitted(value: Any, room: int, path: str, left_out: list[str]) -> Any:
    """Return ``value``, plain data, or a shorter version of it that takes at most ``room`` bytes as JSON: a
    text or a list without its end, a dict in which values are shortened or missing, None for a number.

    Args:
      path: the path of ``value`` in the report: ``functions/0/key``.
      left_out: this function appends to it the paths of the missing and shortened parts.
    """
    if size(value) <= room:
        return value
    left_out.append(path)
    if isinstance(value, str):
        return cut(value, room)
    if isinstance(value, list):
        kept = first_that_fit(value, room - 2)
        if not kept and value and room > LEAST:
            kept = [fitted(value[0], room - 4, f"{path}/0", [])]
        return kept
    if not isinstance(value, dict):
        return None
    return _some_keys(value, room, path, left_out)


def _some_keys(value: dict[str, Any], room: int, path: str, left_out: list[str]) -> dict[str, Any]:
    """Return the dict ``value`` without the values that do not fit into ``room`` bytes, or with shortened
    ones. Small values are kept first. The parameters are those of ``fitted``, which has appended ``path`` to
    ``left_out``; the paths of the missing keys replace it."""
    room -= 2
    kept: dict[str, Any] = {}
    took = {key: size(key) + size(x) + 2 for key, x in value.items()}
    for key in sorted(value, key=lambda key: (isinstance(value[key], (dict, list)), took[key])):
        if took[key] <= room:
            kept[key] = value[key]
            room -= took[key]
    left_out.pop()  # the missing keys are named instead of the object
    for key, x in value.items():
        if key in kept:
            continue
        below = f"{path}/{key.replace('~', '~0').replace('/', '~1')}".lstrip("/")
        if room > LEAST and size(key) < LEAST // 2:
            kept[key] = fitted(x, room - size(key) - 2, below, left_out)
            room -= size(key) + size(kept[key]) + 2
        else:
            left_out.append(below)
    return {key: kept[key] for key in value if key in kept}
