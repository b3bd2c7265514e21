"""Many small compilations outside jit: of which line they are, and what is not small."""

import hashlib
import io

import pytest
from handwritten_runs import CWD, Log, copied, function, key, leaf

from jaxscope.log import store
from jaxscope.model import sources
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.report.json_report import as_json
from jaxscope.report.sections import without_finding
from jaxscope.report.text import print_report, summary
from jaxscope.rules.registry import findings
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame, Static

ADD = function("add", None, None, eager=True, form="primitive")
LOOP = function("_fori_collect_loop", "/lib/numpyro/util.py", 9, library=True)


@pytest.fixture
def run(tmp_path):
    return store.create(tmp_path / "run")


def barrage(run):
    return [f for f in findings(load(run)) if f.code == "JX133"]


def test_everything_from_one_line_counts_and_what_is_compiled_again_is_lost(run):
    log = Log(run)
    log.say(ADD)
    log.say(LOOP)
    for n in range(25):
        log.compiled(ADD, key(leaf("x", n)), (0.0, 0.0, 0.01), line=12)
    log.compiled(LOOP, key(leaf("x", 1)), (0.0, 0.0, 6.0), line=12)
    log.end()
    [f] = barrage(run)
    assert words.title(f) == (
        "line 12 caused 26 compilations outside jit (_fori_collect_loop and add); 24 of them are recompiles, because the"
        " sizes of the arrays change from call to call"
    )
    assert f.seconds == pytest.approx(0.24)
    [line] = as_json(load(run))["outside_jit"]
    assert (line["source"]["line"], line["compilations"], line["recompiles"]) == (12, 26, 24)


STEP = function("step", f"{CWD}/train.py", 3)
WHILE = function("while", None, None, eager=True, form="primitive")


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_a_tenth_of_all_seconds_makes_a_finding_on_a_quick_and_on_a_slow_machine(run, scale):
    log = Log(run)
    log.say(STEP)
    log.say(WHILE)
    log.compiled(STEP, key(leaf("x", 1)), (0.0, 0.0, 8.0 * scale), line=30)
    for body in (1, 2, 3):
        log.compiled(WHILE, key(leaf("x", 1), function_object=body), (0.0, 0.0, 1.0 * scale), line=12)
        log.compiled(WHILE, key(leaf("x", 1), function_object=body), (0.0, 0.0, 0.2 * scale), line=13)
    log.end()
    [f] = barrage(run)
    assert (
        f.source.line == 12
        and "each call of while_loop or fori_loop gets a new function object" in words.title(f)
    )
    assert words.fix_text(f).startswith("apply jit to main, or to a function that calls it")


def test_what_is_compiled_once_by_one_operation_is_no_finding_whatever_its_share(run):
    log = Log(run)
    log.say(ADD)
    log.compiled(ADD, key(leaf("x", 3)), (0.0, 0.0, 6.0), line=12)
    log.end()
    assert barrage(run) == []


@pytest.mark.parametrize(
    ("library", "advice"),
    [
        ("jax", "before the loop, convert the arrays that this line iterates over"),
        ("matplotlib", "convert arrays to NumPy"),
    ],
)
def test_an_array_that_is_iterated_over_is_to_be_numpys(run, library, advice):
    unstack = function("unstack", None, None, eager=True, form="primitive")
    log = Log(run)
    log.say(unstack)
    log.compiled(unstack, key(leaf("x", 2000)), (0.0, 0.0, 3.0), line=12, into_library=0, library=library)
    log.end()
    [f] = barrage(run)
    assert advice in words.fix_text(f)


def test_an_array_of_typed_keys_that_is_iterated_over_is_not_to_be_numpys(run):
    unstack = function("unstack", None, None, eager=True, form="primitive")
    split = function("_split", None, None, eager=True, form="primitive")
    log = Log(run)
    log.say(unstack)
    log.say(split)
    log.compiled(split, key(leaf("key", dtype="key<fry>")), (0.0, 0.0, 0.1), line=11)
    log.compiled(unstack, key(leaf("x", 100, 2, dtype="uint32")), (0.0, 0.0, 3.0), line=12)
    log.end()
    fix = words.fix_text(barrage(run)[0])
    assert fix.startswith("this line takes keys out of an array one at a time")


def test_an_array_of_old_keys_that_is_iterated_over_can_be_numpys(run):
    unstack = function("unstack", None, None, eager=True, form="primitive")
    log = Log(run)
    log.say(unstack)
    log.compiled(unstack, key(leaf("x", 100, 2, dtype="uint32")), (0.0, 0.0, 3.0), line=12)
    log.end()
    [f] = barrage(run)
    assert "np.asarray" in words.fix_text(f)


