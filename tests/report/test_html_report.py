"""The HTML report: what is in it, that names cannot become markup, and that it loads nothing."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from collections import Counter
from html import escape as escape_text
from html.parser import HTMLParser

import handwritten_runs
import pytest
import screen_runs
from handwritten_runs import Log, function, key, leaf

from jaxscope.analysis.hlo.line_costs import LineCost
from jaxscope.analysis.sharding_audit import CONSTRAINT, RESULT, Intent
from jaxscope.cli import command
from jaxscope.log import store
from jaxscope.model import sources
from jaxscope.model.load import load
from jaxscope.present.escape import escape
from jaxscope.present.findings import fix_text, place, sentence
from jaxscope.present.messages import SHORT
from jaxscope.present.text import Places
from jaxscope.report import comparison_table, html, sections, sharding_audit, variants
from jaxscope.report.html import programs, source
from jaxscope.report.html.markup import Html, el, lines
from jaxscope.schema import events as ev
from jaxscope.schema.causes import Cause, NewFunction
from jaxscope.schema.findings import Finding
from jaxscope.schema.keys import Frame, Memory, Sharding
from jaxscope.schema.messages import Names, Parts, message

MARKUP = "\"'><script>alert(1)</script></style><img src=x onerror=alert(1)>&amp;\u202e\x1b[2J"
NBSP = "\N{NO-BREAK SPACE}"


class Document(HTMLParser):
    """The elements of a document as (tag, attributes), and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.code: dict[str, str] = {}
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            self.code[self.open[-1]] = data
        else:
            self.texts.append(data.replace(NBSP, " "))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


def document(run, **more) -> Document:
    return Document("".join(html.pieces(load(run), run, **more)))


@pytest.fixture
def typical(tmp_path, monkeypatch):
    run = screen_runs.typical(tmp_path / "run")
    monkeypatch.chdir(run.path / "src")
    sources.text.cache_clear()
    return run


def full_of_markup(path):
    """Write a run in which every name, path, value and message is markup."""
    run = store.create(path, name="evil", argv=["train.py", MARKUP])
    log = Log(run)
    log.now = 1.0
    log.backend(8, MARKUP)
    step = function(MARKUP, "/tmp/" + MARKUP, 3, signature=f"({MARKUP})", wrappers=[MARKUP])
    log.say(step)
    site = Frame("/tmp/" + MARKUP, 3, MARKUP)
    for n in range(3):
        log.compiled(
            step, key(leaf(f"x[{MARKUP!r}]", n + 2), static=[handwritten_runs.static(MARKUP, MARKUP + str(n))]), (0.1, 0.1, 1.0),
            program=f"p{n}", step=n, site=site, texts=screen_runs.texts("/tmp/x.py"),
        )  # fmt: skip
        log.say(screen_runs.arrays(n, 2 + n, names=MARKUP, line=site))
    log.say(ev.Degraded(seam=MARKUP, reason=MARKUP))
    log.say(ev.Died(error=MARKUP, message=MARKUP, stack=[site]))
    log.end()
    handwritten_runs.exited(run, 1, seconds=9.0)
    return run


def test_the_report_answers_why_where_and_what_to_change_before_its_first_section(typical):
    found = document(typical)
    answer = found.text.partition("Timeline")[0]
    first = variants.findings(variants.of(load(typical), typical))[0]
    assert "9.0 s spent recompiling (2 shape changes)" in answer
    assert sentence(first) in answer and fix_text(first) in answer
    assert "train.py:11 in main" in answer and "return w - loss(w, x)" in answer


def test_a_run_without_findings_shows_which_first_compilations_take_its_time(tmp_path):
    run = store.create(tmp_path / "run", name="clean", argv=["train.py"])
    log, site = Log(run), Frame("/tmp/train.py", 12, "main")
    step = function("train_step", "/tmp/train.py", 3)
    log.say(step)
    log.compiled(step, key(leaf("x", 4)), (0.5, 0.5, 5.0), site=site)
    log.end()
    handwritten_runs.exited(run, 0, seconds=9.0)
    answer = document(run).text.partition("Timeline")[0]
    assert "No problems found." in answer and "train_step 6.0 s (train.py:12 in main)" in answer
    assert "which the first run of a program cannot avoid" in answer
    assert "compilation cache would save up to 5.0 s in the next run: jax.config.update" in answer
    assert "jax_compilation_cache_dir" in answer


