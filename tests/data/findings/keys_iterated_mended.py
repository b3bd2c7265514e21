# Mended: a key for each parameter is made where it is needed
# applies: fix-iterate-keys
# may: JX133 note
import jax

key = jax.random.key(0)
params = {
    "layer1": {
        "w": jax.random.normal(jax.random.fold_in(key, 0), (64, 32)),
    },
    "layer2": {"w": jax.random.normal(jax.random.fold_in(key, 1), (32, 16))},
}
print(sum(float(x.sum()) for x in jax.tree.leaves(params)))
