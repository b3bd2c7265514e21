"""Read the pytrees in JAX's cache key: the containers (dicts, lists, custom nodes) and the static data of
custom nodes, each by its path.

The static data of a custom node (aux data: a dataclass's meta fields, equinox's static fields, nnx's graph
definition) has no names in JAX. Here each part is named after the attribute of the object that has the same
value. Only ``PyTreeDef.node_data``, ``children`` and attributes are read; no flatten function of the user
runs.
"""

from __future__ import annotations

import collections
import functools
from typing import Any

import msgspec

from jaxscope.capture import paths
from jaxscope.capture.calls import nnx_graphdef
from jaxscope.capture.calls.functions import Serials
from jaxscope.capture.calls.statics import opaque, static
from jaxscope.schema.keys import Static

MAX_NODES = 3000
MAX_STATICS = 500
MAX_DEPTH = 4  # how deep static data that is itself a container is divided into its parts

_SEQUENCES = (list, tuple)

Below = tuple[tuple[Any, ...], Any]  # the key path of a leaf, and its value


class Nodes:
    """The containers in the arguments of a call, and the static data of custom pytree nodes.

    Attributes:
      kinds: path of a container -> the full name of its class: ``dict``, ``None``, ``carry.State``. The name
        of an OrderedDict is followed by its keys: ``collections.OrderedDict ['b', 'a']``.
      static: the static data of the custom nodes: one entry for each named part, and one for the whole of
        each node that has such data. Also the ``default_factory`` of each defaultdict.
    """

    def __init__(self, serials: Serials) -> None:
        self.kinds: dict[str, str] = {}
        self.static: list[Static] = []
        self._serials = serials

    def read(self, path: str, tree: Any, value: Any, leaves: list[Below], depth: int = 0) -> None:
        """Add the container at ``path`` and all containers below it, each with its static data. Do nothing
        for a leaf, or if there are MAX_NODES containers already.

        Args:
          tree: the container's PyTreeDef.
          value: the object that was flattened to ``tree``; None: unknown.
          leaves: (key path, value) of each leaf below ``path``, as from JAX's ``tree_flatten_with_path``.
          depth: how many entries at the beginning of each key path lead to this container.
        """
        data = tree.node_data()
        if data is None or len(self.kinds) >= MAX_NODES:
            return  # a leaf
        kind, aux = data
        name = self._serials.class_name(kind)
        if issubclass(kind, collections.OrderedDict):  # its order is part of the key
            name += f" {[k if issubclass(type(k), paths.PLAIN) else '?' for k in aux or ()]}"[:300]
        self.kinds.setdefault(path, name)
        if issubclass(kind, collections.defaultdict) and type(aux) is tuple and len(aux) == 2:
            self._add(f"{path}.default_factory", aux[0], 0)
        children = tree.children()
        start = 0
        empty = []  # children without leaves, which no key path names
        steps = set[str]()  # the steps to the other children
        for i, child in enumerate(children):
            below = leaves[start : start + child.num_leaves]
            start += child.num_leaves
            if not below:
                empty.append((i, child))
                continue
            keys, leaf = below[0]
            step, inner = _child(value, keys[depth:], leaf)
            steps.add(step)
            if child.num_leaves > 1 or child.num_nodes > 1:  # else it is a leaf, which is an argument
                self.read(path + step, child, inner, below, depth + 1)
        left = attributes(value) if empty and type(value) is kind else []
        for i, child in empty:
            step, inner = _step_without_key(kind, aux, i), None
            for n, (attribute, held) in enumerate(left):
                if type(held) is child.node_data()[0]:  # an attribute that is such an empty container
                    step, inner = f".{attribute}", held
                    del left[: n + 1]
                    break
            self.read(path + step, child, inner, [], depth + 1)
        if aux is not None and not issubclass(kind, dict) and type(value) is kind:
            self._static(path, kind, aux, value, steps)

    def _static(self, path: str, kind: type, aux: Any, value: Any, traced: set[str]) -> None:
        """Add the static data of the custom pytree node at ``path`` to ``static``.

        Args:
          kind: the class of the node.
          aux: the static data, which the flatten function of ``kind`` returned.
          value: the object that was flattened. The parts of ``aux`` are named after its attributes.
          traced: the steps from the node to its children, such as ``.w``. These attributes are not static
            data.
        """
        if nnx_graphdef.is_definition(value):
            parts = [(step[1:], held) for step, held in nnx_graphdef.attributes(value)]
        else:
            parts = named_parts(aux, [a for a in attributes(value) if f".{a[0]}" not in traced])
        for name, item in parts:
            self._add(f"{path}.{name}", item, 0)
        # The whole is added too: if it differs from that of another call and no part does, the difference is
        # in data without a name.
        whole = opaque(path, aux) if parts else static(path, aux, self._serials)
        self.static.append(msgspec.structs.replace(whole, type=paths.kind_name(kind)))

    def _add(self, path: str, value: Any, depth: int) -> None:
        """Add the static value at ``path``. A tuple that contains more than numbers and strings is added item
        by item, also inside other tuples, down to MAX_DEPTH. Add nothing beyond MAX_STATICS. ``depth`` is the
        number of tuples around ``value``."""
        if len(self.static) >= MAX_STATICS:
            return
        kind = type(value)
        if depth < MAX_DEPTH and issubclass(kind, tuple) and not _plain(value):  # optax: a tuple of functions
            fields = getattr(kind, "_fields", None)
            for i, item in enumerate(value):
                self._add(f"{path}.{fields[i]}" if fields else f"{path}[{i}]", item, depth + 1)
            return
        self.static.append(static(path, value, self._serials))


