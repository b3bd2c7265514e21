"""The shapes a line of MLIR can have, and texts that are cut, foreign or hostile."""

import gzip
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_lines import located_and_known

from jaxscope.analysis.stablehlo import reader, reading, types

PROGRAM = """#loc = loc(unknown)
#loc1 = loc("x")
module @jit_f attributes {mhlo.num_partitions = 2 : i32, note = "a } brace"} {
  sdy.mesh @mesh = <["a"=2]> loc(#loc)
  func.func public @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>} loc("x"), %arg1: tensor<i1> loc("it's {odd}, (very)")) -> (tensor<4xf32> {jax.result_info = "r[0]"}, tensor<4xf32>) {
    // a comment
    %cst = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> loc(#loc)
    %0 = stablehlo.add %arg0, %cst : tensor<4xf32> loc(#loc1)
    %1 = stablehlo.select %arg1, %0, %arg0 : tensor<i1>, tensor<4xf32> loc(#loc1)
    %2:2 = stablehlo.while(%iterArg = %0, %iterArg_1 = %1) : tensor<4xf32>, tensor<4xf32>
    cond {
      %5 = func.call @test(%iterArg) : (tensor<4xf32>) -> tensor<i1> loc(#loc1)
      stablehlo.return %5 : tensor<i1> loc(#loc1)
    } do {
      stablehlo.return %iterArg, %iterArg_1 : tensor<4xf32>, tensor<4xf32> loc(#loc1)
    } loc(#loc1)
    %values, %indices = chlo.top_k(%2#1, k = 2) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>) loc(#loc1)
    %3 = "stablehlo.case"(%indices) ({
      stablehlo.return %0 : tensor<4xf32> loc(#loc1)
    }, {
      stablehlo.return %1 : tensor<4xf32> loc(#loc1)
    }) {a = 1 : i32} : (tensor<2xi32>) -> tensor<4xf32> loc(#loc1)
    %4 = stablehlo.custom_call @"odd target"(%3) {backend_config = "% : loc( }", has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32> loc(#loc1)
    return %3, %4 : tensor<4xf32>, tensor<4xf32> loc(#loc)
  } loc(#loc)
  func.func private @test(%arg0: tensor<4xf32> loc(unknown)) -> tensor<i1> {
    %c = stablehlo.constant dense<true> : tensor<i1> loc(#loc)
    return %c : tensor<i1> loc(#loc)
  } loc(#loc)
} loc(#loc)
{-#
  dialect_resources: { builtin: { x: "0x00" } }
#-}
"""


def test_every_form_of_a_line():
    module = reader.read(PROGRAM)
    assert module.problems == ()
    assert module.name == "jit_f"
    assert module.attributes == {"mhlo.num_partitions": "2 : i32", "note": '"a } brace"'}
    main, test = module.functions
    assert (main.name, main.public, test.public) == ("main", True, False)
    assert [a.name for a in main.arguments] == ["x", "it's {odd}, (very)"]
    assert [r.attributes.get("jax.result_info") for r in main.results] == ['"r[0]"', None]
    ops = {op.name: op for op in module.ops}
    names = [op.name for op in module.ops if op.name not in ("func.return", "stablehlo.return")]
    assert names == [
        *("stablehlo.constant", "stablehlo.add", "stablehlo.select", "stablehlo.while", "func.call"),
        *("chlo.top_k", "stablehlo.case", "stablehlo.custom_call", "stablehlo.constant"),
    ]
    f4 = "tensor<4xf32>"
    assert ops["stablehlo.add"].inputs == (f4, f4) and ops["stablehlo.add"].operands == (-1, 0)
    assert ops["stablehlo.select"].inputs == ("tensor<i1>", f4, f4)
    loop = ops["stablehlo.while"]
    assert (loop.results, loop.outputs, loop.operands, loop.location) == (2, (f4, f4), (1, 2), "#loc1")
    assert ops["func.call"].parent == 3 and ops["func.call"].callee == "test"
    assert ops["chlo.top_k"].outputs == ("tensor<2xf32>", "tensor<2xi32>")
    assert ops["stablehlo.case"].outputs == (f4,) and ops["stablehlo.case"].location == "#loc1"
    assert ops["stablehlo.custom_call"].callee == "odd target"
    assert ops["stablehlo.custom_call"].operands == (module.ops.index(ops["stablehlo.case"]),)


@pytest.mark.parametrize(
    ("text", "shape", "dtype", "size"),
    [
        ("tensor<4x3xbf16>", (4, 3), "bfloat16", 24),
        ("tensor<f64>", (), "float64", 8),
        ("tensor<?x4xi8, #stablehlo.bounds<3, ?>>", (None, 4), "int8", None),
        ("tensor<2xui32>", (2,), "uint32", 8),
        ("tensor<3xi1>", (3,), "bool", 3),
        ("tensor<3xcomplex<f32>>", (3,), "complex64", 24),
        ("tensor<8xf8E4M3FN>", (8,), "float8_e4m3fn", 8),
        ("tensor<5xi4>", (5,), "int4", 3),
        ("tensor<4x!quant.uniform<i8:f32, 1.0>>", (4,), None, None),
        ("tensor<*xf32>", None, None, None),
        ("!stablehlo.token", None, None, None),
        ("tensor<" + "9" * 5000 + "xf32>", (), None, None),
    ],
)
def test_types(text, shape, dtype, size):
    t = types.tensor(text)
    assert (t.shape, t.dtype, t.bytes) == (shape, dtype, size)