def test_a_librarys_object_that_is_made_anew_is_to_be_made_once(run):
    log = Log(run)
    update = function("Solver._update", "/lib/site-packages/solver/base.py", 9, library=True)
    log.say(update)
    for n in (1, 2, 3):
        made = key(leaf("x", 1), function_object=n)
        log.compiled(update, made, (0.0, 0.0, 1.0), line=12, into_library=0, library="solver")
    log.end()
    [f] = barrage(run)
    assert "create the object only once" in words.fix_text(f)


@pytest.fixture
def at_line_2(tmp_path, monkeypatch):
    """``at_line_2(text)``: the second line of train.py, which has this text and can be read."""

    def line(text):
        (tmp_path / "train.py").write_text(text)
        monkeypatch.chdir(tmp_path)
        sources.text.cache_clear()
        return Frame(str(tmp_path / "train.py"), 2, "<module>")

    return line


@pytest.mark.parametrize(
    ("programs", "cache", "fixes"),
    [(["a", "a", "a"], "off", 1), (["a", "b", "c"], "off", 0), (["a", "a", "a"], "hit", 0)],
)
def test_what_a_library_makes_anew_in_one_call_can_only_be_kept_in_the_persistent_cache(
    run, at_line_2, programs, cache, fixes
):
    site = at_line_2("import solver\nsolver.run(x)\n")
    log = Log(run)
    update = function("Solver._update", "/lib/site-packages/solver/base.py", 9, library=True)
    log.say(update)
    for n, program in enumerate(programs):
        made = key(leaf("x", 1), function_object=n)
        log.compiled(
            update,
            made,
            (0.0, 0.0, 1.0),
            program=program,
            cache=cache,
            site=site,
            into_library=0,
            library="solver",
        )
    log.end()
    found = barrage(run)
    assert ["you cannot prevent this by changing the line" in words.fix_text(f) for f in found] == [
        True
    ] * fixes
    assert [f.seconds for f in found] == [pytest.approx(2.0)] * fixes


@pytest.mark.parametrize(
    ("text", "module", "fixes"),
    [
        (
            None,
            "jax.random",
            [
                "sim does not jit the function that this line calls. Jit this function once: jitted = jax.jit(sim.draw"
            ],
        ),
        (None, "jax.numpy", ["if sim only reads the arrays, pass NumPy arrays (np.asarray)"]),
        ("sim.draw(key, 4)", "jax.random", []),
        (
            "float(x)",
            "jax.random",
            [
                "sim does not jit the function that this line calls. Jit this function once: jitted = jax.jit(sim.draw"
            ],
        ),
    ],
)
def test_only_a_library_that_computes_and_reads_no_value_can_be_jitted(run, at_line_2, text, module, fixes):
    site = at_line_2("import sim\nx = sim.draw(key, 4)\n")
    log = Log(run, transfers=True)
    for n in range(10):
        f = function(f"f{n}", None, None, library=True, module=module if n < 5 else "jax.numpy")
        log.say(f)
        log.compiled(f, key(leaf("x", 1)), (0.0, 0.0, 1.0), site=site, into_library=0, library="sim")
    if text is not None:
        log.say(copied(count=3, site=site, text=text, steps=None))
    log.end()
    found = [words.fix_text(f) for f in barrage(run)]
    assert [f[: len(start)] for f, start in zip(found, fixes, strict=True)] == fixes


def test_an_object_that_a_librarys_function_is_given_anew_is_named(run):
    file = "/lib/site-packages/diffrax/solve.py"
    solve = function("diffeqsolve", file, 9, library=True, module="diffrax.solve")
    log = Log(run)
    log.say(solve)
    for n in (1, 2, 3):
        field = Static("terms.vector_field", "<function f>", "function", compares="identity", serial=n)
        made = key(leaf("y0", 3), static=[field])
        log.compiled(solve, made, (0.0, 0.0, 1.0), line=12, into_library=0, library="equinox")
    log.end()
    [f] = barrage(run)
    assert words.fix_text(f).startswith(
        "diffrax gets a new object as its argument terms.vector_field in each call. Create this object once, outside the code"
    )


