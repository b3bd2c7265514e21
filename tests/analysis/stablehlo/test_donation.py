"""The donation of an argument: from the text alone, with the donated paths of the call, and with the compiled aliases."""

import pytest

from jaxscope.analysis.stablehlo import reading, shardings
from jaxscope.analysis.stablehlo.values import device_shape

MESH = 'sdy.mesh @mesh = <["a"=4, "b"=2]>'


def program(arguments, results, partitions=1):
    takes = ", ".join(f'%arg{i}: {t} loc("{n}")' for i, (n, t) in enumerate(arguments))
    gives = ", ".join(
        f'tensor<{t}> {{jax.result_info = "r[{i}]"{more}}}' for i, (t, more) in enumerate(results)
    )
    return (
        f"module @m attributes {{mhlo.num_partitions = {partitions} : i32}} {{\n{MESH}\n"
        f"func.func public @main({takes}) -> ({gives}) {{\nreturn\n}}\n}}\n"
    )


def told(text, **known):
    return {d.path: (d.status, d.reason, d.output) for d in reading.analyze(text, **known).donation}


def test_possible_matches_an_output_to_one_argument_only():
    text = program([("a", "tensor<4xf32>"), ("b", "tensor<4xf32>"), ("c", "tensor<5xf32>")], [("4xf32", "")])
    assert told(text) == {"a": ("possible", None, "r[0]")}


def test_a_donated_argument_that_nothing_could_take():
    text = program(
        [
            ("a", "tensor<4xf32> {tf.aliasing_output = 0 : i32}"),
            ("b", "tensor<4xf32>"),
            ("c", "tensor<5xf32>"),
            ("d", "tensor<9xi8>"),
        ],
        [("4xf32", ""), ("5xbf16", "")],
    )
    assert told(text, donated=["a", "b", "c", "d"]) == {
        "a": ("aliased", None, "r[0]"),
        "b": ("unused", "the output f32[4] already reuses the memory of a", None),
        "c": ("unused", "no output is f32[5]; the outputs of this shape have the dtype bfloat16", None),
        "d": ("unused", "no output is i8[9]", None),
    }
    assert set(told(text)) == {"a"}  # without the call's word nothing is said of the others


def test_several_outputs_and_all_taken():
    text = program(
        [(f"a{i}", f"tensor<4xf32> {{tf.aliasing_output = {i} : i32}}") for i in range(5)]
        + [("b", "tensor<4xf32>")],
        [("4xf32", "")] * 5,
    )
    assert (
        told(text, donated=["b"])["b"][1]
        == "each output f32[4] already reuses the memory of another argument: a0, a1, a2..."
    )


def test_another_memory_is_another_place():
    text = program(
        [("a", 'tensor<4xf32> {mhlo.memory_kind = "pinned_host"}')],
        [("4xf32", ', mhlo.memory_kind = "device"')],
    )
    assert told(text, donated=["a"]) == {
        "a": ("unused", "it is in the memory pinned_host, the output f32[4] in device", None)
    }
    assert told(text) == {}


def test_what_is_offered_waits_for_the_compiled_answer():
    text = program(
        [("a", "tensor<4xf32> {jax.buffer_donor = true}"), ("b", "tensor<4xf32>")], [("4xf32", "")], 8
    )
    assert told(text) == {"a": (None, "XLA chooses the output's sharding", None)}
    assert told(text, aliased=[0]) == {"a": ("aliased", None, "r[0]")}
    assert told(text, aliased=[]) == {
        "a": ("unused", "XLA did not reuse it, because XLA chooses the output's sharding", None)
    }


def test_the_callers_own_paths_name_the_arguments_where_their_number_agrees():
    text = program(
        [("states[0]", "tensor<4xf32> {tf.aliasing_output = 0 : i32}"), ("states[1]", "tensor<5xf32>")],
        [("4xf32", "")],
    )
    paths = ["model.bias", "model.unread", "x"]
    assert told(text, paths=paths, dropped=[1], donated=["model.bias", "model.unread"]) == {
        "model.bias": ("aliased", None, "r[0]"),
        "model.unread": ("unused", "the program never reads it", None),
    }
    assert set(told(text, paths=paths)) == {"states[0]"}


def test_a_donated_path_that_is_not_found_is_not_explained():
    text = program([("a", "tensor<4xf32>")], [("5xf32", "")])
    assert told(text, donated=["other"]) == {"other": (None, None, None)}


def test_tokens_and_constants_are_nobodys_to_donate():
    text = program(
        [("t", "!stablehlo.token {jax.token = true}"), ("c", "tensor<4xf32> {jax.const = true}")],
        [("4xf32", "")],
    )
    assert told(text) == {}
    (constant,) = reading.analyze(text.replace("4xf32", "40xf32")).constants
    assert (constant.argument, constant.bytes, constant.name) == (1, 160, "c")


@pytest.mark.parametrize(
    ("text", "dimensions", "part", "spelled"),
    [
        ('#sdy.sharding<@mesh, [{"a"}, {}]>', (("a",), ()), (2, 8), "P('a', None)"),
        ('<@mesh, [{"a", "b"}, {?}]>', (("a", "b"), ()), (1, 8), "P(('a', 'b'), None)"),
        (
            '#sdy.sharding<@mesh, [{}, {"a":(1)2}], replicated={"b"}>',
            ((), ("a:(1)2",)),
            (8, 4),
            "P(None, 'a:(1)2')",
        ),
        ('#sdy.sharding<mesh<["x"=3]>, [{"x"}p0, {}]>', (("x",), ()), (3, 8), "P('x', None)"),
        ('#sdy.sharding<@gone, [{"a"}, {}]>', (("a",), ()), None, "P('a', None)"),
        ('"{devices=[4,2]<=[8]}"', None, (2, 4), "{devices=[4,2]<=[8]}"),
        ('"{devices=[2,1,4]<=[8] last_tile_dim_replicate}"', None, (4, 8), None),
        ('"{replicated}"', None, (8, 8), "{replicated}"),
        ('"{manual}"', None, None, "{manual}"),
    ],
)
def test_shardings_as_the_text_states_them(text, dimensions, part, spelled):
    meshes = {"mesh": shardings.Mesh("mesh", (("a", 4), ("b", 2)))}
    spec = shardings.spec(text, meshes)
    assert spec.dimensions == dimensions
    assert device_shape((8, 8), spec) == part
    assert spelled is None or spec.text == spelled
    assert spec.open == ("?" in text)
