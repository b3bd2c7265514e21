"""One function's programs side by side, from logs written by hand: what is marked, what is not, and how wide it gets."""

import io
import re

import msgspec
import pytest
from test_targets_report import GIB, Compiler, done, recorded

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.report import comparison_table, variants
from jaxscope.report.console import console
from jaxscope.report.function import render_function
from jaxscope.report.json_report import as_json
from jaxscope.report.text import render, summary

MESHES = ["8x2", "4x4", "2x8"]


def varied(path, *peaks, outcome="ok", settings=MESHES, **more):
    """One run a peak, the first the run itself; ``outcome`` of the last one."""
    runs = []
    for n, peak in enumerate(peaks):
        where = path if n == 0 else store.sub_run(runs[0], f"MESH={settings[n]}")
        run = recorded(where)
        (run.path / "meta.json").write_text(
            msgspec.json.encode(
                {
                    "name": where.name,
                    "started": n + 1,
                    "argv": ["train.py"],
                    "settings": {"MESH": settings[n]},
                }
            ).decode()
        )
        last = n == len(peaks) - 1
        event = done(run, outcome if last else "ok", **(more if last else {}))
        Compiler(run).say(msgspec.structs.replace(event, peak_bytes=peak))
        runs.append(run)
    return runs[0]


def page(run, width=100, **options):
    to = console(io.StringIO(), width=width)
    render(load(run), to, run, **options)
    return to.file.getvalue()


def row(text, name):
    (found,) = [line for line in text.splitlines() if line.strip().startswith(name + "  ")]
    return re.split(r"  +", found.strip())[1:]


def test_settings_are_columns_and_the_least_is_marked(tmp_path):
    text = page(varied(tmp_path / "r", 3 * GIB, 2 * GIB, 3 * GIB))
    assert row(text, "MESH") == MESHES
    assert row(text, "memory of 15.8 GiB") == ["3.0 GiB", "2.0 GiB ◂", "3.0 GiB"]
    assert row(text, "fusions") == ["0", "0", "0"] and comparison_table.LEGEND in text


def test_where_all_are_the_same_nothing_is_marked(tmp_path):
    text = page(varied(tmp_path / "r", 3 * GIB, 3 * GIB))
    assert "◂" not in text and row(text, "memory of 15.8 GiB") == ["3.0 GiB", "3.0 GiB"]


def test_one_that_does_not_fit_is_never_the_better_one(tmp_path):
    message = "RESOURCE_EXHAUSTED: the total memory required for HLO temporaries (28.75G) exceeds available HBM (15.75G)."
    text = page(varied(tmp_path / "r", 3 * GIB, 2 * GIB, None, outcome="exhausted", error=message))
    assert row(text, "memory of 15.8 GiB") == ["3.0 GiB", "2.0 GiB ◂", "28.8 GiB: does not fit"]
    assert "v5e:4x4, MESH=2x8" in text and "4.0 MiB  argument state.params['dense']" in text
    text = page(varied(tmp_path / "s", 3 * GIB, 20 * GIB))  # compiled, and too large
    assert row(text, "memory of 15.8 GiB") == ["3.0 GiB", "20.0 GiB: does not fit"] and "◂" not in text


def test_one_that_is_not_known_leaves_the_better_one_open(tmp_path):
    run = varied(tmp_path / "r", 3 * GIB, 2 * GIB, None)
    (last,) = [r for r in store.sub_runs(run) if r.settings == [("MESH", "2x8")]]
    Compiler(last).say(msgspec.structs.replace(done(last), memory=None, peak_bytes=None))
    text = page(run)
    assert "◂" not in next(line for line in text.splitlines() if "memory of" in line)


def test_one_that_was_not_compiled_says_so_in_its_column_and_why_below(tmp_path):
    text = page(
        varied(tmp_path / "r", 3 * GIB, 2 * GIB, None, outcome="failed", error="INTERNAL: \x1b[31mno")
    )
    assert row(text, "compiled in") == ["2.5 s", "2.5 s", "not compiled"]
    assert "v5e:4x4, MESH=2x8  not compiled: INTERNAL: " in text and "\x1b" not in text


@pytest.mark.parametrize("width", [40, 60, 80])
def test_columns_that_have_no_room_stand_below_with_the_names_again(tmp_path, width):
    text = page(varied(tmp_path / "r", 3 * GIB, 2 * GIB, 1 * GIB), width=width)
    table = text[text.index("Compiled for") :]
    assert max(map(len, table.splitlines())) <= width
    assert (
        re.findall(r"\d+x\d+", " ".join(ln for ln in table.splitlines() if ln.startswith("    MESH")))
        == MESHES
    )


@pytest.mark.parametrize(
    ("axes", "known", "nothing"),
    [
        (("model",), [("data",)], 0),
        (("model",), [], 0),
        (("model",), [()], 0),  # groups of one
        (("data",), [("data:(1)2",), ("data:(2)2",)], None),
        (("data:(1)2",), [("data",)], None),
        (("data",), [("data", "model")], None),
        (("data",), [None], None),
        (None, [("data",)], 0),
    ],
)
def test_nothing_is_sent_over_axes_only_where_it_is_not_counted_under_another_name(axes, known, nothing):
    assert comparison_table.nothing_over(axes, known) == nothing


