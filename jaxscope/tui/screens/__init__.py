"""The screens of the terminal view, one in each module. A screen defines its panes, and what moving the
cursor in one pane changes in the others."""
