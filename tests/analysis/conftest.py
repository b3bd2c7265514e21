"""Lets these tests import the keys written by hand."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