def test_a_bound_that_may_be_larger_is_not_the_least():
    sure, unsure = [True, True], [True, False]
    row_ = comparison_table.Row("least time (bound)", ["1 us", "2 us"], [1.0, 2.0], unsure)
    assert comparison_table._marked(row_, [True, True]).cells == [
        "1 us ◂",
        "2 us",
    ]  # the other one can only be more
    assert comparison_table._marked(row_._replace(values=[2.0, 1.0]), [True, True]).cells == ["1 us", "2 us"]
    assert (
        comparison_table._marked(row_._replace(values=[2.0, 1.0], sure=sure), [True, True]).cells[1]
        == "2 us ◂"
    )
    assert comparison_table._marked(row_, [False, True]).cells == [
        "1 us",
        "2 us",
    ]  # one alone is compared with nothing


def test_only_the_cell_of_a_program_that_does_not_fit_is_red_and_only_the_least_is_green(tmp_path):
    settings = ["does not fit", "8x2 ◂", "4x4"]
    run = varied(tmp_path / "r", 3 * GIB, 2 * GIB, 20 * GIB, settings=settings)
    [(_, columns)] = variants.by_function(variants.of(load(run), run))
    colored = {
        (str(span.style), line.text.plain[span.start : span.end].strip())
        for line in comparison_table.table(columns, 100)
        for span in line.text.spans
        if str(span.style) not in ("bold", "dim")
    }
    assert colored == {("bold red", "20.0 GiB: does not fit"), ("green", "2.0 GiB ◂")}


def test_settings_that_are_hostile_are_shown_without_harm(tmp_path):
    text = page(varied(tmp_path / "r", 3 * GIB, 2 * GIB, settings=["a\x1b]0;x\x07", "[red]b" * 40]))
    assert "\x1b" not in text and "\x07" not in text and "[red]b" in text


def test_as_data_it_stands_with_the_run_and_points_into_its_sub_runs(tmp_path):
    run = varied(tmp_path / "r", 3 * GIB, 2 * GIB)
    data = as_json(load(run), run)
    (found,) = data["comparisons"]
    assert [(c["sub_run"], c["settings"], c["memory"]["used_bytes"]) for c in found["columns"]] == [
        (None, {"MESH": "8x2"}, 3 * GIB),
        (0, {"MESH": "4x4"}, 2 * GIB),
    ]
    assert (
        data["sub_runs"][0]["run"]["settings"] == {"MESH": "4x4"} and data["sub_runs"][0]["comparisons"] == []
    )


def test_a_run_alone_is_compared_with_nothing(tmp_path):
    run = varied(tmp_path / "r", 3 * GIB)
    assert as_json(load(run), run)["comparisons"] == [] and "◂" not in page(run)
    (only,) = variants.of(load(run), run)
    assert only.label == "MESH=8x2"


def test_a_functions_own_page_ends_with_its_programs_side_by_side(tmp_path):
    run = varied(tmp_path / "r", 3 * GIB, 2 * GIB)
    to = console(io.StringIO(), width=100)
    render_function(load(run), "train_step", to, run)
    text = to.file.getvalue()
    assert text.index("Compiled for v5e:4x4") < text.index("Side by side")
    assert row(text, "memory of 15.8 GiB") == ["3.0 GiB", "2.0 GiB ◂"]


def test_the_summary_names_the_setting_of_each(tmp_path):
    text = summary(varied(tmp_path / "r", 3 * GIB, 2 * GIB))
    assert "for v5e:4x4, MESH=8x2: train_step" in text and "for v5e:4x4, MESH=4x4: train_step" in text


def test_long_names_and_values_of_settings_stay_whole_or_keep_what_distinguishes_them():
    name = "--batch-size-of-each-data-parallel-replica"
    values = [f"configs/experiments/of-the-winter/large/{n}.yaml" for n in ("first", "second")]
    columns = [
        variants.Column(variants.Variant(None, None, {name: v, "--lr": "1"}), None, None) for v in values
    ]
    made = comparison_table.headings(columns)
    assert [row.name for row in made] == ["--batch-size-of-each-", "  data-parallel-replica", "--lr"]
    assert [row.cells for row in made] == [["…first.yaml", "…second.yaml"], ["", ""], ["1", "1"]]


@pytest.mark.parametrize("name", ["-x" * 40, "_" * 60, "A" * 60, "界" * 30, "x"])
def test_a_name_of_any_kind_is_broken_into_narrow_parts_and_nothing_of_it_is_lost(name):
    from rich.cells import cell_len

    parts = comparison_table._broken(name)
    assert "".join(parts) == name and all(0 < cell_len(p) <= comparison_table.NAME for p in parts)


def test_the_title_counts_the_settings_and_names_what_varies(tmp_path):
    text = page(varied(tmp_path / "r", 3 * GIB, 2 * GIB, 3 * GIB))
    assert "nothing ran on it; 3 settings of MESH" in text
    assert "; MESH=8x2" in page(varied(tmp_path / "s", 3 * GIB))
