"""Build HTML elements from data. All texts and attributes are escaped, except texts of the type ``Html``,
which are markup already.

Control characters and bidi overrides in a text become visible (``present.escape``).
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from itertools import groupby

from rich.text import Text

from jaxscope.present.escape import escape
from jaxscope.present.spans import Span
from jaxscope.present.text import count
from jaxscope.report.layout import FIGURE, Line

# Rich style in the text report -> CSS class in page.css.
CLASSES = {
    "dim": "dim", "bold": "bold", "underline": "title", "bold red": "error", "yellow": "warning",
    "green": "good", "red": "before",
}  # fmt: skip
ROLES = {"path": "dim", "note": "dim", "name": "bold", "figure": "bold", "retrace": "warning"}
_EMPTY = {"meta", "input", "br"}
_COPIED = {"code", "mark", "title"}  # elements whose text stays as it is


class Html(str):
    """A text that is HTML already, so that it is not escaped again."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return ``value`` as escaped text for an HTML document. The space between a number and its unit becomes
    a no-break space."""
    return Html(FIGURE.sub("\N{NO-BREAK SPACE}", html.escape(escape(value))))


def verbatim(value: object) -> Html:
    """Return ``value`` as escaped text for an HTML document, with all spaces as they are. Use this for source
    lines and commands, because readers copy these."""
    return Html(html.escape(escape(value)))


def el(tag: str, *content: str | None, **attributes: str | int | bool | None) -> Html:
    """Return an HTML element: ``el("p", "a < b", class_="dim")`` -> ``<p class="dim">a &lt; b</p>``.

    Args:
      content: what is inside the element. A text that is not ``Html`` is escaped; None is left out.
      attributes: the attributes of the element. In a name, a trailing underscore is removed and other
        underscores become hyphens. An attribute that is None or False is left out; one that is True is
        written without a value.
    """
    written = "".join(
        f" {_name(name)}" if value is True else f' {_name(name)}="{html.escape(escape(value))}"'
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in _EMPTY:
        return Html(f"<{tag}{written}>")
    if tag in _COPIED:
        content = tuple(c if c is None or isinstance(c, Html) else verbatim(c) for c in content)
    return Html(f"<{tag}{written}>{joined(content)}</{tag}>")


def left_out(n: int, what: str, rest: str = "") -> Html | None:
    """Return the paragraph below a list from which ``n`` things are left out: ``and 3 more findings``,
    followed by ``rest``. None if none is left out. ``what`` names one of them: ``finding``."""
    return el("p", f"and {count(n, f'more {what}')}{rest}", class_="dim") if n > 0 else None


def _name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def joined(parts: Iterable[str | None]) -> Html:
    """Return ``parts`` one after another, as one ``Html``. A part that is not ``Html`` is escaped, and None
    is left out."""
    return Html("".join(p if isinstance(p, Html) else text(p) for p in parts if p is not None))


def spans(pieces: Iterable[Span]) -> Html:
    """Return pieces of text as HTML. A piece with a role, ``("slow", "warning")``, becomes a
    ``<span>`` with the CSS class of the role."""
    return joined(
        text(s) if isinstance(s, str) else el("span", s[0], class_=ROLES.get(s[1], s[1]) or None)
        for s in pieces
    )


def styled(rich_text: Text) -> Html:
    """Return a Rich text as HTML. Each style of the text becomes a CSS class."""
    plain = rich_text.plain
    parts: list[Html] = []
    at = 0
    for span in sorted(rich_text.spans):
        if span.start > at:
            parts.append(text(plain[at : span.start]))
        parts.append(el("span", plain[max(at, span.start) : span.end], class_=CLASSES.get(str(span.style))))
        at = max(at, span.end)
    return joined([*parts, text(plain[at:])])


def lines(report_lines: Iterable[Line], *, below: str | None = None, names: bool = False) -> Html:
    """Return lines of the text report as HTML. Consecutive lines that are rows of a table become a table,
    titles become headings, and other lines become paragraphs.

    Args:
      below: the heading that the page already has above these lines; a title with this text is left out.
        None: keep all titles.
      names: whether the first cell of each row is the name of the row (``<th>``).
    """
    elements: list[Html] = []
    for is_table, members in groupby(report_lines, key=lambda line: bool(line.cells)):
        group = list(members)
        if is_table:
            columns = max(len(line.cells) for line in group)
            rows = [_row(line, columns, names=names) for line in group]
            table = el("table", el("tbody", *rows), class_="plain")
            elements.append(el("div", scrolling(table), class_=_indented(group[0])))
        else:
            elements += [p for line in group for p in _paragraph(line, below)]
    return joined(elements)


def _row(line: Line, columns: int, *, names: bool) -> Html:
    """Return a line of the text report as a row of an HTML table with ``columns`` columns. The last cell
    extends to the last column. ``names``: the first cell is the name of the row (``<th>``)."""
    first, *rest = line.cells
    name = el("th", first, scope="row") if names else el("td", first)
    spans = [columns - len(rest)] * (len(rest) < columns - 1)
    cells = [el("td", cell) for cell in rest[: len(rest) - len(spans)]]
    return el("tr", name, *cells, *(el("td", rest[-1], colspan=n) for n in spans if rest))


def _paragraph(line: Line, below: str | None) -> Iterator[Html]:
    """Yield a line of the text report as a paragraph; a title at its beginning becomes a heading. ``below``
    is the parameter of ``lines``."""
    if not line.text.plain.strip() and line.right is None:
        return
    first = min(line.text.spans, default=None)
    body = line.text
    if first is not None and str(first.style) == "underline" and first.start == 0:
        if body.plain[: first.end] != below:
            yield el("h3", body.plain[: first.end])
        body = body[first.end :]
        body = body[len(body.plain) - len(body.plain.lstrip()) :]
        if not body.plain.strip():
            return
    right = None if line.right is None else el("span", styled(line.right), class_="right")
    yield el("p", right, styled(body), class_=f"line {_indented(line)}")


def _indented(line: Line) -> str:
    """Return the CSS class that indents ``line`` as in the text report: ``in1`` for two spaces."""
    return f"in{min(line.indent // 2, 6)}"


def swatch(name: str) -> Html:
    """Return a small square (SVG) for a legend, in the color of the CSS class ``name``."""
    square = el("rect", width=10, height=10, class_=name)
    return el("svg", square, class_="swatch", viewBox="0 0 10 10", aria_hidden="true")


def scrolling(table: Html) -> Html:
    """Return ``table`` in an element that can be scrolled sideways if the window is narrow."""
    return el("div", table, class_="scroll", tabindex=0, role="region", aria_label="table")


def fold(summary: Html, *body: Html, open_: bool = False, **attributes: str | int | bool | None) -> Html:
    """Return an element (``<details>``) that the reader can open and close, also without JavaScript.
    ``summary`` is always visible, ``body`` only while the element is open. ``open_``: whether it is open at
    first. ``attributes`` are HTML attributes of the element."""
    return el("details", el("summary", summary), el("div", *body, class_="body"), open=open_, **attributes)