@pytest.mark.parametrize(
    ("sizes", "fixes"),
    [((3, 3), ["diffrax gets a new object as its argument terms.vector_field in each call"]), ((3, 4), [])],
    ids=["of equal inputs", "of others"],
)
def test_what_two_calls_of_one_function_create_again_could_be_created_once(run, sizes, fixes):
    solve = function(
        "diffeqsolve", "/lib/site-packages/diffrax/solve.py", 9, library=True, module="diffrax.solve"
    )
    log = Log(run)
    log.say(solve)
    for n, size in enumerate(sizes):
        field = Static("terms.vector_field", "<function f>", "function", compares="identity", serial=n)
        made = key(leaf("y0", size), static=[field])
        above = [Frame(f"{CWD}/train.py", 40 + n, "<module>")]
        log.compiled(solve, made, (0.0, 0.0, 1.0), line=12, stack=above, into_library=0, library="diffrax")
    log.end()
    found = [words.fix_text(f) for f in barrage(run)]
    assert [f[: len(start)] for f, start in zip(found, fixes, strict=True)] == fixes


def test_operations_beside_a_function_that_recompiles_for_its_size_are_part_of_that_finding(run):
    log = Log(run)
    log.say(STEP)
    log.say(ADD)
    for n in (1, 2, 3, 4):
        log.compiled(ADD, key(leaf("x", n)), (0.0, 0.0, 1.0), line=30, into_library=0, library="jax")
        log.compiled(STEP, key(leaf("x", n)), (0.0, 0.0, 1.0), line=30)
    log.end()
    assert barrage(run) == []
    assert "JX101" in {f.code for f in findings(load(run))}


GROWING = """
for n in range(9):
    longer = concatenate(start + parts)
    y = step(longer)
    parts.append(y[-1:])
for n in range(9):
    z = longer[n:]
"""


@pytest.mark.parametrize(
    ("line", "kinds", "sizes", "number"),
    [
        (3, "tree", 12, 0),
        (5, "shape", 12, 0),
        (5, "shape", 2, 1),  # the operations are compiled for many more sizes than the function
        (7, "shape", 12, 1),
    ],
)
def test_operations_in_the_loop_of_a_function_that_recompiles_for_its_size_have_that_root(
    tmp_path, run, line, kinds, sizes, number
):
    program = tmp_path / "train.py"
    program.write_text(GROWING)
    log = Log(run)
    log.say(ev.SourceSeen(file=str(program), sha256=hashlib.sha256(GROWING.encode()).hexdigest()))
    log.say(STEP)
    log.say(ADD)
    at = {"into_library": 0, "library": "jax", "stack": []}
    for n in range(1, 13):
        leaves = (
            [leaf("x", 2), *(leaf(f"x[{i}]", 1) for i in range(n))] if kinds == "tree" else [leaf("x", n)]
        )
        site = Frame(str(program), line, "<module>")
        log.compiled(ADD, key(*leaves, tree=str(len(leaves))), (0.0, 0.0, 1.0), site=site, **at)
        if n <= sizes:
            took = (0.0, 0.0, 12.0 / sizes)
            log.compiled(STEP, key(leaf("x", n)), took, site=Frame(str(program), 4, "<module>"))
    log.end()
    assert len(barrage(run)) == number


def test_a_librarys_function_that_gets_back_another_type_is_to_be_started_with_it(run):
    update = function("Solver.update", "/lib/site-packages/jaxopt/base.py", 9, library=True)
    log = Log(run)
    log.say(update)
    for weak in (True, False):
        theta = key(leaf("params", weak_type=weak))
        log.compiled(update, theta, (0.0, 0.0, 1.0), line=12, into_library=0, library="jax")
    log.end()
    [f] = barrage(run)
    assert "; 1 of them is a recompile, because params is no longer weakly typed" in words.title(f)
    assert (
        words.fix_text(f)
        == "in every call, including the first, pass params as an array that is not weakly typed: jnp.asarray(params, 'float32')"
        and f.seconds == 1.0
    )


PROGRAM = """
def fit(x):
    return solver.run(x)

fit(train), fit(test)
fit(train)
for x in data:
    fit(x)
"""


@pytest.mark.parametrize(("lines", "again"), [([5], False), ([5, 6], False), ([8], True)])
def test_what_one_call_compiles_for_several_sizes_is_not_compiled_again(tmp_path, run, lines, again):
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    log = Log(run)
    log.say(ev.SourceSeen(file=str(program), sha256=hashlib.sha256(PROGRAM.encode()).hexdigest()))
    ops = [function(name, None, None, eager=True, form="primitive") for name in ("add", "mul", "exp")]
    for op in ops:
        log.say(op)
    for line in lines:
        above = {"site": Frame(str(program), 3, "fit"), "stack": [Frame(str(program), line, "<module>")]}
        for n in (8, 9):
            for op in ops:
                log.compiled(
                    op, key(leaf("x", n)), (0.0, 0.0, 1.0), into_library=0, library="jaxopt", **above
                )
    log.end()
    assert [("pad the data" in words.fix_text(f)) for f in barrage(run)] == [True] * again


