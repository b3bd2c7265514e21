"""jaxscope: see why JAX recompiled and what program XLA produced, and check both in CI.

``import jaxscope`` imports neither jax nor a terminal library. The module of a public name is imported when
the name is first used.
"""

from __future__ import annotations

import os
from typing import Any

__version__ = "0.1.0"

# Public name -> the module that defines it
_WHERE = {
    "watch": "jaxscope.api",
    "step": "jaxscope.api",
    "snapshot": "jaxscope.api",
    "record": "jaxscope.recording",
    "no_recompiles": "jaxscope.guard",
    "RecompileError": "jaxscope.errors",
    "compile_for": "jaxscope.compiling",
    "open_run": "jaxscope.recorded_run",
    "JaxscopeError": "jaxscope.errors",
    "load_ipython_extension": "jaxscope.notebook",  # %load_ext jaxscope
    "_begin": "jaxscope.launch.environment",  # what $JAXSCOPE requests
}

_FIXTURE = ("pinned", "compilations", "causes", "read")  # attributes of the pytest fixture ``jaxscope``

__all__ = [
    "JaxscopeError",
    "RecompileError",
    "__version__",
    "compile_for",
    "no_recompiles",
    "open_run",
    "record",
    "snapshot",
    "step",
    "watch",
]


def __getattr__(name: str) -> Any:
    """Import the module that defines the public name ``name``, and return the value of the name. Python calls
    this function at the first use of ``jaxscope.name``."""
    where = _WHERE.get(name)
    if where is None:
        hint = ""
        if name in _FIXTURE:
            hint = f"; the pytest fixture has it: def test_it(jaxscope): ... jaxscope.{name}"
        raise AttributeError(f"module 'jaxscope' has no attribute {name!r}{hint}")
    import importlib

    value = getattr(importlib.import_module(where), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if os.environ.get("JAXSCOPE"):
    __getattr__("_begin")()
