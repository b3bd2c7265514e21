"""Every message that the code makes has a template with the same fields, and every template is used."""

import ast
import string

import pytest
from package_code import nodes

from jaxscope.present import render
from jaxscope.present.__main__ import lines
from jaxscope.present.messages import FAMILIES, SHORT, TEMPLATES
from jaxscope.schema.causes import ArrayType, Cause
from jaxscope.schema.findings import CERTAIN
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Bytes, Count, Names, Parts, Percent, Seconds, message

# The first argument of these is a slug; ``extended`` gives its template the field ``fix``.
MAKERS = {"message": (0, set()), "extended": (1, {"fix"})}


def made():
    """(file and line, slug, names of the fields or None where they are passed on) of every message in the code."""
    for file, node in nodes(ast.Call):
        called = getattr(node.func, "id", None)
        if called not in MAKERS or file == "schema/findings.py":
            continue
        at, given = MAKERS[called]
        fields = {k.arg for k in node.keywords}
        for slug in _slugs(node.args[at]):
            yield f"{file}:{node.lineno}", slug, None if None in fields else fields | given


def _slugs(argument):
    """The text itself, or both of ``"a" if x else "b"``."""
    if isinstance(argument, ast.IfExp):
        return [*_slugs(argument.body), *_slugs(argument.orelse)]
    assert isinstance(argument, ast.Constant), f"line {argument.lineno}: a slug is written out"
    return [argument.value]


def fields_of(template):
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def test_each_message_has_a_template_with_its_fields():
    for where, slug, fields in made():
        assert slug in TEMPLATES, f"{where}: there is no template {slug!r}"
        if fields is not None:
            assert fields == fields_of(TEMPLATES[slug]), f"{where}: other fields than the template {slug!r}"


def test_each_template_is_used_and_belongs_to_one_family():
    assert {slug for _, slug, _ in made()} == TEMPLATES.keys()
    assert sum(map(len, FAMILIES.values())) == len(TEMPLATES)


def test_a_short_form_has_no_other_fields_than_the_whole():
    assert all(fields_of(short) <= fields_of(TEMPLATES[slug]) for slug, short in SHORT.items())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        (None, ""),
        (12_000, "12,000"),
        (Bytes(3.4 * 2**20), "3.4 MiB"),
        (Seconds(0.4), "0.40 s"),
        (Seconds(None), "?"),
        (Percent(0.125), "12%"),
        (Count(1, "call"), "1 call"),
        (Count(2, "leaf", "leaves"), "2 leaves"),
        (Names(("a", "b", "c"), 2), "a, b and 1 more"),
        (Frame("/home/ann/train.py", 12, "main"), "train.py:12"),
        (Parts(("a", None, 3), "; "), "a; 3"),
        (message("at-step", step=1_000), " at step 1,000"),
        (
            Cause("shape", "trace", "x", ArrayType((2,), "int8"), ArrayType((3,), "int8"), CERTAIN),
            "x changed from i8[2] to i8[3]",
        ),
    ],
)
def test_each_type_of_field_has_its_text(value, text):
    assert render.text(value) == text


def test_braces_in_a_value_are_no_fields():
    assert render.text(message("made-there", path="{x[0]}")) == "{x[0]} was created here"


def test_the_templates_are_listed_by_slug_and_found_by_a_word():
    listed = list(lines())
    assert all(any(line.split()[:1] == [slug] for line in listed) for slug in TEMPLATES)
    found = list(lines(["keep", "sharding"]))
    assert found[0].startswith("recompiles (") and all("keep" in line or "(" in line for line in found)


@pytest.mark.parametrize(
    ("code", "slug"), [("JX101", "fix-odd-batch"), ("JX108", "fix-stable-hash"), ("JX506", "fix-donate")]
)
def test_the_command_that_prints_the_templates_of_a_rule_has_those_of_its_file(code, slug):
    printed = [line.split()[0] for line in lines([code])]
    assert slug in printed and "device-waits" not in printed
