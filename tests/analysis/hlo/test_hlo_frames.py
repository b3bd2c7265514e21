"""Source lines: the four tables, and which of the frames is blamed."""

from __future__ import annotations

import pytest

from jaxscope.analysis.hlo.frames import Frames, in_library

NAMES = '1 "/home/me/train.py"\n2 "/usr/lib/python3.11/site-packages/flax/nn.py"\n3 "we\\"ird\\\\.py"\n'
FUNCTIONS = '1 "main"\n2 "loss"\n3 "Dense.__call__"\n'
LOCATIONS = """1 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=0 end_column=6}
2 {file_name_id=1 function_name_id=2 line=20 end_line=20 column=0 end_column=6}
3 {file_name_id=2 function_name_id=3 line=30 end_line=30 column=0 end_column=6}
4 {file_name_id=3 function_name_id=2 line=40}
5 {file_name_id=77 function_name_id=2 line=50}
"""


def frames(stacks, **more):
    return Frames(
        {"FileNames": NAMES, "FunctionNames": FUNCTIONS, "FileLocations": LOCATIONS, "StackFrames": stacks},
        **more,
    )


def lines(found):
    return [(f.function, f.line) for f in found]


def test_a_printed_parent_is_one_too_high():
    found = frames(
        "1 {file_location_id=1 parent_frame_id=1}\n2 {file_location_id=2 parent_frame_id=2}\n"
        "3 {file_location_id=3 parent_frame_id=3}\n4 {file_location_id=2 parent_frame_id=2}\n"
    )
    assert lines(found.stack(3)) == [("Dense.__call__", 30), ("loss", 20), ("main", 10)]
    assert lines(found.stack(4)) == [("loss", 20), ("main", 10)]
    assert lines(found.stack(1)) == [("main", 10)]


def test_a_table_that_counts_from_zero_is_taken_as_it_is():
    found = frames("1 {file_location_id=1 parent_frame_id=0}\n2 {file_location_id=2 parent_frame_id=1}\n")
    assert lines(found.stack(2)) == [("loss", 20), ("main", 10)]


def test_the_innermost_of_the_users_lines_is_blamed():
    stacks = "1 {file_location_id=2 parent_frame_id=1}\n2 {file_location_id=3 parent_frame_id=2}\n"
    assert lines([frames(stacks).attributed_frame(2)]) == [("loss", 20)]
    library = "/usr/lib/python3.11/site-packages/flax/nn.py"
    assert lines([frames(stacks, user_files=[library]).attributed_frame(2)]) == [("Dense.__call__", 30)]


def test_where_all_is_a_librarys_its_innermost_line_is_blamed():
    found = frames("1 {file_location_id=3 parent_frame_id=1}\n")
    assert lines([found.attributed_frame(1)]) == [("Dense.__call__", 30)]


def test_circles_gaps_and_unknown_ids_end_the_stack():
    found = frames(
        "1 {file_location_id=1 parent_frame_id=3}\n2 {file_location_id=2 parent_frame_id=2}\n"
        "7 {file_location_id=5 parent_frame_id=1}\n8 {file_location_id=9999 parent_frame_id=999999}\n"
    )
    assert len(found.stack(2)) == 2
    assert found.stack(7) == []
    assert found.attributed_frame(8) is None
    assert found.attributed_frame(12345) is None


def test_file_names_keep_their_quotes():
    assert frames("1 {file_location_id=4 parent_frame_id=1}").stack(1)[0].file == 'we"ird\\.py'


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/x/venv/lib/python3.11/site-packages/jax/_src/lax.py", True),
        ("C:\\py\\Lib\\site-packages\\optax\\a.py", True),
        ("/usr/lib/python3.12/functools.py", True),
        ("<frozen runpy>", True),
        ("/home/me/lib/python/train.py", False),
        ("train.py", False),
        ("<stdin>", False),
    ],
)
def test_installed_packages_are_libraries(file, library):
    assert in_library(file) is library
