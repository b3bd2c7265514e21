"""Every rule's documentation is run: the example has the problem, what to use instead has not.

All examples run in one recorded process, all remedies in another: a finding belongs to the file it is in.
Both under ``jaxscope run --tee-stderr``: some of what XLA says is said on stderr only. Rules that speak of a machine
that is not there have recordings of their own, where the compiler for it is installed. Rules about a share of the
program's time have recordings of their own, too.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from jaxscope.analysis import machines
from jaxscope.capture import line_times
from jaxscope.check import gate
from jaxscope.log.store import RunDir
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry
from jaxscope.schema.findings import fix_of
from jaxscope.targets import client

# One worker: the two recordings serve all of these tests.
pytestmark = [pytest.mark.capture, pytest.mark.timeout(1800), pytest.mark.costly]

# What takes minutes is run by JAXSCOPE_TEST_SLOW=1 pytest tests/rules.
SLOW = bool(os.environ.get("JAXSCOPE_TEST_SLOW"))
RULES = {code: r for code, r in registry.rules().items() if (SLOW or not r.slow) and not r.needs_comparison}
HERE = {code: r for code, r in RULES.items() if r.target is None}
# Rules about the largest program, or about the script of the run: their examples are recorded alone.
ALONE = ("JX202", "JX514", "JX515")
# Rules about a share of the time of the whole program: a recording each
SHARES = ("JX605", "JX606", "JX608", "JX609")
AIMED = {code: r for code, r in RULES.items() if r.target is not None}
# The advice that "Use instead" of a page applies, by its slug in present.messages.
APPLIES = {
    "JX101": "fix-pad-odd-batch", "JX102": "fix-one-dtype", "JX103": "fix-typed-array", "JX104": "fix-one-key-type",
    "JX105": "fix-growing-tree", "JX106": "fix-same-call-form", "JX107": "fix-ordinary-argument",
    "JX108": "fix-frozen-fields", "JX109": "fix-array-field", "JX110": "fix-jit-partial-once",
    "JX111": "fix-one-set-of-options", "JX112": "fix-do-not-clear", "JX113": "fix-call-compiled",
    "JX114": "fix-preallocate", "JX115": "fix-same-sharding", "JX116": "fix-same-commitment",
    "JX117": "fix-shard-over-devices", "JX118": "fix-same-layout", "JX119": "fix-same-memory-kind",
    "JX120": "fix-place-on-mesh", "JX121": "fix-set-once", "JX123": "fix-asarray",
    "JX124": "fix-one-sharding-object", "JX125": "fix-remove-callbacks", "JX126": "fix-fewer-signatures", "JX127": "fix-numbers-as-array",
    "JX130": "fix-start-typed", "JX131": "fix-pass-as-argument", "JX132": "fix-many-causes",
    "JX133": "fix-one-size-or-numpy", "JX134": "fix-pass-key", "JX135": "fix-new-key", "JX136": "fix-fold-device", "JX137": "fix-split-key",
    "JX138": "fix-mean-over-devices", "JX139": "fix-key-for-each-element", "JX140": "fix-assign-back", "JX206": "fix-branch-outside-vmap",
    "JX207": "fix-checkpoint-parts", "JX208": "fix-compute-before-loop", "JX209": "fix-top-k", "JX210": "fix-jacfwd", "JX211": "fix-product-order", "JX212": "fix-compute-in-branch", "JX304": "fix-add-in-float32", "JX305": "fix-larger-tolerance", "JX306": "fix-subtract-before", "JX307": "fix-no-negative-indices", "JX308": "fix-index-in-bounds", "JX309": "fix-equal-ranks", "JX514": "fix-return-what-is-read",
    "JX190": "fix-pad-odd-batch", "JX202": "fix-scan-and-measure", "JX203": "fix-return-values", "JX204": "fix-vmap-calls",
    "JX205": "fix-has-aux", "JX301": "fix-compute-in-jax", "JX302": "fix-cast-down", "JX303": "fix-float32",
    "JX401": "fix-keep-axes", "JX402": "fix-reshard-in-steps", "JX403": "fix-sum-after-the-loop", "JX501": "fix-keep-numbers",
    "JX502": "fix-shard-dimension", "JX503": "fix-pad-or-replicate", "JX504": "fix-pad-with-mask",
    "JX505": "fix-unused-donation", "JX506": "fix-donate", "JX507": "fix-pass-as-argument",
    "JX508": "fix-put-before-the-calls", "JX509": "fix-shard-over-mesh", "JX510": "fix-less-memory",
    "JX511": "fix-put-where-used", "JX512": "fix-shard-batch", "JX515": "fix-unconstrained", "JX516": "fix-reduce-in-jit", "JX213": "fix-train-some", "JX214": "fix-gradient-of-rows", "JX513": "fix-checkpoint", "JX601": "fix-copy-several", "JX602": "fix-put-once",
    "JX603": "fix-copy-whole", "JX604": "fix-copy-batch", "JX605": "fix-returns-value",
    "JX606": "fix-python-in-loop", "JX607": "fix-write-in-jit", "JX608": "fix-scan-loop", "JX609": "fix-setting-off",
}  # fmt: skip
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
RUNNER = """
import runpy, sys
from pathlib import Path
for program in sorted(Path(__file__).parent.glob("JX*.py")):
    runpy.run_path(str(program), run_name="__main__")
