"""Random arguments through each wrapper of jit: the recorded key names what JAX traces, and its causes what was
exchanged. benchmarks/keys.py does this with more of them.
"""

from pathlib import Path

import pytest

pytestmark = [pytest.mark.capture, pytest.mark.subprocess]

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.mark.long
def test_what_is_named_is_what_jax_compares_for_random_arguments_of_each_wrapper(record):
    done = record(
        f"""
        import sys
        sys.path.insert(0, {str(BENCHMARKS)!r})
        import keys
        from pathlib import Path
        cases, exchanges, wrong = keys.record(28, 3, Path("random"))
        print(len(cases), len(exchanges) > 60, any(not e.traced for e in exchanges), *wrong, sep="\\n")
        """,
        env={"XLA_FLAGS": "--xla_backend_optimization_level=0"},
    )
    assert done.out.split("\n")[:-1] == ["28", "True", "True"]
