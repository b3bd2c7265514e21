"""Operands, attributes, metadata and backend_config of one instruction."""

from __future__ import annotations

import pytest

from jaxscope.analysis.hlo import lexing


@pytest.mark.parametrize(
    ("tail", "names"),
    [
        ("%a, %b)", ["a", "b"]),
        ("a, b)", ["a", "b"]),
        ("f32[2]{1,0:T(8,128)} %a, (f32[], s32[2]) %b), dimensions={0}", ["a", "b"]),
        ("%a, %b, %c, %d, %e, /*index=5*/%f), channel_id=1", ["a", "b", "c", "d", "e", "f"]),
        ("f32[2]{0} a.1, /*index=5*/b.2)", ["a.1", "b.2"]),
        (")", []),
        ("%cut, %off", ["cut", "off"]),
    ],
)
def test_operands_are_found_in_every_dialect(tail, names):
    assert lexing.operands(tail) == names


def test_an_attribute_is_not_found_inside_strings_and_other_values():
    tail = (
        '%a), custom_call_target="f, calls=%no", frontend_attributes={x="calls=%no",y={calls=%no}}, '
        'calls=%yes, metadata={op_name="calls=%no"}, backend_config={"calls":"%no"}'
    )
    assert lexing.attribute(tail, "calls") == "%yes"
    assert lexing.attribute(tail, "custom_call_target") == '"f, calls=%no"'
    assert lexing.attribute(tail, "absent") is None


def test_a_mesh_keeps_its_device_ids():
    tail = "%a), replica_groups=mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'a'}, dimensions={0}"
    groups = "mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'a'}"
    assert lexing.attribute(tail, "replica_groups") == groups
    assert lexing.attribute(tail, "dimensions") == "{0}"


def test_metadata_is_the_instructions_own():
    tail = '%a), frontend_attributes={n=", metadata={op_name=\\"no\\"}"}, metadata={op_name="yes" stack_frame_id=3}'
    assert lexing.fields(lexing.metadata(tail)) == {"op_name": "yes", "stack_frame_id": "3"}


def test_names_with_quotes_braces_and_escapes_survive():
    tail = '%a), metadata={op_name="jit(f)/{x} \\"q\\" \\303\\251 stack_frame_id=9" stack_frame_id=4}'
    assert lexing.fields(lexing.metadata(tail)) == {
        "op_name": 'jit(f)/{x} "q" é stack_frame_id=9',
        "stack_frame_id": "4",
    }


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ('{"a":{"n":"6"},"b":[]}', {"a": {"n": "6"}, "b": []}),
        ('"{\\"a\\":1}"', {"a": 1}),
        ('"raw, not JSON"', {}),
        ("{broken", {}),
        ("{}" * 10, {}),
        ("[" * 5000, {}),
    ],
)
def test_backend_config_is_json_or_nothing(config, value):
    assert lexing.backend_config(f"%a), kind=kLoop, backend_config={config}") == value


def test_brackets_of_any_depth_are_followed_without_recursion():
    depth = 50_000
    tail = f"%a), x={'{' * depth}{'}' * depth}, y=1"
    assert lexing.attribute(tail, "y") == "1"
    assert lexing.split("(" * depth + ")" * depth + ",b") == ["(" * depth + ")" * depth, "b"]