def test_lines_that_a_library_calls_count_for_the_line_that_called_the_library(run):
    log = Log(run)
    log.say(ADD)
    main = Frame(f"{CWD}/train.py", 31, "main")
    for n in range(25):
        where = {"line": 8 + n % 3, "stack": [main], "into_library": 1, "library": "haiku"}
        log.compiled(ADD, key(leaf("x", n)), (0.0, 0.0, 0.01), **where)
    log.end()
    [f] = barrage(run)
    assert (f.source.line, f.evidence[0].source.line) == (31, 8)
    assert words.fix_text(f) == (  # no example, because the source of the line is unknown
        "jit what this line calls, once, and call the jitted function here. The sizes of arrays change: pad the"
        " arrays to one of a few fixed sizes, and mask the padding"
    )


def test_what_a_jitted_function_computes_while_it_is_traced_is_not_to_be_jitted_again(run):
    log = Log(run)
    log.say(ADD)
    log.say(STEP)
    for n in range(25):
        above = {"stack": [Frame(f"{CWD}/train.py", 31, "main")], "into_library": 1, "library": "jax"}
        log.compiled(ADD, key(leaf("x", n)), (0.0, 0.0, 1.0), line=8, **above)
    log.compiled(STEP, key(leaf("x", 1)), (0.0, 0.0, 1.0), line=31)
    log.end()
    assert barrage(run) == []


LOOPED = """
def step(x):
    g = grad(x)
    return update(g)

for x in data:
    v = value(x)
    u = change(v)

for x in data:
    step(x)
"""


def test_lines_of_one_loop_whose_sizes_change_are_one_finding_with_the_advice_of_one_size(tmp_path, run):
    program = tmp_path / "train.py"
    program.write_text(LOOPED)
    log = Log(run)
    log.say(ev.SourceSeen(file=str(program), sha256=hashlib.sha256(LOOPED.encode()).hexdigest()))
    ops = [function(f"op{n}", None, None, eager=True, form="primitive") for n in range(4)]
    for op in ops:
        log.say(op)
    for size in (8, 9, 10):
        for line, op in ((7, ops[0]), (7, ops[1]), (8, ops[2]), (8, ops[3])):
            site = Frame(str(program), line, "<module>")
            log.compiled(op, key(leaf("x", size)), (0.0, 0.0, 1.0), site=site, stack=[], into_library=0)
    log.end()
    (f,) = barrage(run)
    assert "lines 7 and 8 in the loop" in words.title(
        f
    ) and "because the sizes of the arrays change" in words.title(f)
    assert "pad the arrays to one size" in words.fix_text(f) and f.seconds == 8.0


@pytest.mark.parametrize(
    ("lines", "one", "advice"),
    [
        ([(7, None), (8, None)], True, "put the computation of one iteration of the loop"),
        ([(3, 11), (4, 11)], True, "jit to step as a whole"),
        ([(7, None), (3, 11)], False, "jit"),
    ],
)
def test_lines_that_each_turn_of_a_loop_runs_are_one_finding(tmp_path, run, lines, one, advice):
    program = tmp_path / "train.py"
    program.write_text(LOOPED)
    log = Log(run)
    log.say(ev.SourceSeen(file=str(program), sha256=hashlib.sha256(LOOPED.encode()).hexdigest()))
    ops = [function(f"op{n}", None, None, eager=True, form="primitive") for n in range(12)]
    for op in ops:
        log.say(op)
    for line, caller in lines:
        site = Frame(str(program), line, "step" if caller else "<module>")
        stack = [Frame(str(program), caller, "<module>")] if caller else []
        for op in ops:
            log.compiled(op, key(leaf("x", line)), (0.0, 0.0, 1.0), site=site, stack=stack, into_library=0)
    log.end()
    found = barrage(run)
    assert [f.seconds for f in found] == ([24.0] if one else [12.0, 12.0])
    assert all(advice in words.fix_text(f) for f in found)
    if advice == "jit to step as a whole":
        assert "lines 3 and 4 of step (called in the loop at" in words.title(found[0])
    assert ("caused 24 compilations outside jit" in words.title(found[0])) is one


