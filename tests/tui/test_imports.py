"""What is loaded when."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.subprocess


@pytest.mark.parametrize(
    "what", ["jaxscope", "jaxscope.capture.session", "jaxscope.api", "jaxscope.cli.run", "jaxscope.cli.view"]
)
def test_recording_loads_no_terminal_library(what):
    code = (
        f"import sys, {what}; print([m for m in sys.modules if m.split('.')[0] in ('textual', 'rich')][:3])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_view_loads_no_jax():
    code = "import sys, jaxscope.tui.app; print([m for m in sys.modules if m.split('.')[0] in ('jax', 'jaxlib')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_another_process_reads_for_the_view_loads_no_terminal_library():
    code = "import sys, jaxscope.tui.links; print([m for m in sys.modules if m.split('.')[0] in ('textual', 'rich')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
