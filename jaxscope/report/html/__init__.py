"""Write the report of a run as one HTML document that needs no network, because its styles and its script are
part of it.

The document has the sections of the text report, a timeline and the compiled programs. It is complete without
JavaScript; the script adds zooming, filters and keyboard shortcuts.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Callable, Iterator, Sequence
from importlib import resources

from jaxscope import __version__
from jaxscope.log.store import RunDir
from jaxscope.model.ranks import Job
from jaxscope.model.run import Run
from jaxscope.present.escape import escape
from jaxscope.present.runs import compiling, title
from jaxscope.present.spans import plain
from jaxscope.present.text import Places
from jaxscope.report import arrays as array_lines
from jaxscope.report import findings as finding_lines
from jaxscope.report import (
    line_times,
    measured,
    ranks,
    sections,
    step_time,
    targets_section,
    transfers,
    variants,
)
from jaxscope.report.header import header
from jaxscope.report.html import arrays, findings, functions, programs, timeline
from jaxscope.report.html.markup import Html, el, lines, spans
from jaxscope.report.layout import Line
from jaxscope.schema.findings import Finding

FRAME_HEIGHT = 700  # pixels in a notebook
UNLIMITED = 1_000_000  # characters in a line, so that tables of the HTML report are not split


def pieces(
    run: Run, directory: RunDir | None = None, job: Job | None = None, *, everything: bool = False
) -> Iterator[str]:
    """Yield the parts of the HTML report of the run ``run``, so that it need not be in memory as a whole.

    Args:
      directory: the directory of the run; None: unknown. The report then lacks the settings of ``run --vary``
        and the runs with other settings.
      job: all processes that were recorded together, of which ``run`` is one; None: ``run`` is the only one.
      everything: shorten fewer lists (``--all``). The lists of functions, programs and findings end at a
        fixed length in any case.
    """
    script = _packaged("page.js")
    name = title(run, directory)
    yield _head(name, script)
    yield el("a", "Skip to the findings", href="#findings", class_="skip")
    places, parts = Places(run), variants.of(run, directory)
    found = ranks.findings(job, variants.findings(parts))
    chapters = _chapters(run, directory, job, places, parts, found, everything=everything)
    shown = [(id, heading, body) for id, heading, body in chapters if body]
    yield el("header", *_answer(run, directory, name, places, found))
    links = (el("a", heading, href=f"#{id}") for id, heading, _ in shown)
    yield el("nav", *links, aria_label="Sections")
    yield "<main>\n"
    for id, heading, body in shown:
        yield el("section", el("h2", heading), body, id=id) + "\n"
    yield "</main>\n"
    yield el(
        "footer",
        f"Written by jaxscope {__version__}, which records what JAX compiles. This file contains names and"
        " source lines of the program. It loads nothing from the network.",
        "" if everything else el("p", "All rows: ", el("code", "jaxscope report --all --html FILE")),
    )
    yield f"\n<script>{script}</script>\n</body>\n</html>\n"


def _head(name: str, script: str | None) -> str:
    """Return the beginning of an HTML document, up to ``<body>``. Its Content-Security-Policy forbids all
    requests, and all scripts except ``script``, the text of a script; None: it forbids all."""
    style = _packaged("page.css")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{_digest(style)}'; script-src '{'none' if script is None else _digest(script)}'"
    )
    head = [
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="generator", content=f"jaxscope {__version__}"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{name} - jaxscope"),
        Html(f"<style>{style}</style>"),
    ]
    return f'<!doctype html>\n<html lang="en">\n{el("head", *head)}\n<body>\n'


def _chapters(
    run: Run,
    directory: RunDir | None,
    job: Job | None,
    places: Places,
    parts: Sequence[variants.Variant],
    all_findings: Sequence[Finding],
    *,
    everything: bool,
) -> list[tuple[str, str, Html | None]]:
    """Return the sections of the HTML report in their order, each as (id, heading, content). The content is
    None or empty if there is nothing to show.

    Args:
      directory: the directory of the run; None: unknown.
      job: all processes that were recorded together, of which ``run`` is one; None: ``run`` is the only one.
      places: shortens file names.
      parts: the run, then its sub-runs (the same program with other settings or numbers of devices).
      all_findings: the findings to show.
      everything: shorten fewer lists (``--all``).
    """

    def of_run(id: str, heading: str, section: Callable[..., Iterator[Line]]) -> tuple[str, str, Html]:
        return id, heading, lines(section(run, places, everything=everything), below=heading)

    return [
        ("timeline-of-the-run", "Timeline", timeline.section(run, job, places)),
        (
            "findings",
            "Findings",
            findings.section(run, all_findings, places)
            if all_findings
            else lines([sections.no_problems(run)]),
        ),
        ("ranks", "Ranks", lines(ranks.section(job, places), below="Ranks") if job is not None else None),
        ("functions", "Your functions", functions.section(run, places, everything=everything)),
        ("programs", "Programs", programs.section(run, places, everything=everything)),
        (
            "targets",
            "Targets and settings",
            lines(
                targets_section.section(parts, places, width=UNLIMITED, everything=everything),
                below="Targets and settings",
                names=True,
            ),
        ),
        ("sizes", "Sizes to pad to", lines(finding_lines.buckets(run), below="Sizes to pad to")),
        of_run("step-time", step_time.TITLE, step_time.section),
        of_run("line-times", line_times.TITLE, line_times.section),
        of_run("measured", "Measured operations", measured.section),
        of_run("transfers", "Transfers", transfers.section),
        ("arrays", "Live arrays", arrays.section(run, places, everything=everything)),
        of_run("libraries", sections.OUTSIDE, sections.not_yours),
        ("gaps", "Not recorded", lines(sections.blind_spots(run, directory))),
    ]


def frame(run: Run, directory: RunDir | None = None) -> str:
    """Return the HTML report of a run in an ``<iframe>`` element, for the output of a notebook cell."""
    return _framed("".join(pieces(run, directory)), "jaxscope report", FRAME_HEIGHT, "allow-scripts")


def frame_of(body: Html, name: str, height: int) -> str:
    """Return ``body``, one part of a report, in an ``<iframe>`` element for the output of a notebook cell.
    The element has ``height`` pixels and the title ``name``. No script can run in it."""
    return _framed(f"{_head(name, None)}<main>{body}</main>\n</body>\n</html>\n", name, height, "")


def _framed(document: str, name: str, height: int, allowed: str) -> str:
    """Return the HTML ``document`` in an ``<iframe>`` element of ``height`` pixels with the title ``name``.
    ``allowed`` is its attribute ``sandbox``: ``allow-scripts``, or empty to allow nothing."""
    # In the element, the document and the notebook do not share styles, and the document cannot access the
    # notebook. el() would escape control characters, and with them the line ends of the document.
    return (
        f'<iframe srcdoc="{html.escape(document)}" sandbox="{allowed}" title="{html.escape(escape(name))}" '
        f'width="100%" height="{height}" frameborder="0"></iframe>'
    )


def _answer(
    run: Run, directory: RunDir | None, name: str, places: Places, all_findings: Sequence[Finding]
) -> Iterator[Html]:
    """Yield the HTML at the top of the page: the seconds spent recompiling, facts of the run, how it failed,
    and what to change first.

    Args:
      directory: the directory of the run; None: unknown.
      name: the heading of the page.
      places: shortens file names.
      all_findings: the findings, the most important one first.
    """
    lost = list(sections.recompile_seconds(run))
    spent = compiling(run)
    yield el("h1", name)
    if lost:
        yield el("div", lines(lost), class_="headline")
    elif spent:
        yield el("p", spans(spent), class_="headline")
    facts = list(header(run, directory))[1:]  # without the first line, which is the program
    if spent and not lost:
        facts = [line for line in facts if line.text.plain != escape(plain(spent))]  # already the headline
    yield el("div", lines(facts), class_="facts")
    yield lines(
        [
            *sections.death(run, places),
            *array_lines.exhausted(run, places),
            *sections.in_progress(run, directory, places),
        ]
    )
    if all_findings:
        heading = "Change this first" if len(all_findings) > 1 else "Change this"
        yield el("div", el("h2", heading), findings.first(run, all_findings[0], places), class_="answer")
        yield lines(sections.without_advice(run, places))
    elif (needed := findings.without_finding(run, places)) is not None:
        yield el("div", el("h2", sections.no_problems(run).text.plain), needed, class_="answer nothing")
    yield lines(sections.each_step(run, places))


def _packaged(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _digest(content: str) -> str:
    """Return ``sha256-...``, the hash of ``content``, an inline style or script. A Content-Security-Policy
    with this hash allows it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
