"""Templates for memory that a program holds twice or does not need (JX505 to JX507)."""

TEMPLATES = {
    "unused-donation": "{path}{more} ({bytes}) is donated to {function} without effect{reason}",
    "unused-donation-reason": " ({reason})",
    "and-more": " and {others}",
    "fix-unused-donation": "do not donate it, or return a result with the same shape, dtype and sharding",
    "possible-donation": (
        "{function} could donate {path}{more} ({bytes}{each}), so that XLA reuses the memory: {when} no"
        " longer held the old arrays{mostly}"
    ),
    "mostly-copies": ". At present, this function mostly copies them",
    "on-each-device": " on each device",
    "program-ended": "when the program ended, it",
    "looked-next": "soon after the call, the program",
    "fix-donate": (
        "jit {function} with donate_argnames={argnames}{now}. A call then deletes the arrays that it"
        " receives as {names}: donate {them} only if your code does not read these arrays after the call,"
        " not even through another variable"
    ),
    "donates-now": " (at present it donates {names})",
    "fix-copy-then-donate": (
        "{copy} shares its arrays with {original}, and XLA cannot donate one array twice. Wherever"
        " {copy} is set to {original}, copy instead: {copy} = jax.tree.map({leaf}, {original}). Then {fix}"
    ),
    "fix-copy-state-then-donate": (
        "{copy} and {original} hold the same arrays, and XLA cannot donate an array twice. First find each"
        " line of your code, outside the jitted function, that creates {copy} from {original} or copies the"
        " values of {original} into {copy}, and add below it: nnx.update({copy}, jax.tree.map(jnp.copy,"
        " nnx.state({original}))). Then {fix}"
    ),
    "fix-donate-to-pmap": (
        "call jax.pmap with donate_argnums={positions}, which donates {names}. A call then deletes the arrays"
        " that it receives as {names}: donate {them} only if your code does not read these arrays after the"
        " call, not even through another variable"
    ),
    "fix-donate-all": (
        'use eqx.filter_jit(donate="all"). A call then deletes the arrays of {names}: donate only if your'
        " code does not read these arrays after the call, not even through another variable"
    ),
    "fix-donate-except-first": (
        'use eqx.filter_jit(donate="all-except-first"), which donates all arguments except the first{first}.'
        " A call then deletes the arrays of {names}: donate only if your code does not read these arrays"
        " after the call, not even through another variable"
    ),
    "as-first-parameter": ": make {name} the first parameter, here and in the calls",
    "is-first": ", {name}",
    "as-first-tuple": ": pass {names} together, as one tuple, as the first argument",
    "fix-donate-in-place": (
        "jit {function} with donate_argnames={argnames}: nnx.jit puts the new arrays into {names}, so that"
        " your code may read {names} after the call. Your code must not read the old arrays through another"
        " variable, such as a state that nnx.split or nnx.state returned before the call"
    ),
    "captured-constant": (
        "{functions} {capture} {constant} ({bytes}) as a constant: each compiled program contains a copy, and"
        " takes longer to compile"
    ),
    "captured-inside": (
        "{inner}, which {function} calls, captures {constant} ({bytes}) as a constant: each compiled program"
        " contains a copy, and takes longer to compile"
    ),
    "fix-pass-on": "pass {constant} to {function} as an argument, and from there to {inner}",
    "one-of": "one of {names}",
    "unnamed-array": "an array without a name",
    "fix-pass-as-argument": "pass {constant} as an argument",
    "fix-pass-inner": (
        "{function} calls another function, which reads {constant} from outside. Pass {constant} to"
        " {function} as an argument (a jax.Array), and from there to the other function; if you cannot change"
        " that function, do its work in {function} instead of calling it"
    ),
}
