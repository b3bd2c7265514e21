"""What a check finds: compilations after step N, more than a limit allows, more than in the baseline (JX190,
JX19x, JX7xx).
"""

TEMPLATES = {
    "compiled-late": "{function} was {done}{when}: {cause}{also}",
    "compiled-late-variously": "{function} was {done}{when}; most recently: {cause}{also}",
    "fix-record-all": (
        "record the whole program (jaxscope run, or jaxscope.record() around it) to learn what changed"
    ),
    "fix-warm-up": "call it with such arguments {when}, or let more steps compile",
    "too-many-compilations": "{count}{which}{listed}; most recently {function}: {cause}",
    "baseline-recompiled": "{total}:{times} {cause}",
    "baseline-recompiled-otherwise": "{function} recompiles for a new reason:{times} {cause}",
    "baseline-times": " {n} times, most recently because",
}
