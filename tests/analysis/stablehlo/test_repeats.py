"""Stretches of a sequence that repeat, and which of them are loops written out."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis.stablehlo import periods, reading


def spans(sequence, least=3):
    return [(s.start, s.period, s.times) for s in periods.find(sequence, least)]


def test_turns_of_several_operations_are_counted_whole():
    assert spans([9, *[1, 2, 3, 4] * 5, 8]) == [(1, 4, 5)]
    assert spans([*[1, 2, 3, 4] * 5, 1, 2]) == [(0, 4, 5)]


def test_the_shortest_period_is_the_turn():
    assert spans([1, 2] * 12) == [(0, 2, 12)]


def test_a_turn_that_repeats_within_itself_is_one_turn():
    turn = [1, 1, 1, 2, 3, 2, 3, 4]
    assert spans(turn * 6)[0] == (0, 8, 6)


def test_two_loops_are_two():
    assert spans([*[1, 2, 3] * 6, 7, *[4, 5] * 8]) == [(0, 3, 6), (19, 2, 8)]


def test_fewer_turns_than_requested_are_none():
    assert spans([1, 2, 3, 1, 2, 3]) == []
    assert spans([]) == [] and spans([1]) == [] and spans([1, 1, 1]) == [(0, 1, 3)]


@given(st.lists(st.integers(0, 3), max_size=80), st.integers(2, 4))
def test_what_is_found_does_repeat_and_does_not_overlap(sequence, least):
    found = periods.find(sequence, least)
    for s in found:
        turn = sequence[s.start : s.start + s.period]
        assert s.times >= least
        assert sequence[s.start : s.end] == turn * s.times
    ordered = sorted(found, key=lambda s: s.start)
    assert all(a.end <= b.start for a, b in itertools.pairwise(ordered))


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
    st.integers(3, 9),
    st.lists(st.integers(10, 15), max_size=5),
    st.lists(st.integers(20, 25), max_size=5),
)
def test_a_planted_loop_is_found(turn, times, before, after):
    best = periods.find([*before, *turn * times, *after])
    assert sum(s.period * s.times for s in best) >= len(turn) * (times - 1)


def program(turns, lines=lambda k: (5, 6), extra=""):
    """``turns`` of a matrix product and a sine, each on its own line of the user's ``net``."""
    body, x = [], "%arg0"
    for k in range(turns):
        a, b = lines(k)
        body.append(f"%{2 * k} = stablehlo.dot_general {x}, %arg1 : (T, T) -> T loc(#l{a})")
        body.append(f"%{2 * k + 1} = stablehlo.sine %{2 * k} : T loc(#l{b})")
        x = f"%{2 * k + 1}"
    locations = "".join(
        f'#f{n} = loc("/u/net.py":{n}:3)\n#n{n} = loc("net"(#f{n}))\n#c{n} = loc(callsite(#n{n} at #main))\n'
        f'#l{n} = loc("jit(f)/op"(#c{n}))\n'
        for n in range(1, 40)
    )
    text = (
        '#mf = loc("/u/train.py":70:1)\n#main = loc("main"(#mf))\n' + locations + "module @m {\n"
        "func.func public @main(%arg0: T, %arg1: T) -> T {\n"
        + "\n".join(body)
        + "\n"
        + extra
        + f"\nreturn {x} : T\n}}\n}}\n"
    )
    return text.replace("T", "tensor<4x4xf32>")


def told(text):
    return [
        (r.times, r.length, r.source and (r.source.file, r.source.line))
        for r in reading.analyze(text).repeated
    ]


def test_a_function_that_is_nothing_but_the_loop_is_reported_by_its_call():
    assert told(program(12)) == [(12, 2, ("/u/train.py", 70))]


def test_where_the_function_does_more_the_loops_body_is_reported():
    more = "%90 = stablehlo.tanh %0 : T loc(#l20)"
    assert told(program(12, extra=more)) == [(12, 2, ("/u/net.py", 5))]


def test_a_few_operations_that_repeat_are_no_loop():
    assert told(program(11)) == []


def test_one_expression_that_expands_to_a_repetition_is_jaxs_own():
    assert told(program(12, lines=lambda k: (5, 5))) == []


def test_without_locations_there_is_a_loop_and_no_line():
    text = "\n".join(line.partition(" loc(")[0] for line in program(12).split("\n"))
    assert told(text) == [(12, 2, None)]


def test_a_loop_in_a_librarys_code_without_a_line_of_the_user_is_only_counted():
    library, jax = (f"/v/site-packages/{name}/file.py" for name in ("numpyro", "jax"))
    text = program(12).replace("/u/net.py", library).replace("/u/train.py", library)
    read = reading.analyze(text)
    assert (read.repeated, read.unknown_loop_times) == ((), 12)
    read = reading.analyze(text.replace(library, jax))
    assert (read.repeated, read.unknown_loop_times) == ((), 0)


def test_slices_at_other_places_and_other_constants_do_not_tell_turns_apart():
    lines, x = [], "%arg0"
    for k in range(12):
        lines += [
            f"%c{k} = stablehlo.constant dense<{k}.0> : tensor<f32>",
            f"%b{k} = stablehlo.broadcast_in_dim %c{k}, dims = [] : (tensor<f32>) -> tensor<4xf32>",
            f"%s{k} = stablehlo.slice %arg1 [{k}:{k + 1}, 0:4] : (tensor<12x4xf32>) -> tensor<1x4xf32>",
            f"%r{k} = stablehlo.reshape %s{k} : (tensor<1x4xf32>) -> tensor<4xf32>",
            f"%m{k} = stablehlo.multiply %r{k}, %b{k} : tensor<4xf32>",
            f"%a{k} = stablehlo.add {x}, %m{k} : tensor<4xf32>",
        ]
        x = f"%a{k}"
    text = "module @m {\nfunc.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<12x4xf32>) -> tensor<4xf32> {\n"
    (loop,) = reading.analyze(text + "\n".join(lines) + "\n}\n}\n").repeated
    assert (loop.times, loop.length, loop.carried) == (12, 5, True)


def lengthened(sizes):
    """A program that computes with arrays of these sizes, one after the other."""
    lines, last = [], "%arg0"
    for k, n in enumerate(sizes):
        lines += [
            f"  %a{k} = stablehlo.concatenate {last}, %arg1, dim = 0 :"
            f" (tensor<{n - 1}xf32>, tensor<1xf32>) -> tensor<{n}xf32>",
            f"  %b{k} = stablehlo.tanh %a{k} : tensor<{n}xf32>",
            f"  %c{k} = stablehlo.multiply %b{k}, %b{k} : tensor<{n}xf32>",
            f"  %d{k} = stablehlo.exponential %c{k} : tensor<{n}xf32>",
        ]
        last = f"%d{k}"
    head = (
        "module @m {\nfunc.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<1xf32>) -> tensor<3xf32> {\n"
    )
    return reading.analyze(head + "\n".join(lines) + "\n}\n}\n").repeated


def test_a_loop_whose_arrays_become_longer_is_found():
    (loop,) = lengthened(range(4, 60))
    assert (loop.times, loop.length, loop.carried, loop.grows) == (56, 4, True, True)


def test_layers_of_other_widths_are_no_loop_that_grows():
    assert not any(r.grows for r in lengthened([n for k in range(28) for n in (8 + k % 3, 5)]))
    assert not any(r.grows for r in lengthened(range(4, 11)))
