"""Templates for processes of one job that do not run the same programs in the same order (JX850 to JX854)."""

TEMPLATES = {
    "rank-named": "rank {numbers}",
    "ranks-named": "ranks {numbers}",
    "the-other-ranks": "the others",
    "program-of-line": "{function} at {line}",
    "after-program": " after {program}",
    "ranks-other-program": "{ranks} compiled {program}{after}, but {others} compiled {other}",
    "ranks-other-version": "{ranks} and {others} compiled different programs for {program}{after}",
    "ranks-differ-in": "{finding}; first difference: {difference}",
    "rank-extra-program": "{ranks} compiled {program}{after}; {others} did not",
    "rank-missing-program": "{ranks} did not compile {program}{after}; {others} did",
    "ranks-other-order": (
        "{ranks} compiled {program}{after}, but {others} compiled {other}: the order differs"
    ),
    "ranks-other-step": (
        "{ranks} compiled {program} in step {step}, {others} in step {other}: the order differs"
    ),
    "argument-differs": "{path} is {value} on {ranks}, {other} on {others}",
    "setting-differs": "the setting {name} is {value} on {ranks}, {other} on {others}",
    "line-differs": "{line}: {here} on {ranks}, {there} on {others}",
    "rank-compiled": "{ranks} compiled {function}",
    "rank-ended-first": "{ranks} ended first{how}{behind}{last}; the others continued for {later}",
    "rank-left": ", without a recorded error",
    "rank-raised": ", by an uncaught {error}",
    "rank-signal": ", by signal {number}",
    "rank-exit-code": ", with exit code {code}",
    "rank-last": "; its last compilation was {program}",
    "rank-behind": ", after {steps} steps (the others counted {others})",
    "rank-exit-code-of": "{ranks} ended with exit code {code}",
    "ranks-other-collectives": (
        "{ranks} compiled {function} with other collectives than {others}, or in another order, although the"
        " program was the same before XLA compiled it"
    ),
    "ranks-caught-up": "{ranks} compiled {function} meanwhile: there is no difference any more",
    "ranks-no-progress": "no progress for {time}: {groups}",
    "rank-line": " at {line}",
    "rank-at-step": ", step {step}",
    "rank-last-program": ", last program {program}",
    "rank-waits-at": "{ranks} waiting{line} (for {time}{step}{last})",
    "rank-runs-at": "{ranks} running{line} (nothing recorded for {time}{step}{last})",
    "rank-was-at": "{ranks} last seen{line} ({time} ago{step}{last})",
    "rank-in-trace": "{ranks} tracing{line} (for {time}{step}{last})",
    "rank-in-lower": "{ranks} lowering{line} (for {time}{step}{last})",
    "rank-in-compile": "{ranks} compiling{line} (for {time}{step}{last})",
    "rank-has-left": "{ranks} left the program{line} ({time} ago{step}{last})",
    "ranks-left-first": "{ranks} left the program while most of the others continued",
    "fix-same-on-all-ranks": (
        "make every process call the same functions, in the same order, with the same shapes and constants."
        " Do not branch on jax.process_index(), and do not use a value that differs between processes as a"
        " constant or a shape"
    ),
    "fix-ended-first": (
        "look at the output of rank {rank} first: the messages of the other ranks are only a consequence"
    ),
    "fix-same-compiler": (
        "use the same JAX, the same XLA_FLAGS and the same compiler settings in all processes"
    ),
}
