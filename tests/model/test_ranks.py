"""Which ranks of a job compiled the same, and where one first differs: on logs written by hand."""

import pytest
from handwritten_runs import Log, exited, function, key, leaf

from jaxscope.log import ranks as places
from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.model import ranks
from jaxscope.present import findings as words
from jaxscope.rules import ranks as rules
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Device

A, B, C, D = "abcd"
TEXT = """#loc = loc(unknown)
module @jit_step {{
  func.func public @main(%arg0: tensor<8xf32> loc("x")) -> (tensor<8xf32>) {{
    %cst = stablehlo.constant dense<{}> : tensor<f32> loc(#loc1)
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8xf32> loc(#loc3)
    %1 = stablehlo.multiply %arg0, %0 : tensor<8xf32> loc(#loc3)
    return %1 : tensor<8xf32> loc(#loc1)
  }} loc(#loc)
}} loc(#loc)
#loc1 = loc("step"("/home/ann/work/train.py":30:4 to :9))
#loc2 = loc("/home/ann/work/train.py":23:4 to :9)
#loc3 = loc("jit(step)/mul"(#loc2))
"""
CALLBACK = 'module {{ %0 = stablehlo.custom_call @python_callback(%arg0) {{backend_config = "{}"}} }}'
HLO = "HloModule m\n%s\n"


def wrote(
    path,
    sequences,
    *,
    settings=None,
    codes=None,
    ends=None,
    devices=None,
    indices=True,
    options=None,
    left=None,
    raised=(),
):
    """Write a job: for each rank its programs, each ``(program, shape, texts, step, devices, entry)`` or the name of one."""
    codes = codes or [0] * len(sequences)
    for n, programs in enumerate(sequences):
        place = places.join(path, "j", n, len(sequences), name="train", options=options or {})
        log = Log(place, pid=1000 + n, how="run")
        log.writer.process_index = n if indices else None
        log.say(
            ev.BackendSeen(
                platform="cpu",
                devices=[Device(i, "cpu", i) for i in range(len(sequences))],
                process_count=len(sequences),
            )
        )
        log.say(ev.ContextSeen(context="c1", settings=(settings or {}).get(n, {"precision": "highest"})))
        known = set()
        for each in programs:
            program, shape, texts, *at = each if isinstance(each, tuple) else (each, 8, {})
            seen = function(program.rstrip("0123456789"), line=20)
            if seen.function not in known:
                known.add(seen.function)
                log.say(seen)
            call = log.missed(
                seen,
                key(leaf("x", shape)),
                step=at[0] if at else None,
                entry=at[2] if len(at) > 2 else "call",
            )
            log.phase(call, "lower", 0.1 * (n + 1), program=program)
            where = at[1] if len(at) > 1 else devices or f"0-{len(sequences) - 1}"
            log.phase(call, "compile", 1.0, program=program, devices=where)
            for stage, text in texts.items():
                blob, size = place.put_text(text)
                log.say(ev.ProgramText(program=program, stage=stage, blob=blob, bytes=size))
        log.now = (left or {}).get(n, log.now)
        if n in raised:
            log.say(ev.Died(error="ValueError"))
        if codes[n] == 0 or n in (left or {}):
            log.end()
        if codes[n] is not None:
            at = (ends or {}).get(n, 134.0)
            exited(
                place,
                codes[n] if codes[n] >= 0 else None,
                pid=1000 + n,
                seconds=at,
                signal=-codes[n] if codes[n] < 0 else None,
            )
    return RunDir(path)


def found(path, sequences, **more):
    job = ranks.read(wrote(path / "j", sequences, **more))
    return job, [(f.code, words.sentence(f)) for f in rules.findings(job)]


def test_ranks_that_compiled_the_same_are_one_group_and_nothing_is_found(tmp_path):
    job, findings = found(tmp_path, [[A, B]] * 4)
    assert [[r.number for r in g] for g in job.groups()] == [[0, 1, 2, 3]] and findings == []
    assert job.missing == [] and [round(r.lower_seconds, 1) for r in job.ranks] == [0.2, 0.4, 0.6, 0.8]