HELPED = """import jax.numpy as jnp

def helper(x):
    y = x + 1
    return y * 2

def step(x):
    y = helper(x)
    return y - 1

for i in range(9):
    x = step(x)
"""


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        ([4, 5], "lines 4 and 5 of helper (called through step in the loop at train.py:11) caused"),
        ([4, 9], "lines 4 and 9 of helper and step (called in the loop at train.py:11) caused"),
    ],
)
def test_lines_of_a_helper_are_not_called_lines_of_its_caller(tmp_path, run, lines, title):
    program = tmp_path / "train.py"
    program.write_text(HELPED)
    log = Log(run)
    log.say(ev.SourceSeen(file=str(program), sha256=hashlib.sha256(HELPED.encode()).hexdigest()))
    ops = [function(f"op{n}", None, None, eager=True, form="primitive") for n in range(12)]
    for op in ops:
        log.say(op)
    calls = [Frame(str(program), 8, "step"), Frame(str(program), 12, "<module>")]
    for line in lines:
        site = Frame(str(program), line, "helper" if line < 7 else "step")
        stack = calls if line < 7 else calls[1:]
        for op in ops:
            log.compiled(op, key(leaf("x", line)), (0.0, 0.0, 1.0), site=site, stack=stack, into_library=0)
    log.end()
    (f,) = barrage(run)
    assert words.title(f).startswith(title)


@pytest.mark.parametrize("seconds", [(0.1, 3.0), (3.0, 0.1)])
def test_the_advice_for_a_line_does_not_depend_on_the_seconds_of_its_causes(run, seconds):
    solve = function("Solver.run", "/lib/site-packages/jaxopt/base.py", 9, library=True, module="jaxopt.base")
    log = Log(run)
    log.say(solve)
    log.say(ADD)
    at = {"line": 12, "into_library": 0, "library": "jaxopt"}
    for n in range(1, 4):
        log.compiled(solve, key(leaf("x", 3), function_object=n), (0.0, 0.0, seconds[0]), **at)
    for dtype in ("float32", "int32", "float16", "int8", "uint8"):
        log.compiled(ADD, key(leaf("x", 3, dtype=dtype)), (0.0, 0.0, seconds[1]), **at)
    log.end()
    [f] = barrage(run)
    assert "because this line creates new function objects each time" in words.title(f)


CALLED_BACK = """
def show(n, info):
    kept = info[info > 0]
    for x in kept:
        print(n, x)


@jax.jit
def step(x):
    jax.debug.callback(partial(show, 2), x)
    return x

def other(info):
    kept = info[info > 0]
    return callback(other, kept)
"""


@pytest.mark.parametrize(
    ("lines", "titles"),
    [
        ([3, 4], ["lines 3 and 4 of show (a callback of a compiled program)"]),
        ([4], ["line 4 of show (a callback of a compiled program)"]),
        ([3, 14], ["line 3 of show (a callback of a compiled program)", "line 14"]),
    ],
)
def test_the_lines_of_a_callback_are_one_finding_with_the_advice_to_use_numpy(tmp_path, run, lines, titles):
    program = tmp_path / "train.py"
    program.write_text(CALLED_BACK)
    log = Log(run)
    log.say(ev.SourceSeen(file=str(program), sha256=hashlib.sha256(CALLED_BACK.encode()).hexdigest()))
    for n in range(12):
        op = function(f"op{n}", None, None, eager=True, form="primitive")
        log.say(op)
        for line in lines:
            site = Frame(str(program), line, "show")
            log.compiled(op, key(leaf("x", line)), (0.0, 0.0, 1.0), site=site, stack=[], into_library=0)
    log.end()
    found = sorted(barrage(run), key=lambda f: f.source.line)
    assert [words.title(f).partition(" caused ")[0] for f in found] == titles
    assert "use NumPy in show" in words.fix_text(found[0])


def test_a_line_with_nearly_all_compilations_of_its_loop_is_reported_alone(tmp_path, run):
    program = tmp_path / "train.py"
    program.write_text(LOOPED)
    log = Log(run)
    log.say(ev.SourceSeen(file=str(program), sha256=hashlib.sha256(LOOPED.encode()).hexdigest()))
    for n in range(24):
        op = function(f"op{n}", None, None, eager=True, form="primitive")
        log.say(op)
        site = Frame(str(program), 8 if n == 23 else 7, "<module>")
        log.compiled(op, key(leaf("x", 8)), (0.0, 0.0, 1.0), site=site, stack=[], into_library=0)
    log.end()
    [f] = barrage(run)
    assert "line 7 caused 23 compilations outside jit" in words.title(f)


