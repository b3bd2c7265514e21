"""The rules: each reads a recorded run and returns findings, which are problems that a change of the user's
program would mend. A finding has evidence, and advice that a test tries."""