@pytest.mark.parametrize(
    "odd, code, text",
    [
        (
            [A, D, C],
            "JX850",
            "rank 2 compiled d at train.py:140 after a at train.py:140, but the others compiled b at",
        ),
        (
            [A, D, B, C],
            "JX851",
            "rank 2 compiled d at train.py:140 after a at train.py:140; the others did not",
        ),
        ([A, C], "JX851", "rank 2 did not compile b at train.py:140 after a at train.py:140; the others did"),
        ([A, B], "JX851", "rank 2 did not compile c at train.py:140 after b at train.py:140; the others did"),
        (
            [A, B, C, D],
            "JX851",
            "rank 2 compiled d at train.py:140 after c at train.py:140; the others did not",
        ),
        (
            [A, C, B],
            "JX852",
            "rank 2 compiled c at train.py:140 after a at train.py:140, but the others compiled b",
        ),
        ([D], "JX850", "rank 2 compiled d at train.py:140, but the others compiled a at train.py:140"),
    ],
)
def test_the_first_program_that_differs_is_named_with_its_rank_its_line_and_the_one_before(
    tmp_path, odd, code, text
):
    job, findings = found(tmp_path, [[A, B, C], [A, B, C], odd, [A, B, C]])
    ((got, sentence),) = findings
    assert got == code and text in sentence.replace("/home/ann/work/", "")
    assert [[r.number for r in g] for g in job.groups()] == [[0, 1, 3], [2]]


def test_what_one_process_compiles_for_its_own_devices_may_differ(tmp_path):
    _, findings = found(tmp_path, [[A, B], [A]], devices="0")
    assert findings == []


def test_stages_of_a_pipeline_run_different_programs_each_the_same_in_its_processes(tmp_path):
    stages = [
        [(A, 8, {}, None, "0-1")],
        [(A, 8, {}, None, "0-1")],
        [(B, 8, {}, None, "2-3")],
        [(B, 8, {}, None, "2-3")],
    ]
    job, findings = found(tmp_path, stages)
    assert findings == [] and [[r.number for r in g] for g in job.groups()] == [[0, 1], [2, 3]]
    stages[3] = [*stages[3], (C, 8, {}, None, "2-3")]
    _, ((code, sentence),) = found(tmp_path / "odd", stages)
    assert code == "JX851" and sentence.startswith("rank 3 compiled c at train.py:140 after b")


def test_programs_compiled_ahead_of_time_or_by_other_threads_may_come_in_another_order(tmp_path):
    ahead = [(A, 8, {}, None, "0-1", "aot"), (B, 8, {}, None, "0-1", "aot")]
    assert found(tmp_path, [ahead, ahead[::-1]])[1] == []
    _, findings = found(tmp_path / "odd", [ahead, ahead, ahead[:1]], devices="0-2")
    assert [code for code, _ in findings] == []  # rank 2 is none of the processes 0 and 1
    wide = [(*each[:4], "0-2", "aot") for each in ahead]
    _, ((code, sentence),) = found(tmp_path / "more", [wide, wide[::-1], wide[:1]])
    assert code == "JX851" and "rank 2 did not compile b" in sentence


def test_a_program_of_other_shapes_is_shown_with_the_argument_that_differs(tmp_path):
    step1, step2 = ("step1", 8, {}), ("step2", 16, {})
    _, ((code, sentence),) = found(tmp_path, [[step1], [step1], [step2]])
    assert code == "JX850" and "x is f32[16] on rank 2, f32[8] on the others" in sentence


def test_a_program_of_another_constant_is_shown_with_the_line_that_uses_it(tmp_path):
    one, two = (("step" + str(n), 8, {"stablehlo": TEXT.format(f"{n}.000000e+00")}) for n in (1, 2))
    job = ranks.read(wrote(tmp_path / "j", [[one], [two], [one]]))
    (f,) = rules.findings(job)
    assert f.code == "JX850" and f.source.line == 23
    assert "constant dense<2.0> f32 on rank 1, constant dense<1.0> f32 on the others" in words.sentence(f)


def test_programs_that_differ_in_the_numbers_of_callbacks_only_are_the_same(tmp_path):
    programs = [
        [("a" + str(n), 8, {"stablehlo": CALLBACK.format(140_000_000_000_000 + n)})] for n in range(3)
    ]
    assert found(tmp_path, programs)[1] == []


