"""Define the colors and the layout of the terminal view, as theme variables and Textual CSS."""

from __future__ import annotations

import os

from textual.css.stylesheet import Stylesheet

# The colors of jaxscope's own styles, in dark and in light themes. On the screen no meaning depends on a
# color alone: a glyph or a word also shows it. All colors are opaque, because a drawn line ignores opacity:
# "$primary 30%" would look like "$primary".
DARK = {
    "muted": "#9aa4ad", "faint": "#66717b", "marked": "#12395c", "searched": "#6b4a0f", "pressed": "#fea62b",
    "retrace": "#ffb454", "collective": "#d2a6ff", "before": "#f07178", "after": "#aad94c",
    "phase-trace": "#59c2ff", "phase-lower": "#95a5c6", "phase-compile": "#ffb454", "phase-hit": "#aad94c",
    "code-value": "#95c8f0", "code-type": "#7fd1ae", "code-op": "#ffd173", "code-attr": "#b0b8c8",
    "code-string": "#b8dd87", "code-number": "#e6b673", "code-comment": "#7a8290", "code-word": "#ff9a76",
    "code-symbol": "#d2a6ff",
    "shard-0": "#59c2ff", "shard-1": "#ffb454", "shard-2": "#aad94c", "shard-3": "#d2a6ff",
    "shard-4": "#f07178", "shard-5": "#73d0c0", "shard-6": "#e6e1a5", "shard-7": "#f29ecb",
}  # fmt: skip
LIGHT = {
    "muted": "#57606a", "faint": "#858d95", "marked": "#c4ddf5", "searched": "#ffd98a", "pressed": "#9c4a00",
    "retrace": "#a35200", "collective": "#7b3fb5", "before": "#b3262e", "after": "#2f7000",
    "phase-trace": "#0067a3", "phase-lower": "#5c6780", "phase-compile": "#a35200", "phase-hit": "#2f7000",
    "code-value": "#1b5a90", "code-type": "#00695c", "code-op": "#8a4b00", "code-attr": "#4a5568",
    "code-string": "#3b6e00", "code-number": "#9c4a00", "code-comment": "#6b7280", "code-word": "#b23a12",
    "code-symbol": "#7b3fb5",
    "shard-0": "#0067a3", "shard-1": "#a35200", "shard-2": "#2f7000", "shard-3": "#7b3fb5",
    "shard-4": "#b3262e", "shard-5": "#00695c", "shard-6": "#6b5d00", "shard-7": "#a3246b",
}  # fmt: skip


class Rules(Stylesheet):
    """A Textual stylesheet that parses its rules only once. Textual would parse all rules again for each new
    screen, which takes 20 ms each time."""

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._given = dict(variables or {})
        self._parsed: dict[object, object] | None = None

    def set_variables(self, variables: dict[str, str]) -> None:
        if variables != self._given:
            super().set_variables(variables)
            self._given, self._parsed = dict(variables), None

    def parse(self) -> None:
        super().parse()
        self._parsed = dict(self.source)

    def reparse(self) -> None:
        if self._parsed != self.source:
            self.parse()


def is_light() -> bool:
    """Return whether the terminal has a light background according to ``COLORFGBG``. Some terminals set this
    variable, for example to ``0;15``: rxvt, Konsole and iTerm."""
    return os.environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")


# The CSS of the styles that a part of a drawn line can have.
_RULES = {
    "dim": "color: $muted;", "bold": "text-style: bold;", "title": "color: $primary; text-style: bold;",
    "name": "text-style: bold;", "figure": "text-style: bold;", "path": "color: $muted;",
    "error": "color: $text-error; text-style: bold;", "warning": "color: $text-warning;",
    "note": "color: $muted;",
    "good": "color: $text-success;", "retrace": "color: $retrace;",
    "collective": "color: $collective; text-style: bold;",
    "trace": "color: $phase-trace;", "lower": "color: $phase-lower;", "compile": "color: $phase-compile;",
    "hit": "color: $phase-hit;",
    "before": "color: $before;", "after": "color: $after;", "key": "color: $pressed; text-style: bold;",
    "value": "color: $code-value;", "type": "color: $code-type;", "op": "color: $code-op;",
    "attr": "color: $code-attr;",
    "string": "color: $code-string;", "number": "color: $code-number;", "comment": "color: $code-comment;",
    "word": "color: $code-word;", "symbol": "color: $code-symbol;",
    "cursor": "background: $marked; text-style: bold;", "linked": "color: $pressed; text-style: bold;",
    "match": "background: $searched; text-style: bold underline;", "gutter": "color: $faint;",
    "tab": "text-style: bold reverse;",
    "heading": "color: $muted; text-style: underline;",
    **{f"shard{n}": f"color: $shard-{n};" for n in range(8)},
}  # fmt: skip
# Component classes belong to the screen, not to its panes: looking them up for each pane doubled the time to
# switch screens.
COMPONENTS = {f"line--{name}" for name in _RULES}
DIALOG_COLUMNS = 90  # the largest width of a dialog, in characters
_LINES = "\n".join(f"    .line--{name} {{ {rule} }}" for name, rule in _RULES.items())