def test_programs_that_call_python_are_no_promise_of_the_compilation_cache(tmp_path, monkeypatch):
    run = store.create(tmp_path / "run", name="clean", argv=["train.py"])
    log = Log(run)
    for name in ("step", "solve"):
        made = function(name, "/tmp/train.py", 3)
        log.say(made)
        log.compiled(made, key(leaf("x", 4)), (0.5, 0.5, 5.0), site=Frame("/tmp/train.py", 12, "main"))
    log.end()
    read = load(run)
    assert [words.partition(" in the")[0] for words, _ in sections.cache_advice(read)] == [
        "JAX's compilation cache would save up to 10.0 s"
    ]
    libraries = {"step": "", "solve": "equinox"}
    monkeypatch.setattr(sections, "_calls_python", lambda _, c: libraries[c.function.seen.name])
    ((words, advice),) = sections.cache_advice(read)
    assert words.startswith(
        "JAX's compilation cache would save up to 5.0 s in the next run if equinox's error"
    )
    assert "EQX_ON_ERROR=nan, and jax.config.update" in advice
    libraries["solve"] = ""
    assert sections.cache_advice(read) == []


def test_every_section_is_there_with_the_words_of_the_text_report(typical):
    found = document(typical)
    headings = re.findall(r"<h2>(.*?)</h2>", "".join(html.pieces(load(typical), typical)))
    assert headings == [
        "Change this first", "Timeline", "Findings", "Your functions", "Programs", "Sizes to pad to", "Live arrays",
        "Outside your jitted functions",
    ]  # fmt: skip
    links = [a["href"] for a in found.of("nav") + found.of("a") if "href" in a]
    ids = {attributes["id"] for _, attributes in found.elements if "id" in attributes}
    assert {link.removeprefix("#") for link in links} <= ids
    for f in variants.findings(variants.of(load(typical), typical)):
        assert sentence(f) in found.text and (fix_text(f) or "") in found.text
    assert "#2: x changed from f32[32,4] to f32[31,4]" in found.text  # evidence


def test_a_shortened_document_ends_with_the_command_that_writes_all_rows(typical):
    command = "All rows: jaxscope report --all --html FILE"
    assert command in document(typical).text
    assert command not in document(typical, everything=True).text


def test_a_function_shows_its_keys_side_by_side_with_what_differs_marked(typical):
    found = document(typical).text
    assert "part of the key#1#2#3" in found.replace(" ", "").replace("partofthekey", "part of the key")
    assert found.count("≠ f32[3") == 2  # #2 and #3, each beside the key it is compared with


def test_a_program_shows_fusions_collectives_bytes_and_flops_beside_its_source(typical):
    text = "".join(html.pieces(load(typical), typical))
    row = re.search(r"<tr>((?:(?!</tr>).)*?return \(h \* h\)\.sum\(\)).*?</tr>", text)
    assert row is not None
    cells = re.findall(r"<td[^>]*>(.*?)</td>", row.group(0))
    assert cells[:5] == ["1", f"256{NBSP}B", "", "all-reduce", f"224{NBSP}B"]
    assert "a fusion counts for each line of your code that is in it" in text
    assert re.search(r'<td class="figure">256</td>.*?h = x @ w', text)  # flops of the product


def test_collectives_are_drawn_over_the_mesh_and_arrays_on_it(tmp_path):
    run = screen_runs.typical(tmp_path / "run")
    made = "".join(html.pieces(load(run), run))
    assert 'class="mesh"' in made and "model 1" in made and "data 3" in made
    from jaxscope.analysis.hlo.program import analyze
    from jaxscope.report.html.programs import _meshes

    drawn = Html("").join(_meshes(analyze(screen_runs.HLO, mesh=[("data", 2), ("model", 4)])))
    assert "224 B sent by each device in one call" in drawn and drawn.count("<circle") == 8
    assert "H" in drawn and "V" in drawn  # over both axes


