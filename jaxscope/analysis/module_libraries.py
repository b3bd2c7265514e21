"""List how libraries of neural network modules name their functions for loops and gradients: ``nnx.scan`` of
Flax instead of ``jax.lax.scan``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jaxscope.analysis import line_names
from jaxscope.schema.file_owner import SEPARATOR, STANDING, Standing
from jaxscope.schema.keys import Frame


class Spelling(NamedTuple):
    """The functions for loops and gradients that code with one library of neural network modules uses.

    Attributes:
      scan: the function for a loop over stacked inputs or parameters: ``nnx.scan``.
      same: the function for a loop whose iterations all use the same inputs and parameters:
        ``nnx.fori_loop``.
      value_and_grad: the function for a value and its gradient.
      layers: the function to use instead if each iteration has different parameters: ``hk.layer_stack``;
        None: there is none.
      maker: the function that creates layers with stacked parameters for ``scan``; None: there is none.
    """

    scan: str = "jax.lax.scan"
    same: str = "jax.lax.fori_loop"
    value_and_grad: str = "jax.value_and_grad"
    layers: str | None = None
    maker: str | None = None


JAX = Spelling()
# By the package that contains the library's modules
LIBRARIES = {
    "flax.nnx": Spelling("nnx.scan", "nnx.fori_loop", "nnx.value_and_grad", maker="nnx.vmap"),
    "flax.linen": Spelling("nn.scan", "nn.scan with variable_broadcast='params'"),
    "haiku": Spelling("hk.scan", "hk.fori_loop", layers="hk.layer_stack"),
    "equinox": Spelling(value_and_grad="eqx.filter_value_and_grad", maker="eqx.filter_vmap"),
}


def spelling(library: str | None) -> Spelling:
    """Return the functions for loops and gradients that code with ``library`` (``flax.nnx``) uses. Return
    JAX's own functions if ``library`` is None or not in the table ``LIBRARIES``."""
    return LIBRARIES.get(library or "", JAX)


def of_gradients(source: str | None, wrappers: Iterable[str]) -> str | None:
    """Return the library of neural network modules, such as ``flax.nnx``, that computes the gradients of a
    jitted function. If all functions for gradients that the file calls are of one library, the result is this
    library. Otherwise it is the library of the jit around the function. Return None if JAX itself computes
    them, or if the library is unknown.

    Args:
      source: the text of the file that defines the function; None: unknown.
      wrappers: the full names of the wrappers around the function, such as ``flax.nnx.jit``.
    """
    called = {library_of_name(name) for name in line_names.gradients(source)}
    if len(called) == 1:
        return called.pop()
    return next((library for w in wrappers if (library := library_of_name(w)) is not None), None)


def library_of_name(name: str) -> str | None:
    """Return the library of a function by the function's full name: ``flax.nnx`` for ``flax.nnx.jit``. Return
    None if the name begins with no library of the table ``LIBRARIES``."""
    return next((library for library in LIBRARIES if name.startswith(f"{library}.")), None)


def nearest(frames: Iterable[Frame]) -> str | None:
    """Return the library of neural network modules, such as ``flax.nnx``, of the first of ``frames`` whose
    file belongs to one. Return None if there is no such frame."""
    return next((library for f in frames if (library := _library_of(f.file)) is not None), None)


def _library_of(file: str) -> str | None:
    """Return the library of neural network modules that contains ``file``; None: it is no file of one."""
    if STANDING(file) != Standing.LIBRARY:
        return None
    path = "." + ".".join(SEPARATOR.split(file))
    return next((library for library in LIBRARIES if f".{library}." in path), None)
