"""The rules: each reads a recorded run and returns findings, which are problems that a change of the user's
program would fix. A finding has evidence and advice. Each rule has a page with example programs, which a test
runs."""
