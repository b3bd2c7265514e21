"""Draw two screens of the terminal interface, ``functions.svg`` and ``arrays.svg``, from runs of the samples.

``python docs/screens.py`` records the samples on the CPU, in a temporary directory. It uses the code with
which the tests look at screens.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from screens import settled, svg

from jaxscope.log.store import RunDir
from jaxscope.tui.app import App

ROOT = Path(__file__).resolve().parents[1]
SIZE = (120, 30)
# File -> (sample, simulated devices, keys that open the screen).
SCREENS = {"functions.svg": ("train_digits.py", 1, "2"), "arrays.svg": ("train_sharded.py", 8, "5")}


def main() -> None:
    os.environ["TERM"] = "xterm-256color"
    for name, (sample, devices, keys) in SCREENS.items():
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            record(f"samples/{sample}", devices, run)
            (ROOT / "docs" / name).write_text(asyncio.run(drawn(run, keys)))


def record(sample: str, devices: int, run: Path) -> None:
    """Record ``sample``, a file of this repository, with ``devices`` simulated CPU devices, into ``run``."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    command = [sys.executable, "-m", "jaxscope", "run", "-q", "--no-tui", "--tee-stderr", "-o", str(run)]
    subprocess.run([*command, sample], cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)


async def drawn(run: Path, keys: str) -> str:
    """Return the screen of the interface, as an SVG, after ``keys`` are pressed."""
    app = App(RunDir(run))
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        for key in keys:
            await pilot.press(key)
            await settled(pilot)
        return svg(app)


if __name__ == "__main__":
    main()
