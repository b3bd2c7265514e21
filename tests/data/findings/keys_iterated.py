# a new key for each parameter, taken from an array of more keys than are needed
import jax

keys = iter(jax.random.split(jax.random.key(0), 1024))
params = {
    "layer1": {"w": jax.random.normal(next(keys), (64, 32))},  # must: JX133 first ~ fold_in
    "layer2": {"w": jax.random.normal(next(keys), (32, 16))},
}
print(sum(float(x.sum()) for x in jax.tree.leaves(params)))
