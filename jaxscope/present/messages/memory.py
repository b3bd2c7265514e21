"""Templates for device memory: growing arrays, replicated arrays, uneven devices, programs that do not fit
(JX501 to JX510)."""

TEMPLATES = {
    "stored-outside-jit": (
        "{line} stores an array of {bytes}, {array}, outside jit, and reduces it to a smaller one"
        " ({operation})"
    ),
    "fix-reduce-in-jit": (
        "put these operations into one jitted function: XLA then does not store the array. If they add"
        " up products, write a matrix product or jnp.einsum instead, which is faster still"
    ),
    "results-not-read": "{function} returns {bytes} that the program never reads: {paths}{elements}",
    "results-nearly-not-read": (
        "{function} returns {paths}, of which the program only reads a few elements along the first axis:"
        " {bytes} are never read"
    ),
    "and-elements": ", and all but a few elements of {paths}",
    "fix-return-what-is-read": (
        "do not return an array that is never read; if only some elements of an array are read, return only"
        " these elements. In a scan, the body must not return what is not read in its second result. If you"
        " read only the last value, put it into the carry"
    ),
    "dense-solution": (
        "diffeqsolve in {function} reserves memory for max_steps steps, also if it takes fewer, because of"
        " SaveAt(dense=True): {bytes}"
    ),
    "fix-save-at-times": (
        "if you know before the call of diffeqsolve at which times you need the solution (the times may be"
        " arguments of the jitted function), pass saveat=SaveAt(ts=times) to it, and use solution.ys instead"
        " of solution.evaluate. Otherwise, pass it a smaller max_steps (diffrax raises an error if it is too"
        " small)"
    ),
    "frozen-parameters": (
        "{function} computes gradients and {moments} of optimizer state for {paths} ({bytes}), and then adds"
        " 0 to these parameters"
    ),
    "fix-train-some": (
        "differentiate only with respect to the parameters that are trained: split the parameters into two"
        " pytrees, trained and frozen, pass only the trained ones to jax.grad and to the optimizer, and put"
        " them together in the loss. If you clip by the global norm, it is then that of the trained"
        " parameters. Setting updates to 0 afterwards saves nothing"
    ),
    "stacked-not-read": (
        "{function} keeps the values of all iterations of a loop in {arrays}{shape}, and reads {share} of"
        " them{line}: {bytes} are never read"
    ),
    "stacked-reduced": (
        "{function} keeps the values of all iterations of a loop in {arrays}{shape} ({bytes}), and then"
        " only reduces them{line}"
    ),
    "fix-reduce-in-scan": (
        "let the body of the loop return the reduced values (their mean, sum, maximum, ...). The arrays in"
        " the body have no axis for the iterations: axis=1 becomes axis=0. If the reduction is over the"
        " iterations, keep the sum or the maximum in the carry instead, and return None for each iteration"
    ),
    "stacked-array": "an array",
    "stacked-shape": " of shape {shape}",
    "stacked-shapes": ", such as one of shape {shape}",
    "stacked-arrays": "{n} arrays",
    "stacked-read-on": " on {line}",
    "fix-stack-what-is-read": (
        "let the body of the loop return only the part of these values that is read. If only the last"
        " iteration is read, take the values from the carry. If only every k-th iteration is read, run k"
        " iterations in each call of the body, with jax.lax.fori_loop, divide the number of iterations by k,"
        " and remove the slice"
    ),
    "work-not-read": (
        "about {work} of the operations of {function}{lines} compute values that a loop stores in each"
        " iteration; the function reads {share} of these values{line}"
    ),
    "work-on-lines": " ({lines})",
    "fix-compute-what-is-read": (
        "compute these values only for the iterations that are read. If every k-th iteration is read, let"
        " each call of the loop's body run k iterations without these values in jax.lax.fori_loop, and then"
        " compute the values once; divide the number of iterations by k, and remove the slice. If only the"
        " last iteration is read, compute the values from the carry after the loop"
    ),
    "growing-arrays": (
        "{arrays} by {more} and {more_bytes} in each step; it has {count} ({bytes}) after step {step}"
    ),
    "growing-array": (
        "the array {path} grows by {more_bytes} in each step; it has {bytes} after step {step}"
    ),
    "appended-in-loop": (
        "the loop at {line} adds arrays to {container} and removes none: {container} had up to {count}"
        " ({bytes})"
    ),
    "growing-arrays-by-time": "{arrays} while the program runs, to {count} ({bytes}) after {seconds}",
    "growing-array-by-time": (
        "the array {path} grows while the program runs; it has {bytes} after {seconds}"
    ),
    "path-grows": "{path}{inside} grows",
    "arrays-inside": " (its arrays {path})",
    "held-arrays-grow": "the set of arrays held by {holder} grows",
    "held-by-container": "a {kind} of {count}",
    "held-by-dict": "a {kind}{under}",
    "held-under-key": " under {key}",
    "held-by-object": "an object of class {kind}",
    "held-by-closure": "a variable of a closure",
    "held-by-frame": "a local variable of {function}",
    "held-by-trace": "a jit cache of JAX ({kind})",
    "held-outside-python": "an object in C++ (such as a cache of JAX) that Python cannot list",
    "unreferenced-arrays-grow": "the set of arrays without a known reference grows",
    "arrays-of-bytes": "{count}, {bytes}",
    "arrays-at-time": "{count}, {bytes} after {seconds}",
    "fix-pass-captured-arrays": (
        "pass the arrays that the function captures as arguments: each time JAX traces the function, it keeps"
        " the captured arrays"
    ),
    "fix-release": "{holder} keeps the results of this line: remove those that the program no longer needs",
    "fix-find-references": (
        "find what keeps the results of this line: a reference cycle, a cache or an object in a library"
    ),
    "fix-keep-numbers": (
        "keep Python numbers in {container} instead of arrays: in each step, append float(x) for the x of the"
        " previous step, so that the program does not wait for the device"
    ),
    "fix-final-length": (
        "make {path} as long as it will be at the end, and write each new element into it inside the jitted"
        " function, at its position n: {path}.at[n].set(value), or {path}.at[:, n] along the second axis."
        " Donate {path} to this function (donate_argnames), so that no call copies it."
        " What reads {path} must then leave out the elements that are not written yet, with a mask, and use n"
        " instead of len({path}). Now, each new length copies the whole array, and recompiles the functions"
        " that use it"
    ),
    "fix-keep-error-text": (
        "keep str(error) in {container}, or error.with_traceback(None): an exception keeps the"
        " variables of the functions that it passed through"
    ),
    "fix-bound-cache": "limit the size of the cache of {function}: functools.lru_cache(maxsize=...)",
    "fix-keep-fewer": (
        "limit the number of arrays in {container}, or copy them to the host with jax.device_get"
    ),
    "replicated-array": (
        "{path} is replicated {copies} times over {axes}{like}: it takes {held} on each device."
        " If it is sharded over {axis!r}, it takes {saved} less{arrays}"
    ),
    "mesh-axis": "mesh axis {names}",
    "mesh-axes": "mesh axes {names}",
    "tree-arrays": " ({count}; the largest: {largest})",
    "arrays-of-shape": "the {aval} arrays of {tree}",
    "array-in": "{path} in {container}",
    "one-is-sharded": " ({path} is sharded over {axis!r})",
    "several-are-sharded": " ({path} and {more} of {tree} are sharded over {axis!r})",
    "replicated-bytes": "{path}: {bytes} on each device, dimension {dimension} can be sharded",
    "fix-shard-dimension": (
        "shard dimension {dimension} of {path} over the mesh axis {axis!r}{like}, where the program makes it:"
        " {spec} in jax.device_put, in out_shardings of jit, or in jax.lax.with_sharding_constraint{others}."
        " But each call that needs a whole array then first copies its other parts to each device: up to"
        " {price}"
    ),
    "shard-like": ", like {path}",
    "shard-the-others": (
        "; for each of the other arrays, choose a dimension that is divisible by the size of the axis"
    ),
    "uneven-devices": "device {fullest} holds {most} and device {emptiest} {least}{array}",
    "holds-only": "only {bytes}",
    "holds-nothing": "no array that a variable refers to, directly or indirectly",
    "is-on-device": "; on device {device} is {path} ({bytes})",
    "device-holds": "device {device}: {bytes}",
    "fix-one-replica": (
        "these arrays are one replica of what jax.pmap uses, and this line copies it to all devices. Keep it"
        " on the host instead: jax.tree.map(lambda a: np.asarray(a.addressable_shards[0].data)[0], tree),"
        " where tree has the arrays of jax.pmap. Or delete {tree} if the program does not read it any more"
    ),
    "fix-shard-over-mesh": (
        "split {path} over the {n} devices along one of its dimensions: jax.device_put({name},"
        " NamedSharding(mesh, {spec})) with mesh = jax.make_mesh(({n},), ('data',)), or with the mesh that"
        " the program has"
    ),
    "replicated-computation": (
        "{function} does the same computation on each of {devices} devices: all its arguments are"
        " replicated over them"
    ),
    "repeated-products": (
        "{share} of the matrix products that the {devices} devices compute for {function} are repeated:"
        " several devices compute the same part of the products at {lines}{why}"
    ),
    "assigned-to-underscore": "the result that is assigned to _",
    "products-of-gathered": (
        "{share} of the matrix products of {function} are computed on all {devices} devices: their operands"
        " come from arrays that the all_gather at {line} collects on every device"
    ),
    "fix-gather-results": (
        "if the parts do not depend on each other, like the images of a batch, let each device compute the"
        " results of its part of the array, and call jax.lax.all_gather on the results: for example, on the"
        " embeddings instead of the images. Otherwise, divide the work in another way: for example, each"
        " device computes different layers"
    ),
    "repeated-product-here": "several devices compute the same part of a product of this line",
    "repeated-reason-here": "because of this line, several devices compute the same part",
    "repeated-by-constraint": (
        ", because the sharding constraint {constraint} does not split the array over {axes}"
    ),
    "repeated-along-axes": ", because no argument is split over {axes}",
    "repeated-after-rows": (
        ", because {line} takes rows, by index, from an array that is split over {axes}, and then each device"
        " has all of these rows"
    ),
    "fix-split-rows": (
        "split the rows over the devices again after {line}: rows = jax.lax.with_sharding_constraint(rows,"
        " NamedSharding(mesh, PartitionSpec({axes}))). Do the same for each array of rows"
    ),
    "fix-unconstrained": (
        "None in this constraint means that each device has the whole dimension. Write {axes} instead of None"
        " for the dimension of the batch, or PartitionSpec.UNCONSTRAINED instead of each None, or remove the"
        " constraint"
    ),
    "fix-use-axis": (
        "split the batch over {axes}, too, as in PartitionSpec(('data', 'model')), or make a mesh without"
        " this axis, in which the other axes have all devices. If the axis is meant for weights, split these"
        " over it, as in PartitionSpec(None, 'model')"
    ),
    "fix-look-at-shardings": (
        "run jaxscope report --function {function} to see how the arrays of the function are sharded. Then"
        " constrain the arrays that this line reads, with jax.lax.with_sharding_constraint, so that they stay"
        " split over all mesh axes. A reshape that merges dimensions keeps only the split of the first of"
        " them: put the split dimension first, as in (batch, time) -> batch * time"
    ),
    "fix-shard-batch": (
        "split {what} over a mesh of the devices before the call: jax.device_put({path}, NamedSharding(mesh,"
        " P('data'))){uneven}; or, if {function} computes little, pass arrays that are on one device"
    ),
    "its-batch": "its batch",
    "probably-its-batch": "{path}, which is probably its batch,",
    "uneven-batch": ". Its size must be divisible by {devices}, which {size} is not",
    "does-not-fit": "{function} needs {peak} on each device{beside}, but {capacity}",
    "beside-live-arrays": ", in addition to {bytes} of live arrays",
    "device-has": "a device has only {bytes}",
    "host-has": "the host has only {bytes}",
    "devices-share": "the {devices} devices of this host share only {bytes}",
    "fix-less-memory": (
        "shard the largest arrays of the function over more devices, donate the arguments that the function"
        " replaces, or process smaller batches"
    ),
    "fix-less-temporary": (
        "{bytes} of this memory are temporaries of the program: process smaller batches, or, if the program"
        " computes a gradient, compute values of the forward pass again in the backward pass (jax.checkpoint)"
    ),
    "nearly-full": "device {device} used {share} of its memory at its peak: {peak} of {limit}",
    "fix-nearly-full": (
        "reduce the memory before you use a larger batch; jaxscope report --all lists the largest arrays"
    ),
}
