"""What constraints inside a program ask of its arguments and results, through calls; splits that come out uneven."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis.stablehlo import reading

MESH = 'sdy.mesh @mesh = <["a"=4, "b"=2]>\nsdy.mesh @turned = <["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>'


def module(*functions):
    return (
        f"module @m attributes {{mhlo.num_partitions = 8 : i32}} {{\n{MESH}\n"
        + "\n".join(functions)
        + "\n}\n"
    )


def function(name, takes, gives, *body, public=False):
    arguments = ", ".join(f'%arg{i}: {t} loc("x{i}")' for i, t in enumerate(takes))
    lines = "\n".join(body)
    results = ", ".join(f"{t} {{}}" for t in gives)
    return (
        f"func.func {'public' if public else 'private'} @{name}({arguments}) -> ({results}) {{\n{lines}\n}}"
    )


def asks(value, spec, shape="16x4xf32", mesh="mesh"):
    return f"sdy.sharding_constraint {value} <@{mesh}, {spec}> : tensor<{shape}>"


T = "tensor<16x4xf32>"
BY_A, BY_B, ALONG_B = '[{"a"}, {}]', '[{"b"}, {}]', '[{}, {"b"}]'


def told(text):
    read = reading.analyze(text)
    assert not read.problems
    return (
        [v.asked.text if v.asked else None for v in read.arguments],
        [v.asked.text if v.asked else None for v in read.results],
    )


def test_a_constraint_speaks_of_the_argument_it_takes_and_of_the_result_it_makes():
    text = module(
        function("main", [T, T], [T, T], f"%0 = {asks('%arg0', BY_A)}", f"%1 = stablehlo.add %0, %arg1 : {T}",
                 f"%2 = {asks('%1', ALONG_B)}", f"return %2, %1 : {T}, {T}", public=True)
    )  # fmt: skip
    assert told(text) == (["P('a', None)", None], ["P(None, 'b')", None])


def test_constraints_are_followed_through_calls_to_the_result_that_is_meant():
    inner = function(
        "inner", [T, T], [T, T], f"%0 = {asks('%arg1', BY_B)}", f"%1 = stablehlo.negate %arg0 : {T}",
        f"%2 = {asks('%1', BY_A)}", f"return %0, %2 : {T}, {T}",
    )  # fmt: skip
    main = function(
        "main", [T, T], [T, T, T], f"%0:2 = call @inner(%arg1, %arg0) : ({T}, {T}) -> ({T}, {T})",
        f"return %0#1, %0#0, %arg0 : {T}, {T}, {T}", public=True,
    )  # fmt: skip
    assert told(module(main, inner)) == (["P('b', None)", None], ["P('a', None)", "P('b', None)", None])


def test_two_constraints_on_one_argument_that_differ_say_nothing():
    body = [f"%0 = {asks('%arg0', BY_A)}", f"%1 = {asks('%arg0', ALONG_B)}"]
    text = module(
        function("main", [T], [T], *body, f"%2 = stablehlo.add %0, %1 : {T}", f"return %2 : {T}", public=True)
    )
    assert told(text) == ([None], [None])


@pytest.mark.parametrize(
    ("body", "also"),
    [
        ([f"%1 = stablehlo.negate %0 : {T}"], False),
        ([f"%1 = stablehlo.add %0, %arg0 : {T}"], True),
        ([f"%1 = call @inner(%arg0) : ({T}) -> {T}"], False),
        ([f"%1 = call @other(%arg0) : ({T}) -> {T}"], True),
    ],
)
def test_an_argument_that_is_also_used_without_its_constraint_is_known(body, also):
    inner = function("inner", [T], [T], f"%0 = {asks('%arg0', BY_A)}", f"return %0 : {T}")
    other = function("other", [T], [T], f"%0 = stablehlo.negate %arg0 : {T}", f"return %0 : {T}")
    main = function("main", [T], [T], f"%0 = {asks('%arg0', BY_A)}", *body, f"return %1 : {T}", public=True)
    [argument] = reading.analyze(module(main, inner, other)).arguments
    assert argument.asked.text == "P('a', None)"
    assert argument.also_without is also


def test_a_call_that_calls_itself_ends():
    loop = function("f", [T], [T], f"%0 = call @f(%arg0) : ({T}) -> {T}", f"return %0 : {T}")
    main = function("main", [T], [T], f"%0 = call @f(%arg0) : ({T}) -> {T}", f"return %0 : {T}", public=True)
    assert told(module(main, loop)) == ([None], [None])


def test_a_gspmd_annotation_asks_too():
    op = (
        '%0 = stablehlo.custom_call @Sharding(%arg0) {backend_config = "", mhlo.sharding = "{devices=[8,1]<=[8]}"} '
        f": ({T}) -> {T}"
    )
    text = module(function("main", [T], [T], op, f"return %0 : {T}", public=True))
    assert told(text) == (["{devices=[8,1]<=[8]}"], ["{devices=[8,1]<=[8]}"])


@pytest.mark.parametrize(
    ("shape", "spec", "expected"),
    [
        ("17x4xf32", '[{"a"}, {}]', (0, 4, 20)),
        ("16x3xf32", '[{}, {"b"}]', (1, 2, 4)),
        ("20x4xf32", '[{"a", "b"}, {}]', (0, 8, 24)),
        ("6x4xf32", '[{"a":(1)2}, {}]', None),
        ("16x4xf32", '[{"a"}, {"b"}]', None),
        ("17x4xf32", "[{}, {}]", None),
    ],
)
def test_a_dimension_that_does_not_divide_is_reported_with_its_padding(shape, spec, expected):
    t = f"tensor<{shape}>"
    body = [
        f"%0 = stablehlo.negate %arg0 : {t}",
        f"%1 = {asks('%0', spec, shape)}",
        f"%2 = stablehlo.negate %1 : {t}",
    ]
    read = reading.analyze(module(function("main", [t], [t], *body, f"return %2 : {t}", public=True)))
    found = [(u.dimension, u.parts, u.padded) for u in read.uneven]
    assert found == ([] if expected is None else [expected])
    assert all(u.of is None and u.bytes and u.count == 1 for u in read.uneven)


def test_of_an_uneven_split_it_is_known_whether_it_is_an_argument_or_a_result():
    t = "tensor<17x4xf32>"
    first, last = asks("%arg0", '[{"a"}, {}]', "17x4xf32"), asks("%1", '[{"b"}, {}]', "17x4xf32")
    body = [f"%0 = {first}", f"%1 = stablehlo.negate %0 : {t}", f"%2 = {last}", f"return %2 : {t}"]
    read = reading.analyze(module(function("main", [t], [t], *body, public=True)))
    assert {(u.of, u.parts) for u in read.uneven} == {("argument", 4), ("result", 2)}


def test_a_mesh_in_another_order_is_kept():
    text = module(
        function(
            "main", [T], [T], f"%0 = {asks('%arg0', BY_A, mesh='turned')}", f"return %0 : {T}", public=True
        )
    )
    assert reading.analyze(text).results[0].asked.order == (7, 6, 5, 4, 3, 2, 1, 0)


LINES = [
    "%0 = call @main(%arg0) : (tensor<4xf32>) -> tensor<4xf32>", "return %0#9 : tensor<4xf32>", "return %arg0, %1#x",
    "%1 = sdy.sharding_constraint %arg0 <@mesh, [{\"a\"}", "%2:3 = call @f(%1, %1)", "func.func private @f() {", "}",
    "%1 = sdy.sharding_constraint %0 <@none, [{\"z\"}, {?}]> : tensor<0xf32>", "func.func public @main(%arg0: f32) {",
]  # fmt: skip


@given(st.lists(st.sampled_from(LINES) | st.text(max_size=20), max_size=25))
def test_no_text_is_too_odd(lines):
    reading.analyze(f"module @m {{\n{MESH}\n" + "\n".join(lines))
