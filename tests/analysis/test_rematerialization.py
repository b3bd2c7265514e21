"""XLA's warnings of involuntary rematerialisation, as two versions of it print them.

tests/data/remats: what 120 pairs of shardings made them say, and the pairs.
"""

import json
import math

import pytest
from folders import TESTS
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis import rematerialization
from jaxscope.analysis.hlo import groups, shardings
from jaxscope.analysis.programs import Around, analyze

DATA = TESTS / "data" / "remats"
TRUTH = json.loads((DATA / "truth.json").read_text())
VERSIONS = ["0.10", "0.12"]
HLO = """HloModule jit_f, num_partitions=4

FileNames
1 "/home/ann/train.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=17 end_line=17 column=4 end_column=9}
2 {file_name_id=1 function_name_id=1 line=23 end_line=23 column=4 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}

ENTRY %main (p: f32[4]) -> f32[4] {
  ROOT %p = f32[4]{0} parameter(0), metadata={op_name="jit(f)/cos" stack_frame_id=2}
}
"""


def spec(dimensions):
    return tuple(tuple(d) for d in dimensions)


def warning(version, n=0):
    return (DATA / f"warnings.jax-{version}.txt").read_text().splitlines()[n]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_two_shardings_are_named_in_the_axes_they_were_requested_with(version):
    lines = (DATA / f"warnings.jax-{version}.txt").read_text().splitlines()
    assert len(lines) == len(TRUTH) == 15
    for text, asked in zip(lines, TRUTH, strict=True):
        (found,) = rematerialization.find([text], None, asked["mesh"])
        from_, to = (rematerialization.partition_spec(spec(asked[k])) for k in ("from", "to"))
        assert (found.before, found.after) == (from_, to)
        assert found.bytes == 32 * 32 * 4  # the whole array, of which the text prints one shard
        assert found.name == "sharding_constraint.0"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_line_is_that_of_the_frame_id_in_the_programs_own_tables(version):
    text = warning(version).replace("stack_frame_id=3", "stack_frame_id=2")
    (found,) = rematerialization.find([text], HLO, TRUTH[0]["mesh"])
    assert (found.source.file, found.source.line) == ("/home/ann/train.py", 23)


def test_without_a_frame_id_the_line_is_that_of_the_only_place_with_this_op_name():
    text = warning("0.10").replace(" stack_frame_id=3", "")
    assert rematerialization.find([text], HLO, None)[0].source is None
    text = text.replace("jit(f)/sharding_constraint", "jit(f)/cos")
    assert rematerialization.find([text], HLO, None)[0].source.line == 23


def test_a_frame_id_of_no_table_is_nobodys_line():
    assert rematerialization.find([warning("0.10").replace("=3", "=99")], HLO, None)[0].source is None


def test_without_a_mesh_an_unnamed_sharding_stays_as_xla_spells_it():
    (found,) = rematerialization.find([warning("0.10")], None, None)
    assert found.before == "{devices=[8,1]<=[2,4]T(1,0)}"
    assert found.bytes == 4096
    (found,) = rematerialization.find([warning("0.12")], None, None)
    assert found.before == "P(('b', 'a'), None)"


def test_the_mesh_may_stand_in_the_stablehlo_alone():
    text = 'module @jit_f {\n  sdy.mesh @mesh = <["a"=2, "b"=4]>\n  func.func public @main() { return }\n}\n'
    (found,) = analyze(None, text, Around(warnings=[warning("0.10")])).remats
    assert found.before == "P(('b', 'a'), None)"


def test_nobody_listening_is_not_the_same_as_no_warning():
    assert analyze(HLO, None, Around()).remats is None
    assert analyze(HLO, None, Around(warnings=[])).remats == []


def test_the_older_wording_is_understood():
    text = (
        "[spmd] Involuntary full rematerialization. The compiler was not able to go from sharding "
        "{maximal device=0} to {devices=[4,1]<=[4]} without doing a full rematerialization of the tensor for HLO "
        "operation: %get-tuple-element = f32[257152,2048]{1,0} get-tuple-element((token[], f32[1152]{0}) %while), "
        "index=1, sharding={maximal device=0}. You probably want to enrich the sharding annotations."
    )
    (found,) = rematerialization.find([text], None, [("fsdp", 4)])
    assert (found.name, found.before, found.after) == (
        "get-tuple-element",
        "{maximal device=0}",
        "P('fsdp', None)",
    )
    assert found.bytes == 257152 * 2048 * 4