@pytest.mark.parametrize("seconds", [(2.0, 1.0), (1.0, 2.0)])
def test_a_few_operations_in_each_line_of_a_loop_are_one_finding_whose_id_no_clock_decides(
    tmp_path, run, seconds
):
    program = tmp_path / "train.py"
    program.write_text(LOOPED)
    log = Log(run)
    log.say(ev.SourceSeen(file=str(program), sha256=hashlib.sha256(LOOPED.encode()).hexdigest()))
    for n in range(12):
        op = function(f"op{n}", None, None, eager=True, form="primitive")
        log.say(op)
        site = Frame(str(program), (7, 8)[n % 2], "<module>")
        log.compiled(op, key(leaf("x", 8)), (0.0, 0.0, seconds[n % 2]), site=site, stack=[], into_library=0)
    log.end()
    [f] = barrage(run)
    assert (f.source.line, f.subject) == (7, (str(program), 6))
    assert not list(without_finding(load(run)))


@pytest.mark.parametrize(("draws", "created"), [(3, True), (2, False)])
@pytest.mark.parametrize("seconds", [0.01, 100.0])  # of a draw
def test_the_draws_of_parameters_do_not_count(run, draws, created, seconds):
    """Random draws have to be compiled under jit, too, so jit saves the seconds of the other operations."""
    log = Log(run)
    for n in range(12):
        module, spent = ("jax._src.random.core", seconds) if n < draws else ("jax._src.dispatch", 1.0)
        op = function(f"op{n}", None, None, library=True, module=module)
        log.say(op)
        log.compiled(op, key(leaf("x", n)), (0.0, 0.0, spent), line=12, into_library=0, library="flax")
    log.end()
    found = barrage(run)
    if created and seconds == 100.0:  # 9 of 309 seconds
        assert not found
    else:
        others = 12 - draws
        assert [f.severity for f in found] == ["note"]
        assert found[0].seconds == pytest.approx(others if created else others + draws * seconds)


@pytest.mark.parametrize("share", [0.0001, 0.5])
@pytest.mark.parametrize(("repeats", "severities"), [(19, ["note"]), (20, ["warning"])])
def test_the_number_of_recompiles_decides_what_fails_a_check_and_no_clock(run, repeats, severities, share):
    log = Log(run)
    log.say(STEP)
    log.say(WHILE)
    log.compiled(STEP, key(leaf("x", 1)), (0.0, 0.0, 100.0), line=30)
    for body in range(1 + repeats):
        made = key(leaf("x", 1), function_object=1 + body)
        log.compiled(WHILE, made, (0.0, 0.0, 100.0 * share / (1 + repeats)), line=12)
    log.end()
    shown = severities == ["warning"] or share > 0.1
    assert [f.severity for f in barrage(run)] == (severities if shown else [])


def of_library(run, library, sizes):
    log = Log(run)
    ops = [
        function(name, None, None, eager=True, form="primitive")
        for name in ("add", "mul", "exp", "sin", "cos")
    ]
    for op in ops:
        log.say(op)
    for n in sizes:
        for op in ops:
            log.compiled(op, key(leaf("x", n, 2)), (0.0, 0.0, 0.01), line=8, into_library=0, library=library)
    log.end()
    return [words.fix_text(f) for f in barrage(run)]


def test_a_solver_whose_data_grow_is_not_to_be_jitted_but_given_one_size(run):
    [fix] = of_library(run, "jaxopt", range(50, 90, 10))
    assert "pad the data" in fix and "jit" not in fix


def test_a_sampler_that_is_compiled_in_each_run_is_to_run_inside_a_jitted_function(run):
    [fix] = of_library(run, "numpyro", range(50, 90, 10))
    assert (
        fix.startswith("pad the data")
        and "write one function that creates the object of numpyro" in fix
        and "jax.jit" in fix
    )
    assert "that this line calls" not in fix


def test_a_sampler_that_compiles_what_it_needs_once_has_no_advice(run):
    log = Log(run)
    for n in range(25):
        op = function(f"op{n}", None, None, eager=True, form="primitive")
        log.say(op)
        log.compiled(op, key(leaf("x", 50)), (0.0, 0.0, 0.01), line=8, into_library=0, library="numpyro")
    log.end()
    assert barrage(run) == []


def test_a_package_that_may_only_read_arrays_is_to_be_given_numpys(run):
    [fix] = of_library(run, "matplotlib", range(50, 90, 10))
    assert fix.startswith("if matplotlib only reads the arrays, pass NumPy arrays (np.asarray)")


FITTING = """
from fitting import model
shape = model.default_shape
net = Network(8)
print(model.fit(shape))
"""


