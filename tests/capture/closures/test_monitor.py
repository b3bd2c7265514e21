"""What a watched function's trace took in from outside, and whether it has changed since."""

from pathlib import Path

import pytest

from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry
from jaxscope.schema import events as ev

pytestmark = pytest.mark.capture

HEAD = """
import functools, gc, threading, weakref
import jax, jax.numpy as jnp, numpy as np, jaxscope
x = jnp.ones(4)
"""


def seen(run):
    """(function, name, where, how, seen) of every change, in order."""
    return [(e.function.partition("@")[0].rpartition(".")[2], e.name, e.where, e.how, e.seen) for e in run.of(ev.CaptureChanged)]  # fmt: skip


def names(run):
    return [e.name for e in run.of(ev.CaptureChanged)]


CHANGES = """
rate = 2.0
class Config: width = 3
config = Config()
def scaled(v): return v * depth
depth = 7
def make():
    scale, table, by_name, array = 2.0, jnp.ones(4), {"v": jnp.ones(4), "other": 1}, np.ones(4, "f4")
    @jaxscope.watch
    @jax.jit
    def f(v):
        inner = config.width
        return scaled(v * scale * rate * by_name["v"] * inner + sum(array[i] for i in range(2)) + table)
    def rebind(value):
        nonlocal scale, table
        scale, table = value, jnp.zeros(4)
    return f, rebind, by_name, array
f, rebind, by_name, array = make()
f(x); f(x)
rate = 5.0; config.width = 11; depth = 8; by_name["v"] = jnp.ones(4) * 9; array[:] = 4; rebind(9.0); by_name["other"] = 3
f(x)  # SERVED
f(x)
"""


def test_every_way_to_change_what_a_trace_took_in_is_seen_at_the_next_call(record):
    run = record(HEAD + CHANGES)
    assert sorted(seen(run)) == sorted(
        [
            ("f", "rate", "global", "rebound", "call"),
            ("f", "scale", "closure", "rebound", "call"),
            ("f", "table", "closure", "rebound", "call"),
            ("f", "by_name['v']", "closure", "rebound", "call"),
            ("f", "config.width", "global", "rebound", "call"),
            ("f", "depth", "global", "rebound", "call"),
            ("f", "array", "closure", "in place", "call"),
        ]
    )
    source = (HEAD + CHANGES).split("\n")
    for e in run.of(ev.CaptureChanged):
        assert "SERVED" in source[e.site.line - 1], e
        assert e.name.partition("[")[0].rpartition(".")[2] in source[e.read.line - 1] or "inner" in source[e.read.line - 1]  # fmt: skip
        assert e.call == run.misses("make.<locals>.f")[0].call
        assert e.step == 3
    values = {e.name: (e.before, e.after) for e in run.of(ev.CaptureChanged)}
    assert values["rate"] == ("2.0", "5.0") and values["config.width"] == ("3", "11")
    assert values["table"] == ("jax.Array float32[4]", "jax.Array float32[4]")
    readers = {e.name: e.reader for e in run.of(ev.CaptureChanged)}
    assert readers.pop("depth") == "scaled" and set(readers.values()) == {None}
    assert values["array"] == ("float32[4] [1, 1, 1, 1]", "float32[4] [4, 4, 4, 4]")
    certain = {e.name for e in run.of(ev.CaptureChanged) if e.certain}
    assert {"rate", "scale", "table", "by_name['v']", "config.width"} <= certain and "depth" not in certain
    found = [f for f in registry.findings(load(run.run)) if f.code == "JX131"]
    assert len(found) == 7 and {f.severity for f in found} == {"error"}
    assert all("SERVED" in source[f.source.line - 1] for f in found)


