"""Which line is blamed, and which frames are folded away."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis.attribution import Standing, blame, standings
from jaxscope.schema.keys import Frame

standing = standings()

USER = "/home/ana/project/train.py"
FLAX = "/opt/env/lib/python3.12/site-packages/flax/linen/linear.py"
UNKNOWN = "/opt/env/lib/python3.12/site-packages/maxmodel/layers.py"


def frames(*files):
    return [Frame(file=f, line=i + 1, function=f"f{i}") for i, f in enumerate(files)]


@pytest.mark.parametrize(
    ("file", "whose"),
    [
        (USER, Standing.USER),
        ("programs/progs.py", Standing.USER),
        ("<stdin>", Standing.USER),
        ("/tmp/ipykernel_7/311.py", Standing.USER),
        ("C:\\Users\\ana\\train.py", Standing.USER),
        ("/home/ana/flax/train.py", Standing.USER),
        ("/home/ana/jax/train.py", Standing.USER),
        ("/home/ana/lib/train.py", Standing.USER),
        ("/home/ana/jaxscope/train.py", Standing.USER),
        (UNKNOWN, Standing.INSTALLED),
        ("/opt/env/bin/train-model", Standing.INSTALLED),
        (FLAX, Standing.LIBRARY),
        ("/usr/lib/python3/dist-packages/numpy/core.py", Standing.LIBRARY),
        ("C:\\Python311\\Lib\\site-packages\\optax\\_src\\base.py", Standing.LIBRARY),
        ("C:\\Python311\\Lib\\runpy.py", Standing.LIBRARY),
        ("/usr/lib/python3.11/functools.py", Standing.LIBRARY),
        ("/opt/python/lib/python3.13t/contextlib.py", Standing.LIBRARY),
        ("<frozen runpy>", Standing.LIBRARY),
        ("/home/ana/flax/flax/nnx/module.py", Standing.LIBRARY),
        ("/home/ana/src/jax/jax/_src/numpy/lax_numpy.py", Standing.LIBRARY),
        ("/src/jaxscope/jaxscope/api.py", Standing.LIBRARY),
        ("", Standing.LIBRARY),
    ],
)
def test_whose_a_file_is(file, whose):
    assert standing(file) is whose


def test_the_users_innermost_line_is_blamed_and_the_library_inside_it_folded():
    found = blame(frames(FLAX, FLAX, USER, FLAX, USER), standing)
    assert found.frame.line == 3
    assert [f.line for f in found.folded] == [1, 2]
    assert [f.line for f in found.callers] == [5]


def test_an_installed_package_is_blamed_only_where_nothing_is_the_users():
    assert blame(frames(FLAX, UNKNOWN, USER), standing).frame.file == USER
    assert blame(frames(FLAX, UNKNOWN, "/opt/env/bin/train-model"), standing).frame.file == UNKNOWN


def test_nobody_is_blamed_for_a_librarys_own_work():
    assert blame(frames(FLAX), standing).frame is None
    assert blame([], standing).frame is None


def test_a_package_named_in_the_settings_is_nobodys():
    assert standings(["maxmodel"])(UNKNOWN) is Standing.LIBRARY


@given(st.lists(st.text()))
def test_any_file_names_are_read(files):
    found = blame(frames(*files), standing)
    assert found.frame is None or found.frame.file in files
