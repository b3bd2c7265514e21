"""Templates for checks: compilations after step N, limits, baselines (JX190, JX19x, JX49x, JX59x, JX7xx)."""

TEMPLATES = {
    # -- comments that exclude findings --------------------------------------------------------------------
    "comment-excludes-nothing": "the comment '# jaxscope: ignore' excludes no finding",
    "comment-without-code": (
        "the comment '# jaxscope: ignore' has no valid code: write # jaxscope: ignore[JX101]"
    ),
    "comment-of-no-rule": "the comment '# jaxscope: ignore' has the code {code}, which is not a rule: {hint}",
    "codes-exclude-nothing": "the comment '# jaxscope: ignore[{codes}]' excludes no finding",
    "fix-remove-comment": "remove the comment, unless another program needs it",
    "compiled-late": "{function} was {done}{when}: {cause}{also}",
    "compiled-late-variously": "{function} was {done}{when}; most recently: {cause}{also}",
    "fix-record-all": (
        "record the whole program (jaxscope run, or jaxscope.record() around it) to learn what changed"
    ),
    "fix-warm-up": (
        "call the function with the same kind of arguments {when}, or allow compilations in more steps"
    ),
    "by-step": "in one of the first {n} steps",
    "before": "earlier",
    "program-number": "program {n} of {name}",
    "program-for-target": "{program} for {target}",
    "too-many-compilations": "{count}{which}; most recently {function}: {cause}",
    "compiled-all-times": "your functions were compiled {times}, {limit} allowed",
    "compiled-own-times": "{function} was compiled {times}, {limit} allowed",
    "exceeded-with-these": "including these compilations, {count} ({code})",
    "compiled-times": "{function} {times}",
    "once": "once",
    "in-parentheses": " ({parts})",
    "others-were-late": "; {n} of them were too late ({code}), the others not{listed}",
    "fix-or-allow-more-compilations": "{fix}, or allow more compilations",
    "fix-one-jit": "write one function that calls these functions, and jit that function only",
    "fix-equal-calls": (
        "find in this message what changed between the calls, and pass it in the same way in every call"
    ),
    "unknown-seconds": "how long tracing, lowering and compiling took is unknown",
    "too-many-seconds": (
        "tracing, lowering and compiling took {spent}, {limit} allowed; the slowest: {slowest}"
    ),
    "seconds-of-function": "{function} {seconds}",
    "slowest-compilation": "{function}: {seconds}",
    "too-many-seconds-of-function": (
        "{function} was traced, lowered and compiled for {spent}, {limit} allowed"
    ),
    "longest-of": "{text}; the longest of {compilations} took {seconds}",
    "fix-smaller-program": (
        "compile less often, or make the programs smaller (jaxscope report shows what they consist of)"
    ),
    "too-much-memory-temporaries": "{program} uses {used} of temporaries per device, {limit} allowed{parts}",
    "too-much-memory-peak": "{program} uses {used} at its peak per device, {limit} allowed{parts}",
    "largest-arguments": "the largest {arguments}",
    "memory-shared": "minus {bytes} that arguments and results share",
    "memory-not-all-at-once": "not all at the same time",
    "memory-added": "and {bytes} that the compiler adds, such as constants{code}",
    "memory-of-code": " ({bytes} of code may be included)",
    "unknown-memory": "{program}: its memory ({what}) is unknown",
    "fix-use-less-memory": (
        "donate arguments that are not needed after the call, shard the largest arrays, or compute them again"
        " in the backward pass (jax.checkpoint)"
    ),
    "too-much-replicated": (
        "{program} uses {used} of replicated arguments per device, {limit} allowed: {largest}"
    ),
    "bytes-on-devices": "{path} {bytes} on {devices} devices",
    "unknown-replicated-arguments": "{program}: which of its arguments are replicated is unknown",
    "unknown-replication": "{program}: whether {paths} is replicated is unknown",
    "fix-shard-replicated": (
        "shard the largest argument over the mesh axis along which it is replicated (PartitionSpec), or"
        " raise the limit"
    ),
    "too-many-constants": "{program} captured {used} of constants, {limit} allowed: {largest}",
    "unknown-constants": (
        "{program}: its constants are unknown, because its text was not kept (record with --ir all to"
        " keep it)"
    ),
    "unknown-constant-size": "{program}: the size of a constant is unknown",
    "fix-pass-constant": "pass the constant as an argument",
    "too-many-collectives": "{program} has {used} {what}, {limit} allowed; the largest: {largest}",
    "too-many-collective-bytes": (
        "{program} has {used} of {what} per call, {limit} allowed; the largest: {largest}"
    ),
    "collectives-meant": "{kind}{axis}",
    "collective": "{kind}{axes}{amount}{times}{origin}",
    "of-bytes": " of {bytes}",
    "executions-per-call": ", {n} times per call",
    "executions-unknown": ", executions unknown",
    "collective-written": ", written in the program",
    "collective-inserted": ", inserted by the partitioner",
    "unmeasured-collectives": "{program}: {n} of its {what} cannot be measured: {first}",
    "unknown-collectives": (
        "{program}: its collectives are unknown, because its compiled text was not kept (record with"
        " --ir all to keep it)"
    ),
    "unknown-collectives-too-large": (
        "{program}: its collectives are unknown, because the program does not fit into the target"
    ),
    "fix-less-communication": "use the same sharding for all operands of this line, or raise the limit",
    "baseline-recompiled": "{total}:{times} {cause}",
    "baseline-recompiled-otherwise": "{function} recompiles for a new reason:{times} {cause}",
    "baseline-times": " {n} times, most recently because",
    "baseline-program": "{program}: {title}{change}",
    "figure-unknown-now": "{figure} unknown now, {before} in the baseline",
    "number-in-baseline": "{now} {what}, {before} in the baseline",
    "change-of": "{what}: {change}",
    "collective-in-function": "{collective} in {function}",
    "figures": "{figures}",
    "memory-per-device": "memory per device: {figures}",
    "loops-unrolled": (
        "{loops}; a loop was unrolled: a block of {length} operations is repeated {times} times"
    ),
    "fix-find-collective": (
        "'jaxscope report' shows the line of each collective; use the same sharding for all operands of the"
        " operation on that line"
    ),
    "fix-restore-precision": "restore the precision and dtypes",
    "fix-keep-scan": "write the loop as a jax.lax.scan again",
    "fix-no-callback": "return the value and use it outside the function",
    "fix-shard-operands": "shard the operands over the mesh as before",
    "fix-compare-fusions": (
        "compare a run before the change with this run: jaxscope diff shows from which lines the fusions come"
    ),
    "fix-find-memory": "jaxscope report shows what uses the memory",
    "baseline-change": ": {change}",
    "baseline-more-figures": "{title}; {more} worse for the same reason",
    "one-more-figure": "1 more figure is",
    "more-figures": "{n} more figures are",
    "baseline-other": "{code} {program}: {title}",
    "baseline-improved": "better than in the baseline: {figures}",
    "fix-or-accept": "{fix}; if the change is intended: jaxscope check --update-baseline",
    "fix-accept": "if the change is intended: jaxscope check --update-baseline",
    "fix-update-baseline": "jaxscope check --update-baseline",
    "fix-save-improvement": "save the new figures: jaxscope check --update-baseline",
    "fix-show-keys": (
        "jaxscope report --function {function} shows both keys; if the change is intended: jaxscope check"
        " --update-baseline"
    ),
    "baseline-of-other-environment": (
        "the baseline was skipped, because it is from another environment: {differences}"
    ),
    "environment-differs": "{what} {before}, this run {now}",
    "environment-unknown": "unknown",
    "fix-same-environment": (
        "compare in the environment of the baseline, or keep one baseline for each environment (--baseline"
        " FILE)"
    ),
    "baseline-renamed": "{before} of the baseline seems to have a new name, {now}: the two are compared",
    "baseline-of-other-program": (
        "this run compiled none of the functions in the baseline: was it written from another program?"
    ),
    "fix-own-baseline": "give each program its own baseline: --baseline FILE",
    "baseline-findings-gone": "findings of the baseline that no longer occur: {findings}",
    "baseline-function-gone": "{function} is in the baseline but was not compiled in this run",
    "fix-run-or-remove": (
        "run the program that the baseline was written from, or remove the entry: jaxscope check"
        " --update-baseline"
    ),
    "baseline-new-function": "{function} is {counted} but is not in the baseline",
    "counted-compiled": "compiled {n}x",
    "counted-lowered": "lowered {n}x",
    "counted-traced": "traced {n}x",
    "called-here": "called here",
    "called-inside-trace": "called here, inside another trace",
    "called-under-transform": "called here, under a transform such as grad or vmap",
    "prepared-ahead-of-time": "traced, lowered or compiled ahead of time here",
    "fix-call-inside": "call it inside a function that is already compiled in the baseline",
    "baseline-count": "{counted}, {before}x in the baseline",
    "baseline-counted": "{function} is {counted}",
    "baseline-counted-anew": "{function} is {counted}, each time as the first compilation in its process",
    "baseline-function-improved": "{function} improved: {counts}",
    "baseline-eager-operations": "{function} compiles operations outside jit: {operations}",
    "baseline-operation": "{operation} {now}x ({before}x in the baseline)",
    "fix-jit-or-numpy": "move these operations into a jitted function, or do them in NumPy",
    "baseline-fewer-operations": "fewer operations are compiled outside jit: {operations}",
    "operation-of-function": "{function}: {operation}",
    "and-so-on": "...",
    "traced-and-compiled": "traced and compiled",
    "lowered-and-compiled": "lowered and compiled",
    "traced-and-lowered": "traced and lowered",
    "done": "{phases}{cached}{times}",
    "from-persistent-cache": " (from the persistent cache)",
    "done-times": " {n} times",
    "where-nothing-may-compile": ", where nothing may compile",
    "in-step-after": " in step {step}, but nothing may compile after step {n}",
    "in-steps-after": " in steps {first} to {last}, but nothing may compile after step {n}",
    "eager-operation": "the eager operation {name}",
    "function-without-name": "a function whose name is unknown",
    "function-of-library": "{name}, a function of {library},",
    "maybe-late": (
        "it is unknown whether {compilations} ({functions}) happened before or after step {step}: {reason}"
    ),
    "a-compilation": "a compilation",
    "mark-and-calls-disagree": (
        "jaxscope.step() and the calls of the watched step function give different numbers of steps"
    ),
    "several-functions-watched": "several functions are watched, and none of them with step=True",
    "process-without-steps": "the steps of process {pid} are not counted",
    "fix-count-in-one-way": (
        "count the steps in one way: jaxscope.step() at the end of each step, or @jaxscope.watch(step=True)"
        " on the step function"
    ),
    "not-checked": "not checked: {error}",
    "setting-not-checked": "this setting cannot be checked: {error}",
    "run-not-ended": "the run is not finished: only what it has done so far is checked",
    "checked-until-failure": "{failure}: only what it did until then is checked",
    "program-killed": "the program was killed by {signal}",
    "program-raised": "the program failed with {error}{message}{code}",
    "error-message": ": {message}",
    "exit-code": " (exit code {code})",
    "program-exited": "the program exited with code {code}",
    "of-setting": "{setting}: {text}",
    "recording-stopped": (
        "the recording{processes} stopped ({reason}): what the program did afterwards is unknown"
    ),
    "of-processes": " of {processes}",
    "log-without-end": "the log is incomplete: the program was killed, or the log was cut short",
    "log-of-program-without-end": (
        "the program's log is incomplete: the program called os._exit, or the recording failed"
    ),
    "no-such-function": "no function called {pattern} was compiled: check the spelling",
    "no-such-axis": "a limit is set for the mesh axis {axis}, which no mesh of this run has",
    "fix-similar-name": "did you mean {name}?",
    "fix-known-axes": "the axes of this run: {axes}",
    "target-not-compiled-for": "limits are set for {target}, but the run was not compiled for it",
    "program-for-target-unknown": "{program} for {target} is unknown: {reason}",
    "function-not-compiled-for": "{function} was compiled, but not for {target}",
    "nothing-lowered-for": "none of your functions was lowered for {target}",
    "target-program-skipped": "it was not lowered: {reason}",
    "target-program-compiling": "it is still being compiled (jaxscope run --wait-targets waits)",
    "target-program-waiting": (
        "it is still waiting for the compiler{behind} (jaxscope run --wait-targets waits)"
    ),
    "of-another-run": " of another run",
    "target-program-failed": "it was not compiled ({state}): {reason}",
    "no-reason-given": "no reason was given",
    "transfers-not-recorded": (
        "transfers between host and devices are not compared with the baseline: this run did not record them"
    ),
    "fix-record-transfers": "record with --transfers, like the baseline",
    "baseline-fewer-transfers": "fewer transfers: {lines}",
    "baseline-line-moves": "{function}: {way} {now}x, {before}x in the baseline",
    "baseline-more-transfers": (
        "{function} moves data with {kind} ({direction}) {now}x{steps}, {before}x{earlier} in the"
        " baseline{text}"
    ),
    "within-steps": " in {steps}",
    "transferred-times": "{text} {n}x",
    "fix-copy-seldom": "keep the value on the device, and copy it only every few steps",
    "metrics-not-recorded": (
        "not compared with the baseline, because this run did not record them: {metrics}"
    ),
    "metric-of-program": "{metric} of {program}",
    "fix-record-programs": "record with --ir all, like the baseline",
    "baseline-new-arguments": (
        "{function} is compiled for arguments that the baseline does not have{programs}{change}"
    ),
    "number-of-programs": " ({n} programs)",
    "baseline-no-counterpart": "{program} matches no program of the baseline and was not compared: {changes}",
    "argument-new": "{path} is new ({after})",
    "argument-removed": "{path} was removed ({before})",
    "argument-changed": "{path} changed from {before} to {after}",
    "fix-same-arguments": "pass arguments with the same shapes and dtypes as in the baseline",
    "fix-argument-as-before": "pass {path} as {before} again",
    "arrays-donated": "{now} arrays of {argument} are donated, {before} in the baseline",
    "no-longer-donated": "{argument} is no longer donated: {before} reused in the baseline",
    "one-array-was": "1 array was",
    "arrays-were": "{n} arrays were",
    "fewer-donated": (
        "XLA reuses the memory of {now} donated arrays of {argument}; in the baseline it reused {before}"
    ),
    "donated-in-vain": "{arrays} of {argument} are donated without effect, {before} in the baseline",
    "wasted-per-device": "{text} ({bytes} more memory per device)",
    "donation-status": "{path}: {status}{reason}",
    "donation-reason": ", {reason}",
    "fix-donate-argument": (
        "donate it with donate_argnames={argument}, and return it with the same shape and dtype"
    ),
}