@pytest.mark.parametrize(
    ("line", "jits", "advice"),
    [
        (2, False, []),  # a package that computes while it is imported
        (3, False, []),  # an attribute that is computed
        (4, False, []),  # an object of a class: what jit returns are arrays
        (
            5,
            False,
            [
                "fitting does not jit the function that this line calls. Jit this function once: jitted = jax.jit(model.fit) (if some of its"
            ],
        ),
        (5, True, []),  # the line's method jits its parts: it is a loop in Python
    ],
)
def test_a_package_that_computes_is_not_to_be_given_numpys(tmp_path, run, line, jits, advice):
    program = tmp_path / "train.py"
    program.write_text(FITTING)
    log = Log(run)
    log.say(ev.SourceSeen(file=str(program), sha256=hashlib.sha256(FITTING.encode()).hexdigest()))
    search = function(
        "search", "/lib/site-packages/fitting/search.py", 9, module="fitting.search", library=True
    )
    log.say(search)
    site = Frame(str(program), line, "<module>")
    if jits:
        log.compiled(search, key(leaf("x", 3)), site=site, into_library=0, library="fitting")
    for n in range(25):
        op = function(f"op{n}", None, None, eager=True, form="primitive")
        log.say(op)
        log.compiled(op, key(leaf("x", 3)), (0.0, 0.0, 1.0), site=site, into_library=0, library="fitting")
    log.end()
    assert [words.fix_text(f)[: len(a)] for f, a in zip(barrage(run), advice, strict=True)] == advice


def test_functions_that_jax_calls_may_be_jitted_too(tmp_path, run):
    program = tmp_path / "train.py"
    program.write_text("def loss(x):\n    return x.sum()\n\n\nprint(jax.vmap(loss)(x))\n")
    log = Log(run)
    log.say(ev.SourceSeen(file=str(program), sha256=hashlib.sha256(program.read_bytes()).hexdigest()))
    log.say(ADD)
    above = {"stack": [Frame(str(program), 5, "<module>")], "into_library": 1, "library": "jax"}
    for n in range(25):
        log.compiled(ADD, key(leaf("x", n)), (0.0, 0.0, 1.0), site=Frame(str(program), 2, "loss"), **above)
    log.end()
    [f] = barrage(run)
    assert words.fix_text(f) == (
        "jit the function that this line calls, once: jitted = jax.jit(jax.vmap(loss)), and call the jitted function here"
    )


def test_functions_of_the_users_that_jax_calls_cannot_be_computed_in_numpy(tmp_path, run):
    program = tmp_path / "train.py"
    program.write_text("def f(x):\n    return x.sum()\n\n\ny, back = jax.vjp(f, *args)\n")
    log = Log(run)
    log.say(ev.SourceSeen(file=str(program), sha256=hashlib.sha256(program.read_bytes()).hexdigest()))
    log.say(ADD)
    above = {"stack": [Frame(str(program), 5, "main")], "into_library": 1, "library": "jax"}
    for n in range(25):
        log.compiled(ADD, key(leaf("x", n)), (0.0, 0.0, 1.0), site=Frame(str(program), 2, "f"), **above)
    log.end()
    [f] = barrage(run)
    assert words.fix_text(f) == "move the computation of this line (in main) into one jitted function"


def test_a_log_that_does_not_say_where_a_library_was_called_has_the_innermost_line(run):
    log = Log(run)
    log.say(ADD)
    for n in range(25):
        log.compiled(ADD, key(leaf("x", n)), (0.0, 0.0, 0.01), line=8)
    log.end()
    [f] = barrage(run)
    assert f.source.line == 8 and "compute it in NumPy" in words.fix_text(f)


def test_the_costliest_recompile_inside_a_library_is_named_with_its_cause(run):
    log = Log(run)
    log.say(LOOP)
    for spent, body in ((6.2, 1), (10.6, 2), (3.9, 3)):
        made = Static("_body_fn", "<function _body_fn>", "function", compares="identity", serial=body)
        log.compiled(LOOP, key(leaf("x", 1), static=[made]), (0.0, 0.0, spent), line=12)
    log.end()
    to = io.StringIO()
    print_report(load(run), file=to)
    for said in (" ".join(to.getvalue().split()), " ".join(summary(run).split())):
        assert (
            "costliest recompile outside your jitted functions: _fori_collect_loop #2 the static argument '_body_fn' is a new function object"
            in said
        )


def test_first_programs_of_a_librarys_function_are_no_recompiles_in_any_part_of_the_report(run):
    log = Log(run)
    log.say(LOOP)
    for line, shape in ((12, 8), (14, 16), (16, 32)):
        log.compiled(LOOP, key(leaf("x", shape)), (0.0, 0.0, 2.0), line=line)
    log.end()
    to = io.StringIO()
    print_report(load(run), file=to)
    for text in (to.getvalue(), summary(run)):
        assert "spent recompiling" not in text and "costliest recompile" not in text


