"""What XLA made of a program, where several things are alike: said once."""

import msgspec
import pytest

from jaxscope.analysis.hlo.loops import Loop
from jaxscope.analysis.hlo.program import analyze
from jaxscope.analysis.programs import Texts
from jaxscope.analysis.stablehlo.donation import Donation
from jaxscope.analysis.stablehlo.reading import Reading
from jaxscope.analysis.stablehlo.repeats import Repeated
from jaxscope.model.run import Run
from jaxscope.present.text import Places
from jaxscope.report import compiled_program

WHY = "if XLA shards the output like the argument"


def said(**what):
    return [
        one.text.plain.strip()
        for one in compiled_program.section(Texts(None, Reading(**what)), None, Places(Run()))
    ]


def donations(*reasons):
    return tuple(Donation(f"p[{n}]", "possible", why, n, "f32[4]", 16, 16) for n, why in enumerate(reasons))


def test_a_reason_that_all_share_is_reported_once():
    [text] = said(donation=donations(WHY, WHY, WHY))
    assert text == f"could be donated if no caller uses it afterwards  p[0], p[1], p[2] ({WHY}), 48 B"


def test_reasons_that_differ_stand_with_their_arguments():
    [text] = said(donation=donations(WHY, None))
    assert f"p[0] ({WHY}), p[1], 32 B" in text


def test_loops_written_out_that_are_alike_are_one_line():
    repeated = tuple(Repeated(6, 4, n, False, False, None, n, n) for n in range(4))
    one = Repeated(6, 5, 9, False, False, None, 9, 9)
    lines = said(repeated=(*repeated, one))
    assert [" ".join(x.split()) for x in lines] == [
        "unrolled loops",
        "the same 6 operations 4 times an unrolled loop 4 of these",
        "the same 6 operations 5 times an unrolled loop",
    ]


@pytest.mark.parametrize(
    ("trips", "shown"),
    [
        ([4], "1 loop of 4 iterations"),
        ([4, 4], "2 loops of 4 iterations each"),
        ([4, 4, 7], "3 loops of 2x 4, 7 iterations"),
    ],
)
def test_loops_of_equal_length_are_said_once(trips, shown):
    loops = [Loop(f"w{n}", trip, None, "main", f"body{n}", None) for n, trip in enumerate(trips)]
    made = msgspec.structs.replace(analyze("HloModule jit_f"), loops=loops)
    assert compiled_program._instructions(made).endswith(shown)
