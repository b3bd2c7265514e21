"""Meshes in a few words, and in all of JAX's where these are needed."""

from __future__ import annotations

import pytest

from jaxscope.present.meshes import both_short, short

REST = "device_kind=cpu, num_cores=None, platform=cpu)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "none"),
        ("()", "none"),
        ("AbstractMesh((), axis_types=())", "none"),
        (f"AbstractMesh('a': 2, 'b': 4, axis_types=(Auto, Auto), {REST}", "a=2,b=4"),
        (f"AbstractMesh('a': 2, 'b': 4, axis_types=(Explicit, Explicit), {REST}", "a=2,b=4 (Explicit)"),
        (f"AbstractMesh('a': 2, 'b': 4, axis_types=(Auto, Explicit), {REST}", "a=2,b=4 (a Auto, b Explicit)"),
        ("(Mesh(axis_sizes=(4, 2), axis_names=('a', 'b'), axis_types=(Auto, Auto)),)", "a=4,b=2"),
        ("(Mesh(axis_sizes=(4,), axis_names=('a',), axis_types=(Auto,)),)", "a=4"),
        ("something else", "something else"),
        ("(Mesh(x), Mesh(y))", "(Mesh(x), Mesh(y))"),
        ("Mesh(", "Mesh("),
    ],
)
def test_a_mesh_is_reported_by_its_axes(text, said):
    assert short(text) == said


def test_what_is_left_out_is_reported_where_it_alone_distinguishes_them():
    cpu, gpu = (f"AbstractMesh('a': 2, axis_types=(Auto), device_kind={k})" for k in ("cpu", "gpu"))
    assert both_short(cpu, gpu) == (cpu, gpu)
    assert both_short(None, cpu) == ("none", "a=2")


def test_devices_in_another_order_are_reported_with_the_axes():
    text = "(Mesh(axis_sizes=(4,), axis_names=('a',), axis_types=(Auto,)),) on devices {}"
    assert both_short(text.format("0-3"), text.format("3,2,1,0")) == (
        "a=4 on devices 0-3",
        "a=4 on devices 3,2,1,0",
    )
    assert both_short(text.format("0-3"), None) == ("a=4", "none")
