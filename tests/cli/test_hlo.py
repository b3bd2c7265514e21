"""``jaxscope hlo FILE``: a compiled text from anywhere."""

import functools
import gzip
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data" / "hlo"
TPU = DATA / "tf2_fsdptp_donate__tpuv5p_jax0120.hlo.txt.gz"
CPU = DATA / "tf2_fsdptp_donate__cpu_jax0102.hlo.txt.gz"
LOWERED = DATA / "tf2_fsdptp_donate__cpu_jax0102.stablehlo.mlir.gz"
TRUTH = json.loads((DATA / "truth.json").read_text())


@pytest.fixture
def jaxscope(home, jaxscope):
    return functools.partial(jaxscope, "hlo")


def test_json_is_an_entry_of_programs_with_every_key_of_the_contract(jaxscope):
    code, out, _ = jaxscope(TPU, "--format", "json")
    found = json.loads(out)
    assert code == 0
    for key in ("num_partitions", "instructions", "problems", "fusions", "unfused_elementwise", "custom_calls", "collectives",
                "upcasts", "callbacks", "repeated_blocks", "remats", "loops", "memory", "flops", "bytes_accessed", "bounds",
                "estimated_cycles", "donation", "constants"):  # fmt: skip
        assert key in found
    assert found["donation"] is None and found["constants"] is None, "only the lowered text knows"
    truth = TRUTH[TPU.name.removesuffix(".hlo.txt.gz")]
    assert dict(Counter(c["kind"] for c in found["collectives"])) == {
        kind: v["static"] for kind, v in truth["collectives_by_kind"].items()
    }


def test_the_lowered_text_adds_donation_by_path(jaxscope):
    found = json.loads(jaxscope(CPU, "--stablehlo", LOWERED, "--format", "json")[1])
    aliased = {d["path"] for d in found["donation"] if d["status"] == "aliased"}
    assert "params['emb']" in aliased
    assert found["memory"]["by_path"][0]["bytes"] > 0


def test_the_text_says_what_runs_over_which_axes_from_which_line(jaxscope):
    code, out, _ = jaxscope(CPU, "--mesh", "data=4,model=2")
    assert code == 0 and out.startswith("jit_train_step  8 partitions  mesh data=4, model=2")
    assert "over" not in out.splitlines()[0] and "fusions (" in out
    assert any("all-reduce" in line and "model" in line for line in out.splitlines())
    assert " in transformer" in " ".join(out.split())


def test_without_a_mesh_it_is_reported_how_to_name_one(jaxscope):
    code, out, _ = jaxscope(CPU)
    assert code == 0 and "--mesh data=4,model=2 names them" in " ".join(out.split())


def test_what_is_no_compiled_text_is_distinguished(jaxscope, tmp_path):
    code, _, err = jaxscope(LOWERED)
    assert code == 2 and "is StableHLO, not compiled text" in err and "--stablehlo" in err
    other = tmp_path / "notes.txt"
    other.write_text("hello\n")
    code, _, err = jaxscope(other)
    assert code == 2 and "no line begins with HloModule" in err
    code, _, err = jaxscope(tmp_path / "nothing")
    assert code == 2 and "No such file" in err


def test_a_damaged_archive_is_a_message(jaxscope, tmp_path):
    cut = tmp_path / "cut.txt.gz"
    cut.write_bytes(gzip.compress(b"HloModule m\n" * 1000)[:40])
    code, _, err = jaxscope(cut)
    assert code == 2 and err.startswith("jaxscope: cannot read")


@pytest.mark.parametrize("wrong", ["data", "data=0", "data=x", "=4", ""])
def test_a_mesh_that_is_none_is_refused(jaxscope, wrong):
    code, _, err = jaxscope(CPU, "--mesh", wrong)
    assert code == 2 and "write data=4,model=2" in err


def test_names_in_a_text_are_data(jaxscope, tmp_path):
    evil = tmp_path / "evil.txt"
    evil.write_text(
        'HloModule m\x1b[2J, entry_computation_layout={()->f32[]}\n\nENTRY e {\n  ROOT c = f32[] custom-call(), custom_call_target="\x1b]0;x"\n}\n'
    )
    code, out, _ = jaxscope(evil)
    assert code == 0 and "\x1b" not in out


def test_equal_collectives_and_loops_are_one_row_and_shared_memory_is_subtracted(jaxscope, tmp_path):
    lines = "\n".join(
        f"  %x{i} = f32[4] all-reduce(%p), replica_groups={{}}, to_apply=%add" for i in range(12)
    )
    text = f"""HloModule jit_f, num_partitions=8, input_output_alias={{ {{}}: (0, {{}}, may-alias) }}

ENTRY %main (p: f32[4]) -> f32[4] {{
  %p = f32[4]{{0}} parameter(0)
{lines}
  ROOT %r = f32[4]{{0}} negate(%p)
}}
"""
    file = tmp_path / "f.hlo.txt"
    file.write_text(text)
    code, out, _ = jaxscope(file)
    assert code == 0 and sum("all-reduce" in line for line in out.splitlines()) == 1
    assert "12x all-reduce" in out
    assert (
        "arguments 16 B + results 16 B - 16 B shared by arguments and results on a device, without temporaries"
        in " ".join(out.split())
    )


def test_a_file_has_no_colors_wherever_stdout_goes(jaxscope, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    code, out, _ = jaxscope(CPU, "-o", tmp_path / "page.txt")
    text = (tmp_path / "page.txt").read_text()
    assert (code, out) == (0, "") and "collectives" in text and "\x1b" not in text
