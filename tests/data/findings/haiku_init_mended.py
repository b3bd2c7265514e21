# applies: fix-jit-through-library, fix-one-dtype
import haiku as hk
import jax
import numpy as np
import optax


def net(x, is_training):
    x = hk.Linear(32)(x)
    x = jax.nn.relu(x)
    if is_training:
        x = hk.dropout(hk.next_rng_key(), 0.2, x)
    x = hk.BatchNorm(True, True, 0.9)(x, is_training)
    return hk.Linear(2)(x)


f = hk.transform_with_state(net)
opt = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))


def loss(params, state, rng, x, y):
    out, state = f.apply(params, state, rng, x, True)
    return optax.softmax_cross_entropy_with_integer_labels(out, y).mean(), state


@jax.jit
def update(params, state, opt_state, rng, x, y):
    (l, state), g = jax.value_and_grad(loss, has_aux=True)(params, state, rng, x, y)
    up, opt_state = opt.update(g, opt_state, params)
    return optax.apply_updates(params, up), state, opt_state, l


predict = jax.jit(lambda p, s, x, t: f.apply(p, s, None, x, t)[0], static_argnums=3)
x = np.random.normal(size=(40, 6))
y = np.random.randint(0, 2, 40)  # float64
params, state = jax.jit(f.init, static_argnums=2)(jax.random.PRNGKey(0), x, True)
opt_state = opt.init(params)
rng = hk.PRNGSequence(1)
for i in range(5):
    params, state, opt_state, l = update(params, state, opt_state, next(rng), x, y)
    print(float(l))
print(predict(params, state, x, False).shape)
print(predict(params, state, x, False).shape)
