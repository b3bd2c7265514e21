"""Templates for recompiles and the advice about them (JX101 to JX130)."""

# The end of several fixes that define a function only once: what to do with the values that it captures.
OUTSIDE = (
    "pass the numbers and arrays that it reads from outside as arguments (in static_argnames, list those that"
    " determine shapes). If it uses an object that changes, such as an optimizer with a new learning rate,"
    " create this object in the function, from the values that are passed"
)
PADDING = (
    "let no result depend on the padding (for example, jnp.mean(values, where=mask) with an argument mask:"
    " False for the padding, in the shape of values)"
)
TEMPLATES = {
    # -- titles ------------------------------------------------------------------------------------------
    "recompiled": "{function} recompiled: {cause}{than}{also}",
    "recompiled-alike": "{function} recompiled {n} times: {cause}{than}{also}",
    "recompiled-weak-types": (
        "{function} recompiled {n} times, each time because an array in {roots} was no longer weakly typed;"
        " most recently: {cause}{than}{also}"
    ),
    "recompiled-variously": "{function} recompiled {n} times, most recently: {cause}{than}{also}",
    "compared-with": " (compared with compilation #{number}, the most similar earlier one)",
    "passed-on": "{first}{also}",
    "fix-dtype-from-start": (
        "a result computed with a {after} array is also {after}, and so is {path}. Find this array (print the"
        " dtypes; often it is a NumPy array, which is float64 unless you give a dtype), and convert it to"
        " {before}; or create all arrays as {after} from the start"
    ),
    "fix-commit-from-start": (
        "{fix}. A result computed from a committed array is also committed, so one committed array can make"
        " several functions recompile"
    ),
    "also-recompiled": "; the same change also recompiled {names}",
    "resized-too": (
        "; the same changes of size also caused {n} of operations outside jit at {lines}, which took"
        " {seconds}"
    ),
    "fix-sizes-of-operations": (
        "{fix}. To pad, use NumPy (np.stack, np.pad), not jax.numpy. Also use the padded array on the lines"
        " given above: outside jit, JAX compiles each operation again for each new size"
    ),
    "resized-there": "{n} of operations outside jit for the same changes of size, {seconds}",
    "captured-others": "; it also recompiled {n} because it captured other values: {seconds}",
    "more-functions": "{n} more functions",
    "an-eager-operation": "an eager operation",
    "eager-operations": "{n} eager operations",
    "numbers-as-arguments": (
        "{path} is a list of {n} numbers. For jit, each of them is a separate argument of {function}: the"
        " program takes longer to compile, and each call takes longer to start{also}"
    ),
    "numbers-also": ". The same is true of {lists}",
    "off-fast-path": "{calls} of {function} missed JAX's fast path and were slower: {cause}{than}",
    "evicted-from-fast-path": "{function} missed JAX's fast path: {cause}",
    "prediction": (
        "if the {result} of {function} is passed as {argument}, the next call recompiles: {cause}"
    ),
    "keeps-recompiling": "{function} keeps recompiling: {rate}",
    "recompiled-of-calls": "{n} of the last {window} calls of {function} recompiled",
    "recompiled-so-often": "{n} recompiles",
    "compiled-in-library": "{lines} caused {compilations} outside your jitted functions ({names}){again}",
    "compiled-one-by-one": (
        "{lines} ran the operations of a function outside jit, one by one, which caused {compilations}{again}"
    ),
    "compiled-outside-jit": "{lines} caused {compilations} outside jit ({names}){again}",
    "line-number": "line {number}",
    "lines-from-to": "{first} to {last}",
    "loop-and-functions": "the loop at {line} (in {functions})",
    "lines-of-a-loop": "lines {numbers} in the loop at {line}",
    "lines-of-a-loop-and-functions": "lines {numbers} in the loop at {line} and in functions that it calls",
    "lines-of-a-function": "lines {numbers} of {functions} (called in the loop at {line})",
    "lines-below-a-function": (
        "lines {numbers} of {functions} (called through {caller} in the loop at {line})"
    ),
    "calls-in-a-loop": "the calls of {function} in the loop at {line}",
    "lines-of-one-function": "lines {numbers} of {function} and the functions that they call",
    "fix-jit-parts": (
        "move the operations of JAX on these lines into one jitted function, or into a few, and compute"
        " constant arrays with NumPy{pad}"
    ),
    "lines-of-a-callback": "lines {numbers} of {function} (a callback of a compiled program)",
    "line-of-a-callback": "line {numbers} of {function} (a callback of a compiled program)",
    "same-loop-compiled": (
        "{loop} outside jit was compiled {n} times for the same operations, on lines {lines}; the"
        " compilations after the first took {seconds}"
    ),
    "compiled-in": "compiled in {seconds}",
    "fix-one-jitted-loop": (
        "JAX compiles a loop outside jit again for each new body function, and for each number of iterations."
        " Define the body once, and put the loop into one jitted function, for example run = jax.jit(lambda"
        " carry, xs: jax.lax.scan(body, carry, xs)). Call this function on all these lines, and pass what"
        " differs between them as an argument. Use the same number of iterations everywhere: for example one"
        " loop over all xs, instead of two loops over parts of them"
    ),
    "fix-jit-loop-of-library": (
        "{library} runs this loop outside jit, with a new body in each call. Write one jitted function that"
        " calls {library}, and call this function on each of these lines. Pass what differs between the lines"
        " (keys, samples, data) as arguments"
    ),
    "compiled-again": "; {n}",
    "of-them-again": "; {n}, because {why}",
    "compiled-of-line": "{line}: {compilations}, {seconds}",
    "compiled-of-function": "{function}: {compilations}, {seconds}{because}",
    "for-example": "; for example, {cause}",
    "of-them-recompiles": "; {n}, which took {seconds}",
    "because-of-bodies": "each call of {loops} gets a new function object",
    "because-of-sizes": "the sizes of the arrays change from call to call",
    "because-of-parameters": (
        "parameters of the operation, such as a size or an exponent, change from call to call"
    ),
    "because-of-cause": "{cause}",
    "because-library-makes-anew": "this line calls {library}, which creates new function objects each time",
    "because-made-anew": "this line creates new function objects each time",
    # -- evidence ----------------------------------------------------------------------------------------
    "because": "{cause}",
    "recompiled-call": "{call}: {cause}{than}",
    "at-step": " at step {step}",
    "at-steps": " at steps {first} to {last}",
    "made-there": "{path} was created here",
    "resized-function": "{call}: {cause}{times}",
    "times-in-all": ", {n} times in all",
    "resized-operation": "the eager operation {name} at {line}{at}",
    "resized-operations": "the eager operations {names} at {line}{at}",
    "resized-elsewhere": "eager operations on {lines}",
    # -- fixes: additions to another fix -----------------------------------------------------------------
    "fix-same-for": "{fix}; do the same with {paths}",
    "fix-with-others": "{fix} ({others})",
    "fix-as-passed": "{fix} ({parameter} is {name} at {line})",
    "fix-args-as-passed": "{parameter} is {name} at {line}; {fix}",
    "fix-then": "{fix}. {also}: {then}",
    "also-changed": "{path} also {changed} in {calls}",
    "in-this-call": "this recompile",
    "in-all-of-these": "all {n} recompiles",
    "in-some-of-these": "{n} of the recompiles",
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
    "was-sometimes-committed": "changed between committed and uncommitted",
    "changed-memory-kind": "changed its memory kind",
    "changed-layout": "changed its layout",
    "fix-pad-before-jit": (
        "{fix}; if operations outside jit use the batch, pad the batch in NumPy before these operations, or"
        " pad all the data once"
    ),
    # -- fixes: array arguments --------------------------------------------------------------------------
    "fix-same-rank": "pass {path} with the same number of axes in every call",
    "fix-same-shape": (
        "change nothing if you need {path} with both shapes, for example a batch and a single example: each"
        " is compiled once. Otherwise pass it with the same number of axes and the same sizes in every call"
    ),
    "fix-settled-sizes": (
        "change nothing if you pad to these sizes already; otherwise pad to a few sizes, and " + PADDING
    ),
    "fix-jit-over-leaves": (
        "remove jit from {function}, which runs once for each leaf of the tree. Put the call of jax.tree.map"
        " into a jitted function that gets the trees as arguments: one call of one program then computes all"
        " leaves"
    ),
    "fix-jit-over-layers": (
        "remove jit from {function}, which the loop at {line} calls once for each layer. Put this loop into a"
        " jitted function. Its arguments are the parameters of all layers and everything else that changes,"
        " such as random keys. One call of one program then computes all layers"
    ),
    "fix-few-sizes": "pad {path} to the next of a few sizes (such as 64, 128, 256), and " + PADDING,
    "fix-one-size": "pad {path} to one size, and " + PADDING,
    "fix-odd-batch": (
        "drop the smaller batch, also from averages and counts; or pad {path} to {size} like the other"
        " batches, and " + PADDING
    ),
    "fix-pad-odd-batch": "pad {path} to {size} like the other batches, and " + PADDING,
    "fix-odd-batches": (
        "drop the smaller batches, also from averages and counts; or pad {path} to {size} like the other"
        " batches, and " + PADDING
    ),
    "fix-larger-size": "pad {path} to the larger size, {size}, in every call, and " + PADDING,
    "fix-one-length": (
        "pad {path} to its longest length in every call. If the program makes it longer step by step, create"
        " it with its full length before the loop instead, and write into it with .at[...].set or"
        " jax.lax.dynamic_update_slice. In both cases, let no result depend on the padding: {how}"
    ),
    "pad-and-mask": (
        "where the function sums, counts or compares along this axis, use jnp.arange(longest) < n as a mask,"
        " where n is the true length (pass it as another argument); read the last element at [n - 1], not at"
        " [-1]"
    ),
    "pad-with-identity": (
        "pass the true length n as an ordinary argument, with mask = jnp.arange(longest) < n. In each matrix"
        " for solve, replace the rows and columns of the padding by those of jnp.eye: jnp.where(mask[:, None]"
        " & mask, matrix, jnp.eye(longest)). In all other arrays, set the padding to zero: jnp.where(mask,"
        " values, 0)"
    ),
    "pad-with-last": "pad sorted times with the last time",
    "fix-preallocate": (
        "create {path} with its final length before the loop, write into it with {how}, and mask the part"
        " that is not written yet"
    ),
    "fix-one-dtype": ("convert {path} to the same dtype before every call, with .astype({dtype}){number}"),
    "fix-return-same-dtype": (
        "{function} itself changes the dtype of {path}: compute with Python floats instead of NumPy numbers"
        " (float(np.sqrt(n))), or use .astype(...) to convert the result to the dtype of the argument before"
        " {function} returns it"
    ),
    "or-write-a-float": ", or write {new} instead of 1",
    "write-a-float": ", or write {name} = {new} instead of {name} = {old} at {line}",
    "fix-typed-array": (
        "in every call, including the first, pass {path} as an array that is not weakly typed: {typed}"
    ),
    "fix-convert-for-library": (
        "{library} passes {path} as a Python number in some calls only. Give {library} a function that calls"
        " the jitted function with {typed} instead of {path}"
    ),
    "fix-typed-leaves": (
        "before the loop, convert the weakly typed arrays in {root}{leaves}:"
        " {root} = jax.tree.map(lambda x: {convert}, {root}){copies}"
    ),
    "weak-leaves": " ({paths})",
    "then-create-copies": "; then create {copies} from the result",
    "fix-one-key-type": "create all random keys in the same way: jax.random.key(seed), with the same impl",
    "fix-number-as-array": "pass {path} as an array in every call, including the first: {typed}",
    "fix-none-or-array": (
        "pass an array for {path} in every call: where you pass None now, use an array that has no effect. If"
        " {path} is not needed, pass None in every call"
    ),
    "fix-growing-tree": "use one array of the final size instead of a collection that grows",
    "fix-always-or-never": (
        "pass {path} in every call: where it is missing now, use a value that has no effect. If it is not"
        " needed, pass it in no call"
    ),
    "fix-same-order": (
        "pass {path} with its keys in the same order in every call: sort them, or pass a plain dict, whose"
        " keys JAX sorts"
    ),
    "fix-same-tree": "pass the same containers, with the same dict keys and the same lengths, in every call",
    "fix-same-call-form": "pass {path} in the same way in every call: by position, or by keyword",
    # -- fixes: static values ----------------------------------------------------------------------------
    "fix-ordinary-argument": "remove {path} from {option}, so that it becomes an ordinary argument",
    "fix-asarray-for-equinox": (
        "pass jnp.asarray({path}) instead of {path}, because every Python number is static under {wrapper}"
    ),
    "fix-static-size": (
        "if {path} is only used in computations, {ordinary}. If it is a size or a length, it has to stay"
        " static: round it up to one of a few values, and mask the part that is not needed"
    ),
    "fix-static-count": (
        "JAX unrolls the loop at {loop}, which has '{path}' iterations. Write it as"
        " jax.lax.fori_loop(0, {path}, ...), and {ordinary}: one program then runs any number of iterations"
    ),
    "fix-static-count-of-gradient": (
        "JAX unrolls the loop at {loop}, which has '{path}' iterations. Write it as a jax.lax.scan over"
        " jnp.arange(longest), where longest is the largest value of '{path}' in the program, and let the"
        " iterations i >= {path} change nothing (jnp.where(i < {path}, new, old)); then {ordinary}. One"
        " program then runs any number of iterations up to longest. (A jax.lax.fori_loop is no solution: if"
        " its number of iterations is an argument, JAX cannot differentiate it with jax.grad)"
    ),
    "fix-static-object": (
        "take the values that vary out of {path} and pass them as ordinary arguments; keep all other values"
        " in {path} the same"
    ),
    "fix-keep-the-same": "keep {path} the same from call to call",
    "fix-unless-mode": (
        "change nothing if {path} selects one of a few modes, because each mode needs its own program."
        " Otherwise, {fix}"
    ),
    "fix-stable-hash": "compute the __hash__ of {path} from the values that its __eq__ compares",
    "fix-one-partial": (
        "create the partial {path} once, outside the loop or at module level, and pass the same"
        " object each time"
    ),
    "fix-one-owner": "create {owner} once, before the loop, and pass the same {name} each time",
    "fix-one-object": "create {path} once, before the loop, and pass the same object each time",
    "fix-one-function": (
        "define the function for {path} once, before the loop, and pass the same function object each"
        " time{captured}"
    ),
    "pass-what-it-captures": (
        ". This function captures {names}: pass {what} to {function} as an ordinary argument; {function} then"
        " passes {what} on to this function"
    ),
    "fix-one-optimizer": (
        "create the optax optimizer ({path}) once, before the loop, and use the same object each time. If"
        " its learning rate or another hyperparameter has to change, create the optimizer with"
        " optax.inject_hyperparams(optax.adam)(learning_rate=...), and its state as before (with init, or by"
        " nnx.Optimizer). Before each step, set {state}.hyperparams['learning_rate'] = jnp.float32(rate)"
    ),
    "fix-function-without-self": (
        "move {function} out of the class, and remove its parameter {path}. Pass the values that it reads"
        " from {path} as arguments instead, arrays and numbers as ordinary arguments{because}"
    ),
    "fix-pass-its-parts": (
        "pass the arrays and numbers of {path} that the function uses as separate arguments, instead of"
        " {path} itself{because}"
    ),
    "because-it-changes": (
        ". Do not define __eq__ and __hash__ in {name}: your code changes the attributes of such objects, and"
        " JAX would then use compiled code that contains the old values"
    ),
    "fix-share-object": (
        "use one {name} object for all calls{made}. If you need different {name} objects, move these"
        " functions out of the class, and pass what they read from the object as arguments"
    ),
    "made-at-lines": ": at present, objects are created or copied (copy.deepcopy) at {lines}",
    "fix-eq-and-hash": (
        "create {path} once, before the loop; or, if its attributes never change, define __eq__ and __hash__"
        " in its class, both of them from the attributes"
    ),
    "fix-frozen-fields": (
        "create {path} once, before the loop. Or make {name} a @dataclasses.dataclass(frozen=True) with"
        " fields instead of __init__. For this, all its attributes must be numbers, strings and the like: no"
        " arrays, and no functions or optimizers that are created again"
    ),
    "fix-frozen-dataclass": (
        "create {path} once, before the loop. Or make {name} a @dataclasses.dataclass(frozen=True), which"
        " defines __eq__ and __hash__. For this, all its attributes must be numbers, strings and the like: no"
        " arrays, and no functions or optimizers that are created again"
    ),
    "fix-array-field": (
        "if {path} is only used in computations, store it as an array (a child of the pytree node). If an if"
        " statement or a shape depends on it, keep it the same from call to call"
    ),
    # -- fixes: function objects, options, caches --------------------------------------------------------
    "fix-jit-method-once": (
        "jit the bound method once, in __init__: self.jitted = {jitted}. Then call self.jitted. JAX compiles"
        " the method once for each {owner} object: create one object, and use it for all calls. If the"
        " program needs many {owner} objects (scikit-learn, for example, copies them), write a function"
        " outside of the class instead. Jit this function once, and pass it the values that the method reads"
        " from self"
    ),
    "fix-jit-library-method-once": (
        "create one {owner} object, {name} = {owner}(...), and jit its method once: {method}"
        " = jax.jit({name}.{method}). Call this jitted function in all places. If the calls also have equal"
        " arguments, call it only once, and copy the result with jax.tree.map(jnp.copy, result), so that no"
        " copy is lost if a later call donates the other"
    ),
    "fix-jit-partial-once": (
        "if the values that functools.partial binds never change, create the partial and jit it once, outside"
        " of all code that runs repeatedly. If they change, jit the function without the partial, once, and"
        " pass these values as arguments. In static_argnames, list arguments that are functions, strings,"
        " bools, or numbers that determine shapes{differentiated}"
    ),
    "fix-pass-bound-values": (
        "create one partial that binds only values that never change, and jit it once, outside of all code"
        " that runs repeatedly. These values changed: {values}. Make those of them that the function reads"
        " arguments of this function, and pass them in each call. In static_argnames, list arguments that"
        " are functions, strings, bools, or numbers that determine shapes: each new value of these compiles"
        " again{differentiated}"
    ),
    "count-for-argnums": (
        ". Values that were bound by position become the first arguments: {transformation} then needs another"
        " argnums, for example {transformation}(loss, argnums=1)"
    ),
    "fix-define-at-module-level": "define the function once, at module level, and jit it there; " + OUTSIDE,
    "fix-define-and-wrap-once": (
        "define the function once, outside the function or loop that defines it again, and apply {wrapper}"
        " and jit to it there; " + OUTSIDE
    ),
    "fix-define-and-jit-once": (
        "define the function once, outside the function or loop that defines it again, and apply {wrapper} to"
        " it there; " + OUTSIDE
    ),
    "fix-larger-cache": (
        "use functools.lru_cache(maxsize=None) on {maker}, or a maxsize larger than {size}: the program calls"
        " {maker} with more than {size} sets of arguments. The cache drops the least recently used of these"
        " sets, and {maker} then defines the function again for them"
    ),
    "fix-define-for-all-objects": (
        "{maker} defines the function again for each {owner} object. Define and jit the function once,"
        " outside of the class. There, also create what is the same for all objects, such as a model. The"
        " function then cannot read self: "
        + OUTSIDE
        + ". JAX still compiles it again for arrays of other shapes"
    ),
    "fix-call-maker-once": (
        "each call of {maker} defines the function again. Call {maker} only once, before the code that runs"
        " repeatedly. If the function that it returns is not jitted, jit it. Use this jitted function in all"
        " calls"
    ),
    "fix-call-maker-for-each": (
        "each call of {maker} defines the function again. Call {maker} only once for each set of arguments,"
        " and keep the jitted function, for example in a dict, or with @functools.lru_cache(maxsize=None) on"
        " {maker}. If {maker} is called with arrays, let it return a function that takes them as arguments"
    ),
    "fix-wrap-once": "apply {wrapper} and jit once, before the loop, and call the result in the loop",
    "fix-define-once": (
        "define and jit the function once, outside the function or loop that defines it again; " + OUTSIDE
    ),
    "fix-one-set-of-options": (
        "jit the function once, with one set of options, and call the result everywhere"
    ),
    "after-clearing": "{finding}; JAX's caches were cleared before most of these recompiles",
    "and-of-replicate": "{first}. The cause is replicate of Flax at {line}",
    "also-after-clearing": "{first}. JAX recompiled {names}, too, because the caches were cleared",
    "fix-do-not-clear": (
        "do not clear the caches{lines} while the program still calls the same functions, because JAX then"
        " compiles them again{library}"
    ),
    "fix-and-keep-caches": (
        "{fix}. JAX's caches were also cleared before most of these recompiles: do not clear them{lines}."
        " Make both changes: one alone saves nothing"
    ),
    "cleared-elsewhere": (
        ". If your code does not clear them, a library does (search for clear_cache in the libraries that you"
        " use), or the program calls atexit._run_exitfuncs(), which also runs JAX's exit function"
    ),
    "called-at-lines": " (at {lines})",
    "fix-call-compiled": (
        "call the object that .lower(...).compile() returned, or call .lower with the arguments of the real"
        " call"
    ),
    "computes-with-old-value": (
        "{function} computes with an old value of {name}{line}: {change}; JAX does not trace again when"
        " {name} changes"
    ),
    "computed-with-old-value": (
        "{function} computed with an old value of {name}{line}: {change}; JAX does not trace again when"
        " {name} changes"
    ),
    "keeps-first-value": (
        "{function} reads {name} ({inside}line {read}) only when JAX traces {function}; later calls use this"
        " old value, although line {changed} changes {name} between the calls"
    ),
    "in-function": "in {function}, ",
    "read-at-line": " (read at line {line})",
    "value-changed": "it was {before} when traced, and is {after} now",
    "contents-changed": "it contained {before} when traced, and contains {after} now",
    "another-value": "another {value}",
    "read-by-another": "{where} of {reader}",
    "traced-with-value": "{program} read {name} ({where}) as {before}",
    "unnamed-key": "its random key (captured, or made from a fixed seed)",
    "seeded-key": "its random key (made from a seed in its code)",
    "a-trace": "its trace",
    "traced-again-with-new-value": "traced again with the new value",
    "changed-at-call": "it was {after} at a call that was not traced again",
    "value-had-changed": "it had changed to {after} {when}",
    "contents-had-changed": "its contents had changed to {after} {when}",
    "at-the-end": "when the program ended",
    "at-the-end-of-a-step": "at the end of a step",
    "fix-pass-what-is-written-into": (
        "pass {name} as an argument: the compiled program does not see values that are written into {name}"
        " later"
    ),
    "fix-pass-or-make-anew": (
        "pass {name} as an argument, or create a new object instead of changing the old object"
    ),
    "constant-random-key": (
        "{function} draws the same random numbers in each call: {keys} {is_constant} of its compiled program"
    ),
    "fix-pass-key": (
        "pass the random key as an argument, and a different key in each call: a new one from"
        " jax.random.split, or jax.random.fold_in(key, i) where i counts the calls"
    ),
    "drawn-while-traced": (
        "{function} uses the same random numbers in each call: {call} runs only while JAX traces {function},"
        " and its result is a constant of the compiled program{also}"
    ),
    "draws-on-line": ". Line {line} draws in the same way",
    "draws-on-lines": ". Lines {lines} draw in the same way",
    "fix-draw-with-jax": (
        "pass a new random key in each call, such as jax.random.fold_in(key, i), and draw with jax.random; or"
        " draw with NumPy before each call, and pass the numbers as an argument"
    ),
    "same-numbers-on-devices": (
        "{function} draws the same random numbers on each device, because every device receives the same"
        " {key}"
    ),
    "fix-fold-device": (
        "inside the shard_map, draw from jax.random.fold_in({key}, jax.lax.axis_index(axis)), where axis is"
        " the name of the mesh axis: each device then draws different numbers. Change nothing if all devices"
        " need equal numbers"
    ),
    "differs-on-devices": (
        "the out_specs of the shard_map of {function} say that {result} {have} the same value on all devices"
        " of the mesh axis {axes}. But each device computes a different value, from its part of the data"
    ),
    "fix-mean-over-devices": (
        "inside the shard_map, combine the values of the devices: for a mean, x = jax.lax.pmean(x, {axes})."
        " Do this with gradients before the optimizer uses them. Or, to keep one value for each device, give"
        " these results a new first axis (x[None]), and put {axes} into their out_specs"
    ),
    "one-key-under-vmap": (
        "{function} draws from one random key for all elements of a vmap ({draws}): all elements have the"
        " same random numbers"
    ),
    "fix-key-for-each-element": (
        "if the elements need different random numbers, give vmap a key for each of them:"
        " jax.random.split(key, n), with 0 in in_axes for the keys. Change nothing if all elements are meant"
        " to have the same random numbers"
    ),
    "statistics-ignored": (
        "line {line} stores the new batch statistics from {call} in {name}, but nothing reads {name}: the"
        " model is evaluated with the statistics that it had before the training"
    ),
    "fix-keep-statistics": (
        "also return {name} from the loss, with has_aux=True for the gradient. Then write state ="
        " state.replace(batch_stats={name}['batch_stats']), and pass this state to the next step"
    ),
    "may-not-have-run": "{finding}. It is not known whether this run called {function}",
    "changed-copy-ignored": (
        "line {line} does not use the result of {call}: this call does not change {name}, it returns a"
        " changed copy"
    ),
    "result-ignored": (
        "line {line} does not use the result of {call}: this call changes nothing, it only returns a value"
    ),
    "wrapped-function-ignored": (
        "line {line} does not use the result of {call}: this call does not change {name}, it returns a"
        " new function"
    ),
    "new-keys-ignored": (
        "line {line} does not use the result of {call}: this call does not change {name}, it returns new keys"
    ),
    "context-not-entered": ("line {line} has no effect: what {call} returns works only in a with statement"),
    "fix-assign-back": (
        "assign the result: {name} = {call}. Use this {name} from there on (a function must return"
        " it){frozen}. This changes what the program computes, so compare the results. If they were right"
        " without the change, delete the line"
    ),
    "or-replace-field": (
        ". If {owner} cannot be changed, for example a NamedTuple, make a new one: {owner} ="
        " {owner}._replace({field}=...)"
    ),
    "fix-assign-result": ("assign the result of {call} to the variable that the program uses from there on"),
    "fix-assign-keys": (
        "assign the new keys to variables and draw from them, as in {name}, subkey ="
        " jax.random.split({name}); or delete the line"
    ),
    "fix-with-statement": ("write `with {call}:`, and indent the code that it is meant for"),
    "two-draws-from-one-key": (
        "{n} calls {where} ({functions}) draw from the same {key}: their random numbers are {how}"
    ),
    "equal-numbers": "equal",
    "dependent-numbers": "not independent",
    "on-line": "on line {line}",
    "on-lines": "on lines {lines}",
    "key-drawn-and-returned": (
        "{function} draws from {key} on line {drawn} and then returns it. Line {call} passes it to the next"
        " call of {function}, which draws from it again (line {again}): the random numbers of the two calls"
        " depend on each other"
    ),
    "fix-return-unused-key": (
        "split the key before the first draw: {key}, {subkeys} = jax.random.split({key}{n}). Draw only from"
        " {subkeys}, and return {key}"
    ),
    "fix-split-key": (
        "give each draw its own key: {keys} = jax.random.split({key}{n}). Change nothing if the draws are"
        " meant to have the same random numbers"
    ),
    "same-part-of-splits": (
        "{n} calls {where} ({functions}) draw from the same key: {key} is split several times, and {part} is"
        " the same key each time. Their random numbers are {how}"
    ),
    "fix-split-once": (
        "split {key} only once, into one key for each draw. A second split of the same key gives the same"
        " keys again: jax.random.split({key}) and jax.random.split({key}, 3) begin with the same two keys"
    ),
    "fix-split-keys": (
        "give each draw its own array of keys: {keys} = jax.random.split({key}, ({n}, {count})). Change"
        " nothing if the draws are meant to have the same random numbers"
    ),
    "one-key-in-loop": (
        "{calls} {where} {draw} in each iteration of {loop}, because {key} is the same each time{also}"
    ),
    "draws-the-same-numbers": "draws the same random numbers",
    "draw-the-same-numbers": "draw the same random numbers",
    "makes-the-same-keys": "makes the same random keys",
    "and-from-one-key": (
        "; and in one iteration, {n} calls draw from {key}, so that their random numbers are not independent"
    ),
    "fix-key-of-iteration": (
        "draw from another key in each iteration: jax.random.fold_in({key}, i), where i is the number of the"
        " iteration. Or use a jax.lax.scan over jax.random.split(key, n), where key is made before the loop,"
        " and draw from the key that the body gets. Or keep a key in the carry: split it in the body, draw"
        " from one new key, and return the other one in the carry. Change nothing if all iterations are meant"
        " to have the same random numbers"
    ),
    "one-key-in-program-loop": (
        "{function} draws the same random numbers ({draws}, {lines}) in each iteration of the jax.lax"
        " loop at line {loop}, because the loop does not change the key"
    ),
    "fix-key-in-state": (
        "use another key in each iteration: pass jax.random.split(key, n) to scan as xs, or carry the key and"
        " split it in the body. If a module draws random numbers (dropout), carry its random state (keys and"
        " counters) in the scan, and return the new state from {function}. Change nothing if all iterations"
        " are meant to have the same random numbers"
    ),
    "loop-on-line": "the loop on line {line}",
    "fix-new-key-to-draw": (
        "draw from a different key in each iteration: jax.random.fold_in({key}, i), where i counts the"
        " iterations{given}. Change nothing if all iterations are meant to have the same random numbers"
    ),
    "fix-split-again": (
        "keep the first of the new keys for the next iteration: {key}, subkey = jax.random.split({key})."
        " Change nothing if all iterations are meant to have the same random numbers"
    ),
    "pass-the-number": " and is a new argument of {function}",
    "fix-keys-of-iteration": (
        "make new keys in each iteration: {keys} = jax.random.split(jax.random.fold_in({key}, i), {n}), where"
        " i counts the iterations. Pass each of them to one call, instead of {key}. Change nothing if all"
        " iterations and calls are meant to have the same random numbers"
    ),
    "one-key-for-all-steps": (
        "{function} draws the same random numbers in each iteration of the loop at line {line}: {key} is"
        " the same each time, and {function} does not combine it with an argument that changes"
    ),
    "fix-new-key": (
        "pass a different key in each iteration: a new one from jax.random.split, or"
        " jax.random.fold_in({key}, i) where i is the number of the iteration"
    ),
    "fix-new-keys": (
        "in each iteration, make new keys, one for each device: key, new = jax.random.split(key), where key"
        " is a single random key. Then pass jax.random.split(new, jax.device_count()) instead of {key}"
    ),
    "fix-set-once": "set {setting} once, before the first call",
    # -- fixes: placement --------------------------------------------------------------------------------
    "fix-replicate-first": (
        "before the first call, write {path} = jax.device_put({path}, NamedSharding(mesh, PartitionSpec())):"
        " {function} returns it with this sharding ({sharding})"
    ),
    "fix-place-on-mesh": (
        "before the first call, use jax.device_put to give {path} the sharding with which {function} returns"
        " it, {sharding}. To use another sharding, place {path} with that sharding before the first call, and"
        " request it for the result with out_shardings= of jit"
    ),
    "fix-place-object": (
        "before the first call, give the arrays of {path} the sharding that they have after {function}"
        " ({sharding}): {path} = jax.device_put({path}, NamedSharding(mesh, PartitionSpec()))"
    ),
    "fix-keep-sharding": (
        "before the first call, use jax.device_put to give {leaves}{path} the sharding with which {function}"
        " returns it{returned}; or set out_shardings= of {function} to the sharding that {path} had in the"
        " first call{passed}"
    ),
    "these-leaves": "these leaves of ",
    "fix-one-axis-name": (
        "{path} comes from two functions under jax.pmap, with {names}: use the same axis_name in both, also"
        " in their collectives, so that their results have the same sharding"
    ),
    "fix-place-for-pmap": (
        "before the first call, give {path} the sharding of the results of jax.pmap. Do this after {path} has"
        " got its first axis (one entry for each device): {path} = jax.device_put({path},"
        " jax.sharding.NamedSharding(jax.sharding.Mesh(jax.devices(), ('{axis}',)),"
        " jax.sharding.PartitionSpec('{axis}')))"
    ),
    "fix-pass-through-pmap": (
        "before the first call, give {path} the sharding of the results of jax.pmap. Do this after {path} has"
        " got its first axis (one entry for each device): {path} = jax.pmap(lambda a: a)({path})"
    ),
    "fix-place-replicas": (
        "use jax.device_put instead of replicate of Flax, which compiles a program for each shape of an"
        " array, and whose copies have another sharding than the results of jax.pmap. Write sharding ="
        " jax.sharding.NamedSharding(jax.sharding.Mesh(jax.devices(), ('batch',)),"
        " jax.sharding.PartitionSpec('batch')), with the axis_name of your pmap instead of 'batch'. Then"
        " replace params = replicate(params) by params = jax.device_put(jax.tree.map(lambda a:"
        " np.broadcast_to(a, (jax.device_count(), *np.shape(a))), params), sharding), and the other calls of"
        " replicate likewise"
    ),
    "the-sharding": ", {sharding}",
    "fix-same-sharding": "before every call, use jax.device_put to give {path} the same sharding",
    "fix-commit-object": (
        "before the first call, commit all arrays of {path} to the device of the other arguments:"
        " nnx.update({path}, jax.device_put(nnx.state({path}), device)). If there is only one device, device"
        " is jax.devices()[0]"
    ),
    "fix-same-commitment": (
        "before the first call, put {path} on the device of the other arguments with jax.device_put, so that"
        " it is committed in all calls; or remove the jax.device_put that commits it later"
    ),
    "fix-shard-over-devices": (
        "call the function once for all devices, with an array that is sharded over them (NamedSharding),"
        " instead of once per device"
    ),
    "fix-same-layout": (
        "before the first call, use jax.device_put to give {path} the same Format (layout) as in later calls"
    ),
    "fix-same-memory-kind": "before every call, use jax.device_put to give {path} the same memory kind",
    "fix-same-mesh-around": "make all calls under the same mesh: one jax.set_mesh(mesh) around all of them",
    "fix-same-mesh": (
        "wherever {path} is created, or restored from a file, give it the same sharding, on the same mesh,"
        " before it is passed to {function}: jax.device_put({path}, {sharding})"
    ),
    # -- fixes: what one line has compiled outside jit ---------------------------------------------------
    "fix-many-causes": (
        "find what changes repeatedly: jaxscope report --function {function} lists each recompile; if a"
        " shape changes, pad to a few sizes"
    ),
    "fix-join-many": (
        "this line joins {n} arrays in one operation, and the time to compile it grows with the square of"
        " that number. Copy the arrays to the host and join them with NumPy{call}. Or let a jax.lax.scan"
        " collect them: it returns one array"
    ),
    "joined-with-numpy": ": {call}",
    "fix-split-twice": (
        "this line takes the keys out of an array one at a time, and runs operations for each. Write {first},"
        " new = jax.random.split({key}) and {others} = jax.random.split(new, {n}): {others} is then one array"
        " of keys, which you can pass to jax.vmap. This changes the random numbers{same}"
    ),
    "same-on-lines": ". Do the same {where}",
    "fix-iterate-numpy": "iterate over a NumPy array: np.asarray({array})",
    "fix-iterate-numpy-arrays": (
        "before the loop, convert the arrays that this line iterates over with np.asarray"
    ),
    "fix-iterate-keys": (
        "this line takes keys out of an array one at a time, and runs operations for each. Pass the whole"
        " array of keys to one jitted call (jax.vmap, with 0 in in_axes for the keys). Or pass one key and"
        " the number i, and make the new key in the jitted function: jax.random.fold_in(key, i). The second"
        " way changes the random numbers"
    ),
    "fix-give-numpy": (
        "convert arrays to NumPy (np.asarray) before you pass them to {library}, which reads their elements"
        " one at a time"
    ),
    "fix-jit-around-body": (
        "apply jit to {function}, or to a function that calls it, with static_argnums or static_argnames"
        " for{method} arguments that are functions, Python bools, strings, or numbers that determine shapes."
        " Calls with the same shapes and dtypes then use one program. Or define the loop body or branch once,"
        " outside the code that runs repeatedly; pass the values that it reads from outside in the carry of"
        " the loop, or as operands of the branch"
    ),
    "fix-jit-making-function": (
        "{line} passes a new function as {parameter} each time, so jax.jit({function}) alone does not help:"
        " it would compile again for each new function. Write one jitted function that creates {parameter}"
        " and calls {function} with it. The arrays and numbers from which {parameter} is created must be"
        " arguments of this jitted function; in static_argnames, list those that determine shapes"
    ),
    "self-static": " self (if its attributes do not change), and for",
    "fix-one-size-or-numpy": (
        "if no jitted function and no gradient runs this code, compute it in NumPy: convert the arrays with"
        " np.asarray, and call np instead of jnp. Or put the computation into one jitted function, and pad"
        " the arrays to one size, with a mask. Without padding, JAX compiles one program for each size,"
        " instead of one for each operation and size"
    ),
    "fix-exponent": (
        "in x ** n with a Python int n, JAX compiles one operation for each n: write x **"
        " jnp.asarray(n, x.dtype), or put the computation into a jitted function that gets n as an argument"
    ),
    "fix-where-for-mask": (
        "compute {whole} here{new}: all arrays then have the same size in each call, while the number of"
        " elements that {mask} selects changes{ranks}"
    ),
    "new-of-shape": ", where new has the shape of {array}",
    "mask-of-rank": ". If {mask} has fewer dimensions than {array}, replace {mask} by {mask}[:, None] there",
    "fix-collect-in-list": (
        "collect the values in a Python list, and join them once after the loop: {name} = [] before the loop,"
        " {name}.append({value}) in each iteration, and {name} = {joined} after the loop"
    ),
    "fix-jit-around": "move the computation of {lines}{inside} into one jitted function, or do it in NumPy",
    "fix-jit-with-definition": (
        "each call of {outer} passes a new function ({name}) on this line, so jit would compile again each"
        " time. Put the computation of {outer}, with the definition of this function, into one jitted"
        " function outside of {outer}"
    ),
    "fix-jit-around-call": "move the computation of {lines}{inside} into one jitted function",
    "this-line": "this line",
    "lines-in": "lines {numbers}",
    "inside-function": " (in {function})",
    "fix-jit-step": (
        "put {what} into a function outside the loop, with all values that change as arguments, and apply"
        " {how} to this function: JAX then compiles it as one program{state}"
    ),
    "of-an-iteration": "the computation of one iteration of the loop at {loop}",
    "of-lines-in-each-iteration": ("what lines {numbers} compute in each iteration of the loop at {loop}"),
    "of-line-in-each-iteration": "what line {numbers} computes in each iteration of the loop at {loop}",
    "fix-one-program-each-size": (
        "{fix}. JAX compiles the jitted function again for each size of its arrays: if there are many sizes,"
        " pad to a few, with a mask"
    ),
    "fix-one-size-first": (
        "{first}. Without this change, jit would compile everything again for each size, which can take"
        " longer than now. Then {fix}"
    ),
    "pad-to-one-size": "pad the arrays whose sizes change to one size, and mask the padding",
    "fix-jit-around-read": (
        "in each iteration, {method} needs the value of {expression} ({line}), so jit cannot trace the whole"
        " iteration. Put what the iteration computes before this line into one jitted function, and what it"
        " computes after this line into another. Each function gets all values that change as arguments, and"
        " returns all that is needed later, such as the new random key"
    ),
    "attributes-as-arguments": (
        ". This function must not assign to attributes: it takes the old values of {names} as arguments and"
        " returns the new values, which the loop then assigns"
    ),
    "fix-jit-step-function": (
        "apply {how} to {function}{calls} as a whole: JAX then compiles it as one program. If {function}"
        " reads a variable from outside, and its value changes, pass it as an argument{statics}"
    ),
    "fix-jit-transformed": (
        "at {line}, write {variable} = jax.jit({expression}): JAX then compiles it as one program. If"
        " {function} reads a variable from outside, and its value changes, pass it as an argument{statics}"
    ),
    "fix-jit-part-of-method": (
        "move the computation of {function} into a new function, and apply {how} to it: JAX then compiles it"
        " as one program. The new function must not assign to attributes: it takes the old values of {names}"
        " as arguments and returns the new values. {function} calls the new function, and assigns what it"
        " returns to the attributes. Methods that the new function calls must take these values as arguments,"
        " too"
    ),
    "fix-jit-results-of-method": (
        "move the computation of {function} into a new function, and apply {how} to it: JAX then compiles it"
        " as one program. The new function must not assign to attributes: it uses local variables instead of"
        " {names}, and returns the arrays among them, which {function} then assigns. Values that are not"
        " arrays, such as a size, stay in {function}. If the new function needs such a value, pass it, and"
        " list it in static_argnames. Methods that the new function calls take these values as arguments"
    ),
    "which-calls": ", which calls {function},",
    "static-of": "{names} of {function}",
    "named-static": ". In static_argnames, list {names}{new}",
    "static-but-new": (
        ". {outer} creates a new {parameter} in each call, and jit would compile again for each of them:"
        " create it once, outside of {outer}"
    ),
    "python-values-static": (
        ". In static_argnames, list arguments that are Python bools, strings, functions, or numbers that"
        " determine shapes, but no object whose attributes change: jit would keep the old values of these"
        " attributes"
    ),
    "fix-numpy-in-callback": (
        "use NumPy in {function}: JAX passes jax.Arrays to {function}, and compiles each operation on them"
        " outside jit. First convert the arguments with jax.tree.map(np.asarray, ...)"
    ),
    "fix-reads-value": (
        "{fix}. Inside jit, Python's if cannot test an array: at {line}, use jnp.where or jax.lax.cond"
        " instead of 'if {expression}'"
    ),
    "fix-loop-until-value": (
        "{fix}. Inside jit, Python cannot test an array to end a loop: first write the loop at {loop} as a"
        " jax.lax.while_loop that {ends}. jax.grad cannot differentiate a while_loop: for a gradient, write a"
        " jax.lax.scan with a fixed number of iterations"
    ),
    "runs-while": "goes on while {expression}",
    "ends-when": "goes on while ~({expression})",
    "fix-returns-value": (
        "{fix}. A jitted function cannot read the value of an array: leave {reads} outside of it"
    ),
    "read-at-line-of": "{expression} ({line})",
    "fix-without-conversion": (
        "{fix}. At {line}, leave out {kind}(): only a jitted function uses the value, and it takes arrays"
    ),
    "read-by-conversion": "the call of {kind} at {line}",
    "read-by-bool": "the call of bool at {line}",
    "read-by-print": "the call of print at {line}",
    "fix-check-outside": (
        "{fix}. A jitted function cannot check {expression} at {line}: return the values to check, and"
        " check them outside of the function"
    ),
    "fix-not-on-host": "{fix}. NumPy and SciPy cannot compute with the arrays of a jitted function: {what}",
    "call-at": "{called} ({line})",
    "instead-of-call": "{instead} instead of {called} ({line})",
    "with-jax-numpy": (
        "use jax.numpy instead of NumPy for {calls} (it computes in float32 unless jax_enable_x64 is set,"
        " NumPy often in float64)"
    ),
    "with-jax-scipy": (
        "write {calls} (if jax.scipy does not have it, look in jax.numpy; options may have other names)"
    ),
    "fix-draw-outside": (
        "{fix}. {called} at {line} would run only while JAX traces, so that every call gets the same numbers:"
        " draw the numbers before the call, and pass them as an argument"
    ),
    "fix-change-outside": (
        "{fix}. The jitted function must not change {names}: return the values, and change {names} outside of"
        " it"
    ),
    "fix-index-of-list": (
        "{fix}. In a jitted function, {expression} at {line} fails, because {list} is not a JAX array."
        " Convert it before the loop ({list} = jnp.stack({list}) for a list of arrays of one shape), or draw"
        " the index with NumPy and take the element outside of the function"
    ),
    "fix-mask-index": (
        "{fix}. A jitted function cannot use a condition as an index ({condition} at {line}): write"
        " jnp.where(condition, new, old) instead"
    ),
    "fix-size-by-values": (
        "{fix}. In a jitted function, sizes cannot depend on values: pass {options} to {expression} at"
        " {line}, where N is the largest possible size{padding}"
    ),
    "minus-one-is-padding": (
        ". An element of -1 is padding and must not change the result: multiply the values that are computed"
        " from it by 0, or replace them with jnp.where"
    ),
    "fix-item-as-size": (
        "{fix}. jit traces the numbers in its arguments, but {item} at {line} has to stay a Python number:"
        " pass {item} as a separate static argument"
    ),
    "fix-size-from-value": (
        "{fix}. In a jitted function, the size {name} ({line}) cannot be read from an array: compute {name}"
        " before the call, and pass it as a static argument. JAX compiles one program for each {name}"
    ),
    "fix-dynamic-slice": (
        "{fix}. In a jitted function, write {new} instead of {expression} at {line}: the bounds of a Python"
        " slice cannot be values that JAX traces"
    ),
    "fix-also-inits": (
        "{fix}. Do the same at line {lines}, which uses the same operations and otherwise has to compile them"
    ),
    "as-in": ", as in {call}",
    "jitted-once": ": jitted = {function}{statics}",
    "with-statics": (
        " (if some of its arguments are Python bools, strings, functions, or numbers that determine shapes,"
        " list these in static_argnames)"
    ),
    "and-more-statics": " (other arguments that are not arrays are static, too)",
    "function-around": "a function around this line",
    "fix-jit-this-call": (
        "jit the function that this line calls, once{before}{how}, and call the jitted function here"
    ),
    "fix-jit-call-at": (
        "jit the function that {line} calls, once and before the loop{how}, and call the jitted function"
        " there"
    ),
    "before-the-loop": " and before the loop",
    "fix-jit-new-function": (
        "{name} is defined again in each iteration. Define it before the loop{captured}. There, also jit what"
        " this line calls{how}. In the loop, call the jitted function"
    ),
    "fix-jit-local-function": (
        "each call of {outer} defines {name} again. Define it outside {outer}{captured}, and also jit there"
        " the function that this line calls{how}. In {outer}, call the jitted function. Numbers and arrays"
        " that {name} reads from outside, also from self, must become its arguments"
    ),
    "with-as-arguments": ", with {names} as {arguments}",
    "fix-jit-through-library": (
        "jit what this line calls, once{how}, and call the jitted function here{pad}"
    ),
    "fix-jit-method": (
        "{library} does not jit the function that this line calls. Jit this function once{how}, and call the"
        " jitted function on this line. If JAX then raises an error while it traces the function, undo the"
        " change"
    ),
    "fix-trace-draws": (
        "compute all draws in one jitted call. Create predict = jax.jit(numpyro.infer.Predictive(model,"
        " posterior_samples, parallel=True)) once, and call predict(key, ...). Or use jax.jit(jax.vmap(f)),"
        " where f computes one draw. Without jit, numpyro runs each operation of the model separately"
    ),
    "fix-jit-around-run": (
        "{first}write one function that creates the object of {library} (MCMC or SVI), runs it with"
        " progress_bar=False and returns the arrays, and apply jax.jit to this function. Pass the key and the"
        " data as its arguments: what it reads from outside, or draws with NumPy, keeps the values of the"
        " first call. Outside jit, {library} defines its functions again in each run"
    ),
    "fix-pad-first": (
        "pad the data to one size so that the padding does not change the result (with weights or a mask),"
        " and "
    ),
    "fix-jit-called-back": (
        "{library} calls {function}, which runs operations of JAX outside jit: put these operations into one"
        " jitted function that is defined outside of the code that runs repeatedly, and call it in"
        " {function}{pad}"
    ),
    "and-pad-inside": (
        ". Sizes of arrays change: pad the arrays to one of a few fixed sizes, and mask the padding"
    ),
    "and-pad-arguments": (
        ". The sizes of arrays change: pad the arrays to one of a few fixed sizes, and mask the padding"
    ),
    "fix-one-size-for-library": (
        "if the size of the data that you pass to {library} changes from call to call, pad the data to one"
        " size, with a mask or weights for the padding. Create the objects of {library} that compute with the"
        " data only once, before the loop"
    ),
    "fix-make-object-once": (
        "{library} gets a new object as its argument {path} in each call{made}. Create this object once,"
        " outside the code that runs repeatedly. If it is a function that reads changing values, define it"
        " once with these values as its first parameters, and pass jax.tree_util.Partial(function, *values),"
        " with the values as JAX arrays (jnp.asarray(value)). This works only if {library} accepts pytrees as"
        " functions, as Equinox does"
    ),
    "that-line-creates": " (from {line})",
    "fix-make-once": (
        "create {object} only once, outside the code that runs repeatedly: JAX compiles the functions of each"
        " new object again. In the code that runs repeatedly, only call {call}; the arrays that you pass may"
        " differ from call to call. If a function that you give {library} reads arrays from outside, make"
        " them its parameters, and pass them to {call} after its other arguments. If {call} still recompiles,"
        " also jit it"
    ),
    "the-object": "the object",
    "its-method": "the object's method",
    "fix-cache-programs": (
        "you cannot prevent this by changing the line, because {library} creates these functions itself. Let"
        " JAX keep the compiled programs in a directory, and load them instead of compiling them again: at"
        " the start of the program, call jax.config.update('jax_compilation_cache_dir', 'jax_cache') and"
        " jax.config.update('jax_persistent_cache_min_compile_time_secs', 0)"
    ),
    "fix-numpy-for-loop": (
        "if {library} only reads the arrays, pass NumPy arrays (np.asarray) where the program creates the"
        " object that this loop goes through"
    ),
    "fix-numpy-or-jit": (
        "if {library} only reads the arrays, pass NumPy arrays (np.asarray). If {library} computes with JAX,"
        " and JAX can trace the function that this line calls, jit this function"
    ),
    # -- fixes: the fast path ----------------------------------------------------------------------------
    "fix-numbers-as-array": (
        "create an array instead of the list, where the list is created, and pass the array. For integers,"
        " such as indices and labels, write np.array(list). For floats, write np.array(list, dtype), with the"
        " dtype of the arrays that they are added to or multiplied with. If the function loops over the list"
        " in Python, write this loop as operations on the whole array"
    ),
    "fix-asarray": "pass {path} as a jax.Array in every call: jnp.asarray(x)",
    "fix-one-sharding-object": "create the sharding of {path} once and use that object everywhere",
    "fix-remove-callbacks": "remove debug prints and callbacks from functions that are called often",
    "fix-fewer-signatures": (
        "call the function with fewer kinds of arguments: fewer shapes, and only jax.Array or only NumPy for"
        " each argument; create each function once"
    ),
    # -- fixes: a state that comes back ------------------------------------------------------------------
    "fix-start-typed": "before the first call, make {path} an array with a fixed dtype: {typed}",
    "fix-place-first": (
        "before the first call, use jax.device_put to place {path} as the later calls receive it ({where})"
    ),
    "fix-commit-first": (
        "before the first call, put {path} on its device: jax.device_put({path}, device). In later calls it"
        " is committed to that device"
    ),
    "fix-uncommitted-result": (
        "create {path} without a device (jnp.asarray), because in later calls it is not committed to one"
    ),
    "fix-start-as-returned": "pass {path} to the first call in the form in which the function returns it",
}

# Short forms for a table of findings. The code of a finding in the table already means a recompile.
SHORT = {
    "recompiled": "{function}: {cause}{than}{also}",
    "recompiled-alike": "{function}: {cause}{than}{also}",
    "recompiled-weak-types": "{function}: {cause}{than}{also}",
    "recompiled-variously": "{function}: {cause}{than}{also}",
}