def test_one_program_compiled_to_collectives_in_another_order_is_found(tmp_path):
    gather = '  %a = f32[8]{0} all-gather(%p), channel_id=1, metadata={op_name="x"}'
    reduce = "  %b = f32[8]{0} all-reduce(%q), channel_id=2"
    here, there = ((A, 8, {"hlo": HLO % "\n".join(lines)}) for lines in ([gather, reduce], [reduce, gather]))
    renamed = (A, 8, {"hlo": HLO % "\n".join([gather.replace("%p", "%r").replace('"x"', '"y"'), reduce])})
    _, ((code, sentence),) = found(tmp_path, [[here], [renamed], [there]])
    assert code == "JX854" and "rank 2 compiled a with other collectives" in sentence


def test_a_rank_that_failed_is_named_and_what_it_did_not_come_to_is_no_difference(tmp_path):
    _, findings = found(tmp_path, [[A, B], [A], [A, B]], codes=[-15, 3, -15], ends={1: 2.0})
    ((code, sentence),) = findings
    assert (
        code == "JX853"
        and "rank 1 ended first, with exit code 3; its last compilation was a at" in sentence
        and "2 min 12 s" in sentence
    )


def test_of_ranks_that_were_all_killed_the_one_whose_program_had_not_left_is_named_if_it_was_the_first(
    tmp_path,
):
    """The others raise because of it, and wait at their exit until somebody kills them too."""
    named = []
    for left in ({0: 2.5}, {0: 1.5}, {}, {0: 2.5, 1: 1.9}):
        codes, ends = [-9, -9], {0: 5.0, 1: 2.0}
        job = wrote(tmp_path / str(len(named)), [[A]] * 2, codes=codes, ends=ends, left=left)
        named.append([words.sentence(f) for f in rules.findings(ranks.read(job))])
    raised = wrote(tmp_path / "raised", [[A]] * 2, codes=codes, ends=ends, left={0: 1.5}, raised=[0])
    (after,) = rules.findings(ranks.read(raised))  # the end of rank 1 was recorded 0.5 s late
    assert words.sentence(after).startswith("rank 1 ended first, by signal 9")
    ((sentence,), *others) = named
    assert sentence.startswith("rank 1 ended first, by signal 9; its last compilation was a")
    assert others == [[]] * 3
    assert sentence.endswith("the others continued for 0.50 s")


def test_a_rank_that_leaves_while_another_hangs_in_a_program_of_its_own_has_not_ended_first(tmp_path):
    hangs = {"codes": [-9, -9], "ends": {0: 40.0, 1: 41.0}, "left": {0: 5.0}}
    assert [code for code, _ in found(tmp_path / "more", [[A], [A, B]], **hangs)[1]] == ["JX851"]
    assert [code for code, _ in found(tmp_path / "same", [[A], [A]], **hangs)[1]] == ["JX853"]
    early = {"codes": [0, 0, 0], "left": {0: 30.0, 1: 30.0, 2: 5.0}}
    left = found(tmp_path / "less", [[A, B], [A, B], [A]], **early)[1]
    assert [code for code, _ in left] == ["JX851", "JX853"] and "rank 2 ended first" in left[1][1]


def test_ranks_that_were_killed_together_before_one_came_to_a_program_are_no_difference(tmp_path):
    assert found(tmp_path, [[A, B], [A], [A]], codes=[-15] * 3, ends=dict.fromkeys(range(3), 4.0))[1] == []


def test_no_rank_of_a_job_that_stop_on_divergence_ended_is_said_to_have_ended_first(tmp_path):
    ended = {"codes": [-15, -9], "ends": {0: 4.0, 1: 9.0}}
    jobs = [
        wrote(tmp_path / str(n), [[A, B], [A, C]], options=options, **ended)
        for n, options in enumerate([{"stop-on-divergence": True}, {}])
    ]
    for job in jobs:
        places.write_diverged(job, "jaxscope: JX850 ...")
    assert [[f.code for f in rules.findings(ranks.read(job))] for job in jobs] == [
        ["JX850"], ["JX850", "JX853"]
    ]  # fmt: skip


def test_a_rank_that_hangs_where_the_others_compiled_another_program_is_found(tmp_path):
    _, findings = found(tmp_path, [[A, B], [A, B], [A]], codes=[-15] * 3)
    assert [(code, "did not compile b" in text) for code, text in findings] == [("JX851", True)]