def _plain(value: Any) -> bool:
    """Return whether ``value`` is a number, a string or None, or a tuple of these only."""
    if type(value) is tuple:
        return all(_plain(v) for v in value[:MAX_STATICS])
    return issubclass(type(value), paths.PLAIN)


def attributes(value: Any) -> list[tuple[str, Any]]:
    """Return (name, value) of the attributes that are stored in ``value`` itself, in their order. Properties
    are not among them: no code of the value's class runs."""
    found = paths.children(value)
    return [(step[1:], held) for step, held in found or () if step.startswith(".")]


def named_parts(aux: Any, named: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Name the parts of ``aux``, an object's static data, after the object's attributes with the same values.
    Return (name, part) for each part that has such an attribute: ``[("rate", 0.1)]`` if ``aux`` is ``("relu",
    0.1)`` and the attribute ``rate`` is 0.1.

    Args:
      aux: the static data. Containers in it are searched too.
      named: (name, value) of the object's attributes.
    """
    found: list[tuple[str, Any]] = []
    _take(aux, list(named), found, 0)
    return found


def _take(value: Any, left: list[tuple[str, Any]], matches: list[tuple[str, Any]], depth: int) -> None:
    """Move the attribute with the value ``value``, a part of an object's static data, from ``left`` to
    ``matches``. If no attribute has this value and ``value`` is a container, do the same for each of its
    items.

    Args:
      left: (name, value) of the attributes that are not found yet.
      matches: (name, value) of the attributes that are found.
      depth: the number of containers around ``value``.
    """
    for i, (name, held) in enumerate(left):
        plain = issubclass(type(value), paths.PLAIN) and type(held) is type(value)
        if held is value or (plain and held == value):
            del left[i]
            matches.append((name, value))
            return
    if depth >= MAX_DEPTH:
        return
    items = value if type(value) in (tuple, list) else list(value.values()) if type(value) is dict else ()
    for v in items[:MAX_STATICS]:
        _take(v, left, matches, depth + 1)


def key_path(value: Any, keys: tuple[Any, ...], leaf: Any) -> str:
    """Return the path from the argument ``value`` to its leaf ``leaf`` as text: ``['params'].w``. ``keys`` is
    JAX's key path to the leaf.

    This is ``jax.tree_util.keystr(keys)``, but a child that JAX only numbers (``[<flat index 1>]``) gets the
    name of the attribute that leads to the leaf, if there is one: ``.w``.
    """
    import jax

    if any(isinstance(k, jax.tree_util.FlattenedIndexKey) for k in keys):
        text = ""
        while keys:
            step, value = _child(value, keys, leaf)
            text, keys = text + step, keys[1:]
        return text
    return jax.tree_util.keystr(keys)


def _child(value: Any, keys: tuple[Any, ...], leaf: Any) -> tuple[str, Any]:
    """Follow the first key of ``keys`` from the pytree node ``value``. Return (the key as text, the child):
    ``(".w", array)``. The child is None if it cannot be read.

    Args:
      keys: the key path from ``value`` to ``leaf``.
      leaf: the leaf at the end of ``keys``. A key that is only a number stands for the attribute of ``value``
        that is this leaf or contains it.
    """
    import jax

    if not keys:
        return "", None
    key = keys[0]
    if not isinstance(key, jax.tree_util.FlattenedIndexKey):
        return jax.tree_util.keystr(keys[:1]), _follow(value, key)
    for name, held in _numbered(value, key.key):
        if _leads(held, keys[1:], leaf):
            return f".{name}", held
    return jax.tree_util.keystr(keys[:1]), None


def _numbered(value: Any, index: int) -> list[tuple[str, Any]]:
    """Return (name, value) of the attributes of ``value`` that may be its child number ``index``. ``value``
    is a pytree node of a class that is registered without keys, so that JAX only numbers its children."""
    if issubclass(type(value), functools.partial):
        return [("args", value.args), ("keywords", value.keywords)][index : index + 1]
    return attributes(value)


def _leads(value: Any, keys: tuple[Any, ...], leaf: Any) -> bool:
    """Return whether the key path ``keys`` leads from ``value`` to ``leaf``."""
    import jax

    for i, key in enumerate(keys):
        if isinstance(key, jax.tree_util.FlattenedIndexKey):
            return any(_leads(held, keys[i + 1 :], leaf) for _, held in _numbered(value, key.key))
        value = _follow(value, key)
    return value is leaf


def _step_without_key(kind: type, aux: Any, index: int) -> str:
    """Return the last step of the path to a child without leaves, such as an empty dict: ``['opt']``, ``[2]``
    or ``[<child 2>]``. JAX's key paths lead only to leaves.

    Args:
      kind: the class of the pytree node that has the child.
      aux: the static data of the node; for a dict, its keys.
      index: the number of the child.
    """
    if issubclass(kind, dict):
        keys = aux[1] if isinstance(aux, tuple) and len(aux) == 2 and not isinstance(aux[0], str) else aux
        try:
            return f"[{keys[index]!r}]" if issubclass(type(keys[index]), paths.PLAIN) else f"[{index}]"
        except Exception:
            return f"[{index}]"
    fields = getattr(kind, "_fields", None)
    if isinstance(fields, tuple) and index < len(fields):
        return f".{fields[index]}"
    return f"[{index}]" if issubclass(kind, _SEQUENCES) else f"[<child {index}>]"


def _follow(value: Any, key: Any) -> Any:
    """Return the child of ``value`` to which ``key``, one entry of a key path, leads. None if there is no
    such child, or if reading it would run code of the user, such as a property."""
    kind = type(value)
    try:
        if hasattr(key, "name"):  # GetAttrKey
            if issubclass(kind, tuple):
                return value[kind._fields.index(key.name)]  # type: ignore[attr-defined]
            return dict(attributes(value)).get(key.name)
        if hasattr(key, "idx") and issubclass(kind, _SEQUENCES):
            return value[key.idx]
        if hasattr(key, "key") and issubclass(kind, dict):
            return dict.__getitem__(value, key.key)
    except Exception:
        pass
    return None
