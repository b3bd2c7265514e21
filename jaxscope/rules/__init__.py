"""The rules. Each rule reads a recorded run and returns findings, each with evidence and advice. A finding is
a problem that a change of the user's program would fix. A page for each rule has example programs, which a
test runs."""
