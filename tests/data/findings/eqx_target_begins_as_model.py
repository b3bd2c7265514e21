# equinox: a target that begins as the model itself, so that the first step is passed each array twice
import equinox as eqx
import jax
import jax.numpy as jnp


class Net(eqx.Module):
    w: jax.Array
    act: callable

    def __call__(self, x):
        return self.act(x @ self.w)


@eqx.filter_jit
def train_step(model, target, x):
    def loss_fn(model):
        return jnp.mean((model(x) - target(x)) ** 2)

    grads = eqx.filter_grad(loss_fn)(model)
    model = eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, grads))
    target = jax.tree.map(lambda t, m: 0.9 * t + 0.1 * m if eqx.is_array(t) else t, target, model)
    return model, target


def main():
    model = Net(jnp.ones((2560, 2560)), jnp.tanh)
    target = model
    for i in range(5):
        model, target = train_step(model, target, jnp.full((8, 2560), i))  # must: JX506 first ~ Wherever target is set to model, copy instead.* make x the first parameter.* A call then deletes the arrays of model and target
    print(model.w.sum(), target.w.sum())


main()
