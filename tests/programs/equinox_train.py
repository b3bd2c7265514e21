"""Equinox: an `eqx.nn.MLP` fitted with optax, `@eqx.filter_jit`, and a static flag."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax


@eqx.filter_value_and_grad
def loss_fn(model, x, y, l2):
    pred_y = jax.vmap(model)(x)
    loss = jnp.mean((y - pred_y) ** 2)
    if l2:
        weights = jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
        loss = loss + 1e-4 * sum(jnp.sum(w**2) for w in weights)
    return loss


@eqx.filter_jit
def make_step(model, opt_state, optim, x, y, l2=False):
    loss, grads = loss_fn(model, x, y, l2)
    updates, opt_state = optim.update(grads, opt_state, model)
    model = eqx.apply_updates(model, updates)
    return model, opt_state, loss


@eqx.filter_jit
def evaluate(model, x, y):
    return jnp.mean((y - jax.vmap(model)(x)) ** 2)


def main():
    data_key, model_key = jr.split(jr.PRNGKey(0))
    x = jr.normal(data_key, (64, 2))
    y = x[:, :1] * x[:, 1:]
    model = eqx.nn.MLP(in_size=2, out_size=1, width_size=16, depth=2, key=model_key)
    optim = optax.adam(1e-2)
    opt_state = optim.init(eqx.filter(model, eqx.is_inexact_array))

    before = evaluate(model, x, y)
    for step in range(60):
        model, opt_state, _ = make_step(model, opt_state, optim, x, y, l2=step >= 50)
    after = evaluate(model, x, y)
    print(f"equinox: before {before:.3f} falls {bool(after < before)}")


if __name__ == "__main__":
    main()