"""


def blocks(code: str) -> list[str]:
    """The program with the problem and the one without."""
    return _BLOCK.findall(RULES[code].doc)


@pytest.fixture(scope="module")
def found(made_once, clean_env):
    """(codes found in the examples, in the remedies): each a mapping of file name to codes."""
    env = {**clean_env, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    return made_once("advice", lambda folder: found_in(folder, env))


def found_in(folder, env):
    results = []
    for which in (0, 1):
        (folder / str(which)).mkdir()
        run = recorded(
            folder / str(which), env, [code for code in HERE if code not in (*SHARES, *ALONE)], which
        )
        by_file: dict[str, list] = {}
        # The gate reports compilations in the examples of other rules, too.
        late = gate.recompiles_after(run, 1)
        limited = [f for f in late if f.source and f"{gate.CODE}.py" in f.source.file]
        for finding in [*registry.findings(run), *limited]:
            name = finding.source.file.rpartition("/")[2].removesuffix(".py") if finding.source else "?"
            by_file.setdefault(name, []).append(finding)
        for code in (*ALONE, *(SHARES if line_times.sampler() is not None else ())):
            alone = folder / f"{which}_{code}"
            alone.mkdir()
            by_file[code] = registry.findings(recorded(alone, env, [code], which))
        results.append(by_file)
    return results


def recorded(folder, env, codes, which, *options):
    """The examples (0) or remedies (1) of ``codes``, all in one recorded process."""
    for code in codes:
        (folder / f"{code}.py").write_text(blocks(code)[which])
    (folder / "run_all.py").write_text(RUNNER)
    script = f"{codes[0]}.py" if len(codes) == 1 else "run_all.py"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "jaxscope",
            "run",
            "-q",
            "--tee-stderr",
            *options,
            "-o",
            "recorded",
            script,
        ],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=1500 if SLOW else 500,
    )
    assert done.returncode == 0, done.stderr
    run = load(RunDir(folder / "recorded"))
    assert not [lost for lost in run.degraded if lost.seam != "listeners"]
    return run


@pytest.mark.parametrize("code", AIMED)
def test_what_a_target_has_too_little_for_fits_where_the_advice_is_followed(
    code, clean_env, tmp_path_factory
):
    target = machines.parse(AIMED[code].target)
    lacking = client.missing(target.platform)
    if lacking is not None:
        pytest.skip(f"nothing can be compiled for {target.name}: {lacking.sentence}")
    found = []
    for which in (0, 1):
        folder = tmp_path_factory.mktemp("aimed")
        run = recorded(folder, clean_env, [code], which, "--target", target.name, "--wait-targets")
        assert {p.state for p in run.retargeted.values()} <= {"ok", "exhausted"} and run.retargeted
        found.append(registry.findings(run))
    (mine,) = found[0]
    assert (
        mine.code == code
        and words.fix_text(mine)
        and mine.evidence
        and mine.contexts.targets == [target.name]
    )
    assert found[1] == []


@pytest.fixture(autouse=True)
def measured(request):
    """Skip a test of a rule about measured times where jaxscope was installed without a C compiler."""
    code = request.node.callspec.params.get("code") if hasattr(request.node, "callspec") else None
    if code in SHARES and line_times.sampler() is None and "found" in request.fixturenames:
        pytest.skip("not built: no C compiler when it was installed")


@pytest.mark.parametrize("code", HERE)
def test_the_example_has_the_problem(code, found):
    findings = found[0].get(code, [])
    mine = [f for f in findings if f.code == code]
    assert mine, f"{code} does not find its own example; found {[words.title(f) for f in findings]}"
    assert mine[0].fix and mine[0].title and mine[0].evidence


@pytest.mark.parametrize("code", HERE)
def test_what_to_use_instead_applies_the_advice_of_the_example(code, found):
    advice = [fix_of(f) for f in found[0].get(code, []) if f.code == code]
    assert {fix.words.slug for fix in advice if fix is not None} == {APPLIES[code]}


@pytest.mark.parametrize("code", HERE)
def test_what_to_use_instead_has_it_no_more(code, found):
    assert [words.title(f) for f in found[1].get(code, [])] == []


def test_every_rule_has_a_page_and_every_page_a_rule():
    titles = {r.code: f"# {r.code} {r.name}" for r in registry.rules().values()}
    assert {p.stem: p.read_text().split("\n")[0] for p in registry.PAGES.glob("*.md")} == titles


@pytest.mark.parametrize("code", RULES)
def test_a_rule_explains_itself_under_the_usual_headings(code):
    doc = RULES[code].doc
    headings = re.findall(r"^## (.*)$", doc, re.MULTILINE)
    assert headings[:4] == ["What it does", "Why is this bad?", "Example", "Use instead"]
    assert len(blocks(code)) == 2
    assert RULES[code].summary
