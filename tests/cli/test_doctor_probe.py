"""``jaxscope doctor --probe``: what a recorded program leaves unfilled is named, with what JAX lacks for it."""

import json

import pytest

from jaxscope import cli
from jaxscope.cli import probe
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Key, Leaf


def test_a_field_that_is_not_filled_is_named_with_the_names_of_jax_that_it_is_read_from(monkeypatch):
    monkeypatch.setattr(probe, "_needs", lambda field: [f"of {field}"])
    key = Key(arguments=[Leaf(path="x", type="jax.Array")], tree="*", options={}, missing=["options"])
    found = {f.name: f for f in probe.fields([ev.Missed(call=1, key=key), ev.Lowered(call=1, donated=None)])}
    assert found["Missed.key"].filled and found["Key.arguments"].filled
    assert not found["Key.options"].filled and not found["Missed.site"].filled
    assert found["Lowered.donated"] == probe.Field("Lowered.donated", False, ["of Lowered.donated"])


def test_a_probe_that_finds_an_unknown_field_ends_with_exit_code_1(capsys, monkeypatch):
    from jaxscope.cli import doctor

    monkeypatch.setattr(doctor, "_version", lambda package: ("0.12.0", ""))
    monkeypatch.setattr(doctor, "_parts_of_jax", list)
    rows = [probe.Field("Lowered.donated", False, ["jax._src.pjit._pjit_lower: donated_invars"])]
    monkeypatch.setattr(probe, "probe", lambda: rows)
    code, out = cli.command(["doctor", "--probe"]), capsys.readouterr().out
    assert code == 1 and "jaxscope reads it from jax._src.pjit._pjit_lower: donated_invars" in " ".join(
        out.split()
    )
    code = cli.command(["doctor", "--probe", "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    assert code == 1 and not found["ok"] and not found["fields"][0]["filled"]


@pytest.mark.capture
@pytest.mark.subprocess
def test_every_field_is_filled_with_this_jax():
    assert [f for f in probe.probe() if not f.filled] == []


@pytest.mark.capture
def test_every_field_that_a_private_name_of_jax_fills_is_one_of_the_log():
    from jaxscope.jax_internals import attributes, frames, objects

    filled = {n for kind in (*frames.FRAMES, *objects.OBJECTS) for f in kind.names for n in kind.fills(f)}
    filled |= {n for a in attributes.ATTRIBUTES.values() for n in a.fills}
    events = {k: v.__struct_fields__ for k, v in vars(ev).items() if hasattr(v, "__struct_fields__")}
    for name in filled:
        kind, _, field = name.partition(".")
        assert field in events.get(kind, Key.__struct_fields__), name
