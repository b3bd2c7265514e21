"""Names the folders that tests read."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
PROGRAMS = TESTS / "programs"
