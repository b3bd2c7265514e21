"""One screen a module: which panes there are, and what moving in one means for the others."""
