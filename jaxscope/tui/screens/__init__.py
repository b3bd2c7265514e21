"""The screens, one in each module: its panes, and how moving in one pane changes the others."""
