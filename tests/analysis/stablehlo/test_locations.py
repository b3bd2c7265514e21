"""MLIR's locations, through names and written out, to JAX's names and Python's frames."""

from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis.stablehlo.locations import MAX_FRAMES, NOWHERE, Locations
from jaxscope.schema.keys import Frame

ALIASES = {
    "#loc": "unknown",
    "#f1": '"/u/model.py":10:4 to :9',
    "#f2": '"/u/train.py":20:4 to 21:9',
    "#n1": '"Model.__call__"(#f1)',
    "#n2": '"train"(#f2)',
    "#c": "callsite(#n1 at #n2)",
    "#op": '"jit(train)/jvp()/add"(#c)',
    "#prim": '"add:"(#op)',
    "#bare": '"jit(train)/sin"(#f1)',
    "#bare_prim": '"sin:"(#bare)',
    "#arg": "\"params['w']\"",
    "#inner": '"max"',
    "#circle": "callsite(#circle at #n2)",
    "#fused": 'fused<"why">[#inner, #op, #n2]',
}
CHAIN = (Frame("/u/model.py", 10, "Model.__call__"), Frame("/u/train.py", 20, "train"))


def place(text, aliases=ALIASES):
    locations = Locations(aliases)
    return locations.place(text), locations.unread


def test_a_name_stack_around_a_chain_of_calls():
    for text in ("#op", "#prim"):
        found, unread = place(text)
        assert (found.name, found.frames, unread) == ("jit(train)/jvp()/add", CHAIN, set())
    written = '"jit(train)/jvp()/add"(callsite("Model.__call__"("/u/model.py":10:4 to :9) at "train"("/u/train.py":20:4)))'
    assert place(written)[0] == place("#op")[0]


def test_without_full_tracebacks_the_name_is_the_operations_not_a_functions():
    for text in ("#bare", "#bare_prim"):
        found, _ = place(text)
        assert (found.name, found.frames) == ("jit(train)/sin", (Frame("/u/model.py", 10, ""),))


def test_a_name_alone_has_no_frames():
    assert place("#arg")[0].name == "params['w']"
    assert place("#inner")[0].frames == ()


def test_what_is_unknown_is_nowhere():
    for text in ("#loc", "unknown", "", "#missing", '"-":0:0'):
        assert place(text) == (NOWHERE, set())


def test_of_fused_operations_the_first_with_frames_speaks():
    assert place("#fused")[0].frames == CHAIN
    assert place('fused[#inner, "x"]')[0].name == "max"


def test_a_circle_ends():
    assert place("#circle")[0].frames == CHAIN[1:]


def test_names_are_unescaped():
    assert place(r'"a \22quoted\22 \\ \C3\A9"')[0].name == 'a "quoted" \\ é'


def test_a_chain_longer_than_pythons_stack_keeps_the_innermost_frames():
    aliases = {f"#c{i}": f"callsite(#n at #c{i + 1})" for i in range(20_000)} | {"#n": '"f"("a.py":1:2)'}
    found, _ = place("#c0", aliases)
    assert len(found.frames) == MAX_FRAMES


def test_what_cannot_be_read_is_reported():
    for text in ('"open', "callsite(#n1)", "fused[", '"a"(' * 500 + '"f":1:1' + ")" * 500):
        found, unread = place(text)
        assert found == NOWHERE and len(unread) == 1


PIECES = ("#n1", '"f":1:2', '"x"', "callsite(", " at ", "fused[", ")", "]", "(", ", ", "unknown", '"', "\\")


@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
def test_any_text_is_taken(text):
    place(text)
    place("#x", {"#x": text, "#y": "#x"})
