"""Shapes and their bytes."""

from __future__ import annotations

import pytest

from jaxscope.analysis.hlo import shapes
from jaxscope.analysis.hlo.program import analyse


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("f32[]", 4),
        ("f32[2,3]{1,0}", 24),
        ("bf16[8,128]{1,0:T(8,128)(2,1)S(1)}", 2048),
        ("pred[7]{0}", 7),
        ("c64[3]", 24),
        ("c128[3]", 48),
        ("f8e4m3fn[16]", 16),
        ("s4[9]{0}", 9),  # a byte each ...
        ("s4[9]{0:E(4)}", 5),  # ... unless packed
        ("u2[8]{0:T(256)E(2)}", 2),
        ("f32[<=16,4]", 256),  # at most
        ("f32[?,4]", None),
        ("f32[0,5]", 0),
        ("token[]", 0),
        ("opaque[]", 0),
        ("(f32[4]{0}, /*index=1*/(s32[], bf16[2]{0:T(256)S(5)}))", 24),
        ("()", 0),
        ("(f32[2], nonsense)", None),
        ("nonsense", None),
        ("f32[2", None),
        ("f32[99999999999999999999999]", None),
        ("key<fry>[2]", None),
    ],
)
def test_bytes_of_a_shape(text, size):
    assert shapes.text_bytes(text) == size


def test_layout_tiles_and_memory_space_are_read():
    shape = shapes.parse("bf16[8,3,128]{2,0,1:T(8,128)(2,1)S(1)}")
    assert shape == shapes.Array("bf16", (8, 3, 128), (2, 0, 1), 16, 1, "(8,128)(2,1)")
    assert shape.elements == 8 * 3 * 128


def test_a_tuple_nested_too_deep_is_unknown_and_does_no_harm():
    assert shapes.text_bytes("(" * 10_000 + "f32[]" + ")" * 10_000) is None


def test_what_is_in_the_memory_of_the_host_is_not_counted_as_the_memory_of_the_device():
    memory = analyse("""HloModule jit_f, input_output_alias={ {0}: (0, {}, may-alias) }

ENTRY %main (a: f32[8], b: f32[4]) -> (f32[8], f32[4]) {
  %a = f32[8]{0:T(256)S(5)} parameter(0)
  %b = f32[4]{0:T(256)} parameter(1)
  ROOT %t = (f32[8]{0:T(256)S(5)}, f32[4]{0:T(256)}) tuple(%a, %b)
}
""").memory
    assert (memory.argument_bytes, memory.output_bytes, memory.alias_bytes) == (16, 16, 0)
    assert [p.bytes for p in memory.parameters] == [32, 16]
