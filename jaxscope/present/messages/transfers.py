"""Templates for transfers between host and devices, and between devices (JX601, JX602, JX603, JX511)."""

TEMPLATES = {
    "array-copied-for-each-write": (
        "{expression} copies the whole array, {bytes}, for each write in the loop at {loop}, because the"
        " writes run outside jit"
    ),
    "fix-write-in-jit": (
        "move the write into a function update({name}, index, values), and jit it with donate_argnums=0, so"
        " that it donates {name}. Define the jitted function once, outside of all functions that run"
        " repeatedly, and write {name} = update({name}, index, values): XLA then writes in place. Or collect"
        " the parts in a list, and join them once after the loop, with np.stack or np.concatenate along the"
        " axis of the index"
    ),
    "fix-donate-written": (
        "{fix}. Donate {name} to the jitted function (donate_argnums), so that XLA writes in place: without"
        " this, each call still copies the whole array"
    ),
    "with-copies": (
        "{finding}; each {expression} copies the whole array, {bytes}, and waiting for this took another"
        " {more}"
    ),
    "line-with": "the line with {expressions}",
    "read-each-step": (
        "{expression}{helper} waits for the device {often}; this took {seconds} in total{saved}"
    ),
    "copied-each-step": (
        "{expression}{helper} waits for the device and copies to the host {often}; this took {seconds} in"
        " total{saved}"
    ),
    "and-makes-text": "{waits}. In addition, converting the arrays to text took {seconds}",
    "read-in-loop": (
        "{expression}{helper} waits for the device {n} times in the loop that calls {function}; this took"
        " {seconds} in total{saved}. After each wait, a GPU or TPU has nothing to do until the next call"
    ),
    "in-each-step": "{times}in each of {steps} steps{phase}",
    "in-most-steps": "{times}in {steps} of {since} steps{phase}",
    "saved": "; with the advice, the program can save at most {seconds} of this",
    "helper-line": " ({line}, called at {caller})",
    "phase-of-steps": " (steps {first} to {last})",
    "times-a-step": "{n} times ",
    "so-often": "{n} times",
    "copies": (
        "{n} times, {amount} in total; the program waited for {share} of the time between the first copy and"
        " the last one"
    ),
    "copies-without-copy": "{copies}; on this backend the host reads the array without a copy",
    "fix-decide-on-device": (
        "make this decision on the device, with jnp.where or jax.lax.cond, or read the value only in every"
        " Nth iteration"
    ),
    "fix-count-in-python": (
        "count the iterations in a Python variable, and test that variable: the program then reads no value"
        " from the device here"
    ),
    "fix-test-less-often": (
        "this value ends the loop. If JAX can trace the whole loop, use jax.lax.while_loop. Otherwise, if a"
        " few more iterations do not change the results, test it only in every Nth iteration, or test each"
        " value one iteration later, after the next call"
    ),
    "fix-print-less": (
        "keep the values in a list, and print or show them after the loop; or print only in every Nth"
        " iteration"
    ),
    "fix-give-the-gradient": (
        "to estimate the gradient, scipy.optimize.minimize calls this function once more for each parameter."
        " Create f = jax.jit(jax.value_and_grad(g)) once, where g computes what this function returns. Let"
        " this function return (float(value), np.asarray(gradient)) from f, and pass jac=True to minimize"
    ),
    "fix-compute-on-host": (
        "this line makes an array of a Python number or a NumPy array, and reads the result back: compute it"
        " in Python or NumPy, without jnp"
    ),
    "fix-slice-on-device": (
        "write {new} instead of {expression}: it reads no bounds on the host. Or keep the data and the bounds"
        " as NumPy arrays"
    ),
    "fix-index-on-device": (
        "{expression} reads the index on the host, because {list} is no JAX array. Make it a JAX array before"
        " the loop ({list} = jnp.stack({list}) for a list of arrays of one shape), or draw or"
        " compute the index with NumPy"
    ),
    "fix-read-less": (
        "read the value only in every Nth iteration (for a mean, add the values up on the device), or keep"
        " it, and read it in the next iteration, after the call of the jitted function (read the last value"
        " after the loop): the device then computes while Python reads{donated}"
    ),
    "fix-copy-several": (
        "keep the arrays of many iterations in a list, and copy them together (jax.device_get of the"
        " list), or read each value in the next iteration, after the call of the jitted function (the last"
        " value after the loop): the device then computes while Python reads{donated}"
    ),
    "not-if-donated": ". A value that this call donates cannot be read after it",
    "also-line": "{first}. Line {numbers} waits, too{saved}",
    "also-lines": "{first}. Lines {numbers} wait, too{saved}",
    "saved-there": "; there the advice can save at most another {seconds}",
    "fix-read-for-method": (
        "{method} needs this value before the program can go on. If it is a simulator, run several simulators"
        " at once: call the jitted function once for all of them, and read all results at once"
    ),
    "fix-pass-the-array": (
        "only {function} uses this value, and {function} is jitted and takes arrays: pass the array itself,"
        " without {kind}()"
    ),
    "fix-read-for-several": (
        "the variable {name} of the next iteration depends on this value: compute {name} in the jitted"
        " function, too, and read no value in the loop. If Python has to compute it (as a simulator"
        " does), run several simulators at once: call the jitted function once for all of them, and read"
        " all results at once"
    ),
    "elements-read": (
        "{expression} reads the elements of the array {name} one by one ({n} reads); each read runs"
        " operations of JAX for one number"
    ),
    "elements-of-several-read": (
        "{expressions} read the elements of {names} one at a time ({n} reads); each read runs operations of"
        " JAX for one number"
    ),
    "elements-passed": (
        "the loop around {caller} passes the elements of {name} one at a time, and {expression} at {line}"
        " reads each of them ({n} reads); each read runs operations of JAX for one number"
    ),
    "waited-for-elements": (
        "the program waited {seconds} for these values; the time to run the operations is not included"
    ),
    "fix-copy-arrays": (
        "copy the whole arrays to the host before the loop: {names} = jax.device_get(({names})). Their"
        " elements are then NumPy numbers, and JAX runs nothing to read them"
    ),
    "fix-copy-whole": (
        "copy the whole array to the host before the loop: {name} = jax.device_get({name}). Its elements are"
        " then NumPy numbers, and JAX runs nothing to read them"
    ),
    "fix-copy-whole-if-array": (
        "if {name} is an array, copy it to the host before the loop: {name} = jax.device_get({name}). If"
        " {name} is an iterator over an array, copy this array before the iterator is created. The elements"
        " are then NumPy numbers, and JAX runs nothing to read them"
    ),
    "fix-copy-before-generator": (
        "{name} is made by the generator {generator}, which yields the elements of an array. Before you call"
        " {generator}, copy this array to the host with jax.device_get. The elements are then NumPy numbers,"
        " and JAX runs nothing to read them"
    ),
    "items-copied": "{expression}{helper} copies {n} arrays of {each} to the device, one at a time",
    "list-converted": (
        "{expression} takes about {seconds} for {bytes}: JAX converts a Python list item by item"
    ),
    "arrays-converted": "{expression} takes about {seconds}: JAX converts a list of JAX arrays one by one",
    "fix-stack-arrays": (
        "write jnp.stack({list}) instead, which is several times as fast (if its items are lists of arrays,"
        " apply jnp.stack to each of these first). If the list has NumPy arrays or Python numbers instead of"
        " JAX arrays, jnp.asarray(np.array({list})) is faster still"
    ),
    "list-traced": (
        "while JAX traces {function}, it converts {names} number by number: tracing this line took about"
        " {seconds}"
    ),
    "list-traced-maybe": (
        "while JAX traces {function}, this line took about {seconds}: {names} may be a list or a tuple of"
        " numbers, which JAX converts number by number"
    ),
    "fix-convert-index": (
        "make {names} a NumPy array where it is created, with np.array(...), not a list or a tuple (if it"
        " contains several lists, make each of them a NumPy array)"
    ),
    "fix-convert-indices": (
        "make {names} NumPy arrays where they are created, with np.array(...), not lists or tuples"
    ),
    "fix-convert-list": (
        "let NumPy convert the list first, which is many times as fast: jnp.asarray(np.array({name}))."
        " Or make a NumPy array from the start instead of the list"
    ),
    "fix-copy-batch": (
        "prepare the items with NumPy, and copy them together when the batch is complete, with"
        " jnp.asarray(np.stack(items)), or pass the NumPy batch to the jitted function. If the work on an"
        " item needs JAX, do it for the whole batch in a jitted function, with jax.vmap"
    ),
    "operations-in-loop": (
        "the loop at {loop} spends about {seconds} ({share} of the run) in operations outside jit, {where}"
    ),
    "operations-in-loops": "the loops at {loops} spend about {seconds} in operations outside jit",
    "operations-in-passed-function": (
        "{library} calls {function} again and again, from {lines}: about {seconds} ({share} of the run) are"
        " spent in the operations of {function} outside jit"
    ),
    "with-compiling": "{finding}, plus {seconds} to compile these operations",
    "with-running": "{finding}; running these operations took about {seconds}, not counting compilations",
    "with-reading": "{finding}; iterating over the array took about {seconds}, not counting compilations",
    "python-in-loop": (
        "the loop at {loop} spends about {seconds} ({share} of the run) in Python code between its calls of"
        " jitted functions, {where}"
    ),
    "small-calls-in-loop": (
        "the loop at {loop} spends about {seconds} ({share} of the run) in calls of small jitted functions,"
        " {where}: starting one of these calls takes longer than what it computes"
    ),
    "small-calls-by-library": (
        "{library} calls the jitted function {function} again and again from Python: about {seconds} ({share}"
        " of the run) are spent in Python code of {library}"
    ),
    "fix-solver-in-jit": (
        "replace {library} here by a library whose loop is part of the compiled program: {libraries}"
    ),
    "for-differential-equations": "diffrax (diffrax.diffeqsolve) for differential equations",
    "for-minimization": "optimistix or optax for minimization, roots and fits",
    "for-sampling": "blackjax or numpyro for sampling",
    "fix-scan-loop": (
        "put the whole loop into one jitted function, as state, outputs = jax.lax.scan(body, state, xs),"
        " where xs has the inputs of all iterations. body(state, x) computes one iteration, and returns the"
        " new state and what the loop collects. outputs has the collected values of all iterations, stacked"
    ),
    "fix-scan-between": (
        "some code of the loop runs only under a condition ({conditions}). Put all iterations between two"
        " runs of this code into one jitted function, as a jax.lax.scan over the rest of the loop body"
    ),
    "at-lines": "at {lines}",
    "mostly-on-lines": "mostly on lines {lines}",
    "fix-draw-on-host": (
        "draw the random numbers with NumPy (rng = np.random.default_rng(seed), made once, before the"
        " loop), or draw all of them with one call of jax.random, and convert that array with np.asarray."
        " Both draw other numbers than now"
    ),
    "fix-join-on-host": (
        "join the arrays with NumPy (np.stack, np.concatenate, np.array) instead of jnp: jnp copies"
        " the NumPy arrays to the device one at a time; NumPy joins them first, so that there is one copy"
    ),
    "time-of-line": "about {seconds} at this line",
    "fix-read-archive-once": (
        "{archive} is an archive of NumPy (.npz): each {archive}[name] reads the whole array from the"
        " file again. Read the arrays once, before the loop: dict(np.load(...))"
    ),
    "fix-python-for-next": (
        "this code computes {name}, and the next call of the jitted function waits for it. Use NumPy"
        " operations on whole arrays, and plot, log or save less often. If the code is a simulator, run"
        " several simulators at once, and call the jitted function once for all of them"
    ),
    "fix-python-in-loop": (
        "make this code faster: use NumPy operations on whole arrays, move array computations into the jitted"
        " function, and plot, log or save less often. If it needs no result of this iteration, run it for the"
        " next iteration in another thread while the device computes (in several processes, if it takes"
        " longer than the computation)"
    ),
    "results-checked": (
        "JAX checks the results of each call and operation for NaN or infinity ({settings}): about {seconds}"
        " ({share} of the run)"
    ),
    "jit-disabled": (
        "jit is disabled (jax_disable_jit): jitted functions run their operations one by one, which takes"
        " about {seconds} ({share} of the run)"
    ),
    "fix-setting-off": "turn {settings} off{where}: it is meant for debugging",
    "setting-made-at": " (set at {lines})",
    "setting-of-environment": (
        " (no line of your code seems to set it: look for an environment variable such as {variable})"
    ),
    "fix-jit-iteration": (
        "put the operations of one iteration{of} into one jitted function that gets every value that changes"
        " as an argument, and call it once in each iteration"
    ),
    "fix-jit-lines": (
        "put the operations of these lines into one jitted function that gets every value that changes as an"
        " argument, and call it there"
    ),
    "of-the-loop-at": " of the loop at {loop}",
    "a-library": "a library",
    "fix-jit-passed-method": (
        "apply jit to {method}, which a library calls again and again, from {line}: write"
        " self.jitted = jax.jit({method}) once, in __init__, and use self.jitted instead of {method}."
        " Attributes that the method reads and that change later must become arguments"
    ),
    "fix-jit-passed-function": (
        "apply jit to {function}, which a library calls again and again, from {line}: write"
        " jitted = jax.jit({function}) once, before this line and outside of loops, and use jitted instead of"
        " {function}. Arrays that {function} reads from outside should become arguments"
    ),
    "fix-jit-output": (
        "most of these operations run only under a condition: put those into one jitted function, and call it"
        " there"
    ),
    "fix-jit-each": (
        "the operations are in several loops: for each of {loops}, put the operations of one iteration into"
        " one jitted function, outside of the loop"
    ),
    "fix-jit-functions": (
        "apply {how} to {functions}, each as a whole: JAX then compiles each as one program. If they read"
        " a value from outside that changes, pass it as an argument{statics}. Inside jit, JAX unrolls Python"
        " loops: write long loops as jax.lax.scan or jax.lax.fori_loop"
    ),
    "fix-inner-loop": (
        "{fix}. Inside jit, JAX unrolls the Python loop at {loop}, and compiles again if the number of"
        " iterations changes: {instead}{same}{others}"
    ),
    "fix-without-attributes": (
        "{fix}. The jitted function must not assign to attributes: it takes the old values of {names} as"
        " arguments, and returns the new values, which the caller assigns"
    ),
    "same-for-loops": ". Do the same at {loops}",
    "other-loops": ". At {loops}, use {instead} instead of the loop",
    "by-vmap": "jax.vmap",
    "by-scan": "jax.lax.scan or jax.lax.fori_loop",
    "fix-or-vmap": (
        "{fix}. Still better: no iteration of the loop at {loop} needs a result of another one, so replace"
        " the loop by one call of batched = jax.jit(jax.vmap({function})). Create batched once, outside of"
        " all loops. In in_axes, write None for arguments that stay the same; in static_argnums of this jit,"
        " list static arguments"
    ),
    "fix-or-vmap-over-items": (
        "{fix}. Still better: no iteration of the loop at {loop} needs a result of another one. Stack the"
        " items of {names} before the loop ({first} = jax.tree.map(lambda *a: jnp.stack(a), *{first})), and"
        " compute all iterations in one call with jax.vmap"
    ),
    "fix-loop-by-vmap": "use jax.vmap (or jax.lax.scan) instead of this loop{listed}",
    "loop-over-a-list": " (if it goes over a list, stack the list first)",
    "fix-loop-by-scan": (
        "each iteration needs results of the one before, so write it as jax.lax.scan or jax.lax.fori_loop (a"
        " loop of only a few iterations can stay a Python loop)"
    ),
    "large-transfer-to-host": (
        "{what}{helper} copies arrays from the device to the host: {n} times, {bytes} in total"
    ),
    "large-transfer-to-device": (
        "{what}{helper} copies arrays from the host to {devices}: {n} times, {bytes} in total"
    ),
    "device-waits": (
        "after each wait the device has no work until the next call: at most {share} of the time, {seconds}"
        " per step"
    ),
    "large-transfer-each-call": "{what}{helper} copies {bytes} to the device in each iteration of a loop",
    "in-all": "{amount} in total",
    "bytes-unknown": "size unknown",
    "fix-copy-less": (
        "copy a smaller part, or copy less often: pass the values that you need to jax.device_get about every"
        " 50 steps"
    ),
    "fix-index-before-copy": (
        "index the NumPy array first, so that only the rows that are used are copied: {copy}"
    ),
    "fix-put-once": (
        "put the data on the device once, before the loop; if the data are new in each iteration, put the"
        " next batch on the device (jax.device_put) while the device still computes"
    ),
    "argument-on-other-device": "{paths} of {function} {is_on} not on the devices of its program{copied}",
    "passed-as": " (passed as {names})",
    "like-the-others": ", for example with the sharding of {other}",
    "copied-so-often": "; JAX copies {amount} {often}",
    "in-each-call": "in each call",
    "in-copies": "in {n} copies",
    "copied-at-the-call": "copied between devices when the function is called",
    "argument-sharding": "{path}: {sharding}",
    "program-on-devices": "{arguments}; the program runs on devices {devices}",
    "fix-put-where-used": (
        "put {paths}{named} on the devices of the program with jax.device_put{like}, before the loop, or"
        " where the loop creates {them}"
    ),
}
