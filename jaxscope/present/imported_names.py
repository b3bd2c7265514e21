"""Write names such as ``jax.jit`` and ``np.pad`` in advice as the user's file imports them."""

from __future__ import annotations

import re
from collections.abc import Mapping

# The names that the templates of messages use -> (full name, the statement that imports it by this name). A
# message names a library only for programs that use it: there, None.
_OURS = {
    "jax": ("jax", "import jax"),
    "jnp": ("jax.numpy", "import jax.numpy as jnp"),
    "np": ("numpy", "import numpy as np"),
    "functools": ("functools", "import functools"),
    "optax": ("optax", None),
    "nnx": ("flax.nnx", None),
    "eqx": ("equinox", None),
    "PartitionSpec": ("jax.sharding.PartitionSpec", "from jax.sharding import PartitionSpec"),
    "NamedSharding": ("jax.sharding.NamedSharding", "from jax.sharding import NamedSharding"),
}
# One of these names with what follows it: ``jax.lax.scan``, ``PartitionSpec``. Not within a longer name, a
# path, quotes or the braces of a field.
_USED = re.compile(rf"(?<![\w.'/{{])({'|'.join(_OURS)})\b((?:\.\w+)+|(?=\())")


class ImportedNames:
    """Writes names as a file imports them: ``jit(f)`` for ``jax.jit(f)`` if it has ``from jax import jit``.

    Args:
      imported: the names that the file imports -> their full names: ``jnp`` -> ``jax.numpy``. None: they are
        unknown, and all names stay as they are.

    Attributes:
      missing: the import statements that the file lacks for the names written so far, in order.
    """

    def __init__(self, imported: Mapping[str, str] | None) -> None:
        self.missing: list[str] = []
        self._imported = imported
        self._local = {} if imported is None else {full: name for name, full in imported.items()}

    def written(self, template: str) -> str:
        """Return ``template``, a text with names such as ``jax.jit``, with these names as the file imports
        them."""
        return template if self._imported is None else _USED.sub(self._name, template)

    def _name(self, used: re.Match[str]) -> str:
        """Return the name ``used``, a match of ``_USED``, as the file imports it."""
        assert self._imported is not None
        full, statement = _OURS[used[1]]
        if self._imported.get(used[1]) == full:
            return used[0]
        parts = (full + used[2]).split(".")
        for n in range(len(parts), 0, -1):
            local = self._local.get(".".join(parts[:n]))
            if local is not None:
                return ".".join([local, *parts[n:]])
        name = used[0]
        if (
            statement is not None and used[1] in self._imported
        ):  # the name of something else: np for jax.numpy
            statement, name = f"import {full}", full + used[2]
        if statement is not None and statement not in self.missing:
            self.missing.append(statement)
        return name
