"""Write a mesh as short text: ``AbstractMesh('data': 4, 'model': 2, ...)`` -> ``data=4,model=2``."""

from __future__ import annotations

import re

NONE = "none"
# In: AbstractMesh('a': 2, 'b': 4, axis_types=(Explicit, Explicit), device_kind=cpu, num_cores=None)
_PAIR = re.compile(r"'([^']*)': (\d+)")
# In: Mesh(axis_sizes=(4, 2), axis_names=('a', 'b'), axis_types=(Auto, Auto))
_SIZES = re.compile(r"axis_sizes=\(([\d, ]*)\)")
_NAMES = re.compile(r"axis_names=\(([^)]*)\)")
_DEVICES = re.compile(r" on devices (.*)$")
_TYPES = re.compile(r"axis_types=\(([\w, ]*)\)")


def both_short(one: str | None, other: str | None) -> tuple[str, str]:
    """Return the texts of two meshes in a short form that shows how they differ: ``("data=4", "data=2")``.

    If the short forms are equal, the devices are added: ``a=4 on devices 0-3``. If the devices are also equal
    or unknown, both texts are returned unchanged.

    Args:
      one, other: the meshes as JAX prints them; None (no mesh) becomes ``none``.
    """
    found = short(one), short(other)
    placed = [_DEVICES.search(text or "") for text in (one, other)]
    if found[0] == found[1] and placed[0] and placed[1] and placed[0][1] != placed[1][1]:
        return f"{found[0]} on devices {placed[0][1]}", f"{found[1]} on devices {placed[1][1]}"
    return found if found[0] != found[1] else (one or NONE, other or NONE)


def short(value: str | None) -> str:
    """Return the mesh ``value``, a text that JAX printed, as ``a=2,b=4``. If an axis type is not Auto, the
    types follow: ``a=2,b=4 (Explicit)``. No mesh is ``none``. A text of another form is returned
    unchanged."""
    if value in (None, "None", "()", ""):
        return NONE
    if value.count("Mesh(") != 1:
        return value
    axes = [(name, size) for name, size in _PAIR.findall(value)]
    sizes, names = _SIZES.search(value), _NAMES.search(value)
    if not axes and sizes is not None and names is not None:
        every = re.findall(r"'([^']*)'", names[1])
        axes = list(zip(every, re.findall(r"\d+", sizes[1]), strict=False))
    types = _TYPES.search(value)
    kinds = re.findall(r"\w+", types[1]) if types is not None else []
    if not axes:
        return NONE if types is not None and not kinds else value
    text = ",".join(f"{name}={size}" for name, size in axes)
    if len(kinds) != len(axes) or set(kinds) == {"Auto"}:
        return text
    if len(set(kinds)) == 1:
        return f"{text} ({kinds[0]})"
    return f"{text} ({', '.join(f'{name} {kind}' for (name, _), kind in zip(axes, kinds, strict=True))})"
