"""Every key of the view in one table: bindings, footer, palette and help are readings of it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from jaxscope.errors import UsageError

if TYPE_CHECKING:
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
      keys: the first is the one that is shown; none: it is in the palette only, until it is given one.
      does: Textual's action.
      words: in footer and palette.
      help: one sentence.
      group: of the palette; empty: not in it.
      footer: 0 leaves it out; else how early it must be there where room is short.
      prior: heard before what has the focus hears it, dialogs too.
    """

    id: str
    scope: str
    keys: str
    does: str
    words: str
    help: str
    group: str = ""
    footer: int = 0
    prior: bool = False


ACTIONS = (
    *(
        Action(f"view.{name}", "app", key, f"show('{name}')", title, f"The screen {title}.", "go")
        for key, name, title in VIEWS
    ),
    Action("find", "app", "slash", "find", "find", "Search a text, filter a table; esc ends it.", "find", 3),
    Action("back", "app", "escape,backspace", "back", "back", "Close a notice, end a search, leave a zoomed pane, or go back to where you came from."),
    Action("pane.next", "app", "tab", "focus_next", "next pane", "Go to the next pane.", "", 4),
    Action("pane.previous", "app", "shift+tab", "focus_previous", "previous pane", "Go to the pane before."),
    Action("pane.zoom", "app", "z", "zoom", "zoom", "The focused pane alone, or all of them again.", "view", 5),
    Action("pause", "app", "p", "pause", "pause", "Stop taking in what the program does, or go on.", "run", 6),
    Action("source", "app", "o", "source", "editor", "Open $EDITOR at the line that is meant here.", "view", 5),
    Action("export", "app", "e", "export", "export", "Write what is shown, or the run, to a file.", "", 7),
    Action("export.text", "app", "", "export_text", "this screen as text", "The screen as it stands, as a text file.", "export"),
    Action("export.svg", "app", "", "export_svg", "this screen as SVG", "The screen as it stands, in its colours.", "export"),
    Action("export.json", "app", "", "export_json", "report as JSON", "What jaxscope report --format json prints.", "export"),
    Action("export.programs", "app", "", "export_programs", "texts of this program", "StableHLO, HLO and key of the chosen compilation as files.", "export"),
    Action("theme", "app", "ctrl+t", "theme", "dark or light", "Dark or light colours.", "theme"),
    Action("help", "app", "question_mark,f1", "help", "help", "What this pane shows, and its keys.", "view", 2),
    Action("palette", "app", "ctrl+p,ctrl+o", "command_palette", "palette", "Every command by name; functions by name.", "", 6),
    Action("quit", "app", "q,ctrl+q", "leave", "quit", "Leave. A program that was started here is asked about first.", "run", 1),
    Action("interrupt", "app", "ctrl+c", "leave", "quit", "As quit, also from a dialog or while you type.", prior=True),
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
    Action("timeline.closer", "timeline", "plus,equals_sign", "zoom_time(1)", "closer", "Half as much of the run, around what the selected function compiled.", "view", 5),
    Action("timeline.wider", "timeline", "minus", "zoom_time(-1)", "wider", "Twice as much of the run.", "view", 5),
    Action("timeline.earlier", "timeline", "comma", "move_time(-1)", "earlier", "The part of the run before the one that is drawn.", "view"),
    Action("timeline.later", "timeline", "full_stop", "move_time(1)", "later", "The part of the run after the one that is drawn.", "view"),
    Action("functions.star", "functions", "w", "star", "star", "Keep this function at the top of the list.", "view", 6),
    Action("functions.program", "functions", "m", "program", "program", "What the compiler made of this compilation.", "go", 3),
    Action("functions.compare", "functions", "c", "compare", "compare", "Its key beside that of another compilation instead of the nearest.", "view", 4),
    Action("program.fusions", "program", "f", "fusions", "fusions", "Its fusions, the most bytes first; enter goes to one.", "view", 5),
    Action("program.diff", "program", "d", "diff", "diff", "What is different in this program from that of another compilation.", "view", 5),
    Action("program.earlier", "program", "comma", "other(-1)", "earlier", "The compilation before.", "go", 4),
    Action("program.later", "program", "full_stop", "other(1)", "later", "The compilation after.", "go", 4),
    Action("machines.next", "machines", "t", "machine(1)", "machine", "As the next machine that it was also compiled for has it (jaxscope run --target).", "view"),
    Action("machines.beside", "machines", "T", "machines", "machines", "What each machine makes of it, side by side; enter takes one.", "view"),
    Action("arrays.earlier", "arrays", "comma", "look(-1)", "earlier", "The look at the arrays before this one.", "go", 4),
    Action("arrays.later", "arrays", "full_stop", "look(1)", "later", "The next look.", "go", 4),
    Action("findings.hide", "findings", "x", "hide", "hide code", "Hide the findings of this code until you leave; on a hidden code, show them again.", "view", 4),
    Action("findings.ignore", "findings", "i", "ignore", "ignore line", "Copy the line for pyproject.toml that ignores this code.", "export", 5),
    Action("output.follow", "output", "f", "follow", "follow", "Stay at the end while it grows, or stop.", "view", 2),
)  # fmt: skip

