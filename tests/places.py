"""Where things lie, for tests: a conftest cannot be imported by name where there are several."""

from pathlib import Path

TESTS = Path(__file__).parent
PROGRAMS = TESTS / "programs"
