"""Labelled cache misses: programs like those people write, each with one true cause known from its construction.

Importing it imports JAX with four CPU devices, and the libraries the programs use. ``CASES`` is the list.
"""

from . import alike, arguments, controls, explained, functions, listed, placement, statics, structures, unusual, wrapped  # noqa: F401
from .spec import CASES, Case, Cause, counted, level  # noqa: F401