CSS = f"""
View, ModalScreen {{
{_LINES}
}}
LineView {{
    border-top: solid $foreground 30%; border-title-color: $text-muted;
    border-title-style: bold; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0;
    background: $background; height: 1fr; overflow-x: auto; overflow-y: auto;
}}
LineView:focus {{ border-top: heavy $primary; border-title-color: $primary; }}
Paragraphs {{ width: 1fr; height: auto; }}
#header, #tabs, #footer, #lost, #link, #summary, #machines, #verdict, #chosen {{
    height: 1; text-wrap: nowrap; text-overflow: ellipsis;
}}
#header, #footer {{ background: $panel; }}
#now, #reasons, #detail, #empty {{ padding: 0 1; }}
#finding {{ height: 1; }}
#slash {{ width: 2; color: $primary; }}
#find {{ height: 1; border: none; padding: 0; width: 1fr; background: $surface; }}
#found {{ width: 30; height: 1; text-align: right; text-wrap: nowrap; text-overflow: ellipsis; }}
#columns {{ height: 1fr; }}
#left, #right {{ width: 1fr; height: 1fr; }}
#right {{ margin-left: 1; }}
#steps {{ border-top: solid $foreground 30%; max-height: 4; }}
#functions {{ height: 2fr; }}
Functions #columns {{ height: 3fr; }}
#attempts {{ width: 2fr; }}
Functions #right {{ width: 3fr; }}
#reasons {{ max-height: 5; border-top: solid $foreground 30%; }}
Overview #left {{ width: 3fr; }}
Overview #right {{ width: 2fr; }}
#advised {{ padding: 1 1 0 1; height: 1fr; }}
#timeline {{ height: 8; }}
Arrays #arrays {{ width: 2fr; }}
Arrays #right {{ width: 1fr; }}
Arrays #right Paragraphs {{ padding: 0 1; }}
Arrays.narrow #arrays {{ width: 100%; height: 4fr; }}
Arrays.narrow #right {{ height: 5fr; }}
#below {{ height: auto; max-height: 60%; border-top: solid $foreground 30%; }}
#below #mesh {{ padding: 0 1; }}
.narrow #below {{ layout: vertical; max-height: 13; }}
.short #below {{ max-height: 5; }}
Overview #steps, #compiled {{ height: auto; }}
#compiled {{ padding: 1 1 0 1; height: 1fr; }}
#source {{ width: 4fr; }}
#stablehlo, #hlo {{ width: 5fr; margin-left: 1; }}
.folded {{ width: 0 !important; margin: 0 !important; border: none !important; }}
.narrow #columns {{ layout: vertical; }}
.narrow #left, .narrow #right {{ margin-left: 0; width: 100%; }}
.narrow #attempts {{ width: 1fr; height: 2fr; }}
.narrow #functions {{ height: 2fr; }}
Functions.narrow #columns {{ height: 5fr; }}
Functions.narrow #right {{ height: 3fr; }}
Overview.short #timeline, Overview.short #right {{ display: none; }}
ProgramView.narrow #columns {{ layout: horizontal; }}
Help, Leave, Picker, Page, Ranks {{ align: center middle; }}
#dialog {{
    width: 90%; max-width: {DIALOG_COLUMNS}; height: auto; max-height: 90%;
    border: round $primary; padding: 1 2; background: $surface;
}}
#dialog.tall {{ height: 90%; max-width: 130; padding: 0 1; }}
#dialog.tall LineView {{ background: $surface; }}
#groups {{ height: 1fr; max-height: 40%; }}
#keys {{ height: 1; }}
#wanted {{ height: 1; border: none; padding: 0; background: $boost; }}
"""
