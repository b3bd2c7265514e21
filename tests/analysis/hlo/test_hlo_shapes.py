"""Shapes and their bytes."""

from __future__ import annotations

import pytest

from jaxscope.analysis.hlo import shapes
from jaxscope.analysis.hlo.program import analyze


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
    memory = analyze("""HloModule jit_f, input_output_alias={ {0}: (0, {}, may-alias) }

ENTRY %main (a: f32[8], b: f32[4]) -> (f32[8], f32[4]) {
  %a = f32[8]{0:T(256)S(5)} parameter(0)
  %b = f32[4]{0:T(256)} parameter(1)
  ROOT %t = (f32[8]{0:T(256)S(5)}, f32[4]{0:T(256)}) tuple(%a, %b)
}
""").memory
    assert (memory.argument_bytes, memory.output_bytes, memory.alias_bytes) == (1024, 1024 + 512, 0)
    assert [p.bytes for p in memory.parameters] == [32, 16]


@pytest.mark.parametrize(
    ("text", "size"),
    [  # the sizes that libtpu 0.0.42 and 0.0.50 state for v5e (memory_analysis of a program of these arrays)
        ("f32[100,100]{1,0:T(8,128)}", 104 * 128 * 4),
        ("f32[37,100]{1,0:T(8,128)}", 40 * 128 * 4),
        ("bf16[37,100]{1,0:T(8,128)(2,1)}", 40 * 128 * 2),
        ("pred[37,100]{1,0:T(8,128)(4,1)}", 40 * 128),
        ("f32[37]{0:T(128)}", 512),
        ("f32[]{:T(128)}", 512),
        ("s4[64,128]{1,0:T(64,128)(8,1)E(4)}", 64 * 128 // 2),
        ("f32[100,37]{0,1:T(8,128)}", 40 * 128 * 4),  # the layout decides which dimensions are minor
        (
            "f32[3,5,7]{2,1,0:T(*,8)}",
            3 * 5 * 8 * 4 + 32,
        ),  # 5 is joined with 7 to 35, in 5 tiles of 8: 480, to 512
        ("f32[100,100]{1,0}", 40_000),  # CPU and GPU do not tile
        ("f32[4]{0:T(8)S(5)}", 0),
        ("f32[4]{0:T(0)}", None),
        ("f32[4]{7:T(8)}", None),
        ("(f32[8,128]{1,0:T(8,128)}, f32[]{:T(128)})", 4096 + 512 + 512),
        # 4 bytes for each result, rounded up to 512
        (f"({', '.join(['f32[]{:T(128)}'] * 128)})", 128 * 512 + 512),
        (f"({', '.join(['f32[]{:T(128)}'] * 129)})", 129 * 512 + 1024),
        ("(f32[8], f32[2])", 40 + 16),
    ],
)
def test_a_buffer_holds_whole_tiles(text, size):
    assert shapes.device_bytes(shapes.parse(text)) == size