def test_a_cut_text_says_so_and_keeps_what_came_before():
    cut = PROGRAM[: PROGRAM.index("%values")]
    result = reading.analyze(cut)
    assert [p.text for p in result.problems] == ["the text ends inside a function: it is truncated"]
    assert result.op_counts["stablehlo.add"] == 1
    assert [a.name for a in result.arguments] == ["x", "it's {odd}, (very)"]


@pytest.mark.parametrize(
    "text",
    [
        "HloModule jit_f, is_scheduled=true\n\nENTRY %main (a: f32[]) -> f32[] {\n  ROOT %a = f32[] parameter(0)\n}\n",
        "hello\nworld",
        "}" * 100,
        "func.func",
    ],
)
def test_a_foreign_text_is_nothing_but_problems(text):
    result = reading.analyze(text)
    assert result.problems and result.printed == 0


def test_nothing_is_reported_of_nothing():
    assert reading.analyze("") == reading.Reading()


def test_the_twenty_programs_are_read_whole(corpus):
    """Against a plain count of what each line says it is."""
    assert len(corpus) == 20
    for path in corpus.values():
        text = gzip.decompress(path.read_bytes()).decode()
        result = reading.analyze(text)
        assert result.problems == (), path.name
        plain = re.findall(r"^ *(?:%[^=]*? = )?\"?((?:stablehlo|chlo|sdy)\.\w+)", text, re.M)
        calls = len(re.findall(r"^ *(?:%[^=]*? = )?(?:func\.)?call @", text, re.M))
        printed = [n for n in plain if n not in ("stablehlo.return", "sdy.return", "sdy.mesh")]
        assert result.printed == len(printed) + calls, path.name
        located, known = located_and_known(text)
        assert known >= 0.95 * located > 0, path.name
        assert result.num_partitions == 8


def test_arguments_that_jax_aliased_are_reported_in_the_twenty_programs(corpus):
    for path in corpus.values():
        text = gzip.decompress(path.read_bytes()).decode()
        told = [d for d in reading.analyze(text).donation if d.status == "aliased"]
        assert len(told) == text.count("tf.aliasing_output"), path.name
        assert all(d.path and d.output and d.bytes and d.bytes >= d.device_bytes for d in told)


LINES = PROGRAM.split("\n")
JUNK = (
    *('"', "\\", "loc(", " : ", "->", "{", "}", "(", ")", "<", ">", "%0", " = ", "tensor<", "^bb0", "cond {"),
    *("} do {", "reducer(", "fused[", "func.func", "module", "call @main", "\x00", "\ud800", "9" * 40, "{-#"),
)


@given(st.lists(st.sampled_from(LINES), max_size=60).map("\n".join))
def test_lines_in_any_order_are_read(text):
    reading.analyze(text, donated=["x"], paths=["x", "y", "z"], dropped=[1], aliased={0})


@given(
    st.integers(0, len(PROGRAM)),
    st.integers(0, len(PROGRAM)),
    st.lists(st.tuples(st.integers(0, len(PROGRAM)), st.sampled_from(JUNK)), max_size=12),
)
def test_damaged_texts_are_read(start, end, junk):
    text = PROGRAM[min(start, end) :] if start % 3 else PROGRAM[: max(start, end)]
    for at, piece in junk:
        text = text[:at] + piece + text[at + len(piece) % 3 :]
    reading.analyze(text, donated=["x"], aliased=())


@given(st.text())
def test_any_text_at_all(text):
    reading.analyze(text)
    types.tensor(text)
    types.tensor(f"tensor<{text}>")


@pytest.mark.parametrize(
    "line",
    [
        '%0 = stablehlo.add "' + '\\"' * 100_000,
        "%0 = stablehlo.add @" + '"\\' * 100_000 + " : tensor<4xf32> loc(#loc)",
        "%0 = stablehlo.add" + " loc(" * 100_000 + ")",
        "%0 = stablehlo.add " + " : " * 100_000 + "}",
        "%0 = stablehlo.custom_call @Sharding(%arg0) " + "{" * 100_000 + " : tensor<4xf32>",
        "%0 = stablehlo.constant dense<0> : tensor<" + "9" * 17 + "x" * 1 + "999999999x" * 20_000 + "f32>",
        "\n".join(f'"a.b"() ({{ loc("x{i}")' for i in range(20_000)),
        "%0 = stablehlo.add %0 : tensor<f32> loc("
        + "callsite(" * 20_000
        + '"f":1:1'
        + ' at "g":1:1)' * 20_000
        + ")",
    ],
    ids=["quotes", "symbol", "locations", "colons", "braces", "dimensions", "regions", "callsites"],
)
def test_hostile_lines_end(line):
    """Each took quadratic time with a plain pattern: the suite's own timeout is the judge."""
    reading.analyze(f"module @m {{\nfunc.func public @main(%arg0: tensor<4xf32>) {{\n{line}\n}}\n}}\n")


def test_calls_that_multiply_or_turn_in_a_circle_end():
    twice = "".join(
        f"func.func {'public @main' if i == 0 else f'private @f{i}'}() {{\ncall @f{i + 1}() : () -> ()\n" * 1
        + f"call @f{i + 1}() : () -> ()\nreturn\n}}\n"
        for i in range(2000)
    )
    result = reading.analyze("module @m {\n" + twice + "}\n")
    assert result.op_counts["func.call"] > 10**9
    circle = "".join(
        f"func.func private @f{i}() {{\ncall @f{(i + 1) % 9}() : () -> ()\n}}\n" for i in range(9)
    )
    assert reading.analyze("module @m {\n" + circle + "}\n").op_counts == {}
