"""Every key of the view in one table: bindings, footer, palette and help are readings of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from textual.binding import Binding

VIEWS = (
    ("1", "overview", "Overview"),
    ("2", "functions", "Functions"),
    ("3", "program", "Program"),
    ("4", "collectives", "Collectives"),
    ("5", "arrays", "Arrays"),
    ("6", "findings", "Findings"),
    ("7", "output", "Output"),
)


class Action(NamedTuple):
    """One thing a person can do.

    Attributes:
      id: what it is called where keys are changed.
      scope: where it applies: app, a kind of pane (lines, text, table) or a screen.
      keys: the first is the one that is shown.
      does: Textual's action.
      words: in footer and palette.
      help: one sentence.
      group: of the palette; empty: not in it.
      footer: 0 leaves it out; else how early it must be there where room is short.
    """

    id: str
    scope: str
    keys: str
    does: str
    words: str
    help: str
    group: str = ""
    footer: int = 0


ACTIONS = (
    *(
        Action(f"view.{name}", "app", key, f"show('{name}')", title, f"The screen {title}.", "go")
        for key, name, title in VIEWS
    ),
    Action("find", "app", "slash", "find", "find", "Search a text, filter a table; esc ends it.", "find", 3),
    Action("back", "app", "escape,backspace", "back", "back", "End a search, leave a zoomed pane, or go back to where you came from."),
    Action("pane.next", "app", "tab", "focus_next", "next pane", "Go to the next pane.", "", 4),
    Action("pane.previous", "app", "shift+tab", "focus_previous", "previous pane", "Go to the pane before."),
    Action("pane.zoom", "app", "z", "zoom", "zoom", "The focused pane alone, or all of them again.", "view", 5),
    Action("pause", "app", "p", "pause", "pause", "Stop taking in what the program does, or go on.", "run", 6),
    Action("source", "app", "o", "source", "editor", "Open $EDITOR at the line that is meant here.", "view", 5),
    Action("theme", "app", "ctrl+t", "theme", "dark or light", "Dark or light colours.", "theme"),
    Action("help", "app", "question_mark,f1", "help", "help", "What this pane shows, and its keys.", "view", 2),
    Action("palette", "app", "ctrl+p,ctrl+o", "command_palette", "palette", "Every command by name; functions by name.", "", 6),
    Action("quit", "app", "q,ctrl+q", "leave", "quit", "Leave. A program that was started here is asked about first.", "run", 1),
    Action("line.up", "lines", "up,k", "move(-1)", "up", "One line up."),
    Action("line.down", "lines", "down,j", "move(1)", "down", "One line down."),
    Action("line.page_up", "lines", "pageup", "page(-1)", "page up", "A page up."),
    Action("line.page_down", "lines", "pagedown,space", "page(1)", "page down", "A page down."),
    Action("line.half_up", "lines", "ctrl+u", "half(-1)", "half a page up", "Half a page up."),
    Action("line.half_down", "lines", "ctrl+d", "half(1)", "half a page down", "Half a page down."),
    Action("line.top", "lines", "g,home", "top", "top", "The first line."),
    Action("line.bottom", "lines", "G,end", "bottom", "bottom", "The last line."),
    Action("line.left", "lines", "left,h", "aside(-1)", "left", "Scroll to the left."),
    Action("line.right", "lines", "right,l", "aside(1)", "right", "Scroll to the right."),
    Action("line.open", "lines", "enter", "open", "open", "Go to what stands behind this line.", "", 1),
    Action("line.copy", "lines", "y", "copy", "copy", "Copy the line to the clipboard.", "export", 7),
    Action("text.next", "text", "n", "next_match(1)", "next", "The next place found."),
    Action("text.previous", "text", "N", "next_match(-1)", "previous", "The place found before."),
    Action("text.linked", "text", "right_square_bracket", "next_linked(1)", "linked", "The next line marked from the other pane."),
    Action("text.linked_before", "text", "left_square_bracket", "next_linked(-1)", "linked before", "The marked line before."),
    Action("table.sort", "table", "s", "sort", "sort", "Sort by the next column; after the last, in its own order.", "view", 5),
    Action("functions.star", "functions", "w", "star", "star", "Keep this function at the top of the list.", "view", 6),
    Action("functions.program", "functions", "m", "program", "program", "What the compiler made of this compilation.", "go", 3),
    Action("program.earlier", "program", "comma", "other(-1)", "earlier", "The compilation before.", "go", 4),
    Action("program.later", "program", "full_stop", "other(1)", "later", "The compilation after.", "go", 4),
    Action("findings.hide", "findings", "x", "hide", "hide code", "Hide the findings of this code until you leave.", "view", 4),
    Action("output.follow", "output", "f", "follow", "follow", "Stay at the end while it grows, or stop.", "view", 2),
)  # fmt: skip

_NAMES = {
    "slash": "/", "question_mark": "?", "escape": "esc", "left_square_bracket": "[", "right_square_bracket": "]",
    "comma": ",", "full_stop": ".", "pageup": "PgUp", "pagedown": "PgDn", "up": "↑", "down": "↓", "left": "←",
    "right": "→", "shift+tab": "⇧tab",
}  # fmt: skip


def of(scopes: Iterable[str]) -> list[Action]:
    """The actions of some scopes, in the order of the scopes."""
    return [a for scope in scopes for a in ACTIONS if a.scope == scope]


def bindings(scope: str) -> list[Binding]:
    """What Textual needs to hear the keys of one scope."""
    return [Binding(a.keys, a.does, a.words, show=False, id=a.id) for a in ACTIONS if a.scope == scope]


def spelled(keys: str, *, all_of_them: bool = False) -> str:
    """Keys as people read them: ``/``, ``^p``, ``j or ↓``."""
    found = [_NAMES.get(k, k.replace("ctrl+", "^")) for k in keys.split(",")]
    return " or ".join(found) if all_of_them else found[0]


def footer(scopes: Iterable[str], width: int) -> list[tuple[str, str]]:
    """(key, words) for one line: what is most needed first to get room, then in the table's order."""
    able = [a for a in of(scopes) if a.footer]
    chosen: list[Action] = []
    left = width - 1
    for action in sorted(able, key=lambda a: a.footer):
        need = len(spelled(action.keys)) + len(action.words) + 3
        if need <= left:
            chosen.append(action)
            left -= need
    return [(spelled(a.keys), a.words) for a in able if a in chosen]
