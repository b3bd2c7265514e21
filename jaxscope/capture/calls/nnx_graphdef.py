"""Name the static data in a graph definition of flax by attribute: ``graphdef.encoder.rate``.

The graph definition that ``nnx.split`` returns has two flat lists, one of nodes and one of attributes, in
depth-first order. Each node has the number of its attributes. If a graph definition has another form, as in
another version of flax, nothing is read from it.
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
    """Return (path inside the definition, value) of the static attributes of ``definition``, an
    ``nnx.GraphDef``: ``(".encoder.rate", 0.1)``. Flax's own attributes, such as ``_pytree__nodes``, are left
    out. Return an empty list if the definition has an unknown form, more than MAX_ATTRIBUTES attributes, or
    nodes more than MAX_DEPTH deep."""
    try:
        nodes = iter(list(definition.nodes))
        items = iter(list(definition.attributes)[:MAX_ATTRIBUTES])
        found: list[tuple[str, Any]] = []
        _read(next(nodes), nodes, items, "", found, 0)
    except Exception:  # the form of another version of flax, or a definition beyond the limits
        return []
    return found


def _read(
    node: Any, nodes: Any, items: Any, path: str, static_attributes: list[tuple[str, Any]], depth: int
) -> None:
    """Add (path, value) of the static attributes of ``node``, a node of a graph definition, and of the nodes
    inside it, to ``static_attributes``.

    Args:
      nodes: an iterator over the nodes that follow ``node`` in the definition.
      items: an iterator over the attributes that are not read yet.
      path: the path of ``node`` in the definition.
      depth: the number of nodes around ``node``.

    Raises:
      ValueError: the definition has an unknown form, or nodes more than MAX_DEPTH deep.
      StopIteration: ``nodes`` or ``items`` has too few.
    """
    if depth > MAX_DEPTH:
        raise ValueError("too deep")
    for _ in range(getattr(node, "num_attributes", 0)):
        key, item = next(items)
        below = f"{path}.{key}" if isinstance(key, str) else f"{path}[{key!r}]"
        if hasattr(item, "value"):
            # _pytree__nodes and similar names are flax's own.
            if not (isinstance(key, str) and key.startswith("_") and "__" in key):
                static_attributes.append((below, item.value))
        elif type(item).__name__ == "NodeAttr":
            _read(next(nodes), nodes, items, below, static_attributes, depth + 1)
        elif type(item).__name__ != "ArrayAttr":
            raise ValueError(f"an attribute of another kind: {type(item).__name__}")