def test_recompiles_outside_the_users_functions_are_counted_and_first_compilations_are_listed(run):
    log = Log(run)
    log.say(STEP)
    log.say(WHILE)
    log.compiled(STEP, key(leaf("x", 1)), (0.0, 0.0, 8.0), line=30)
    for body in (1, 2, 3):
        log.compiled(WHILE, key(leaf("x", 1), function_object=body), (0.0, 0.0, 1.0), line=12)
    log.end()
    to = io.StringIO()
    print_report(load(run), file=to)
    report = " ".join(to.getvalue().split())
    assert "2.0 s spent recompiling outside your jitted functions (2 of 3 compilations there)" in report
    assert "Long first compilations that no finding is about: step: 8.0 s" in report
    assert "1 compilation of your functions, 3 others (2 recompiles)" in " ".join(summary(run).split())


def test_first_compilations_of_a_function_do_not_count_those_of_operations_on_its_line(run):
    log = Log(run)
    log.say(STEP)
    log.say(WHILE)
    log.compiled(STEP, key(leaf("x", 1)), (0.0, 0.0, 8.0), line=30)
    log.compiled(WHILE, key(leaf("x", 1)), (0.0, 0.0, 0.5), line=30)
    log.end()
    (found,) = without_finding(load(run))
    assert found[1:] == ("step", "8.0 s")


def test_the_evidence_has_what_each_function_took_and_why_it_recompiled(run):
    log = Log(run)
    mul = function("mul", None, None, eager=True, form="primitive")
    log.say(ADD)
    log.say(mul)
    site = Frame(f"{CWD}/train.py", 8, "main.<locals>.init.<locals>.<listcomp>")
    for n in range(10):
        log.compiled(ADD, key(leaf("x", n)), (0.0, 0.0, 0.5), site=site)
    log.compiled(mul, key(leaf("x", 1)), (0.0, 0.0, 0.25), site=site)
    log.end()
    [f] = barrage(run)
    assert [words.evidence(e) for e in f.evidence] == [
        "add: 10 compilations, 5.0 s; for example, x changed from f32[0] to f32[1]",
        "mul: 1 compilation, 0.25 s",
    ]


def test_the_fix_names_the_function_that_the_line_is_in(run):
    log = Log(run)
    site = Frame(f"{CWD}/train.py", 8, "main.<locals>.init.<locals>.<listcomp>")
    for n in range(10):
        op = function(f"op{n}", None, None, eager=True, form="primitive")
        log.say(op)
        log.compiled(op, key(leaf("x", 4)), (0.0, 0.0, 0.5), site=site)
    log.end()
    [f] = barrage(run)
    assert words.fix_text(f) == (
        "move the computation of this line (in main.init) into one jitted function, or do it in NumPy"
    )


SOLVE = function("solve", "/lib/tuner/solve.py", 9, library=True, module="tuner.solve")


@pytest.mark.parametrize(("sizes", "again"), [((8, 8), 1), ((8, 4), 0)])
def test_an_object_that_is_created_again_for_other_sizes_is_not_compiled_again(tmp_path, run, sizes, again):
    program, text = tmp_path / "train.py", "trainer.run()\n"
    program.write_text(text)
    log, site = Log(run), Frame(str(program), 1, "<module>")
    log.say(ev.SourceSeen(file=str(program), sha256=hashlib.sha256(text.encode()).hexdigest()))
    log.say(SOLVE)
    for made, size in enumerate(sizes, 1):
        log.compiled(
            SOLVE,
            key(leaf("x", size), function_object=made),
            program=f"of size {size}",
            cache="off",
            site=site,
            into_library=0,
            library="tuner",
        )
    log.end()
    found = [f for f in barrage(run) if "creates new function objects" in words.title(f)]
    assert len(found) == again
    [line] = as_json(load(run))["outside_jit"]
    assert (line["compilations"], line["recompiles"]) == (2, again)


def test_the_seconds_of_operations_that_other_lines_may_need_are_an_upper_bound(run):
    log = Log(run)
    log.say(ADD)
    for n in range(25):
        log.compiled(ADD, key(leaf("x", n)), (0.0, 0.0, 0.1), line=12)
    log.end()
    model = load(run)
    [finding] = [entry for entry in as_json(model)["findings"] if entry["code"] == "JX133"]
    assert finding["at_most"] and finding["seconds"] == pytest.approx(2.4)
    print_report(model, file=(to := io.StringIO()))
    assert "up to 2.4 s" in " ".join(to.getvalue().split())