_NAMES = {
    "slash": "/", "question_mark": "?", "escape": "esc", "left_square_bracket": "[", "right_square_bracket": "]",
    "plus": "+", "equals_sign": "=", "minus": "-",
    "comma": ",", "full_stop": ".", "pageup": "PgUp", "pagedown": "PgDn", "up": "↑", "down": "↓", "left": "←",
    "right": "→", "shift+tab": "⇧tab",
}  # fmt: skip


_KEYS = {shown: name for name, shown in _NAMES.items() if len(shown) == 1}  # the other way round
_LOOK = frozenset({"line.copy", "pane.zoom"})
PANES = frozenset({"lines", "text", "table"})  # scopes of panes; others are of a screen
# Panes and screens that are never on the screen at one time.
_APART = (
    {"text", "table"},
    {"timeline", "functions", "program", "arrays", "findings", "output"},
    {"timeline", "functions", "machines", "arrays", "findings", "output"},
)


def of(scopes: Iterable[str], table: Sequence[Action] = ACTIONS) -> list[Action]:
    """The actions of some scopes, in the order of the scopes."""
    return [a for scope in scopes for a in table if a.scope == scope]


def remapped(keys: Mapping[str, str]) -> tuple[Action, ...]:
    """The table with other keys for some ids, as a person writes them: ``"x"``, ``"ctrl+f,/"``, ``"^f"``.

    Raises:
      UsageError: there is no such id, a key is none, or two actions would hear one key.
    """
    for id in keys:
        if id not in {a.id for a in ACTIONS}:
            near = difflib.get_close_matches(id, [a.id for a in ACTIONS], 1, 0.4)
            hint = f"did you mean {near[0]}?" if near else f"it is one of: {', '.join(a.id for a in ACTIONS)}"
            raise UsageError(f"there is no action {id!r} to give keys to", hint=hint, slug="config-key")
    table = tuple(a._replace(keys=_normal(a.id, keys[a.id])) if a.id in keys else a for a in ACTIONS)
    for action in table:
        for other in table:
            both = set(action.keys.split(",")) & set(other.keys.split(",")) - {""}
            if action.id in keys and other is not action and both and _together(action.scope, other.scope):
                raise UsageError(
                    f"{spelled(both.pop())!r} would be the key of both {action.id} and {other.id}",
                    hint=f"give {other.id} another one too",
                    slug="config-key",
                )
    return table


def _normal(id: str, keys: str) -> str:
    found = [k.strip() or k for k in keys.split(",")] if keys != "," else [keys]
    if not all(found) or any(" " in k.strip() for k in found):
        raise UsageError(f"{keys!r} is no key for {id}", hint='for example: "x" or "ctrl+f,slash"', slug="config-value")  # fmt: skip
    long = (k.replace("^", "ctrl+", 1) if k.startswith("^") and len(k) > 1 else k for k in found)
    return ",".join("space" if k == " " else _KEYS.get(k, k) for k in long)


def _together(a: str, b: str) -> bool:
    return a == b or not any(a in scopes and b in scopes for scopes in _APART)


def bindings(scope: str) -> list[Binding]:
    """What Textual needs to hear the keys of one scope."""
    from textual.binding import Binding  # late: who reads the configuration needs the ids alone

    return [Binding(a.keys, a.does, a.words, show=False, priority=a.prior, id=a.id) for a in ACTIONS if a.scope == scope and a.keys]  # fmt: skip


def spelled(keys: str, *, all_of_them: bool = False) -> str:
    """Keys as people read them: ``/``, ``^p``, ``j or ↓``."""
    found = [_NAMES.get(k, k.replace("ctrl+", "^")) for k in keys.split(",")]
    return " or ".join(found) if all_of_them else found[0]


def key_of(id: str, table: Sequence[Action] = ACTIONS) -> str:
    """The key of an action as people read it."""
    return next(spelled(a.keys) for a in table if a.id == id)


def sections(able: Iterable[Action]) -> dict[str, list[Action]]:
    """The actions of one help page by heading, in the order of the headings."""
    found: dict[str, list[Action]] = {name: [] for name in ("This screen", "Move", "Look", "Program")}
    for action in able:
        if action.scope not in PANES | {"app"}:
            name = "This screen"
        elif (
            action.id.startswith(("line.", "pane.", "view.")) and action.id not in _LOOK
        ) or action.id == "back":
            name = "Move"
        else:
            name = "Program" if action.group == "run" or action.does == "leave" else "Look"
        found[name].append(action)
    return {name: actions for name, actions in found.items() if actions}


def namespaced(action: Action) -> str:
    """Textual's action with where it is looked up: the app, the pane with the focus, or the screen."""
    where = "app" if action.scope == "app" else "focused" if action.scope in PANES else "screen"
    return f"{where}.{action.does}"


def footer(scopes: Iterable[str], width: int, table: Sequence[Action] = ACTIONS) -> list[Action]:
    """The actions for one line: what is most needed first to get room, then in the table's order."""
    able = [a for a in of(scopes, table) if a.footer and a.keys]
    chosen: list[Action] = []
    left = width - 1
    for action in sorted(able, key=lambda a: a.footer):
        need = len(spelled(action.keys)) + len(action.words) + 3
        if need <= left:
            chosen.append(action)
            left -= need
    return [a for a in able if a in chosen]