@pytest.mark.parametrize(
    "instruction",
    [
        "%fake_parameter.2 = f32[8,16,32]{2,1,0} parameter(2), sharding={replicated}",
        "%copy.1 = f32[8,16,32]{2,1,0} copy(%fake_parameter.2), sharding={replicated}",
    ],
)
def test_what_the_partitioner_only_tried_is_no_rematerialisation(instruction):
    text = (
        "[SPMD] Involuntary full rematerialization. The compiler cannot go from sharding {mesh['data'=2,'model'=4], "
        "[{}, {}, {'data'}]} to {devices=[2,1,1,4]<=[8] last_tile_dim_replicate} efficiently for HLO operation "
        f"{instruction}. As the last resort, SPMD will replicate the tensor"
    )
    mesh = [("data", 2), ("model", 4)]
    assert rematerialization.find([text], HLO, mesh) == []
    (found,) = rematerialization.find([text.replace("fake_parameter", "parameter")], HLO, mesh)
    assert (found.before, found.after) == ("P(None, None, 'data')", "P('data', None, None)")


@pytest.mark.parametrize(
    ("text", "mesh", "expected"),
    [
        ("{replicated}", [("a", 4)], ()),
        ("{devices=[2,2]0,1,2,3}", [("a", 2), ("b", 2)], (("a",), ("b",))),
        ("{devices=[2,2]0,2,1,3}", [("a", 2), ("b", 2)], (("b",), ("a",))),
        ("{devices=[2,2]<=[2,2]T(1,0)}", [("a", 4)], (("a:(2)2",), ("a:(1)2",))),
        ("{devices=[3,2]<=[6]}", [("a", 6)], (("a:(1)3",), ("a:(3)2",))),
        ("{devices=[2,3]<=[6]}", [("a", 6)], (("a:(1)2",), ("a:(2)3",))),
        ("{devices=[2,1,2]<=[4] last_tile_dims={manual}}", [("a", 2), ("b", 2)], (("a",), ())),
        ("{devices=[4]0,1,3,2}", [("a", 4)], None),  # no axis counts like this
        ("{devices=[4]<=[4]}", [("a", 8)], None),
        ("{mesh['axis_0'=2,'axis_1'=2], [{'axis_1'}, {}]}", [("x", 2), ("y", 2)], (("y",), ())),
        (
            "{mesh['axis_0'=2,'axis_1'=2], device_ids=([2,2]T(1,0)), [{'axis_1'}]}",
            [("x", 2), ("y", 2)],
            (("x",),),
        ),
        ("{mesh['a'=4,'b'=2], [{'a':(2)2, 'b'}]}", [("a", 4), ("b", 2)], (("a:(2)2", "b"),)),
        ("{manual}", [("a", 4)], None),
        ("{devices=[99999999,99999999]<=[4]}", [("a", 4)], None),
    ],
)
def test_a_sharding_is_spelled_in_axes_or_not_at_all(text, mesh, expected):
    assert shardings.read(text, mesh).dimensions == expected


@st.composite
def placed(draw):
    """A mesh, and which of its whole axes each of two dimensions are sharded over."""
    sizes = draw(st.lists(st.sampled_from([2, 3, 4]), min_size=1, max_size=3))
    mesh = [("abc"[i], n) for i, n in enumerate(sizes)]
    order = draw(st.permutations(mesh))
    used = draw(st.integers(0, len(order)))
    cut = draw(st.integers(0, used))
    return mesh, order[:cut], order[cut:used], order[used:]


@given(placed())
def test_every_way_to_lay_two_dimensions_along_axes_is_read_back(case):
    mesh, first, second, rest = case
    names = [name for name, _ in mesh]
    sizes = [size for _, size in mesh]
    order = [names.index(name) for name, _ in (*first, *second, *rest)]
    tiles = [math.prod(n for _, n in part) for part in (first, second, rest)]
    flat = ",".join(map(str, groups.iota(sizes, order)))
    text = f"{{devices=[{','.join(map(str, tiles))}]{flat} last_tile_dim_replicate}}"
    found = shardings.read(text, mesh)
    assert found.tiles == tuple(tiles[:2])
    assert found.dimensions == tuple(tuple(name for name, _ in part) for part in (first, second))


@given(st.sampled_from(VERSIONS), st.data())
def test_a_damaged_warning_never_raises(version, data):
    text = warning(version)
    at = data.draw(st.integers(0, len(text)))
    junk = data.draw(st.text(st.sampled_from("{}[]()<=,%'\" 0a"), max_size=12))
    cut = data.draw(st.integers(at, len(text)))
    assert len(rematerialization.find([text[:at] + junk + text[cut:]], HLO, [("a", 2), ("b", 4)])) == 1
