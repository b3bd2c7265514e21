"""Templates for programs: unrolled loops, host callbacks, precision, communication (JX202 to JX402)."""

TEMPLATES = {
    "unrolled-growing-loop": (
        "JAX unrolled a Python loop in {function}{called}: a block of {operations} operations is repeated"
        " {times} times, each time with longer arrays{also}"
    ),
    "scan-residuals": (
        "the scan in {function} keeps values of all {iterations} iterations for the gradient: {bytes} on each"
        " device, {share} of the program's temporary memory"
    ),
    "fix-checkpoint": (
        "apply {checkpoint} to the body of the scan: {scan}({checkpoint}(body), ...). JAX then keeps only the"
        " carry of each iteration, and computes the other values again for the gradient, so that a step takes"
        " longer. Change nothing if there is enough memory"
    ),
    "fix-checkpoint-segments": (
        "divide the {iterations} iterations into about {segments} segments. Write a function run_segment that"
        " scans over the iterations of one segment, and scan over the segments with"
        " jax.checkpoint(run_segment) as the body. JAX then keeps only the carry of each segment, and"
        " computes the other values again for the gradient, so that a step takes longer. Change nothing if"
        " there is enough memory"
    ),
    "fix-vmap-iterations": (
        "no iteration needs a result of another one, except that the loop adds results up: compute all"
        " iterations together with jax.vmap over their inputs (stack inputs that are in a list), and then"
        " add up the results. jax.lax.map needs less memory, but computes the iterations one after the other"
    ),
    "fix-vmap-without-sums": (
        "no iteration needs a result of another one: compute all iterations together with jax.vmap over their"
        " inputs (stack inputs that are in a list). jax.lax.map needs less memory, but computes the"
        " iterations one after the other"
    ),
    "fix-without-chunks": (
        "each iteration takes some rows of an array. If the result for a row depends on no other row, get"
        " the results for all rows in one call, without the loop. If that needs too much memory, use"
        " jax.lax.map(f, x, batch_size=size), where f gives the result for one row. If the result depends on"
        " other rows of a chunk, reshape the array to [n, size, ...], and use jax.vmap or jax.lax.map over"
        " the n chunks"
    ),
    "fix-final-length-then-scan": (
        "give the arrays their final length from the start. If an array has p elements before the loop,"
        " iteration i (from 0) writes with array.at[p + i].set(...), or array.at[:, p + i] if its second"
        " axis grows, and array[-1] becomes array[p + i - 1]. What reads the array must leave out the"
        " elements that are not written yet: before a sum, jnp.where(jnp.arange(length) < p + i, values, 0);"
        " before a softmax, with -jnp.inf instead of 0. Then write the loop as jax.lax.scan or"
        " fori_loop{cache}"
    ),
    "or-key-value-cache": (". For a language model with causal attention, a key-value cache is faster still"),
    "fix-scan-in-jit": (
        "{fix}. {line} (in {function}) also runs this loop, outside jit. There, each call would compile the"
        " scan again: jit the function that this line calls, too"
    ),
    "unrolled-loop": (
        "JAX unrolled a Python loop in {function}{called}: a block of {operations} operations is repeated"
        " {times} times{also}"
    ),
    "repeated-draws": (
        "{function} draws random numbers {draws} times, with only {different}: XLA compiles each of the"
        " {draws} draws"
    ),
    "fix-repeated-draws": (
        "call {function} without jit, if it mostly draws numbers: JAX then compiles each different draw once."
        " Or create equal layers together, jax.vmap(create_layer)(keys), where keys is one array (no list)"
        " with a key for each layer: one call then draws the arrays of all layers"
    ),
    "unrolled-called": ", which {program} calls",
    "unrolled-also": "; the same loop is also compiled as a part of {functions}",
    "repeated-block": "a block of {operations} operations is repeated {times} times in {function}",
    "repeated-share": (
        "{function} took {seconds} to trace, lower and compile; with a scan, it has {share} fewer operations"
    ),
    "sites-in-loop": (
        "{function} makes its sample sites one by one in a Python loop: {library} runs and differentiates the"
        " operations of one site after the other ({compilations} at {line})"
    ),
    "fix-plate": (
        "if all iterations use the same kinds of distributions, make each site once for all of them. Replace"
        " the loop by a plate: with numpyro.plate('rows', n): ..., where n is the number of iterations. Use"
        " whole arrays in it: for data x, obs=x instead of obs=x[i]. If x[i] has several elements, write"
        " .to_event(1) after the distribution of x, and z[:, None] for each site z that has one number for"
        " each i. If the x[i] have different lengths, join them into one array x, and make an integer array"
        " row of the same length: row[j] is the i to which x[j] belongs. Make the site of x in a second"
        " plate, of size len(x), after the first one. There, write z[row] instead of z"
    ),
    "fix-scan-of-sites": (
        "write the loop as last, _ = numpyro.contrib.control_flow.scan(step, {name}, series). step({name}, x)"
        " makes the sites of one iteration, without the number of the iteration in their names, and returns"
        " (new {name}, None). The model then has one site of each name for all steps"
    ),
    "fix-same-iterations": "write the loop as {same}. The state of this loop is what an iteration changes",
    "fix-same-iterations-collected": (
        "write the loop as state, outputs = jax.lax.scan(body, state, length=n), where n is the number of"
        " iterations. body(state, _) computes one iteration. The state is what an iteration changes; body"
        " returns the new state and {output}"
    ),
    "scan-output-or-none": (
        "the output of the iteration, or None if the program needs no outputs. outputs has the outputs of all"
        " iterations; outputs[-1] is the last one"
    ),
    "fix-scan-over": (
        "write the loop as state, outputs = {scan}(body, state, {array}){reverse}{listed}{shifted}."
        " body(state, element) computes one iteration. The state is what an iteration passes to the next one;"
        " element is one element of {array}. body returns the new state and {output}"
    ),
    "scan-reversed": ", with the option reverse=True, which keeps the order of the arrays in the outputs",
    "scan-stack-each": " (first stack each of these that is a list)",
    "scan-shifted": (
        ". Of each array, pass only the elements that the iterations read; for {element}, they begin at"
        " another index"
    ),
    "scan-stack-first": (
        " (if {name} is a list, stack it first: jax.tree.map(lambda *a: jnp.stack(a), *{name}))"
    ),
    "scan-stack-this-list": " (stack this list first: jax.tree.map(lambda *a: jnp.stack(a), *{name}))",
    "scan-collects": (
        "what the loop appended to a list. outputs has the appended values of all iterations, stacked{first}"
    ),
    "scan-first-elements": (
        " (if the list had elements before the loop, put them in front: jnp.concatenate)"
    ),
    "scan-collects-elements": (
        "the element that the loop wrote with .at[...].set. outputs has the elements of all iterations,"
        " stacked (if the array has earlier elements that the program needs, put them in front:"
        " jnp.concatenate)"
    ),
    "fix-scan": (
        "if the iterations have different inputs or parameters, stack these once, where they are made, and"
        " write the loop as {scan} over them{layers}. Otherwise, write it as {same}"
    ),
    "fix-scan-modules": (
        "replace the loop by scan = nn.scan(lambda module, x, _: (module(x), None), variable_axes={{'params':"
        " 0}}, split_rngs={{'params': True, 'dropout': True}}, length={times}) and x, _ = scan(Layer(), x,"
        " None). If all iterations use the same parameters, write variable_broadcast='params' instead of"
        " variable_axes, and 'params': False in split_rngs. If the iterations have different inputs, stack"
        " these and pass them as xs: scan(Layer(), x, xs), with lambda module, x, each: (module(x, each),"
        " None). If the layer has further arguments that stay the same, such as train, pass them in the"
        " lambda, too: module(x, train). The layers get other initial values than before. With variable_axes,"
        " their parameters are stacked, so old checkpoints do not fit"
    ),
    "fix-scan-and-measure": (
        "{fix}. Measure the time of a call before and after: a scan compiles faster, but it can run slower"
        " than the unrolled loop"
    ),
    "fix-object-in-scan": (
        "{fix}. The loop changes attributes of {names}: put the arrays of these attributes into the state. At"
        " the beginning of the body, assign them to the attributes; at its end, return their new values."
        " Otherwise each iteration starts from the values before the loop, without an error"
    ),
    "fix-tests-of-index": (
        "{fix}. The loop's variable is then an array, which Python's if cannot test: at {line}, use jnp.where"
        " or jax.lax.cond instead of 'if {expression}', or write {place}"
    ),
    "iteration-before": "the first iteration separately, before the loop",
    "iteration-after": "the last iteration separately, after the loop",
    "iteration-outside": "that iteration separately, before or after the loop",
    "scan-own-parameters": " (as {layers}, if each iteration creates new parameters)",
    "scan-stack-list": " (to stack a list of pytrees: jax.tree.map(lambda *a: jnp.stack(a), *layers))",
    "scan-create-stacked": " ({maker} creates layers with stacked parameters)",
    "called-row-by-row": (
        "{function} is called once for each row of {aval}, in a loop that runs {n} programs one after the"
        " other"
    ),
    "called-in-step": "each step calls {function} {n} times, in a loop that does nothing else",
    "fix-vmap-calls": (
        "call jax.vmap({function}) once, in one jitted function; if that needs too much memory, use"
        " jax.lax.map"
    ),
    "fix-scan-calls": "put the loop into one jitted function, as a jax.lax.scan whose body calls {function}",
    "work-done-twice": (
        "{function} and {other} compute the same forward pass in each iteration of the loop at line {line},"
        " from the same arguments"
    ),
    "work-done-twice-after": (
        "in each iteration of the loop at line {line}, {function} computes the forward pass of {other} once"
        " more: on the same batch, with the parameters that {other} has updated"
    ),
    "fix-has-aux": (
        "let {other} return the result of {function}, too, and remove the call of {function}. If this result"
        " is the loss, {value_and_grad} already returns it. Return other results from the loss function as a"
        " second value, and use (value, extra), gradients = {value_and_grad}(loss, has_aux=True)(...){before}"
    ),
    "of-params-before": (
        ". The result is then computed with the parameters before the update: change nothing if you need it"
        " with the updated parameters"
    ),
    "branches-under-vmap": (
        "{function} runs all branches of {conditional} for every element, because under vmap each element has"
        " its own predicate. {branch}"
    ),
    "branch-has-share": "The branch {branch} has {share} of the program's operations",
    "branches-call-one": (
        "Its {n} branches all call {called}, and only one of the results is used: {share} of the program's"
        " operations are not needed"
    ),
    "fix-select-arguments": (
        "compute each argument of {function} first, with jnp.where(predicate, value_if_true, value_if_false)."
        " Then call {function} once, instead of the conditional"
    ),
    "whole-checkpoint": (
        "{function} computes the forward pass twice, because of a jax.checkpoint: {share} of its matrix"
        " products are those of the second time. The checkpoint is around the whole function that is"
        " differentiated, and therefore saves no memory"
    ),
    "constant-decomposed": (
        "{function} decomposes the same constant matrix in each iteration of the loop at {loop}: this takes"
        " {share} of its operations"
    ),
    "fix-decompose-once": (
        "decompose the matrix once, before the loop, and pass the result to {function} as an argument"
    ),
    "fix-factor-once": (
        "before the loop, compute factor = jnp.linalg.cholesky(covariance), and pass it to {function}. There,"
        " instead of calling multivariate_normal, compute mean + jax.random.normal(key, (*shape, len(mean)))"
        " @ factor.T. The random numbers change, but have the same distribution"
    ),
    "work-repeated-in-loop": (
        "{function} computes the same results in each iteration of the loop at {loop}: {share} of its"
        " operations ({lines}) depend only on {arguments}, which the loop does not change"
    ),
    "same-rows-again": (
        "the loop at {loop} calls {function} for the same rows of {arrays} again in each iteration, only in"
        " another order"
    ),
    "fix-keep-results": (
        "call {function} for all rows of {arrays} once before the loop, keep the results in one array,"
        " and take the rows of this array in the loop. This is right if each row of the result depends"
        " only on the same row of {arrays}"
    ),
    "line-known": "line {lines}",
    "lines-known": "lines {lines}",
    "all-lines": "{lines}",
    "fix-call-before-loop": (
        "call {function} once before the loop, and use its result in the loop. If the result should change"
        " from iteration to iteration, the program has an error: no line in the loop sets {arguments}"
    ),
    "fix-function-before-loop": (
        "{jit}call {inner} once before the loop, and pass its result to {function} as an argument"
    ),
    "inner-with-jit": "apply jit to {inner}, ",
    "fix-compute-before-loop": (
        "move the operations that depend only on {arguments} into another jitted function, call it once"
        " before the loop, and pass its results to {function}"
    ),
    "fix-checkpoint-parts": (
        "remove jax.checkpoint here. If there is then not enough memory, apply jax.checkpoint to parts that"
        " run one after the other, such as each layer: JAX then keeps the values of only one part at a time"
    ),
    "fix-branch-outside-vmap": (
        "if in most calls no element needs this branch, decide once for the whole batch, outside vmap:"
        " {conditional}(jnp.any(predicates), select_both, jax.vmap(other), batch). predicates are the values"
        " of {predicate} for all elements (use jax.vmap), and other is the other branch. select_both computes"
        " both branches with jax.vmap, and takes the result of this branch where predicates is True:"
        " jnp.where(predicates, ...), with predicates[:, None] for results of more dimensions. If the"
        " conditional is in a loop, use jax.vmap in the body of the loop, not around the loop. If in most"
        " calls at least one element needs this branch, make the branch cheaper instead"
    ),
    "fix-counter-without-vmap": (
        "if {predicate} is the same for all elements, compute it from a value that vmap does not batch: for"
        " example, the index i in jax.lax.scan(body, carry, jnp.arange(n)), or an argument with None in"
        " in_axes. JAX then runs only one of the branches"
    ),
    "fix-branch-cheaper": (
        "if all elements can take the same branch, call {conditional} outside vmap, for the whole batch."
        " Otherwise make the branch cheaper, or, on a CPU, use jax.lax.map(f, xs) instead of vmap(f)(xs),"
        " because jax.lax.map runs only one branch for each element"
    ),
    "sort-for-few": "{function} sorts {rows}{elements}, and uses only {used} of them{each}",
    "shuffle-for-few": "{function} shuffles {rows}{elements}, and uses only {used} of them{each}",
    "sort-for-positions": (
        "{function} sorts {rows}{elements}, and uses the order only to find the positions of a few elements"
    ),
    "fix-count-before": (
        "the position of an element is the number of elements that come before it, which needs no sort."
        " Instead of jnp.argsort(-x), use (x > value).sum(axis); instead of jnp.argsort(x), use (x <"
        " value).sum(axis). value is the element whose position you need (in each row: jnp.take_along_axis(x,"
        " index[:, None], 1)). Equal elements then have the same position"
    ),
    "rows-of": "{rows} of ",
    "in-each-row": " in each row",
    "fix-top-k": (
        "use jax.lax.top_k(x, {used}), which finds the {used} largest elements and their indices without"
        " sorting the others. For the smallest elements, use jax.lax.top_k(-x, {used})"
    ),
    "fix-maximum": "use jnp.max and jnp.argmax, or jnp.min and jnp.argmin, which do not sort",
    "fix-draw-few": (
        "draw {used} different indices without a shuffle: jax.lax.top_k(jax.random.uniform(key, ({length},)),"
        " {used})[1]. If an index may occur twice, use jax.random.randint(key, ({used},), 0, {length})"
    ),
    "value-and-gradient": (
        "{function} is computed twice: the program calls it at {line} to get its value, and calls its jitted"
        " gradient at {gradient}, which computes the value, too"
    ),
    "fix-value-and-grad": (
        "jit {transform} of {function}. Call this jitted function once instead of the two functions: it"
        " returns the value and the gradient"
    ),
    "fix-value-and-grad-for-scipy": (
        "jit {transform} of {function}. Then write a function that calls this jitted function and returns"
        " (float(value), np.asarray(gradient)), and pass your function with jac=True to {call}"
    ),
    "costly-form": "{function} {what}; this takes {times} times as many operations as necessary",
    "slow-form": "{function} {what}. A matrix product computes the same faster",
    "slow-triangle": "{function} {what}. A mask does the same faster",
    "numbers-merged": (
        "{expression} converts {before} to {after}: of the neighboring numbers that were different, {share}"
        " are then equal"
    ),
    "numbers-wrapped": (
        "{expression} converts {before} to {after}, which changes the values of {share} of the numbers"
    ),
    "argument-merged": (
        "{function} is called with a NumPy array of {before} for {argument}. JAX converts it to {after}: of"
        " the neighboring numbers that were different, {share} are then equal"
    ),
    "argument-wrapped": (
        "{function} is called with a NumPy array of {before} for {argument}. JAX converts it to {after},"
        " which changes the values of {share} of the numbers"
    ),
    "an-array": "this line",
    "padding-in-last-row": (
        'line {padded} pads {name} with -1, and mode="{mode}" does not drop these indices: JAX takes -1 as'
        " the last row, so the values of the padding go to the last row"
    ),
    "index-out-of-bounds": (
        "{function}: index {index} is out of bounds for an axis with {size} elements; JAX raises no error,"
        " {instead}"
    ),
    "index-out-of-bounds-here": (
        "index {index} is out of bounds for an axis with {size} elements; JAX raises no error, {instead}"
    ),
    "reads-another-element": "but reads element {element}",
    "reads-nan": "but gives NaN",
    "leaves-update-out": "but leaves this update out",
    "fix-index-in-bounds": (
        "use an index from 0 to {last} (or from -{size} to -1), or correct the size of the array. If this"
        " index is intended, write {mode}"
    ),
    "unequal-ranks": (
        "{function} combines an array of shape [{n},1] with one of shape [{n}]: broadcasting gives [{n},{n}]"
        " values, which it then adds up"
    ),
    "fix-equal-ranks": (
        "give both arrays the same shape: y[:, None] for the one of shape [{n}], or x[:, 0] for the one of"
        " shape [{n},1]. Change nothing if each element of one is meant to be combined with all elements of"
        " the other"
    ),
    "mode-drop": 'x.at[i].set(y, mode="drop")',
    "mode-clip": 'x.at[i].get(mode="clip")',
    "mode-fill": 'jnp.take(x, i, mode="fill")',
    "padding-read-from-last-row": (
        'line {padded} pads {name} with -1, and mode="{mode}" fills in no values for these indices: JAX'
        " counts negative indices from the end, so -1 reads the last row"
    ),
    "fix-no-negative-indices": (
        "pass wrap_negative_indices=False together with the argument mode, or pad {name} with the number of"
        " rows of the indexed array instead of -1 (and replace -1 by this number wherever the program tests"
        " for -1)"
    ),
    "fix-pad-out-of-range": (
        "pad {name} with the number of rows of the indexed array instead of -1, and replace -1 by this number"
        " wherever the program tests for -1"
    ),
    "fix-subtract-before": (
        "if only the differences of these numbers matter, subtract a common offset, such as the first number,"
        " in NumPy before the conversion: float32 has about 7 digits, which are enough for the differences."
        " Or enable float64, with jax.config.update('jax_enable_x64', True) at the start of the program"
    ),
    "fix-smaller-integers": (
        "subtract a common offset in NumPy before the conversion, or replace each number by its index among"
        " the different values: np.unique(x, return_inverse=True)[1]. Or enable 64 bits with"
        " jax.config.update('jax_enable_x64', True)"
    ),
    "gradient-of-table": (
        "each gradient step of {function} changes a whole table, {table}, although the gradient of at most"
        " {used} of its {rows} rows is not 0{more}: {share} of the operations compute with zeros"
    ),
    "more-tables": " (the same is true of {tables})",
    "fix-gradient-of-rows": (
        "write the loss as a function of the rows that the step reads, not of the table and the indices, and"
        " change only these rows: rows = table[i]; grads = jax.grad(loss)(rows); table = table.at[i].add(-lr"
        " * grads). For gradient descent without momentum the result is the same. Donate the table, or carry"
        " it in a scan, so that XLA writes in place"
    ),
    "work-before-branch": (
        "in {function}, {share} of the operations ({lines}) compute what only one branch of the conditional"
        " needs, but run in each call, because they are before the conditional{also}"
    ),
    "also-in-functions": "; the same conditional is in {functions}",
    "fix-compute-in-branch": (
        "move these operations into the function of that branch. If jax.lax.cond passes their result to the"
        " branches as an operand, pass the inputs of these operations instead (the functions of all branches"
        " take the same operands)"
    ),
    "slow-power": (
        "{function} computes the power {exponent} of many numbers. On a CPU, XLA computes it with a logarithm"
        " and an exponential function, which takes longer than multiplications and square roots"
    ),
    "slow-power-of-gradient": (
        "{function} computes the power {exponent} of many numbers, the derivative of the power {of}. On a"
        " CPU, XLA computes it with a logarithm and an exponential function, which takes longer than"
        " multiplications and square roots"
    ),
    "fix-integer-exponent": (
        "write the exponent as an integer, x ** {exponent} instead of x ** {written}: JAX computes it"
        " with multiplications"
    ),
    "fix-power": (
        "the line computes x ** {exponent}, or x ** {more} and its derivative. Write it with an integer"
        " exponent (x ** 4 instead of x ** 4.0), or with a square root: x * jnp.sqrt(x) is x ** 1.5,"
        " jax.lax.rsqrt(x) / x is x ** -1.5"
    ),
    "fix-square-root": (
        "write {product} instead of x ** {written}. Results differ by rounding; if x may be 0, check the"
        " gradient there"
    ),
    "sum-of-squared-differences": (
        "computes the squared distances of all pairs of points from their differences, x[:, None] - y"
    ),
    "sum-of-three-factors": "adds up products of three or more arrays that are broadcast against each other",
    "fix-distances-by-product": (
        "use the squares and one product: (x**2).sum(-1)[:, None] + (y**2).sum(-1) - 2 * x @ y.T. Rounding"
        " makes small distances less accurate: set negative ones to 0 with jnp.maximum, and if x and y are"
        " far from 0, first subtract the mean of x from both. Change nothing where small distances must be"
        " accurate"
    ),
    "fix-sum-as-product": (
        "multiply two of the factors, then write the sum as a matrix product: for example, (a[:, :, None] *"
        " b[:, None, :] * c[:, None, None]).sum(0) becomes (a * c[:, None]).T @ b"
    ),
    "product-order": "multiplies three arrays in a costly order",
    "product-of-diagonal": "multiplies by a diagonal matrix as if it were full: most products are with 0",
    "product-of-one-hot": "multiplies by a one-hot matrix, only to pick rows or columns of the other matrix",
    "product-of-banded": "multiplies by a matrix that is zero outside a few diagonals",
    "fix-add-diagonals": (
        "multiply each diagonal by the vector, shifted, and add the results. If the three diagonals of A are"
        " the arrays lower, main and upper, A @ v becomes: y = main * v; y = y.at[1:].add(lower * v[:-1]); y"
        " = y.at[:-1].add(upper * v[1:])"
    ),
    "solve-of-tridiagonal": "solves linear equations whose matrix is zero outside three diagonals",
    "fix-tridiagonal-solve": (
        "use jax.lax.linalg.tridiagonal_solve(lower, main, upper, b), where lower, main and upper are the"
        " three diagonals. Each has as many elements as the matrix has rows (lower[0] and upper[-1] are not"
        " used). b must have two dimensions"
    ),
    "product-for-diagonal": "multiplies two matrices, and uses only the diagonal of their product",
    "product-for-part": "multiplies two matrices, and uses only a slice of their product",
    "positions-for-one": "computes the attention of all positions of a sequence, and uses only one position",
    "fix-key-value-cache": (
        "if each position depends only on earlier positions, keep the keys and values of the earlier"
        " positions in arrays (a key-value cache), and compute only the new position in each step:"
        " jax.lax.dynamic_update_slice writes the new key and value into these arrays"
    ),
    "fix-slice-before": (
        "slice the factor, not the product: x[:, -1] @ w instead of (x @ w)[:, -1], and x[rows] @ w instead"
        " of (x @ w)[rows]"
    ),
    "transform-of-real": "computes the complex Fourier transform of real numbers",
    "transform-of-prime-length": "computes Fourier transforms whose length has a large prime factor",
    "vectors-that-are-not-read": "computes singular vectors that nothing reads",
    "fix-fast-length": (
        "the program pads the numbers with zeros before these transforms, so a longer length gives the"
        " same result: m = scipy.fft.next_fast_len(n), where n is the present length. Give all these"
        " transforms the length m, and keep the first n numbers of the inverse transform"
    ),
    "fix-full-matrices": (
        "call jnp.linalg.svd(x, full_matrices=False): u then has as many columns, and vt as many rows, as"
        " there are singular values"
    ),
    "convolution-with-large-kernel": "computes a convolution with a large kernel directly",
    "categorical-of-many": "draws many times from the same probabilities with jax.random.categorical",
    "fix-choice": (
        "use jax.random.choice, which needs only one random number for each draw: categorical(key, logits,"
        " shape=(m,)) becomes choice(key, n, (m,), p=jax.nn.softmax(logits)), where n is the number of"
        " logits. The drawn numbers change, but have the same distribution"
    ),
    "triangle-by-scatter": "writes a triangle of a matrix element by element (a scatter)",
    "fix-triangle-by-mask": (
        "write jnp.where(mask, c, x) instead, where c is the value that you set now, and mask ="
        " jnp.triu(jnp.ones(x.shape[-2:], bool), k), with the k of triu_indices (jnp.tril for tril_indices)"
    ),
    "sum-of-vmapped-arrays": "makes a whole array for each element of a vmap, and then adds these arrays up",
    "fix-one-array-for-all": (
        "let all elements add to one array: the function under vmap returns indices (a tuple) and values"
        " instead of an array, and after the vmap, jnp.zeros(shape).at[indices].add(values) adds them all. If"
        " the function has a loop, write this loop outside vmap, and use vmap in its body: the carry is this"
        " one array, and the other state of all elements"
    ),
    "fix-fftconvolve": (
        "use jax.scipy.signal.fftconvolve, which computes the same convolution with Fourier transforms:"
        " convolve2d(x, kernel, mode='same') becomes fftconvolve(x, kernel, mode='same')"
    ),
    "fix-product-order": (
        "move the parentheses so that the product with the smallest result is computed first: A @ B @ v,"
        " which is (A @ B) @ v, becomes A @ (B @ v)"
    ),
    "fix-scale-rows": (
        "scale the rows or the columns: jnp.diag(d) @ A becomes d[:, None] * A, and A @ jnp.diag(d) becomes A"
        " * d"
    ),
    "fix-take-rows": (
        "take the rows by their indices: jax.nn.one_hot(i, n) @ A becomes A[i], and A @ jax.nn.one_hot(i,"
        " n).T becomes A[:, i]. For an index that is not in 0, ..., n - 1, the product gives zeros, while"
        " A[i] gives another row"
    ),
    "fix-diagonal-alone": (
        "compute the diagonal alone: jnp.diag(A @ B) becomes jnp.sum(A * B.T, axis=1), and jnp.trace(A @ B)"
        " becomes jnp.sum(A * B.T)"
    ),
    "fix-rfft": (
        "use jnp.fft.rfft, rfft2 or rfftn, which compute half of the results; the other half is their complex"
        " conjugates. For the inverse transform, irfft(y, n) gives n real numbers"
    ),
    "gradient-by-shifts": (
        "{function} estimates a gradient from {evaluations} evaluations of the same function, with each"
        " parameter a little larger and a little smaller"
    ),
    "minimize-without-gradient": (
        "scipy.optimize.minimize gets no gradient of {function}: it estimates each gradient from"
        " {evaluations} calls of {function}"
    ),
    "fix-minimize-with-gradient": (
        "pass the value with its gradient: minimize(jax.jit(jax.value_and_grad({passed})), ..., jac=True)"
    ),
    "fix-grad": (
        "use jax.grad of the function that is evaluated: it gives the exact gradient, and takes about as long"
        " as 4 evaluations. Change nothing if the function has steps (round, argmax), whose gradient is 0, or"
        " if it runs on other hardware, such as a quantum computer"
    ),
    "jacobian-in-reverse": (
        "{function} computes a Jacobian in reverse mode, with {passes} backward passes, one for each output;"
        " forward mode needs {others}, one for each input"
    ),
    "jacobian-forward": (
        "{function} computes a Jacobian in forward mode, with {passes} forward passes, one for each input;"
        " reverse mode needs {others}, one for each output"
    ),
    "fix-jacfwd": (
        "use jax.jacfwd here instead of jax.jacrev or jax.jacobian (which are the same), unless the"
        " differentiated function uses jax.custom_vjp, which has no forward mode"
    ),
    "fix-jacrev": (
        "use jax.jacrev here instead of jax.jacfwd, unless the differentiated function uses"
        " jax.lax.while_loop, which has no reverse mode. If you only need vector @ Jacobian, jax.vjp"
        " needs one pass"
    ),
    "no-result": "{function} returns no array and has no effect: XLA removes its {operations}",
    "returns-nothing": "what the function assigns to its arguments or to other variables is lost"
    " after the call",
    "fix-return-values": (
        "return the new values and assign them in the caller; if the function changes Flax modules, use"
        " nnx.jit instead of jax.jit"
    ),
    "host-callback": "each call of {function} calls back into Python {often}{lines}",
    "from-lines": ", from lines {numbers}",
    "in-each-iteration": "in each iteration of a loop",
    "partly-in-a-loop": "{n} times, at least once in each iteration of a loop",
    "callback-not-cached": (
        "{finding}; JAX {version} does not store a program with callbacks in the persistent cache"
    ),
    "fix-callback": (
        "if the callback only shows or stores values, return the values and use them outside the function, or"
        " run the callback only in every Nth iteration, with jax.lax.cond. If the callback computes a value"
        " that the function needs, compute this value with jax.numpy, or compute it before the call and pass"
        " it as an argument"
    ),
    "fix-show-outside": (
        "return the values, and print or store them outside the function. In a loop, jax.lax.scan returns the"
        " values of all iterations as its second result; or run the callback only in every Nth iteration,"
        " with jax.lax.cond"
    ),
    "fix-compute-in-jax": (
        "compute the value with jax.numpy, or compute it before the call and pass it as an"
        " argument{vectorized}"
    ),
    "call-back-once": (
        ". If Python must compute it, and the callback can compute many inputs at once, use"
        " vmap_method='expand_dims' or 'broadcast_all': JAX then calls it once for all inputs"
    ),
    "upcast": "{function} converts {bytes} from {before} to {after}",
    "upcast-spreads": (
        "{function} computes {products} in {after} although an operand is {before}, at lines {lines}: {why}"
    ),
    "earlier-mixes": "an earlier operation mixes {before} with {after}",
    "arguments-are-wide": "matrices in the arguments {paths} are {dtype}",
    "fix-cast-arguments": (
        "if these matrices should be {half}, create them with this dtype: an initialization that divides by a"
        " {dtype} array, for example, makes them {dtype}. If they should stay {dtype}, cast them where the"
        " forward pass begins: jax.tree.map(lambda w: w.astype({half!r}), ...). The products are then less"
        " precise. A GPU or TPU computes them faster, a CPU may compute them slower"
    ),
    "upcast-of-some": (
        "{function} computes matrix products in {after} {where}, although it computes other products there"
        " in {before}: an earlier operation mixes {before} with {after}"
    ),
    "fix-cast-where-it-begins": (
        "find the first operation that mixes the two types, probably {where}, and cast its {wide}"
        " operand: operand.astype({dtype!r}). The products are then less precise. A GPU or TPU computes them"
        " faster, a CPU may compute them slower"
    ),
    "fix-numpy-number": (
        "probably {call} on this line causes it, because a NumPy number or array turns {dtype} into {wide}:"
        " write float({call}) if it is one number, or jnp.asarray({call}, {dtype!r}) if it is an array"
    ),
    "fix-cast-down": (
        "if the wider dtype is not intended, cast the operand with the wider dtype, x, to the dtype of the"
        " other operand, y: x.astype(y.dtype)"
    ),
    "float64": "{function} computes in float64 ({operations}{arguments})",
    "float64-arguments": "; float64 arguments: {paths}",
    "float64-at-this-line": "the float64 number or array on this line",
    "fix-float32": (
        "convert {what} to float32: jnp.asarray(array, jnp.float32), or float(number) for one number, which"
        " then takes the dtype of the arrays. Or disable jax_enable_x64, if nothing in the program needs 64"
        " bits (large integers, long sums)"
    ),
    "half-precision-sum": (
        "{total} is added up in {dtype}: once it is {times} times as large as the number that is added,"
        " {total} no longer changes"
    ),
    "fix-add-in-float32": (
        "compute each mean or sum that is added to {total} from float32 numbers: apply"
        " .astype(jnp.float32) to the array inside it. {total} is then float32, too"
    ),
    "tolerance-below-precision": (
        "{parameter} is smaller than the rounding error of float32 (6e-08): the solver takes more steps for"
        " it, but rounding keeps the result from becoming much more accurate"
    ),
    "fix-larger-tolerance": (
        "use a larger {parameter} with float32, such as 1e-5, or compute in float64 if you need this"
        " accuracy: jax.config.update('jax_enable_x64', True)"
    ),
    "inserted-collectives": (
        "{function} has {collectives}{axes} that XLA's partitioner inserted (in each call: {sizes})"
    ),
    "scan-on-all-devices": (
        "{function}: {devices} computes all iterations of a scan{repeated}, because the scan goes over an"
        " array axis that is sharded over {axes}: in each call, JAX gathers arrays ({sizes} to each device)"
        " before the scan"
    ),
    "each-of-devices": "each of the {n} devices",
    "each-device": "each device",
    "work-repeated": " ({share} of the work is unnecessary)",
    "constraint-collectives": (
        "{function} constrains an array to {constraint}, which causes {collectives}{axes} (in each call:"
        " {sizes})"
    ),
    "over-axes": " over {axes}",
    "collective-size": "{count}{bytes}{times}",
    "count-of": "{n} x ",
    "collective-times": " {n} times",
    "collective-here": "the constraint causes an {kind} at {line}",
    "fix-shard-other-axis": (
        "scan goes over the first axis of its inputs, and needs all of this axis on each device: shard"
        " another axis of the input, for example with PartitionSpec(None, {axes})"
    ),
    "fix-match-shardings": (
        "this line, or its gradient, needs a whole array, but each device has only a part of it. If the"
        " arrays of this line are sharded in different ways by mistake, shard them in the same way: with"
        " jax.lax.with_sharding_constraint, or by the shardings of the arguments. If the array is sharded to"
        " save memory, change nothing"
    ),
    "fix-keep-axes": (
        "remove this sharding constraint, or change it so that the array stays sharded over {axes}"
    ),
    "fix-keep-array-sharded": (
        "remove this sharding constraint, or change it to a PartitionSpec that keeps the array sharded"
    ),
    "fix-constrain-as-before": (
        "remove this sharding constraint, or change it to the sharding that the array already has before this"
        " line"
    ),
    "sum-in-each-iteration": (
        "{function} sums {bytes} over devices in each iteration of a loop (psum or pmean), although the loop"
        " only adds the results up"
    ),
    "fix-sum-after-the-loop": (
        "in the loop, add up on each device only, and call jax.lax.psum or pmean once, after the loop: the"
        " result is the same{inserted}"
    ),
    "for-an-inserted-sum": (
        ". If you wrote no psum or pmean, JAX inserts the sum for a gradient (shard_map with check_vma):"
        " first mark the parameters as varying over the axis, params = jax.lax.pcast(params, axis,"
        " to='varying')"
    ),
    "involuntary-rematerialization": (
        "{function} gathers a whole array{size} on every device to change its sharding{change}"
    ),
    "of-size": " of {bytes}",
    "from-to": " from {before} to {after}",
    "fix-reshard-in-steps": (
        "change the sharding in two steps with jax.lax.with_sharding_constraint, one mesh axis in each step,"
        " or give the operands of this line matching shardings"
    ),
}
