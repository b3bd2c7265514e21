"""JX609: settings of JAX for debugging that are left on."""

import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model import sources
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry
from jaxscope.rules.debug_settings import turned_on
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame
from jaxscope.schema.line_times import CHECKING, OPERATIONS, LineTime

TRAIN = """\
import jax
jax.config.update("jax_debug_nans", True)
jax.config.jax_disable_jit = True
for x in batches:
    w = step(w, x)
    n = w * 2
"""


@pytest.fixture
def found(tmp_path, monkeypatch):
    """A function that returns the findings of a program of 10 seconds with these settings and times."""
    monkeypatch.chdir(tmp_path)

    def of(debugging, *times, text=TRAIN):
        (tmp_path / "fit.py").write_text(text)
        sources.text.cache_clear()
        log = Log(store.create(tmp_path / f"run{len(list(tmp_path.iterdir()))}"))
        log.backend()
        step = function("step")
        log.say(step)
        log.compiled(step, key(leaf("x", 1)), site=Frame("fit.py", 5, "<module>"))
        log.say(ev.LineTimes(seconds=10.0, lines=list(times), debugging=debugging), after=5.0)
        log.end()
        return [f for f in registry.findings(load(log.run)) if f.code in ("JX605", "JX609")]

    return of


def time(doing, line, seconds, samples=50):
    return LineTime(doing, [Frame("fit.py", line, "<module>")], seconds, samples)


def test_checks_for_nan_are_reported_with_the_line_that_turns_them_on(found):
    [f] = found(["jax_debug_nans"], time(CHECKING, 6, 2.0))
    assert words.title(f) == (
        "JAX checks the results of each call and operation for NaN or infinity (jax_debug_nans):"
        " about 2.0 s (17% of the run)"
    )
    assert words.fix_text(f) == "turn jax_debug_nans off (set at fit.py:2): it is meant for debugging"
    assert (f.source.line, f.seconds, f.severity) == (2, 2.0, "warning")


def test_a_setting_that_no_line_turns_on_may_come_from_the_environment(found):
    [f] = found(["jax_debug_infs"], time(CHECKING, 6, 2.0))
    assert "JAX_DEBUG_INFS" in words.fix_text(f) and f.source.line == 6


def test_the_check_of_a_jitted_call_counts_as_its_computation(found):
    assert not found(["jax_debug_nans"], time(CHECKING, 5, 6.0))
    warmed = TRAIN.replace("n = w * 2", "w = step(w, x)")  # a line that compiles nothing
    assert not found(["jax_debug_nans"], time(CHECKING, 6, 6.0), text=warmed)


def test_waiting_in_a_check_is_no_cost_of_it(found):
    waits = [LineTime(CHECKING, [Frame("fit.py", 6, "<module>")], 6.0, 50, blocked=5.5)]
    assert not found(["jax_debug_nans"], *waits)


def test_of_two_settings_the_one_that_no_line_turns_on_is_looked_for(found):
    [f] = found(["jax_debug_nans", "jax_debug_infs"], time(CHECKING, 6, 2.0))
    assert "turn jax_debug_nans and jax_debug_infs off" in words.fix_text(f)
    assert "JAX_DEBUG_INFS" in words.fix_text(f)


def test_short_or_badly_measured_checks_and_a_setting_that_is_off_again_are_not_reported(found):
    assert not found(["jax_debug_nans"], time(CHECKING, 6, 0.9))
    assert not found(["jax_debug_nans"], time(CHECKING, 6, 2.0, samples=9))
    assert not found([], time(CHECKING, 6, 2.0))


def test_while_jit_is_disabled_no_finding_advises_to_jit(found):
    times = [time(OPERATIONS, 6, 8.0)]
    assert [f.code for f in found([], *times)] == ["JX605"]
    [f] = found(["jax_disable_jit"], *times)
    assert f.code == "JX609" and f.source.line == 3
    assert words.title(f) == (
        "jit is disabled (jax_disable_jit): jitted functions run their operations one by one, which takes"
        " about 8.0 s (67% of the run)"
    )


@pytest.mark.parametrize(
    ("line", "setting"),
    [
        ("jax.config.update('jax_debug_nans', True)", "jax_debug_nans"),
        ("config.update('jax_debug_infs', args.debug)", "jax_debug_infs"),
        ("jax.config.jax_debug_nans = True", "jax_debug_nans"),
        ("with jax.debug_nans(): pass", "jax_debug_nans"),
        ("jax.disable_jit().__enter__()", "jax_disable_jit"),
        ("jax.config.update('jax_debug_nans', False)", None),
        ("jax.config.jax_disable_jit = False", None),
        ("jax.disable_jit(False)", None),
        ("jax.disable_jit(disable=False)", None),
        ("self.disable_jit()", None),
        ("model.jax_debug_nans = True", None),
        ("import os\nos.environ['JAX_DEBUG_NANS'] = '1'", "jax_debug_nans"),
        ("import os\nos.environ.setdefault('JAX_DISABLE_JIT', '0')", None),
    ],
)
def test_what_turns_a_setting_on(line, setting):
    known = {"jax_debug_nans", "jax_debug_infs", "jax_disable_jit"}
    assert [name for name, _ in turned_on(f"import jax\n{line}") if name in known] == [setting][
        : setting is not None
    ]


def test_any_text_may_be_a_source():
    assert list(turned_on(None)) == [] and list(turned_on("def (")) == []
