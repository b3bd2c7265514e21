"""Templates for recompiles and the advice about them (JX101 to JX130)."""

TEMPLATES = {
    # -- titles ------------------------------------------------------------------------------------------
    "recompiled": "{function} recompiled: {cause}{than}{also}",
    "recompiled-alike": "{function} recompiled {n} times: {cause}{than}{also}",
    "recompiled-variously": "{function} recompiled {n} times, most recently: {cause}{than}{also}",
    "compared-with": " (compared with #{number}, the nearest earlier call)",
    "also-recompiled": "; the same change also recompiled {names}",
    "more-functions": "{n} more functions",
    "an-eager-operation": "an eager operation",
    "eager-operations": "{n} eager operations",
    "off-fast-path": "{function} missed JAX's fast path in {calls}, so they were slower: {cause}{than}",
    "evicted-from-fast-path": "{function} was evicted from JAX's fast-path cache: {cause}",
    "carried-state": "{function}: {prediction}",
    "prediction": "if its result{result} is passed as {argument} again, the next call recompiles: {cause}",
    "keeps-recompiling": "{function} keeps recompiling: {rate}",
    "recompiled-of-calls": "{n} of the last {window} calls of {function} recompiled",
    "recompiled-so-often": "{n} recompiles",
    "compiled-outside-jit": "{compilations} outside jit {come} from {lines} ({names}){again}",
    "lines-of-a-loop": "{n} source lines ({numbers}) in the loop at {line}",
    "compiled-again": "; {n}",
    "of-them-again": "; {n}, because {why}",
    "compiled-of-function": "{function}: {compilations}, {seconds}{because}",
    "for-example": "; for example, {cause}",
    "of-them-recompiles": "; {n} of them recompiles, {seconds}",
    "because-of-bodies": "the loop body (or branch) is a new function object each time",
    "because-of-sizes": "the sizes of the arrays change from call to call",
    "because-of-cause": "{cause}",
    "because-made-anew": "each call creates new function objects",
    # -- evidence ----------------------------------------------------------------------------------------
    "because": "{cause}",
    "recompiled-call": "{call}{at}: {cause}{than}",
    "at-step": " at step {step}",
    "at-steps": " at steps {first} to {last}",
    "made-there": "{path} was created here",
    "resized-function": "{call}{at}: {cause}{times}",
    "times-in-all": ", {n} times in all",
    "resized-operation": "the eager operation {name} at {line}{at}",
    "resized-operations": "the eager operations {names} at {line}{at}",
    "resized-elsewhere": "eager operations on {lines}",
    # -- fixes: what changes besides ---------------------------------------------------------------------
    "fix-same-for": "{fix}; do the same for {paths}",
    "fix-with-others": "{fix} ({others})",
    "also-changed": "{path} also {changed} in {calls}",
    "in-this-call": "this call",
    "in-all-of-these": "all of these",
    "in-some-of-these": "{n} of these",
    "more-of-them": "{n} more",
    "changed-shape": "changed shape",
    "changed-dtype": "changed dtype",
    "changed-weak-type": "changed its weak type",
    "changed-key-type": "changed its key type",
    "changed-containers": "changed its containers",
    "changed-value": "changed its value",
    "was-another-object": "was another object",
    "was-passed-differently": "was passed differently",
    "changed-sharding": "changed its sharding",
    "changed-mesh": "changed its mesh",
    "was-sometimes-committed": "was committed to a device in some calls only",
    "changed-memory-kind": "changed its memory kind",
    "changed-layout": "changed its layout",
    "fix-pad-before-jit": (
        "{fix}; if you pad, do it before the first operation outside jit uses the batch (in NumPy, or pad"
        " all the data once)"
    ),
    # -- fixes: array arguments --------------------------------------------------------------------------
    "fix-same-rank": "pass {path} with the same number of axes in every call",
    "fix-settled-sizes": (
        "change nothing if these are the sizes that you pad to; otherwise pad to a few sizes and mask the"
        " padding (the report lists sizes to choose from)"
    ),
    "fix-few-sizes": "pad it to a few sizes and mask the padding (the report lists sizes to choose from)",
    "fix-one-size": "pad it to one size and mask the padding",
    "fix-odd-batch": "pad the smaller batch to the usual size and mask the padding, or drop it",
    "fix-larger-size": "pad it to the larger size, {size}, in every call and mask the padding",
    "fix-preallocate": (
        "allocate {path} with its final length before the loop, write into it with {how}, and mask the part"
        " that is not written yet"
    ),
    "fix-one-dtype": "give {path} one dtype in every call: x.astype(...){number}",
    "or-write-a-float": ", or write 1.0 instead of 1",
    "fix-typed-array": "start {path} as a typed array: {typed}{whole}",
    "convert-the-whole": (
        "; if a library creates it, convert the whole {root} before the loop: {root} ="
        " jax.tree.map(lambda x: jnp.asarray(x, jnp.result_type(x)), {root})"
    ),
    "fix-one-key-type": "create all keys the same way: jax.random.key(seed), with one impl",
    "fix-number-as-array": "pass {path} as an array in every call, including the first: {typed}",
    "fix-none-or-array": "pass an array for {path} in every call, or None in every call",
    "fix-growing-tree": "keep one structure: an array of the final size instead of a collection that grows",
    "fix-same-tree": "pass the same containers, with the same dict keys and lengths, in every call",
    "fix-same-call-form": "pass {path} the same way in every call",
    # -- fixes: static values ----------------------------------------------------------------------------
    "fix-ordinary-argument": "pass {path} as an ordinary argument: take it out of {option}",
    "fix-asarray-for-equinox": "pass jnp.asarray({path}): through {wrapper} every Python number is static",
    "fix-static-size": (
        "if {path} is a size or a length, it has to stay static: round it up to one of a few values and mask"
        " the rest; if {path} is only used in computations, {ordinary}"
    ),
    "fix-static-object": (
        "pass the values in {path} that vary as ordinary arguments, and keep all others the same"
    ),
    "fix-keep-the-same": "keep {path} the same from call to call",
    "fix-unless-mode": (
        "change nothing if {path} is a mode with few values, each of which needs its own program; otherwise"
        " {fix}"
    ),
    "fix-stable-hash": "compute the __hash__ of {path} from the values that its __eq__ compares",
    "fix-one-partial": (
        "create the partial {path} once, outside the loop or at module level, and pass the same"
        " object each time"
    ),
    "fix-one-object": "create {path} once, before the loop, and pass the same object each time",
    "fix-pass-its-parts": (
        "jit a function whose arguments are the arrays and numbers of {path} that it uses, instead of {path}"
        " itself{because}"
    ),
    "because-it-changes": ": the program changes the attributes of {name}",
    "fix-eq-and-hash": (
        "create {path} once, before the loop; or give its class an __eq__ and a __hash__ that use its"
        " attributes, if these never change"
    ),
    "fix-frozen-fields": (
        "create {path} once, before the loop; or write {name} as a @dataclasses.dataclass(frozen=True), with"
        " fields instead of __init__, if its attributes can be hashed (no arrays)"
    ),
    "fix-frozen-dataclass": (
        "create {path} once, before the loop, or give {name} __eq__ and __hash__:"
        " @dataclasses.dataclass(frozen=True), if its attributes can be hashed (no arrays)"
    ),
    "fix-array-field": (
        "store {path} as an array (a child of the node) if it is only used in computations; if a Python if"
        " or a shape depends on it, keep it the same from call to call"
    ),
    # -- fixes: function objects, options, caches --------------------------------------------------------
    "fix-jit-method-once": (
        "jit the bound method once, in __init__, and keep it: self.{method} = jax.jit(self.{method}); and"
        " create the {owner} once, before the loop"
    ),
    "fix-jit-partial-once": (
        "create the partial and its jit once, before the loop, or pass the bound value as an argument"
    ),
    "fix-define-at-module-level": (
        "define the function once, at module level, and jit it there; values that it closes over"
        " become arguments"
    ),
    "fix-define-and-wrap-once": (
        "define the function, and apply {wrapper} to it, only once: outside the code that defines it again;"
        " values that it closes over become arguments"
    ),
    "fix-wrap-once": "apply {wrapper} and jit once, before the loop, and keep what they return",
    "fix-define-once": (
        "define and jit the function once, outside the function or loop that defines it again; values that it"
        " closes over become arguments"
    ),
    "fix-one-set-of-options": "jit it once with one set of options, and call that everywhere",
    "fix-do-not-clear": "do not call jax.clear_caches() or .clear_cache() between calls that should be fast",
    "fix-call-compiled": (
        "call the object that .lower(...).compile() returned, or lower with the arguments of the real call"
    ),
    "computes-with-old-value": (
        "{function} computes with an old value of {name}{line}: {change}; JAX does not trace again when it"
        " changes"
    ),
    "computed-with-old-value": (
        "{function} computed with an old value of {name}{line}: {change}; JAX does not trace again when it"
        " changes"
    ),
    "read-at-line": " (read at line {line})",
    "value-changed": "it was {before} when traced, and is {after} now",
    "contents-changed": "it contained {before} when traced, and contains {after} now",
    "traced-with-value": "{program} read {name} ({where}) as {before}",
    "unnamed-key": "a key without a name",
    "a-trace": "its trace",
    "traced-again-with-new-value": "traced again with the new value",
    "changed-at-call": "it was {after} at a call that was not traced again",
    "value-had-changed": "it had changed to {after} {when}",
    "contents-had-changed": "its contents had changed to {after} {when}",
    "at-the-end": "when the program ended",
    "at-the-end-of-a-step": "at the end of a step",
    "fix-pass-what-is-written-into": (
        "pass {name} as an argument: the compiled program does not see values that are written into it later"
    ),
    "fix-pass-or-make-anew": (
        "pass {name} as an argument, or make a new object instead of changing this one"
    ),
    "constant-random-key": (
        "{function} draws the same random numbers in each call: {keys} {is_constant} of its program and does"
        " not depend on its arguments"
    ),
    "fix-pass-key": (
        "pass a key as an argument: a new one in each call (jax.random.split), or"
        " jax.random.fold_in(key, step)"
    ),
    "drawn-while-traced": (
        "{function} has the same random numbers in each call: {call} runs while JAX traces, and its result"
        " is a constant of the program"
    ),
    "fix-draw-with-jax": (
        "draw with jax.random from a key that is an argument, or pass the numbers that NumPy drew as an"
        " argument"
    ),
    "same-numbers-on-devices": (
        "{function} draws the same random numbers on each device: every device receives the same"
        " {key}, and its index is not part of the key"
    ),
    "fix-fold-device": (
        "inside the shard_map, draw from jax.random.fold_in({key}, jax.lax.axis_index(axis)), so that"
        " each device has its own numbers; change nothing if all devices need equal numbers"
    ),
    "one-key-for-all-steps": (
        "{function} draws the same random numbers in each iteration of the loop at line {line}: {key} is"
        " the same each time, and {function} does not combine it with another argument"
    ),
    "fix-new-key": (
        "pass another key in each iteration: jax.random.fold_in({key}, step), or a new key from"
        " jax.random.split"
    ),
    "fix-set-once": "set {setting} once, before the first call",
    # -- fixes: placement --------------------------------------------------------------------------------
    "fix-place-on-mesh": (
        "jax.device_put {path} to the sharding that {function} returns it with, {sharding}, before"
        " the first call; or to another sharding of that mesh, and jit {function} with the same one"
        " in out_shardings="
    ),
    "fix-keep-sharding": (
        "set out_shardings= of {function} so that {path} is returned with the sharding that it had in"
        " the first call{passed}; or, before the first call, jax.device_put {path} to the sharding of the"
        " result{returned}"
    ),
    "the-sharding": ", {sharding}",
    "fix-same-sharding": "jax.device_put {path} to the same sharding before every call",
    "fix-same-commitment": "call jax.device_put on {path} before every call, including the first, or never",
    "fix-shard-over-devices": (
        "run it once over all devices with a sharded array (NamedSharding) instead of once per device"
    ),
    "fix-same-layout": "jax.device_put {path} to one Format before the first call",
    "fix-same-memory-kind": "move {path} to one memory kind with jax.device_put before the call",
    "fix-same-mesh-around": "call it under the same mesh every time: one jax.set_mesh(mesh) around all calls",
    "fix-same-mesh": "jax.device_put {path} to one mesh, with one sharding, before every call",
    # -- fixes: what one line has compiled outside jit ---------------------------------------------------
    "fix-many-causes": (
        "find what changes repeatedly: jaxscope report --function {function} lists each recompile; if it is"
        " a shape, pad to a few sizes"
    ),
    "fix-iterate-numpy": "iterate over a NumPy array: np.asarray(x) first",
    "fix-iterate-keys": (
        "make each random key where it is needed, jax.random.fold_in(key, i), instead of iterating over an"
        " array of keys; if these are other integers, iterate over np.asarray(x)"
    ),
    "fix-give-numpy": "pass NumPy arrays to {library}, which iterates over them: np.asarray(x)",
    "fix-jit-around-body": (
        "jit {function}, so that the body is traced once for each size; or define the body once,"
        " outside of the code that runs again, and pass what it closes over as part of the loop's"
        " state"
    ),
    "fix-one-size-or-numpy": (
        "compute this in NumPy (np.asarray(x) first), or pad the arrays to one size, with a mask, and put the"
        " computation into one jax.jit"
    ),
    "fix-jit-around": "put the computation around this line{inside} into one jax.jit, or do it in NumPy",
    "fix-jit-around-call": "put the computation around this line{inside} into one jax.jit",
    "inside-function": ", in {function},",
    "fix-jit-step": (
        "put the computation of one iteration into a function outside of the loop, and {how} that function:"
        " its lines are then one program"
    ),
    "fix-jit-step-function": (
        "{how} {function} as a whole: its lines are then one program; values that it reads or changes become"
        " arguments, and those that are Python bools, strings, sizes or functions static arguments"
    ),
    "fix-if-faster": (
        "{fix}; most of the time is the compilation of random number generation, which one jitted function"
        " needs, too: measure whether it is faster"
    ),
    "as-in": "as in {call}",
    "as-in-with-statics": (
        "as in {call}, with static_argnums or static_argnames for arguments that are Python bools,"
        " strings, sizes or functions"
    ),
    "function-around": "a function around this line",
    "fix-jit-this-call": "jit what this line calls, {how}",
    "fix-jit-through-library": (
        "jit what this line calls, {how}; do not jit your functions that {library} calls"
    ),
    "fix-jit-method": "jit what this line calls, {how}, if it can be traced: {library} does not jit it here",
    "fix-jit-around-run": (
        "{first}define one function under jax.jit that makes the object, runs it and returns the"
        " arrays (MCMC with progress_bar=False), and call that: outside jit {library} defines its"
        " functions again in each run"
    ),
    "fix-pad-first": "pad the data to one size, with a mask or weights for the padding, and ",
    "fix-one-size-for-library": (
        "if the size of the data that you pass to {library} changes from call to call, pad the data to one"
        " size, with a mask or weights for the padding; create the objects of {library} that compute with the"
        " data once, before the loop"
    ),
    "fix-make-object-once": (
        "create {path} once, outside the code that runs repeatedly, and pass the same object to"
        " {library} in each call; pass values that change as arguments, instead of storing them in"
        " {path}"
    ),
    "fix-make-once": (
        "create the object whose method is called here once, before the loop, and call it again"
        " with other arrays: {library} defines its functions again for each object"
    ),
    "fix-cache-programs": (
        "no change of this line helps: {library} creates its functions again within the call, with the same"
        " programs; jax.config.update('jax_compilation_cache_dir', DIRECTORY) and"
        " jax.config.update('jax_persistent_cache_min_compile_time_secs', 0) before it make JAX load such a"
        " program instead of compiling it again"
    ),
    "fix-numpy-or-jit": (
        "if {library} only reads the arrays, pass NumPy arrays (np.asarray(x)); if it computes with JAX, jit"
        " what this line calls, if that can be traced"
    ),
    # -- fixes: the fast path ----------------------------------------------------------------------------
    "fix-asarray": "pass {path} as a jax.Array in every call: jnp.asarray(x)",
    "fix-one-sharding-object": "create the sharding of {path} once and use that object everywhere",
    "fix-remove-callbacks": "remove debug prints and callbacks from functions that are called often",
    "fix-fewer-signatures": (
        "use fewer signatures: fewer shapes, one kind of array for each argument, functions that"
        " are created once"
    ),
    # -- fixes: a state that comes back ------------------------------------------------------------------
    "fix-start-typed": "start {path} as {typed}",
    "fix-place-first": (
        "before the first call, place {path} in the way in which the later calls receive it ({where}):"
        " jax.device_put(x, sharding)"
    ),
    "fix-commit-first": (
        "before the first call, put {path} on its device: jax.device_put(x, device); in later calls"
        " it is committed"
    ),
    "fix-uncommitted-result": (
        "create {path} without a device: jnp.asarray(x); in later calls it is not committed to a device"
    ),
    "fix-start-as-returned": "start with {path} in the form in which the function returns it",
}

# In a table of findings, where the reader sees that something recompiled by its code.
SHORT = {
    "recompiled": "{function}: {cause}{than}{also}",
    "recompiled-alike": "{function}: {cause}{than}{also}",
    "recompiled-variously": "{function}: {cause}{than}{also}",
}