def test_what_did_not_change_for_the_compiled_program_is_no_finding(record):
    run = record(
        HEAD
        + """
traces, cache, log, rate, text, pair = {"n": 0}, {}, [], 2.0, "sum", (1, 2)
unread, nan, held = 1, float("nan"), np.ones(4, "f4")
class Trainer:
    def __init__(self): self.steps, self.scale, self.built = 0, 2.0, None
    def build(self): self.built = self.built or jnp.ones(4)
    @property
    def doubled(self): raise RuntimeError("a property was asked")
    @jaxscope.watch
    @functools.partial(jax.jit, static_argnums=0)
    def step(self, v):
        global unread
        self.build(); log.append("traced"); traces["n"] += 1; cache[v.shape] = 1; unread = 2
        return v * self.scale * rate * pair[0] * nan + self.built + held + len(text)
trainer = Trainer()
rate = 3.0  # before any trace
for n in range(5):
    trainer.step(x)
    trainer.steps += 1; traces["n"] += 1; cache["k"] = n; log.append(n); unread = n
    rate = float("3.0"); text = "".join(["s", "um"]); pair = tuple([1, 2]); nan = float("nan"); held = held.copy()
    functools = __import__("functools")
"""
    )
    assert seen(run) == []
    assert len(run.misses("Trainer.step")) == 1


def test_a_trace_with_the_new_value_leaves_nothing_to_report(record):
    code = (
        HEAD
        + """
rate, array = 2.0, np.ones(4, "f4")
@jaxscope.watch
@jax.jit
def f(v): return v * rate + array
f(x); f(x)
rate, array[:] = 5.0, 7
BETWEEN
f.clear_cache(); f(x)
for _ in range(9): f(x)
"""
    )
    renewed = record(code.replace("BETWEEN", ""))
    assert [s.status for s in load(renewed.run).stale] in ([], ["withdrawn"])
    assert not [f for f in registry.findings(load(renewed.run)) if f.code == "JX131"]
    served = record(code.replace("BETWEEN", "f(x)"))
    assert {(s.changed.name, s.status) for s in load(served.run).stale} == {("rate", "ended"), ("array", "ended")}  # fmt: skip
    found = [f for f in registry.findings(load(served.run)) if f.code == "JX131"]
    assert found and all("computed with an old value of" in words.title(f) for f in found)
    assert all("traced again" in words.evidence(f.evidence[-1]) for f in found)


def test_a_static_self_is_looked_after_object_by_object(record):
    run = record(
        HEAD
        + """
class Layer:
    scale = 2.0
    def __init__(self, width): self.width = width
    def inner(self, v): return v * self.width
    @jaxscope.watch
    @functools.partial(jax.jit, static_argnums=0)
    def apply(self, v): return self.inner(v) * self.scale
    def __eq__(self, other): return self is other
    def __hash__(self): return id(self)
a, b, c = Layer(1), Layer(2), Layer(3)
for layer in (a, b, c): layer.apply(x)
a.scale = 5.0; b.width = 9
c.apply(x); print("c is fine")
a.apply(x)
b.apply(x)
"""
    )
    told = [(e.name, e.where, e.before, e.after, e.site.line) for e in run.of(ev.CaptureChanged)]
    assert [t[:4] for t in told] == [
        ("self.scale", "static", "2.0", "5.0"),
        ("self.width", "static", "2", "9"),
    ]
    assert told[1][4] == told[0][4] + 1, "each at its own call"


def test_watch_finds_the_function_under_and_inside_jit_and_through_wrappers(record):
    run = record(
        HEAD
        + """
import equinox as eqx
from flax import nnx
rates = dict.fromkeys("abcdefg", 1.0)
@jax.jit
@jaxscope.watch
def inside(v): return v * rates["a"]
@jaxscope.watch
@nnx.jit
def by_nnx(m, v): return m(v) * rates["b"]
@jaxscope.watch
@eqx.filter_jit
def by_eqx(v): return v * rates["c"]
class Model:
    def __init__(self): self.k = 1.0; self.step = jaxscope.watch(jax.jit(self._step))
    def _step(self, v): return v * self.k
@jax.jit
def helper(v): return v * rates["d"]
@jaxscope.watch
@jax.jit
def calls_jitted(v): return helper(v) + functools.partial(helper)(v)
@jaxscope.watch
@jax.jit
def under_grad(v): return (v * rates["e"]).sum()
bound = jnp.ones(4)
part = jaxscope.watch(jax.jit(functools.partial(lambda w, v: w * v * rates["f"], bound)))
differentiated = jaxscope.watch(jax.jit(jax.grad(lambda v: (v * rates["g"]).sum())))
one, two, linear = Model(), Model(), nnx.Linear(4, 4, rngs=nnx.Rngs(0))
def everything():
    inside(x); by_nnx(linear, x); by_eqx(x); one.step(x); two.step(x); calls_jitted(x); part(x); differentiated(x)
    jax.grad(lambda v: under_grad(v))(x)
    jaxscope.step()
for _ in range(3): everything()
for k in rates: rates[k] = 2.0
two.k = 5.0
for _ in range(9): everything()
"""
    )
    found = {(f, n, w, s) for f, n, w, _, s in seen(run)}
    assert found == {
        ("inside", "rates['a']", "global", "step"),
        ("by_nnx", "rates['b']", "global", "call"),
        ("by_eqx", "rates['c']", "global", "call"),
        ("_step", "self.k", "static", "call"),
        ("calls_jitted", "rates['d']", "global", "call"),
        ("under_grad", "rates['e']", "global", "call"),
        ("<lambda>", "rates['f']", "global", "call"),
        ("<lambda>", "rates['g']", "global", "call"),
    }
    assert [e.name for e in run.of(ev.CaptureChanged)].count("self.k") == 1, "of the other nothing changed"


