"""Name the static data in a graph definition of flax by attribute: ``graphdef.encoder.rate``.

The definition that ``nnx.split`` returns has flat lists of nodes and attributes, in depth-first order, and
each node has the number of its attributes. Of a definition of another form nothing is read.
"""

from __future__ import annotations

from typing import Any

MAX_ATTRIBUTES = 2000
MAX_DEPTH = 50


def is_definition(value: Any) -> bool:
    """Return whether ``value`` is a graph definition of flax (``nnx.GraphDef``)."""
    kind = type(value)
    return kind.__name__ == "GraphDef" and kind.__module__.partition(".")[0] == "flax"


def attributes(definition: Any) -> list[tuple[str, Any]]:
    """Return (path inside the definition, value) of its static attributes; an empty list if its form is
    unknown."""
    try:
        nodes = iter(list(definition.nodes))
        items = iter(list(definition.attributes)[:MAX_ATTRIBUTES])
        found: list[tuple[str, Any]] = []
        _read(next(nodes), nodes, items, "", found, 0)
    except Exception:  # another version's form, or more of it than is read
        return []
    return found


def _read(node: Any, nodes: Any, items: Any, path: str, found: list[tuple[str, Any]], depth: int) -> None:
    """Add to ``found`` the static attributes of ``node`` and of the nodes inside it. ``nodes`` and ``items``
    are iterators over the remaining nodes and attributes.

    Raises:
      ValueError: the definition has another form.
    """
    if depth > MAX_DEPTH:
        raise ValueError("too deep")
    for _ in range(getattr(node, "num_attributes", 0)):
        key, item = next(items)
        below = f"{path}.{key}" if isinstance(key, str) else f"{path}[{key!r}]"
        if hasattr(item, "value"):
            # _pytree__nodes and similar names are flax's own.
            if not (isinstance(key, str) and key.startswith("_") and "__" in key):
                found.append((below, item.value))
        elif type(item).__name__ == "NodeAttr":
            _read(next(nodes), nodes, items, below, found, depth + 1)
        elif type(item).__name__ != "ArrayAttr":
            raise ValueError(f"an attribute of another kind: {type(item).__name__}")
