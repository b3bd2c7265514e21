"""Define all actions of the terminal view and their keys in one table. Bindings, footer, command palette and
help are built from this table."""

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
    """One command of the terminal view.

    Attributes:
      id: the name of the action in the configuration of keys, for example ``pane.zoom``.
      scope: where the action applies: everywhere (``app``), in one kind of pane (``lines``, ``text``,
        ``table``) or in the screens whose ``SCOPES`` have this name (for example ``arrays``).
      keys: its keys in Textual's names, separated by commas; the first is displayed. With an empty text the
        action is only in the command palette, until the user configures a key.
      does: the method that the action calls, as Textual writes it, with arguments: ``zoom`` calls
        ``action_zoom()``, ``move(-1)`` calls ``action_move(-1)``.
      words: its label in the footer and the palette.
      help: a sentence about what it does.
      group: its group in the palette; empty: it is not in the palette.
      footer: its priority if the footer has no room for all actions, 1 first; 0: it is never in the footer.
      prior: whether the key is handled before the focused widget sees it, and also in dialogs.
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
    Action("find", "app", "slash", "find", "find", "Search a text or filter a table; esc ends the search.",
        "find", 3),
    Action("back", "app", "escape,backspace", "back", "back",
        "Close a notice, end a search, leave a zoomed pane, return to the previous pane or screen."),
    Action("pane.next", "app", "tab", "focus_next", "next pane", "Go to the next pane.", "", 4),
    Action("pane.previous", "app", "shift+tab", "focus_previous", "previous pane",
        "Go to the previous pane."),
    Action("pane.zoom", "app", "z", "zoom", "zoom", "Show only the focused pane, or all panes again.", "view",
        5),
    Action("pause", "app", "p", "pause", "pause", "Pause the updates from the program, or resume them.",
        "run", 6),
    Action("source", "app", "o", "source", "editor", "Open $EDITOR at the source line of the selection.",
        "view", 5),
    Action("ranks", "app", "R", "ranks", "ranks",
        "List the groups of equal ranks of the job, and where they differ; enter opens a rank.", "go"),
    Action("export", "app", "e", "export", "export", "Write the screen, the report or programs to files.", "",
        7),
    Action("export.text", "app", "", "export_text", "this screen as text",
        "Write this screen as a text file.", "export"),
    Action("export.svg", "app", "", "export_svg", "this screen as SVG", "Write this screen as an SVG image.",
        "export"),
    Action("export.json", "app", "", "export_json", "report as JSON",
        "Write the output of jaxscope report --format json.", "export"),
    Action("export.programs", "app", "", "export_programs", "texts of this program",
        "Write StableHLO, HLO and cache key of the selected compilation.", "export"),
    Action("theme", "app", "ctrl+t", "theme", "dark or light", "Switch between dark and light colors.",
        "theme"),
    Action("help", "app", "question_mark,f1", "help", "help", "Explain this pane and its keys.", "view", 2),
    Action("palette", "app", "ctrl+p,ctrl+o", "command_palette", "palette",
        "Find any command or function by name.", "", 6),
    Action("quit", "app", "q,ctrl+q", "leave", "quit",
        "Quit. If the program was started here and still runs, choose whether it continues.", "run", 1),
    Action("interrupt", "app", "ctrl+c", "leave", "quit", "Quit, also from a dialog or a search line.",
        prior=True),
    Action("line.up", "lines", "up,k", "move(-1)", "up", "Move one line up."),
    Action("line.down", "lines", "down,j", "move(1)", "down", "Move one line down."),
    Action("line.page_up", "lines", "pageup", "page(-1)", "page up", "Move one page up."),
    Action("line.page_down", "lines", "pagedown,space", "page(1)", "page down", "Move one page down."),
    Action("line.half_up", "lines", "ctrl+u", "half(-1)", "half a page up", "Move half a page up."),
    Action("line.half_down", "lines", "ctrl+d", "half(1)", "half a page down", "Move half a page down."),
    Action("line.top", "lines", "g,home", "top", "top", "Go to the first line."),
    Action("line.bottom", "lines", "G,end", "bottom", "bottom", "Go to the last line."),
    Action("line.left", "lines", "left,h", "aside(-1)", "left",
        "Scroll to the left; in the timeline, choose the previous compilation."),
    Action("line.right", "lines", "right,l", "aside(1)", "right",
        "Scroll to the right; in the timeline, choose the next compilation."),
    Action("line.open", "lines", "enter", "open", "open", "Open the details of this line.", "", 1),
    Action("line.copy", "lines", "y", "copy", "copy", "Copy the line to the clipboard.", "export", 7),
    Action("text.next", "text", "n", "next_match(1)", "next", "Go to the next match."),
    Action("text.previous", "text", "N", "next_match(-1)", "previous", "Go to the previous match."),
    Action("text.linked", "text", "right_square_bracket", "next_linked(1)", "linked",
        "Go to the next line linked with the other pane."),
    Action("text.linked_before", "text", "left_square_bracket", "next_linked(-1)", "previous linked",
        "Go to the previous linked line."),
    Action("table.sort", "table", "s", "sort", "sort",
        "Sort by the next column; after the last, in the default order.", "view", 5),
    Action("timeline.closer", "timeline", "plus,equals_sign", "zoom_time(1)", "zoom in",
        "Show half as much of the run, around the selected function's compilations.", "view", 5),
    Action("timeline.wider", "timeline", "minus", "zoom_time(-1)", "zoom out",
        "Show twice as much of the run.", "view", 5),
    Action("timeline.earlier", "timeline", "comma", "move_time(-1)", "earlier",
        "Show the previous part of the run.", "view"),
    Action("timeline.later", "timeline", "full_stop", "move_time(1)", "later",
        "Show the next part of the run.", "view"),
    Action("functions.star", "functions", "w", "star", "star", "Keep this function at the top of the list.",
        "view", 6),
    Action("functions.program", "functions", "m", "program", "program",
        "Show the program of this compilation.", "go", 3),
    Action("functions.compare", "functions", "c", "compare", "compare",
        "Compare its key with a compilation you choose instead of the nearest.", "view", 4),
    Action("program.fusions", "program", "f", "fusions", "fusions",
        "List the fusions by bytes; enter goes to one.", "view", 5),
    Action("program.diff", "program", "d", "diff", "diff",
        "Compare this program with that of another compilation.", "view", 5),
    Action("program.earlier", "program", "comma", "other(-1)", "earlier", "Go to the previous compilation.",
        "go", 4),
    Action("program.later", "program", "full_stop", "other(1)", "later", "Go to the next compilation.", "go",
        4),
    Action("machines.next", "machines", "t", "machine(1)", "target",
        "Show the program compiled for the next target (jaxscope run --target).", "view"),
    Action("machines.beside", "machines", "T", "machines", "targets",
        "Compare the program's targets side by side; enter selects one.", "view"),
    Action("arrays.earlier", "arrays", "comma", "look(-1)", "earlier",
        "Show the previous snapshot of the arrays.", "go", 4),
    Action("arrays.later", "arrays", "full_stop", "look(1)", "later", "Show the next snapshot.", "go", 4),
    Action("findings.hide", "findings", "x", "hide", "hide code",
        "Hide findings with this code until you quit, or show them again.", "view", 4),
    Action("findings.ignore", "findings", "i", "ignore", "ignore line",
        "Copy a line for pyproject.toml that ignores this code.", "export", 5),
    Action("output.follow", "output", "f", "follow", "follow",
        "Follow the end of the output, or stop following.", "view", 2),
)  # fmt: skip

_NAMES = {
    "slash": "/", "question_mark": "?", "escape": "esc", "left_square_bracket": "[",
    "right_square_bracket": "]",
    "plus": "+", "equals_sign": "=", "minus": "-",
    "comma": ",", "full_stop": ".", "pageup": "PgUp", "pagedown": "PgDn", "up": "↑", "down": "↓", "left": "←",
    "right": "→", "shift+tab": "⇧tab",
}  # fmt: skip


_KEYS = {shown: name for name, shown in _NAMES.items() if len(shown) == 1}
_LOOK = frozenset({"line.copy", "pane.zoom"})
PANES = frozenset({"lines", "text", "table"})  # scopes of panes; all others but app belong to screens
# In each set, scopes that are never displayed together: two of them may use the same key.
_APART = (
    {"text", "table"},
    {"timeline", "functions", "program", "arrays", "findings", "output"},
    {"timeline", "functions", "machines", "arrays", "findings", "output"},
)


def in_scopes(scopes: Iterable[str], table: Sequence[Action] = ACTIONS) -> list[Action]:
    """Return the actions of ``table`` whose ``scope`` is one of ``scopes``, in the order of ``scopes``. See
    ``Action`` for what a scope is."""
    return [a for scope in scopes for a in table if a.scope == scope]


def remapped(keys: Mapping[str, str]) -> tuple[Action, ...]:
    """Return all actions, with the user's keys in place of the default keys. ``keys`` is action id ->
    configured keys, such as ``x``, ``ctrl+f,/`` or ``^f``.

    Raises:
      UsageError: an id does not exist, a key is empty or has a space, or a configured key is already the key
        of another action that may apply at the same time.
    """
    for id in keys:
        if id not in {a.id for a in ACTIONS}:
            near = difflib.get_close_matches(id, [a.id for a in ACTIONS], 1, 0.4)
            hint = f"did you mean {near[0]}?" if near else f"it is one of: {', '.join(a.id for a in ACTIONS)}"
            raise UsageError(
                f"there is no action named {id!r} in [tool.jaxscope.keys]", hint=hint, slug="config-key"
            )
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
    """Return the configured ``keys`` of the action ``id`` in Textual's names: ``^f,/`` gives
    ``ctrl+f,slash``. Raise UsageError for an empty key, or one with a space."""
    found = [k.strip() or k for k in keys.split(",")] if keys != "," else [keys]
    if not all(found) or any(" " in k.strip() for k in found):
        hint = 'for example: "x" or "ctrl+f,slash"'
        raise UsageError(f"{keys!r} cannot be a key for {id}", hint=hint, slug="config-value")
    long = (k.replace("^", "ctrl+", 1) if k.startswith("^") and len(k) > 1 else k for k in found)
    return ",".join("space" if k == " " else _KEYS.get(k, k) for k in long)


def _together(a: str, b: str) -> bool:
    """Return whether actions with the scopes ``a`` and ``b`` may apply at the same time, and so need
    different keys."""
    return a == b or not any(a in scopes and b in scopes for scopes in _APART)


def bindings(scope: str) -> list[Binding]:
    """Return Textual's key bindings for the actions with the given ``scope`` (see ``Action``), with the
    default keys. Actions without a key get no binding."""
    from textual.binding import Binding  # late: reading the configuration needs only the ids

    return [
        Binding(a.keys, a.does, a.words, show=False, priority=a.prior, id=a.id)
        for a in ACTIONS
        if a.scope == scope and a.keys
    ]


def spelled(keys: str, *, all_of_them: bool = False) -> str:
    """Return the first of ``keys`` as it is displayed: ``ctrl+p,ctrl+o`` -> ``^p``. ``keys`` are in Textual's
    names, separated by commas. With ``all_of_them``, return all keys: ``^p or ^o``."""
    found = [_NAMES.get(k, k.replace("ctrl+", "^")) for k in keys.split(",")]
    return " or ".join(found) if all_of_them else found[0]


def key_of(id: str, table: Sequence[Action] = ACTIONS) -> str:
    """Return the first key of the action ``id`` as it is displayed: ``/`` for ``find``. ``table`` has the
    actions with their keys."""
    return next(spelled(a.keys) for a in table if a.id == id)


def sections(able: Iterable[Action]) -> dict[str, list[Action]]:
    """Return the actions ``able`` by the heading under which the help page lists them: "This screen", "Move",
    "Look" or "Program". A heading without an action is not in the result."""
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
    """Return the call of an action as Textual writes it, after the object that performs it: ``app.find``,
    ``focused.top`` (the focused pane) or ``screen.star``."""
    where = "app" if action.scope == "app" else "focused" if action.scope in PANES else "screen"
    return f"{where}.{action.does}"


def footer(scopes: Iterable[str], width: int, table: Sequence[Action] = ACTIONS) -> list[Action]:
    """Return the actions to show in a footer of ``width`` characters, in the order of ``scopes``. If there is
    not room for all, those with the highest priority (``Action.footer``) are chosen first. Actions without a
    key are left out.

    Args:
      scopes: only actions with one of these scopes are shown.
      table: the actions to choose from.
    """
    able = [a for a in in_scopes(scopes, table) if a.footer and a.keys]
    chosen: list[Action] = []
    left = width - 1
    for action in sorted(able, key=lambda a: a.footer):
        need = len(spelled(action.keys)) + len(action.words) + 3
        if need <= left:
            chosen.append(action)
            left -= need
    return [a for a in able if a in chosen]
