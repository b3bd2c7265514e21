"""``--redact``: static values, lines of source and paths outside the project are never written."""

import re

import pytest
import zstandard

from jaxscope.capture.redaction import Redaction
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame, Key, Static

PROGRAM = """
    import dataclasses, jax, jax.numpy as jnp, jaxscope
    class Conf:
        def __repr__(self): return "Conf(hunter2-repr)"
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Model:
        w: object
        name: str = dataclasses.field(metadata=dict(static=True), default="hunter2-of-a-tree")
    rate = "hunter2-captured"
    @jaxscope.watch(step=True)
    @jax.jit
    def g(x): return x * len(rate)
    def f(x, c, more="hunter2-default"): return x * 2
    h = jax.jit(f, static_argnums=(1, 2))
    for n in range(3): h(1.0, ("api_key", f"hunter2-static-{n}"))
    h(1.0, Conf()); g(1.0)
    rate = "hunter2-later"
    g(1.0)
    jax.jit(lambda m: m.w)(Model(jnp.ones(3)))
    float(h(1.0, "hunter2-x") * 3)  # hunter2-in-a-comment
"""


@pytest.mark.capture
def test_nothing_of_it_is_in_any_file_of_the_run_and_the_causes_are_still_distinguished(record, tmp_path):
    run = record(PROGRAM, redact=True).run
    paths = set()
    for path in run.path.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        if path.suffix == ".zst":
            data = zstandard.ZstdDecompressor().stream_reader(data).read()
        assert b"hunter2" not in data, path
        if path.name != "meta.json":
            paths.update(re.findall(rb'(?<=")/[a-z][^"\s]*/[^"\s]*', data))
    assert not [p for p in paths if not p.startswith(str(tmp_path).encode())]
    found = load(run)
    codes = {f.code: words.title(f) for f in registry.findings(found)}
    assert "JX107" in codes and re.search(r"<left out \w+>.*to <left out \w+>", codes["JX107"])
    assert any(f.seen.library for f in found.functions.values() if f.compiled) or not any(
        "site-packages" in (f.seen.file or "") for f in found.functions.values()
    )


def test_a_value_has_one_mark_and_another_value_another_one():
    hide = Redaction(["/home/ann/work"])

    def static(value):
        made = Frame("/w/secret.py", 3, value)
        key = Key(
            static=[Static("c", value, "str", "value", hash=7, defined=made)],
            tree="CustomNode(M[('a', [1])], [*])",
        )
        return hide.event(ev.Missed(key=key))["key"]

    one, same, other = static("1"), static("1"), static("2")
    assert one["static"][0]["defined"] is None
    assert one == same and one["static"][0]["repr"] != other["static"][0]["repr"]
    assert one["static"][0]["hash"] != 7
    assert re.fullmatch(r"CustomNode\(M\[<left out \w+>\], \[\*\]\)", one["tree"])
    assert Redaction([]).event(ev.Missed(key=Key(static=[Static("c", "1", "str")])))["key"] != one


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("/home/ann/work/train.py", "/home/ann/work/train.py"),
        ("/home/ann/secret/lib.py", "<outside>/lib.py"),
        (
            "/opt/x/lib/python3.11/site-packages/jax/_src/pjit.py",
            "<outside>/lib/python3.11/site-packages/jax/_src/pjit.py",
        ),
    ],
)
def test_a_path_outside_the_project_keeps_the_end_that_says_whose_it_is(path, written):
    hide = Redaction(["/home/ann/work"])
    assert hide.event(ev.Missed(site=Frame(path, 3, "main")))["site"]["file"] == written
    assert hide.event(ev.Missed(function=f"f@{path}:3"))["function"] == f"f@{written}:3"
    for text in ('loc("%s":1:2)', '1 "%s"', "at %s:3 in main", "(%s)"):
        assert hide.text(text % path) == text % written
    assert hide.text("jit(f)/jit(main)/add a/b") == "jit(f)/jit(main)/add a/b"
