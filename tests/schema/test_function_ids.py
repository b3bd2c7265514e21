"""The ids of functions are read as they were written."""

import pytest

from jaxscope.schema import function_ids
from jaxscope.schema.function_ids import FunctionId


@pytest.mark.parametrize("wrappers", [[], ["jax.vmap", "jax.grad"]])
@pytest.mark.parametrize("captured", ["", "loss@train.py:3"])
@pytest.mark.parametrize(
    ("file", "line", "known"),
    [
        ("/home/ann/my work/train.py", 12, ("/home/ann/my work/train.py", 12)),
        ("/w/train.py", "12:8", ("/w/train.py", 12)),  # a lambda at column 8
        ("<string>", "1#1f0c9a", ("<string>", 1)),
        ("C:\\w\\train.py", 7, ("C:\\w\\train.py", 7)),
        (None, None, (None, None)),
        ("/w/train.py", None, (None, None)),
    ],
)
def test_an_id_has_the_name_and_the_line_of_its_function(file, line, known, wrappers, captured):
    id = function_ids.written("Trainer.fit.<locals>.<lambda>", file, line, wrappers, captured)
    assert function_ids.read(id) == FunctionId("Trainer.fit.<locals>.<lambda>", *known)
    assert function_ids.read(id).name == "<lambda>"
    assert function_ids.without_captures(id) == function_ids.written(
        "Trainer.fit.<locals>.<lambda>", file, line, wrappers
    )


@pytest.mark.parametrize(
    ("id", "qualname"), [("add (eager)", "add (eager)"), ("", ""), ("step@/w/tra", "step"), ("@", "")]
)
def test_of_a_shortened_id_the_name_is_known(id, qualname):
    assert function_ids.read(id) == FunctionId(qualname, None, None)