def test_a_program_that_is_compiled_in_another_step_is_found_where_steps_are_counted(tmp_path):
    late, early = [A, (B, 8, {}, 3)], [A, (B, 8, {}, 2)]
    _, ((code, sentence),) = found(tmp_path, [late, late, early])
    assert code == "JX852" and "rank 2 compiled b at train.py:140 in step 2, the others in step 3" in sentence


def test_two_ranks_that_differ_in_the_same_way_are_one_finding(tmp_path):
    _, ((_, sentence),) = found(tmp_path, [[A, B]] * 5 + [[A, D]] * 2)
    assert sentence.startswith("ranks 5, 6 compiled d")


def test_numbers_of_ranks_are_short():
    job = [ranks.Rank(n, None, "exited") for n in range(64)]
    assert ranks.numbers([r for r in job if r.number != 37], job) == "0-63 but 37"
    assert ranks.numbers(job[:3] + job[9:10], job) == "0-2, 9"
    assert ranks.numbers(job[4:6], job) == "4, 5" and ranks.numbers(job[:1], job) == "0"


def test_the_number_of_a_rank_is_jax_s_index_and_else_that_of_the_launcher(tmp_path):
    whole = wrote(tmp_path / "j", [[A], [A]])
    (tmp_path / "j" / "ranks" / "00001").rename(tmp_path / "j" / "ranks" / "host-7")
    job = ranks.read(whole)
    assert [(r.number, r.directory.path.name) for r in job.ranks] == [(0, "00000"), (1, "host-7")]
    (tmp_path / "j" / "ranks" / "host-7").rename(tmp_path / "j" / "ranks" / "00005")
    apart = ranks.read(wrote(tmp_path / "k", [[], []], indices=False))
    assert [r.number for r in apart.ranks] == [0, 1]


def test_ranks_that_recorded_nothing_are_missing(tmp_path):
    whole = wrote(tmp_path / "j", [[A]] * 3)
    for path in (tmp_path / "j" / "ranks" / "00001").rglob("*"):
        if path.is_file():
            path.unlink()
    assert ranks.read(whole).missing == [1] and store.one_process(whole, 2).path.name == "00002"


def test_a_setting_that_is_not_the_same_is_named_before_what_it_changes_in_the_program(tmp_path):
    programs = [[(A, 8, {"stablehlo": TEXT.format(2.0 if n == 1 else 1.0)})] for n in range(3)]
    programs[1] = [("a2", 8, {"stablehlo": TEXT.format("2.0")})]
    _, findings = found(tmp_path, programs, settings={1: {"precision": "default"}})
    assert [text for _, text in findings] == [
        "rank 1 and the others compiled different programs for a at train.py:140; first difference: "
        "the setting precision is default on rank 1, highest on the others"
    ]


@pytest.mark.subprocess
def test_many_ranks_are_read_by_several_processes_with_the_same_result(tmp_path, monkeypatch):
    whole = wrote(tmp_path / "j", [[A, B]] * 7 + [[A, D]])
    alone = ranks.read(whole)
    parents, counted = [], []
    monkeypatch.setattr(ranks, "IN_PART", 2)
    monkeypatch.setattr(ranks.os, "sched_getaffinity", lambda pid: {0, 1, 2}, raising=False)
    monkeypatch.setattr(ranks.threading, "active_count", lambda: 1)
    monkeypatch.delitem(ranks.sys.modules, "jax", raising=False)
    real = ranks.ProcessPoolExecutor

    def pool(number, *more):
        parents.append(number)
        return real(number, *more)

    monkeypatch.setattr(ranks, "ProcessPoolExecutor", pool)
    apart = ranks.read(whole, step=counted.append)
    assert parents == [2] and counted == [2, 4, 6, 8]
    assert [[r.number for r in g] for g in apart.groups()] == [[r.number for r in g] for g in alone.groups()]
    assert [r.seen for r in apart.ranks] == [r.seen for r in alone.ranks]
    keys = {id(s.key) for r in apart.ranks for s in r.seen if s.key is not None}
    assert len(keys) == len({id(s.key) for r in alone.ranks for s in r.seen if s.key is not None})
