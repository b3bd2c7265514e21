"""Functions that jaxscope recognizes on the stack by their name exist in the installed JAX.

If JAX renames one of them, a copy has no kind or a call another line. Nothing else would tell that.
"""

import re
from pathlib import Path

import jax

from jaxscope.jax_internals import names

ONE_OF = [
    {"trace_to_jaxpr", "trace_to_jaxpr_nocache"},  # JAX 0.10, 0.12
    {"_to_np_array_did_copy", "_single_device_array_to_np_array_did_copy"},  # JAX 0.12, 0.10
]


def test_the_functions_recognized_by_name_exist_in_jax():
    texts = (p.read_text("utf-8", "replace") for p in Path(jax.__file__).parent.rglob("*.py"))
    defined = {name for text in texts for name in re.findall(r"\bdef (\w+)\(", text)}
    wanted = {
        *names.TRACER_FRAMES,
        *names.ENTRANCES,
        *names.TRANSFER_FRAMES,
        *names.COPY_METHODS,
        *names.WAITING_FRAMES,
        names.CALL_FRAME,
    }
    missing = wanted - defined
    assert all(len(missing & either) <= 1 for either in ONE_OF)
    assert missing <= set().union(*ONE_OF)