@pytest.mark.parametrize(
    ("name", "columns"),
    [("varied", ["2", "4"]), ("elsewhere", ["a100:8", "h100:8", "v5e:4x2", "v6e:4x2", "v5e:4x4"])],
)
def test_targets_and_settings_are_columns_of_one_table_with_the_figures_of_the_text_report(
    name, columns, tmp_path
):
    run = getattr(screen_runs, name)(tmp_path / "run")
    made = "".join(html.pieces(load(run), run)).replace(NBSP, " ")
    chapter = made.partition('<section id="targets">')[2].partition("</section>")[0]
    table = chapter.partition("<tbody>")[2].partition("</tbody>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("</tr>") if row]
    assert rows[0][1:] == columns and chapter.count("<tbody>") == 1
    assert all(row.startswith('<tr><th scope="row">') for row in table.split("</tr>") if row)
    [(_, side_by_side)] = [(f, c) for f, c in variants.by_function(variants.of(load(run), run)) if len(c) > 1]
    assert rows == [
        [escape_text(cell) for cell in (r.name, *r.cells)] for r in comparison_table.rows(side_by_side)
    ]


@pytest.mark.parametrize("name", ["empty", "failed", "degraded", "hostile", "elsewhere", "varied", "running"])
def test_any_run_makes_a_whole_document_without_a_reference_to_another_file(name, tmp_path):
    run = getattr(screen_runs, name)(tmp_path / "run")
    found = document(run)
    for tag, attributes in found.elements:
        assert tag not in ("img", "iframe", "object", "embed", "link", "base", "form")
        assert "src" not in attributes and "style" not in attributes
        assert not any(a.startswith("on") for a in attributes)
        assert all((attributes[a] or "").startswith("#") for a in ("href", "xlink:href") if a in attributes)
    assert "url(" not in found.code["style"] and "@import" not in found.code["style"]
    assert not re.search(r"https?:|fetch|XMLHttp|innerHTML|eval", found.code["script"])


def test_the_policy_allows_the_style_and_the_script_of_the_document_and_nothing_else(typical):
    found = document(typical)
    [policy] = [m["content"] for m in found.of("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy.split(";"))
    assert (
        rules["default-src"] == "'none'"
        and rules["base-uri"] == "'none'"
        and rules["form-action"] == "'none'"
    )
    for kind, tag in (("style-src", "style"), ("script-src", "script")):
        digest = base64.b64encode(hashlib.sha256(found.code[tag].encode()).digest()).decode()
        assert rules[kind] == f"'sha256-{digest}'"
    assert len(found.of("script")) == len(found.of("style")) == 1


def test_markup_in_names_paths_values_and_messages_is_shown_and_does_nothing(tmp_path):
    run = full_of_markup(tmp_path / "run")
    text = "".join(html.pieces(load(run), run, everything=True))
    found = Document(text)
    assert len(found.of("script")) == 1 and not found.of("img")
    shown = escape(MARKUP)
    assert found.text.count(shown) > 5
    assert not [c for c in text if not c.isprintable() and c not in ("\n", NBSP)]
    assert Counter(tag for tag, _ in found.elements)["style"] == 1


def test_attributes_and_texts_are_escaped_unless_they_are_markup():
    made = el("p", "<b>", el("i", "x & y"), title='"<', hidden=True, class_=None, data_x=1)
    assert made == '<p title="&quot;&lt;" hidden data-x="1">&lt;b&gt;<i>x &amp; y</i></p>'


def named(text):
    axes = [("data", 8, "Auto")]
    return Sharding("NamedSharding", f"{text} on data=8", "0-7", axes, text, "device")


def test_shardings_that_do_not_differ_have_one_column(tmp_path):
    split, places = named("P('data')"), Places(load(store.create(tmp_path / "run")))
    requested = Intent("[0]", RESULT, (16,), "float32", asked=split, by=CONSTRAINT, compiled=split)
    compiled = Intent("[1]", RESULT, (16,), "float32", compiled=split)
    made = [row.text.plain.split() for row in sharding_audit.section([requested, compiled], places)]
    assert made == [
        ["requested,", "compiled", "and", "passed", "alike"],
        ["result[0]", "f32[16]", "P('data')"],
        ["result[1]", "f32[16]", "P('data')"],
    ]
    [head, _] = sharding_audit.section([compiled], places)
    assert head.text.plain.split() == ["requested", "compiled"]  # nothing was requested


def test_requested_and_compiled_shardings_are_a_table_with_each_reason_below_its_row(tmp_path):
    split, whole = named("P('data')"), named("P()")
    rows = sharding_audit.section(
        [
            Intent("[0]", RESULT, (16,), "float32", asked=split, by=CONSTRAINT, compiled=whole),
            Intent("[1]", RESULT, (16,), "float32", asked=whole, compiled=whole),
        ],
        Places(load(store.create(tmp_path / "run"))),
    )
    made = lines(rows)
    assert made.count("<table") == 1 and made.count("<tr>") == 4
    assert "<td>result[0]</td><td>f32[16]</td>" in made
    assert re.search(r'<tr><td></td><td colspan="3">\w[^<]+</td></tr><tr><td>result\[1\]</td>', made)


def test_drawings_and_controls_have_names_and_ids_are_used_once(typical):
    found = document(typical)
    for drawing in found.of("svg"):
        assert drawing.get("aria-hidden") == "true" or (
            drawing.get("role") == "img" and drawing["aria-label"]
        )
    assert all(button["aria-label"] for button in found.of("button"))
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    assert found.of("html")[0]["lang"] == "en"


def test_a_run_of_many_compilations_stays_below_a_megabyte(tmp_path):
    run = store.create(tmp_path / "run", name="many", argv=["train.py"])
    log = Log(run)
    steps = [function(f"step{n}", line=n + 1) for n in range(40)]
    for step in steps:
        log.say(step)
        for n in range(50):
            log.compiled(
                step, key(*(leaf(f"params['w{k}']", n + 4, 8) for k in range(12))), (0.01, 0.02, 0.03)
            )
    log.end()
    text = "".join(html.pieces(load(run), run))
    assert len(text.encode()) < 1_000_000


def test_ranks_are_lanes_of_the_timeline(tmp_path):
    from jaxscope.model.rank_log import Rank
    from jaxscope.model.ranks import Job
    from jaxscope.present.text import Places
    from jaxscope.report.html import timeline

    run = screen_runs.typical(tmp_path / "run")
    loaded = load(run)
    began = loaded.began_ns
    two = [
        Rank(number=n, directory=run, state="stopped", began_ns=began, left_ns=began + (n + 1) * 10**9)
        for n in range(2)
    ]
    drawn = timeline.section(loaded, Job(run, two, 2), Places(loaded))
    assert "rank 0: 0 compilations" in drawn and "rank 1: 0 compilations" in drawn


def test_the_command_writes_the_file_and_refuses_other_formats(typical, tmp_path, capsys):
    file = tmp_path / "run.html"
    assert command(["report", str(typical.path), "--html", str(file)]) == 0
    assert file.read_text("utf-8").startswith("<!doctype html>")
    assert command(["report", str(typical.path), "--html", str(file), "--format", "json"]) == 2
    assert "--html cannot be combined with --function, --format json or -o" in capsys.readouterr().err


def test_the_time_axis_ends_with_the_run_and_its_origin_is_named(tmp_path):
    run = store.create(tmp_path / "run")
    log = Log(run, at=3.0)
    f = function("step")
    log.say(f)
    log.compiled(f, key(leaf("x", 1)))
    log.end()
    handwritten_runs.exited(run, seconds=12.0)
    document = Document("".join(html.pieces(load(run), run)))
    (axis,) = [a for tag, a in document.elements if a.get("id") == "timeline"]
    assert axis["data-seconds"] == "9.000000"
    origin = "0 s is when recording began: the program imported JAX, 3.0 s after it started"
    assert origin in document.texts
    assert "a recompile begins" not in document.text  # there is none


@pytest.fixture
def eager_again(tmp_path):
    """A run that recompiles an operation outside jit, with a step that ended between."""
    run = store.create(tmp_path / "run")
    log = Log(run, transfers=True)
    mine, add = function("step"), function("add", None, None, module="jax", eager=True)
    log.say(mine)
    log.say(add)
    log.compiled(mine, key(leaf("x", 1)), line=30)
    log.say(ev.Step(index=7))
    log.say(ev.StepTimed(step=3, marked=True, clock_ns=5))
    for n in (1, 2, 3):
        log.compiled(add, key(leaf("x", n)), line=31)
    log.end()
    return "".join(html.pieces(load(run), run))


def test_the_timeline_marks_recompiles_outside_the_users_functions(eager_again):
    assert eager_again.count('class="tick again"') == 2
    assert "a recompile begins" in eager_again
    assert "outside your jitted functions (1 function, 3 compilations): 21.0 s, 2 recompiles" in eager_again


def test_the_timeline_counts_all_steps_and_says_what_a_tick_is(eager_again):
    assert "7 steps; a tick is a step whose time was recorded" in eager_again
    assert "<title>step 3</title>" in eager_again


def test_the_table_of_compilations_says_which_are_not_in_it(eager_again):
    words = (
        "1 compilation of your functions as a table; 3 more outside your jitted functions are listed below"
    )
    assert words in eager_again


def test_the_parts_of_memory_that_are_drawn_twice_are_named(tmp_path):
    drawn = programs._memory(Memory(4096, 4096, 4096, 1024, None))
    assert f"4.0{NBSP}KiB of them are shared by arguments and results: drawn twice" in drawn
    assert "drawn twice" not in programs._memory(Memory(4096, 4096, 0, 1024, None))


def test_a_figure_stays_with_its_unit_but_source_and_commands_can_be_copied():
    assert el("p", "took 8.0 s, 61 % of 160.6 KiB") == f"<p>took 8.0{NBSP}s, 61{NBSP}% of 160.6{NBSP}KiB</p>"
    assert el("code", "wait = 8 s") == "<code>wait = 8 s</code>"


def test_a_table_of_costs_has_no_column_without_a_figure(typical):
    run, places = load(typical), Places(load(typical))
    one = {("/x.py", 3): LineCost(fusions=2, moved_bytes=8, flops=0)}
    heads = re.findall(r'<th scope="col">(.*?)</th>', source.with_costs(run, one, places, {}))
    assert heads == ["fusions", "bytes of fusions", "line", "source"]
    heads = re.findall(
        r'<th scope="col">(.*?)</th>', source.with_costs(run, one, places, {("/x.py", 3): 0.5})
    )
    assert heads == ["fusions", "bytes of fusions", "measured in a step", "line", "source"]


@pytest.mark.parametrize(
    ("flops", "shown"),
    [
        (256, "256"),
        (999, "999"),
        (1000, "1.00 k"),
        (75_500_000, "75.5 M"),
        (432_000_000, "432 M"),
        (10**13, "10.0 T"),
    ],
)
def test_flops_have_three_figures_and_a_prefix(typical, flops, shown):
    run, one = load(typical), {("/x.py", 3): LineCost(flops=flops)}
    assert f'<td class="figure">{shown}</td>' in source.with_costs(run, one, Places(run), {})


LINE, OTHER = Frame("/nowhere/once.py", 3, "main"), Frame("/nowhere/once.py", 31, "main")
CREATED = Cause("new_function", "trace", None, None, None, "certain", detail=NewFunction("lambda", line=LINE))


@pytest.mark.parametrize(
    ("title", "where"),
    [
        (message("program-of-line", function="step", line=LINE), None),
        (message("program-of-line", function="step", line=OTHER), "once.py:3"),
        (message("program-of-line", function="once.py:3", line="31"), "once.py:3"),
        (message("after-program", program=message("program-of-line", function="step", line=LINE)), None),
        (message("ranks-named", numbers=Names((OTHER, LINE))), None),
        (message("ranks-named", numbers=Names((OTHER, LINE), most=1)), "once.py:3"),
        (message("ranks-named", numbers=Parts(("at", LINE))), None),
        (message("recompiled", function="step", cause=CREATED, than=None, also=None), None),
        ("reads", "once.py:3"),
    ],
)
def test_a_line_that_the_title_names_is_not_repeated(typical, title, where):
    f = Finding("JX999", "note", "certain", title, source=LINE)
    assert place(f, Places(load(typical))) == where


def test_a_line_that_only_the_long_title_names_is_beside_the_short_one(typical, monkeypatch):
    monkeypatch.setitem(SHORT, "program-of-line", "{function}")
    f = Finding("JX999", "note", "certain", message("program-of-line", function="f", line=LINE), source=LINE)
    places = Places(load(typical))
    assert (place(f, places), place(f, places, shortened=True)) == (None, "once.py:3")


def test_one_finding_is_not_called_the_first_and_is_not_filtered(tmp_path):
    run = store.create(tmp_path / "run")
    log = Log(run)
    step = function("step")
    log.say(step)
    for n in (1, 2):
        log.compiled(step, key(leaf("x", n)), line=30)
    log.end()
    text = "".join(html.pieces(load(run), run))
    assert "<h2>Change this</h2>" in text and 'data-search="finding"' not in text
    assert "explained by the command <code>jaxscope rule JX101</code>" in text
