"""Bytes a call surely moves: never more than its arguments and results, and nothing that need not be touched."""

import pytest
from hlo_cases import CASES, case

from jaxscope.analysis.hlo.program import analyze

NAMES = sorted(p.name.removesuffix(".hlo.txt.gz") for p in CASES.glob("*.hlo.txt.gz"))


def moved(entry, *bodies, header="HloModule jit_f, is_scheduled=true"):
    lines = "\n".join(f"  {line}" for line in entry)
    text = "\n\n".join([header, *bodies, f"ENTRY %main (p: f32[4]) -> f32[4] {{\n{lines}\n}}\n"])
    return analyze(text).moved_bytes


def body(name, *lines):
    return "\n".join([f"%{name} (a: f32[4]) -> f32[4] {{", *(f"  {line}" for line in lines), "}"])


@pytest.mark.parametrize("name", NAMES)
def test_no_recorded_program_moves_more_than_its_arguments_and_results(name):
    found = analyze(case(name))
    most = found.memory.argument_bytes + found.memory.output_bytes
    in_branches = any(
        c.branches for c in found.collectives
    )  # a branch may read a part of its operands, or nothing
    assert (0 if in_branches else most / 2) <= found.moved_bytes <= most


def test_a_value_is_read_once_and_its_result_written_once():
    entry = ["%p = f32[1000] parameter(0)", "%q = f32[1000] parameter(1)",
             "%s = f32[1000] add(%p, %q)", "%t = f32[1000] multiply(%s, %p)", "ROOT %r = f32[1000] negate(%t)"]  # fmt: skip
    assert moved(entry) == 3 * 4000


def test_of_a_table_only_what_is_sliced_from_it_counts():
    table = "%table = f32[50000,128] parameter(0)"
    rows = ["%i = s32[] parameter(1)", "%z = s32[] constant(0)"]
    row = "ROOT %r = f32[1,128] dynamic-slice(%table, %i, %z), dynamic_slice_sizes={1,128}"
    assert moved([table, *rows, row]) == 512 + 512
    fused = body("fused", "%a = f32[50000,128] parameter(0)", "%b = s32[8] parameter(1)",
                 "ROOT %g = f32[8,128] gather(%a, %b), offset_dims={1}")  # fmt: skip
    entry = [table, "%ids = s32[8] parameter(1)",
             "ROOT %r = f32[8,128] fusion(%table, %ids), kind=kLoop, calls=%fused"]  # fmt: skip
    assert moved(entry, fused) == 8 * 128 * 4  # which rows, and how often the same, is data


def test_a_cache_that_one_row_is_written_into_is_neither_read_nor_written_whole():
    fused = body("fused", "%a = f32[4096,128] parameter(0)", "%b = f32[1,128] parameter(1)", "%i = s32[] parameter(2)",
                 "%z = s32[] constant(0)", "ROOT %u = f32[4096,128] dynamic-update-slice(%a, %b, %i, %z)")  # fmt: skip
    entry = ["%cache = f32[4096,128] parameter(0)", "%row = f32[1,128] parameter(1)", "%at = s32[] parameter(2)",
             "ROOT %r = f32[4096,128] fusion(%cache, %row, %at), kind=kLoop, calls=%fused"]  # fmt: skip
    assert moved(entry, fused) == 0  # the row may be computed where it is needed


def test_what_is_handed_through_or_is_at_the_host_does_not_count():
    entry = ["%p = f32[1000] parameter(0)", "%h = f32[1000]{0:S(5)} parameter(1)", "%n = f32[1000] negate(%h)",
             "ROOT %r = (f32[1000], f32[1000]) tuple(%p, %n)"]  # fmt: skip
    assert moved(entry) == 4000


def test_a_loop_reads_of_what_it_slices_one_part_a_trip():
    loop = body("body", "%s = (s32[], f32[8,1000]) parameter(0)", "%i = s32[] get-tuple-element(%s), index=0",
                "%w = f32[8,1000] get-tuple-element(%s), index=1", "%z = s32[] constant(0)", "%one = s32[] constant(1)",
                "%d = f32[1,1000] dynamic-slice(%w, %i, %z), dynamic_slice_sizes={1,1000}",
                "%n = s32[] add(%i, %one)", "ROOT %t = (s32[], f32[8,1000]) tuple(%n, %w)")  # fmt: skip
    condition = body("condition", "%s = (s32[], f32[8,1000]) parameter(0)",
                     "%i = s32[] get-tuple-element(%s), index=0", "%end = s32[] constant(8)",
                     "ROOT %c = pred[] compare(%i, %end), direction=LT")  # fmt: skip

    def entry(trips):
        known = f', backend_config={{"known_trip_count":{{"n":"{trips}"}}}}'
        return ["%w = f32[8,1000] parameter(0)", "%z = s32[] constant(0)", "%t = (s32[], f32[8,1000]) tuple(%z, %w)",
                f"%l = (s32[], f32[8,1000]) while(%t), condition=%condition, body=%body{known}",
                "ROOT %r = s32[] get-tuple-element(%l), index=0"]  # fmt: skip

    assert moved(entry(5), loop, condition) == 5 * 4000
    assert moved(entry(100), loop, condition) == 8 * 4000  # at most all of it


def test_an_unknown_kernel_may_look_at_nothing_and_a_matrix_kernel_looks_at_all():
    def entry(target):
        return ["%p = f32[100,100] parameter(0)", "%q = f32[100,100] parameter(1)",
                f'%c = (f32[100,100], s8[10]) custom-call(%p, %q), custom_call_target="{target}"',
                "ROOT %r = f32[100,100] get-tuple-element(%c), index=0"]  # fmt: skip

    assert moved(entry("tpu_custom_call")) == 0
    assert moved(entry("__cublas$gemm")) == 3 * 40_000


def test_a_text_that_was_cut_has_no_figure():
    assert (
        analyze("HloModule jit_f\n\n%f (a: f32[4]) -> f32[4] {\n  %a = f32[4] parameter(0)\n").moved_bytes
        is None
    )