def test_the_contents_of_arrays_are_compared_ever_more_rarely(record):
    run = record(
        HEAD
        + """
from jaxscope.capture.closures import fingerprint
array, huge = np.ones(4, "f4"), np.ones(300_000, "f4")
@jaxscope.watch(step=True)
@jax.jit
def f(v): return v * array + huge[:4]
looked, original = [], fingerprint.checksum
f(x)
from jaxscope.capture import session
counter = f._jaxscope_guard.counter
def noted(value):
    looked.append(counter.value); return original(value)
fingerprint.checksum = noted
for _ in range(16): f(x)
fingerprint.checksum = original
print(looked)
huge[:] = 2; array[2] = 3
session.stop("exit")  # the contents were last compared after the last call
"""
    )
    assert run.out == "[2, 3, 5, 9, 17]\n"
    assert names(run) == [], "changed after the last call"
    late = record(
        HEAD
        + """
array = np.ones(4, "f4")
@jaxscope.watch
@jax.jit
def f(v): return v * array
for n in range(7):
    f(x)
    if n == 5: array[1] = 2
from jaxscope.capture import session
session.stop("exit")
"""
    )
    assert [e.seen for e in late.of(ev.CaptureChanged)] == ["exit"]
    [finding] = [f for f in registry.findings(load(late.run)) if f.code == "JX131"]
    assert (finding.certainty, finding.severity) == ("likely", "warning"), "when it changed is not known"


def test_nothing_of_the_programs_is_called_and_no_array_kept_alive(record, tmp_path, clean_env):
    code = (
        HEAD
        + """
gc.disable()
class Odd:
    def __eq__(self, other): raise RuntimeError("compared")
    __ne__ = __hash__ = __bool__ = __repr__ = __len__ = __eq__
    def __getattr__(self, name):
        if name == "missing": raise RuntimeError("asked")
        raise AttributeError(name)
    @property
    def computed(self): asked.append(1); return 1.0
    __slots__ = ("w", "__weakref__")
asked = []
def scope():
    odd, late = Odd(), Odd(); odd.w = jnp.ones(8); late.w = jnp.ones(8)
    held = {"a": jnp.ones(8), "b": [jnp.ones(8), np.ones(8)], "o": odd}
    cell, other = jnp.ones(8), np.ones(8)
    WATCH
    @jax.jit
    def f(v):
        odd.computed
        return v.sum() + held["a"] + held["b"][0] + odd.w + cell + other + held["o"].w
    refs = [weakref.ref(a) for a in (held["a"], *held["b"], odd.w, late.w, cell, other, f)]
    f(x); f(x)
    held["a"] = cell = held["b"] = None
    alive = [r() is not None for r in refs]
    try: odd = late; held["o"] = late
    finally: f(x)
    alive += [r() is not None for r in refs]
    other = None
    del f, odd, late
    held.clear()
    return refs, alive
refs, alive = scope()
jax.clear_caches()
print(alive, [r() is not None for r in refs], asked)
"""
    )
    bare = record(code.replace("WATCH", ""))
    watched = record(code.replace("WATCH", "@jaxscope.watch"))
    assert watched.out == bare.out and "True" in bare.out
    assert {"held['a']", "cell", "odd"} <= set(names(watched))


