"""Test modules have names of their own: pytest imports them by name, and two of one name are one too many."""

from collections import Counter
from pathlib import Path


def test_no_two_test_modules_share_a_name():
    names = Counter(p.name for p in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, n in names.items() if n > 1] == []
