"""JX503 and JX508 on runs written by hand: what is one finding, and what is too small for one."""

from __future__ import annotations

import handwritten_runs
import pytest
from handwritten_runs import Log

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry
from jaxscope.schema import events as ev
from jaxscope.schema.keys import OutLeaf, Sharding

MESH = (("data", 8, "Auto"),)
STEP = handwritten_runs.function("train_step")


def named(spec):
    return Sharding("NamedSharding", f"{spec} on data=8", "0-7", MESH, spec, "device")


SPLIT, WHOLE = named("P('data',)"), named("P()")
TABLE = [handwritten_runs.ONE_CPU, SPLIT, WHOLE]


@pytest.fixture
def found(tmp_path):
    """``found(code, leaves, results)``: findings of one call; results are (path, shape, requested, actual)."""

    def make(code, leaves=(), takes=(), results=(), calls=None, before=None):
        directory = store.create(tmp_path / "run", name="run", argv=[])
        log = Log(directory)
        log.backend(8)
        log.say(STEP)
        if calls is not None:
            log.say(ev.Watched(function=STEP.function))
            log.say(ev.Called(function=STEP.function, count=calls))
        if before is not None:
            log.compiled(STEP, handwritten_runs.key(*before, shardings=TABLE))
        call = log.missed(STEP, handwritten_runs.key(*leaves, shardings=TABLE))
        log.phase(call, "trace", 0.1, out=[OutLeaf(path, shape, "float32") for path, shape, _, _ in results])
        log.phase(call, "lower", 0.1, asked=TABLE, asked_in=[None] * len(leaves), asked_out=[a for _, _, a, _ in results])  # fmt: skip
        log.phase(
            call, "compile", 0.1, devices="0-7", in_shardings=TABLE, in_sharding_of=list(takes),
            out_shardings=TABLE, out_sharding_of=[g for *_, g in results],
        )  # fmt: skip
        log.end()
        return [f for f in registry.findings(load(directory)) if f.code == code]

    return make


def test_results_that_went_wrong_alike_are_reported_together(found):
    rows = [(f"[0]['w{i}']", (17, 1024), 1, 2) for i in range(20)] + [("[1]", (16, 4), 1, 2)]
    many, one = found("JX503", results=rows)
    assert words.title(many) == (
        "train_step does not use the requested sharding for its result[0]['w0'] (f32[17,1024]) and 19 other arrays: requested "
        "P('data'), got replicated because 17 is not divisible by 8: each device holds all of it; with the requested sharding it would hold 1/8"
    )
    assert (
        many.severity == "warning"
        and words.fix_text(many)
        == "shard dimension 1 instead, whose size 1,024 is divisible by 8: P(None, 'data'). Or pad dimension 0 from size 17 to 24, and cut the padding off where the array is used"
    )
    assert (many.fix.kind, many.fix.arguments) == ("pad", {"dimension": 0, "size": 24})
    assert "MiB more on each device" in words.evidence(many.evidence[0])
    assert one.severity == "note" and words.title(one).endswith(
        "got replicated: each device holds all of it; with the requested sharding it would hold 1/8"
    )


def test_results_as_requested_are_no_finding(found):
    assert found("JX503", results=[("[0]", (16, 4), 1, 1), ("[1]", (16, 4), None, 2)]) == []


LARGE = handwritten_runs.leaf("table", 512, 1024)


def test_a_large_argument_from_one_device_is_moved(found):
    [finding] = found("JX508", [LARGE], [2])
    assert words.title(finding) == (
        "table (2.0 MiB) is placed on cpu:0, but train_step needs it as replicated over 8 devices: each call of train_step then copies it"
    )
    assert finding.source.line == 140 and finding.certainty == "likely"


@pytest.mark.parametrize(
    ("leaf", "takes", "calls"),
    [
        (handwritten_runs.leaf("x", 4, 4), 2, None),  # small
        (handwritten_runs.leaf("x", 512, 1024, sharding=1), 1, None),  # where it is taken
        (handwritten_runs.leaf("x", 512, 1024, type="numpy.ndarray", sharding=None), 2, None),  # of the host
        (LARGE, 2, 1),  # once
    ],
)
def test_what_costs_nothing_again_is_no_finding(leaf, takes, calls, found):
    assert found("JX508", [leaf], [takes], calls=calls) == []


@pytest.mark.parametrize(("sharding", "reported"), [(0, True), (2, False)])
def test_an_argument_that_recompiled_as_it_was_elsewhere_is_one_finding(sharding, reported, found):
    earlier = [handwritten_runs.leaf("table", 512, 1024, sharding=sharding)]
    assert bool(found("JX508", [LARGE], [2], before=earlier)) == reported
