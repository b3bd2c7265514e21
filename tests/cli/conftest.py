"""Lets these tests import the runs written by hand."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "log"))
sys.path.insert(0, str(Path(__file__).parents[1] / "rules"))