def test_threads_and_functions_made_anew_have_their_own(record):
    run = record(
        HEAD
        + """
def make(scale):
    @jaxscope.watch
    @jax.jit
    def f(v): return v * scale
    def rebind(value):
        nonlocal scale
        scale = value
    return f, rebind
fs = [make(float(n)) for n in range(4)]
def work(f):
    for _ in range(50): f(x)
def together():
    threads = [threading.Thread(target=work, args=(f,)) for f, _ in fs for _ in range(2)]
    for t in threads: t.start()
    for t in threads: t.join()
together()
fs[2][1](9.0)
together()
for n in range(20): make(float(n))[0](x)
"""
    )
    assert [(e.name, e.before, e.after) for e in run.of(ev.CaptureChanged)] == [("scale", "2.0", "9.0")]


def test_a_variable_that_a_failing_trace_read_is_not_taken_for_the_program(record):
    run = record(
        HEAD
        + """
rate = 2.0
@jaxscope.watch
@jax.jit
def f(v):
    if v.shape[0] > 4: raise ValueError("too long")
    return v * rate
f(x)
rate = 3.0
try: f(jnp.ones(5))
except ValueError as e: print(e)
f(x)
del rate
f(x)
"""
    )
    assert run.out == "too long\n"
    assert [(e.name, e.before, e.after) for e in run.of(ev.CaptureChanged)] == [("rate", "2.0", "3.0")]


def test_a_module_that_holds_a_setting_is_looked_into(record, tmp_path):
    (tmp_path / "settings.py").write_text("RATE = 2.0\nclass Deep:\n    depth = 3\n")
    run = record(
        HEAD
        + f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import settings
from settings import Deep
@jaxscope.watch
@jax.jit
def f(v):
    def nested(w): return w * settings.RATE
    return nested(v) * Deep.depth
f(x)
settings.RATE = 4.0; Deep.depth = 4
f(x)
"""
    )
    assert names(run) == ["settings.RATE", "Deep.depth"]


def test_the_labelled_stale_cases_are_all_found(record):
    run = record(
        f"""
import functools, sys
sys.path.insert(0, {str(Path(__file__).parents[2] / "data")!r})
import jax, jaxscope
jit = jax.jit
jax.jit = lambda f, **options: jaxscope.watch(jit(f, **options))
import retrace_causes
for name, case in retrace_causes.CASES:
    if name.startswith(("STALE", "control", "@jit method static self")):
        counts, error, note = retrace_causes.measure(case)
        print(name, note)
"""
    )
    assert run.out.count("STALE\n") == 4, "JAX has traced none of them again"
    assert [(e.name, e.how) for e in run.of(ev.CaptureChanged)] == [
        ("self.s", "rebound"),
        ("b['v']", "rebound"),
        ("b['v']", "rebound"),
        ("b", "in place"),
    ]


def test_a_step_that_ends_looks_at_arrays_that_calls_will_not_look_at_for_long(record):
    run = record(
        HEAD
        + """
array = np.ones(4, "f4")
@jaxscope.watch
@jax.jit
def f(v): return v * array
for n in range(100): f(x)
jaxscope.step()
array[1] = 2
f(x)
jaxscope.step()
jaxscope.step()
print(jaxscope.capture.session.current().probe.tracker.current)
"""
    )
    assert run.out == "4\n"
    assert seen(run) == [("f", "array", "global", "in place", "step")]


def test_calls_of_which_no_trace_was_seen_are_not_looked_at(record):
    run = record(
        HEAD
        + """
@jax.jit
def f(v): return v * 2
f(x)  # before it is watched in this recording: what the trace took in is not known
jaxscope.capture.session.stop("exit")
looks = 0
with jaxscope.record("again"):
    watched = jaxscope.watch(f)
    watched(x)
    guard = watched._jaxscope_guard
    check = type(guard).check
    def counted(self, args):
        global looks
        looks += 1
        return check(self, args)
    type(guard).check = counted
    for _ in range(200): watched(x)
    before, rate = looks, 1
    watched(jnp.ones(3))  # a trace: from here on there is something
    watched(jnp.ones(3))
    print(before, looks > before)
"""
    )
    assert run.out == "0 True\n"
